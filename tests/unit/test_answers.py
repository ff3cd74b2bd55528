"""Claims of `toolcell.answers`: what toolcell answers itself ends in one result like all else."""

import asyncio

import pytest

from toolcell import Grant, Limits, ToolCall, ToolDefinition, ToolError, ToolRegistry, ToolRuntime
from toolcell.errors import StoreError
from toolcell.model import CellSettings
from toolcell.normalizer import Origin

from .samples import schema_tool

ASKING: ToolDefinition = schema_tool({"properties": {"text": {"type": "string"}}}).model_copy(
    update={"isolation": "controller"}
)


async def ask(answerer, wall=5.0, then=None):
    runtime = ToolRuntime(ToolRegistry([ASKING]))
    if answerer:
        runtime.answerers[ASKING.name] = answerer
    call = ToolCall(call_id="c", name=ASKING.name, arguments={"text": "x"})
    prepared = runtime.prepare(call)
    grant = Grant(prepared.digest, Origin(call), CellSettings(), Limits(wall=wall))
    running = asyncio.ensure_future(runtime.execute(prepared, grant))
    if then:
        await then(runtime)
    return await running


async def test_the_answerer_of_the_tools_name_answers_and_no_cell_is_made():
    async def answerer(prepared):
        return {"given": prepared.arguments}

    made = await ask(answerer)
    assert made.structured == {"given": {"text": "x"}}
    assert (made.source, made.enforcement.rung, made.success) == ("inline", "inline", True)


@pytest.mark.parametrize(
    ("error", "message", "hint"),
    [
        (ToolError("no", hint="do"), "no", "do"),
        (StoreError("a file is gone"), "a file is gone", ""),
    ],
)
async def test_what_it_cannot_do_is_told_to_the_model(error, message, hint):
    async def answerer(prepared):
        raise error

    made = await ask(answerer)
    assert (made.error.category, made.error.message) == ("tool_error", message)
    assert made.error.hint == hint


async def test_a_defect_of_ours_surfaces():
    async def answerer(prepared):
        raise AttributeError("ours")

    with pytest.raises(AttributeError, match="ours"):
        await ask(answerer)


async def test_a_tool_that_nobody_answers_says_so():
    assert "switched off" in (await ask(None)).error.message


async def test_an_answer_that_does_not_come_ends_at_the_wall():
    made = await ask(lambda prepared: asyncio.sleep(60), wall=0.01)
    assert (made.status, made.error.category) == ("timed_out", "wall")


async def test_an_answer_can_be_cancelled():
    asked = asyncio.Event()

    async def answerer(prepared):
        asked.set()
        await asyncio.sleep(60)

    async def close(runtime):
        await asked.wait()
        await runtime.close()

    assert (await ask(answerer, then=close)).error.category == "cancelled"
