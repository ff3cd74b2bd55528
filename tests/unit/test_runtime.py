"""Claims of `toolcell.runtime`: no execution without a grant, one execution a grant."""

import asyncio

import pytest

from toolcell.errors import GrantError, RegistrationError, ToolcellError
from toolcell.grants import Grant
from toolcell.model import Category, CellSettings, Limits, PreparedToolCall, ToolCall
from toolcell.normalizer import Origin
from toolcell.registry import ToolRegistry
from toolcell.runtime import ToolRuntime

from .samples import inline, schema_tool


def double(x: int) -> int:
    return 2 * x


async def hold(x: int) -> int:
    await asyncio.sleep(x)
    return x


@pytest.fixture
def runtime():
    return ToolRuntime(ToolRegistry([inline(double), inline(hold)]), max_running=1, max_waiting=1)


def prepare(runtime, name="double", **arguments) -> PreparedToolCall:
    prepared = runtime.prepare(ToolCall(call_id="c1", name=name, arguments=arguments))
    assert isinstance(prepared, PreparedToolCall)
    return prepared


def grant(prepared, **limits) -> Grant:
    origin = Origin(prepared.call)
    return Grant(prepared.digest, origin, CellSettings(), Limits.model_validate(limits))


async def test_a_granted_call_runs(runtime):
    prepared = prepare(runtime, x=2)
    assert (await runtime.execute(prepared, grant(prepared))).structured == 4


async def test_a_grant_is_good_for_one_execution(runtime):
    prepared = prepare(runtime, x=2)
    once = grant(prepared)
    await runtime.execute(prepared, once)
    with pytest.raises(GrantError, match="has been spent"):
        await runtime.execute(prepared, once)


async def test_a_grant_is_good_for_its_own_call_only(runtime):
    with pytest.raises(GrantError, match="another prepared call"):
        await runtime.execute(prepare(runtime, x=2), grant(prepare(runtime, x=3)))


def test_preparing_says_what_is_wrong_and_which_tools_there_are(runtime):
    unknown = runtime.prepare(ToolCall(call_id="c1", name="duble"))
    assert unknown.error.category is Category.UNKNOWN_TOOL
    assert unknown.error.hint == "the tools are double, hold"
    invalid = runtime.prepare(ToolCall(call_id="c1", name="double", arguments={"x": "2"}))
    assert invalid.error.category is Category.INVALID_ARGUMENTS
    assert invalid.error.message == '`x`: expected an integer, got "2"'


def test_a_tool_whose_schema_cannot_be_used_is_refused_before_any_call():
    with pytest.raises(RegistrationError, match="input schema cannot be used"):
        ToolRuntime(ToolRegistry([schema_tool({"type": "nonsense"})]))


async def test_calls_beyond_those_running_and_waiting_are_rejected_as_overloaded(runtime):
    calls = [prepare(runtime, "hold", x=0) for _ in range(4)]
    results = await asyncio.gather(*(runtime.execute(call, grant(call)) for call in calls))
    refused = [result.error for result in results if result.error]
    assert [error.category for error in refused] == [Category.OVERLOADED] * 2
    assert all(error.retryable for error in refused)


async def test_a_tools_own_timeout_can_only_shorten_the_policys():
    slow = inline(hold).model_copy(update={"timeout": 0.05})
    runtime = ToolRuntime(ToolRegistry([slow]))
    prepared = prepare(runtime, "hold", x=30)
    result = await runtime.execute(prepared, grant(prepared, wall=60))
    assert "time limit of 0.05 s" in result.error.message
    longer = ToolRuntime(ToolRegistry([slow.model_copy(update={"timeout": 60.0})]))
    prepared = prepare(longer, "hold", x=30)
    result = await longer.execute(prepared, grant(prepared, wall=0.05))
    assert "time limit of 0.05 s" in result.error.message


def test_a_runtime_inside_a_cell_is_refused_with_the_remedy(monkeypatch):
    monkeypatch.setenv("TOOLCELL_CELL", "1")
    with pytest.raises(ToolcellError, match="__main__"):
        ToolRuntime(ToolRegistry())
