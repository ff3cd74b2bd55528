"""Cancelling calls by their ids, at any moment of their lives: nothing is left, one end each."""

import asyncio
import gc
import random
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest

from toolcell import ApprovalRequest, Event, RunOptions, ToolCall, ToolPolicy, ToolResult

pytestmark = pytest.mark.isolation

_CALLS, _AT_ONCE = 200, 8

_TOOLS = """
import asyncio
from toolcell import ToolError, tool

@tool
def nap(number: int) -> str:
    return "rested"

@tool(isolation="inline", idempotent=True, retries=3)
async def fetch() -> None:
    await asyncio.sleep(0.005)
    raise ToolError("busy", retryable=True)
"""

# Each is a kind of cell of its own, whose launcher is started for the call.
_KINDS = [
    {
        "id": f"nap-{number}",
        "tool": "nap",
        "args": {"number": number},
        "limits": {"processes": 100 + number},
    }
    for number in range(5, _CALLS, 12)
]


def _descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def _call(number: int, mark: str) -> ToolCall:
    """Calls that are short, go on for ever, leave their group, flood, pause, need a launcher."""
    kinds: list[tuple[str, dict[str, Any]]] = [
        ("shell", {"command": "echo begun"}),
        ("shell", {"command": f"echo begun; setsid sleep {mark} & sleep {mark}"}),
        ("shell", {"command": "yes | head -c 30000000"}),
        ("shell", {"command": "for f in a b; do echo $f; sleep 0.02; done"}),
        ("fetch", {}),
        ("nap", {"number": number}) if number % 12 == 5 else ("echo", {"text": "x"}),
    ]
    name, arguments = kinds[number % len(kinds)]
    return ToolCall(call_id=f"cancelled-{number}", name=name, arguments=arguments)


async def _slow(stream: str, data: bytes) -> None:
    await asyncio.sleep(0.001)


@pytest.mark.attack
async def test_two_hundred_calls_that_are_cancelled_at_random_moments_leave_nothing(
    runner: Any,
    module: Any,
    processes: Any,
    until: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    chance, mark = random.Random(5), f"37.{random.randrange(10**6, 10**7)}"
    events: list[Event] = []
    tools = module(_TOOLS)
    gc.collect()
    tasks, descriptors = asyncio.all_tasks(), _descriptors()
    run = runner(
        *(tools.nap, tools.fetch),
        policy=ToolPolicy(allow={"*": "a test"}, rules=_KINDS, limits={"wall": 10}),
        events=events.append,
        max_running=_AT_ONCE // 2,
    )
    line = asyncio.Semaphore(_AT_ONCE)

    async def one(number: int, moment: float) -> None:
        async with line:
            call = _call(number, mark)
            options = RunOptions(tap=_slow) if number % 3 == 0 else None
            task = asyncio.create_task(run.controller.handle(call, options))
            await asyncio.sleep(moment)
            cancelled = run.controller.cancel(call.call_id)
            result = await task
            assert isinstance(result, ToolResult)
            # Whoever is told that it was cancelled finds it so; what had ended before stays so.
            assert (result.status == "cancelled") is cancelled, (number, result)

    await asyncio.gather(
        *(
            one(number, chance.choice((0, chance.uniform(0, 0.01), chance.uniform(0, 0.08))))
            for number in range(_CALLS)
        )
    )
    ends = Counter(each.call_id for each in events if each.kind == "finished")
    assert set(ends.values()) == {1}
    assert len(ends) == _CALLS
    borders = Counter(str(each.kind) for each in events)
    assert borders["received"] == _CALLS > borders["started"] > 0, "some were stopped before"
    assert (await run.sh("echo still works")).output == "still works\n"
    await run.controller.close()
    await until(lambda: not processes(mark), "no process of a call is left")
    await until(lambda: asyncio.all_tasks() <= tasks, "no task is left")
    gc.collect()
    assert psutil.Process().children() == []
    assert list(scratch.iterdir()) == []
    # One more than before is the loop's own, for the children that it watches.
    assert _descriptors() <= descriptors + 1


@pytest.mark.any_user
async def test_a_call_is_cancelled_while_its_cell_is_being_made(runner: Any) -> None:
    run = runner(spare_cells=0)
    call = ToolCall(call_id="early", name="echo", arguments={"text": "x"})
    task = asyncio.create_task(run.controller.handle(call))
    while not run.controller.runtime.supply._pools._pools:
        await asyncio.sleep(0)
    assert run.controller.cancel("early")
    result = await task
    assert (result.status, result.source) == ("cancelled", "controller")
    assert result.error.message == "the call was cancelled before it ran"
    assert (await run("echo", text="next")).success


@pytest.mark.any_user
async def test_a_call_is_cancelled_while_it_waits_for_its_place(
    runner: Any, workspace: Path, until: Any
) -> None:
    run = runner(max_running=1)
    first = asyncio.create_task(run.sh("touch on; sleep 30"))
    await until((workspace / "on").exists, "the first call runs")
    running = run.last_id
    second = asyncio.create_task(run("echo", text="x"))
    await asyncio.sleep(0)
    assert run.controller.cancel(run.last_id)
    assert (await second).error.message == "the call was cancelled before it ran"
    assert run.controller.cancel(running)
    assert (await first).status == "cancelled"


@pytest.mark.any_user
async def test_a_call_is_cancelled_while_its_line_is_read(
    runner: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = asyncio.Event()

    async def read(self: object, prepared: object) -> None:
        reading.set()
        await asyncio.Event().wait()

    events: list[Event] = []
    run = runner(events=events.append)
    monkeypatch.setattr("toolcell.policy.Decider.read_ahead", read)
    task = asyncio.create_task(run.sh("echo x"))
    await reading.wait()
    assert run.controller.cancel(run.last_id)
    assert (await task).status == "cancelled"
    assert [str(each.kind) for each in events] == ["received", "prepared", "finished"]


@pytest.mark.any_user
async def test_a_call_is_cancelled_while_its_output_is_taken(run: Any) -> None:
    taking = asyncio.Event()

    async def hold(stream: str, data: bytes) -> None:
        taking.set()
        await asyncio.Event().wait()

    call = ToolCall(call_id="held", name="shell", arguments={"command": "echo so far"})
    task = asyncio.create_task(run.controller.handle(call, RunOptions(tap=hold)))
    await taking.wait()
    assert run.controller.cancel("held")
    result = await task
    assert (result.status, result.output) == ("cancelled", "so far\n")


@pytest.mark.any_user
@pytest.mark.parametrize("waited_for", [True, False])
async def test_a_call_that_waits_for_a_person_is_ended_by_taking_the_question_back(
    runner: Any, until: Any, waited_for: bool
) -> None:
    events: list[Event] = []
    run = runner(policy=ToolPolicy(ask={"echo": "why"}), events=events.append)
    call = ToolCall(call_id="asked", name="echo", arguments={"text": "x"})
    request = await run.controller.handle(call)
    assert isinstance(request, ApprovalRequest)
    waiting = asyncio.create_task(run.controller.wait(request)) if waited_for else None
    await asyncio.sleep(0.01)
    assert run.controller.cancel("asked")
    if waiting:
        result = await waiting
        assert (result.status, result.error.category) == ("cancelled", "cancelled")
    assert run.controller.approvals.get(request.approval_id).state == "cancelled"
    ends = [each.data["status"] for each in events if each.kind == "finished"]
    assert ends == ["cancelled"]
    assert not run.controller.cancel("asked")
    assert (await run.controller.wait(request)).status != "succeeded"
    assert len([each for each in events if each.kind == "finished"]) == 1
