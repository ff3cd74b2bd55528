"""Claims of `toolcell.testing`: short tests of agents that meet real results and do not wait."""

import asyncio
import re
import runpy
import subprocess
import sys
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest

from toolcell import Budget, RunOptions, ToolCall, ToolError, ToolPolicy, ToolRegistry
from toolcell.errors import ToolcellError
from toolcell.events import EventKind
from toolcell.testing import (
    Answers,
    AsyncFakeController,
    Exceeds,
    Exits,
    FakeClock,
    FakeController,
    Floods,
    Hangs,
    IsKilled,
    IsLost,
    NoCell,
    Recording,
    UnscriptedCallError,
    Waits,
    scripted,
)

from .samples import inline, schema_tool


def agent(controller) -> str:
    """A small agent: it fetches a page, tries once more where that may help, and sums it up."""
    page = controller.call("fetch", url="https://example.org")
    if page.error and "busy" in page.error.message:
        page = controller.call("fetch", url="https://example.org")
    return controller.call("summarise", text=page.output).output


def test_an_agent_is_tested_in_a_few_lines():
    with FakeController(
        {"fetch": [ToolError("busy"), "a page"], "summarise": "short"}
    ) as controller:
        assert agent(controller) == "short"
    assert controller.calls.names == ["fetch", "fetch", "summarise"]
    controller.calls.assert_called("summarise", text="a page")
    controller.calls.assert_order("fetch", "summarise")
    controller.calls.assert_not_called("delete")


@pytest.mark.parametrize(
    ("step", "category", "words"),
    [
        ("an answer", None, "an answer"),
        ({"a": [1, 2]}, None, '{"a": [1, 2]}'),
        (ToolError("no", "try b"), "tool_error", "Hint: try b"),
        (ValueError("odd"), "exception", "ValueError: odd"),
        (Hangs(stdout="so far"), "wall", "so far"),
        (Exits(3, stderr="usage: x"), "exit_code", "code 3"),
        (Exits(0, stdout="ok"), None, "ok"),
        (IsKilled("SIGSEGV"), "signal", "SIGSEGV"),
        (Exceeds("memory"), "memory", "bytes of memory"),
        (Exceeds("cpu"), "cpu", "CPU time"),
        (Exceeds("processes"), "processes", "processes"),
        (Floods(10_000_000), None, "y\n"),
        (IsLost(), "worker_lost", "lost"),
        (NoCell("no room"), "cell_setup", "no room"),
        (Answers(seconds=99), "wall", "time limit of 30 s"),
        (lambda x: f"got {x}", None, "got 1"),
    ],
)
def test_each_behaviour_comes_to_the_result_that_a_cell_would(step, category, words):
    with FakeController({"work": [step]}) as controller:
        result = controller.call("work", x=1)
    assert (result.error.category if result.error else None) == category
    assert words in result.for_llm()


def test_a_flood_is_cut_and_counted_as_one_of_a_cell_is():
    with FakeController({"work": Floods(10_000_001)}) as controller:
        result = controller.call("work")
    shown = len(result.output.encode())
    assert (result.truncation.total_bytes, shown < 40_000) == (10_000_001, True)


@pytest.mark.parametrize("size", [1, 3, 131_071, 131_073, 262_145, 1_000_001])
def test_a_flood_of_any_size_has_the_ends_that_it_says(size):
    with FakeController({"work": Floods(size, line="abc\n")}) as controller:
        taken = b"".join(
            chunk.data for chunk in controller.stream(ToolCall(call_id="1", name="work"))
        )
    whole = b"abc\n" * (size // 4 + 1)
    assert taken[:131_072] == whole[: min(size, 131_072)]
    assert taken[-2:] == whole[:size][-2:]


def test_policy_approvals_and_budgets_are_real():
    policy = ToolPolicy(allow=["read"], ask={"send": "it reaches others"})
    with FakeController(
        {"read": "x", "send": ["sent"], "wipe": "gone"}, policy, budget=Budget(calls=2)
    ) as controller:
        assert controller.call("wipe").error.category == "policy_denied"
        request = controller.call("send", to="ada")
        assert controller.approve(request).output == "sent"
        denied = controller.deny(controller.call("send", to="bob"), note="not him")
        assert "not him" in denied.error.message
        assert controller.call("read").success
        assert controller.call("read").error.category == "budget_spent"
    assert [call.result and call.result.status for call in controller.calls] == [
        *("rejected", "succeeded", "rejected", "succeeded", "rejected")
    ]


def test_a_question_that_nobody_answers_expires_without_any_waiting():
    began = time.monotonic()
    with FakeController({"send": "sent"}, ToolPolicy(ask={"send": "why"})) as controller:
        request = controller.call("send")
        assert controller.wait(request).error.category == "approval_expired"
        assert controller.clock() >= request.expires_at
    assert time.monotonic() - began < 60, "an hour by the clock of the test"


def test_a_clock_by_hand_stands_still():
    clock = FakeClock()
    with FakeController(
        {"send": "sent"}, ToolPolicy(ask={"send": "why"}), clock=clock
    ) as controller:
        request = controller.call("send")
        clock.advance(3599)
        assert controller.approve(request).success
        late = controller.call("send")
        clock.advance(3601)
        assert controller.approve(late).error.category == "approval_expired"


async def test_time_passes_in_its_order_and_only_as_it_is_told():
    clock, woken = FakeClock(), []

    async def sleep(seconds):
        await clock.sleep(seconds)
        woken.append((seconds, clock.monotonic()))

    sleeping = [asyncio.create_task(sleep(seconds)) for seconds in (3, 1, 2)]
    await asyncio.sleep(0)
    clock.advance(2.5)
    for _ in range(3):
        await asyncio.sleep(0)
    assert [seconds for seconds, _ in woken] == [1, 2]
    clock.advance(1)
    await asyncio.gather(*sleeping)
    assert (clock.monotonic(), clock.waiting) == (3.5, 0)
    assert clock() - timedelta(seconds=3.5) == FakeClock()()


async def test_what_pauses_together_lets_the_time_pass_once():
    clock = FakeClock(auto=True)
    await asyncio.gather(*(clock.sleep(5) for _ in range(3)), clock.sleep(7))
    assert clock.monotonic() == 7


def test_tries_and_their_pauses_go_by_the_clock():
    busy = ToolError("busy", retryable=True)
    fetch = scripted("fetch", busy, busy, "page", idempotent=True, retries=3)
    events = []
    with FakeController([fetch], events=events.append) as controller:
        result = controller.call("fetch")
    assert (result.output, result.metadata.attempts) == ("page", 3)
    assert controller.clock.monotonic() == pytest.approx(0.15)
    assert sum(event.kind is EventKind.STARTED for event in events) == 3


def test_a_tools_deadline_and_the_hosts_go_by_the_clock():
    with FakeController([scripted("work", Hangs(), Hangs(), timeout=5)]) as controller:
        assert "the limit is the tool's own" in controller.call("work").error.message
        assert controller.clock.monotonic() == 5
        call = ToolCall(call_id="1", name="work")
        result = controller.handle(call, RunOptions(deadline=2))
        assert "of the 2 s that the host gave" in result.error.message
        assert controller.clock.monotonic() == 7


async def test_a_call_is_cancelled_while_it_hangs():
    async with AsyncFakeController({"work": Hangs(stdout="so far")}, clock=FakeClock()) as made:
        running = asyncio.create_task(made.call("work"))
        while not made.clock.waiting:
            await asyncio.sleep(0)
        assert made.cancel("call-1")
        result = await running
    assert (result.status, result.output) == ("cancelled", "so far")


def test_a_waiting_tool_settles_as_the_script_says():
    handle = {"type": "object", "properties": {"handle": {"type": "string"}}}
    job = scripted("job", Waits("j", note="soon"), poll="check")
    check = scripted("check", Waits("j"), "done", schema=handle)
    with FakeController([job, check]) as controller:
        result = controller.call("job")
        while result.waiting:
            result = controller.poll(result)
        assert (result.output, controller.calls[0].settled) == ("done", "succeeded")


def test_a_call_that_the_script_does_not_have_fails_the_test():
    controller = FakeController({"work": ["once"]})
    assert controller.call("work").output == "once"
    with pytest.raises(UnscriptedCallError, match="no step left"), controller:
        controller.call("work")


def ask_for(controller, name):
    """An agent that takes whatever a tool raises for an answer."""
    with suppress(AssertionError):
        return controller.call(name)


@pytest.mark.parametrize("script", [{"work": "x"}, [scripted("work", "x")], {"work": []}])
def test_an_agent_that_catches_what_its_tools_raise_fails_the_test_too(script):
    name = "work" if script == {"work": []} else "wrok"
    controller = FakeController(script)
    with pytest.raises(UnscriptedCallError, match=f"{name} was called with {{}}"), controller:
        assert ask_for(controller, name) is None
    for claim in (
        lambda: controller.calls.assert_not_called("other"),
        lambda: controller.calls.assert_called(name),
        lambda: controller.calls.assert_order(),
    ):
        with pytest.raises(UnscriptedCallError):
            claim()


async def test_an_async_agent_that_catches_what_its_tools_raise_fails_the_test_too():
    async def catches():
        async with AsyncFakeController({"work": "x"}) as controller:
            with suppress(AssertionError):
                await controller.call("wrok")

    with pytest.raises(UnscriptedCallError, match="the script names work"):
        await catches()


def test_what_else_failed_a_test_is_not_hidden_by_a_call_of_no_script():
    controller = FakeController({"work": "x"})
    ask_for(controller, "wrok")
    with pytest.raises(KeyError), controller:
        raise KeyError


def test_with_a_registry_a_tool_of_no_name_is_answered_as_a_model_would_be():
    with FakeController({"raw": 1}, registry=ToolRegistry([schema_tool({})])) as controller:
        assert controller.call("wrok").error.category == "unknown_tool"


def test_scripts_of_another_registry_validate_calls_as_its_tools_do():
    def add(a: int, b: int = 2) -> int:
        raise AssertionError("it is played, not run")

    registry = ToolRegistry([inline(add)])
    with FakeController({"add": 5}, registry=registry) as controller:
        assert controller.call("add", a="x").error.category == "invalid_arguments"
        assert controller.call("add", a=1).structured == 5
        controller.calls.assert_called("add", a=1, b=2)
    with FakeController(lambda call: call.arguments["a"] * 3, registry=registry) as controller:
        assert controller.call("add", a=4).structured == 12
    with pytest.raises(ToolcellError, match="'sub', which is not a tool here"):
        FakeController({"sub": 1}, registry=registry)
    with pytest.raises(ToolcellError, match="needs a `registry`"):
        FakeController(lambda call: 1)


def test_recorded_results_are_played_again_for_the_same_calls(tmp_path):
    registry, recording = ToolRegistry([schema_tool({"type": "object"})]), Recording()
    real = {"raw": [Answers("a", stdout="p"), ToolError("b")]}
    with FakeController(real, registry=registry) as controller:
        for x in (1, 2):
            call = ToolCall(call_id=f"real-{x}", name="raw", arguments={"x": x})
            recording.add(call, controller.handle(call))
    recording.save(tmp_path / "calls.jsonl")
    again = Recording.load(tmp_path / "calls.jsonl")
    assert len(again) == 2
    with FakeController(again, registry=registry) as controller:
        assert controller.call("raw", x=2).error.message == "b"
        first = controller.call("raw", x=1)
        assert (first.output, first.metadata.stdout, first.call_id) == ("a", "p", "call-2")
    controller = FakeController(again, registry=registry)
    with pytest.raises(UnscriptedCallError, match="no result of raw"), controller:
        controller.call("raw", x=1)


def test_assertions_say_what_was_called_instead():
    with FakeController({"work": "x"}) as controller:
        controller.call("work", x=1)
    for claim, words in (
        (lambda: controller.calls.assert_called("work", x=2), "of work there are: \\[{'x': 1}\\]"),
        (lambda: controller.calls.assert_called("play"), "the calls are \\['work'\\]"),
        (lambda: controller.calls.assert_not_called("work"), "work was called"),
        (lambda: controller.calls.assert_order("work", "work"), "in the order"),
    ):
        with pytest.raises(AssertionError, match=words):
            claim()


def test_the_kit_imports_no_test_framework():
    code = "import sys, toolcell.testing; print('pytest' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_the_example_is_as_it_says():
    example = Path(__file__).parents[2] / "examples" / "testing" / "test_agent.py"
    found = runpy.run_path(str(example))
    tests = [each for name, each in found.items() if name.startswith("test_")]
    assert len(tests) == 5
    for each in tests:
        each()


def test_the_example_of_the_documentation_does_what_it_says():
    page = Path(__file__).parents[2] / "docs" / "testing.md"
    (example,) = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    exec(compile(example, str(page), "exec"), {})
