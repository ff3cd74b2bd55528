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

from toolcell import Event, RunOptions, ToolCall, ToolResult

pytestmark = pytest.mark.isolation

_CALLS = 200
_AT_ONCE = 8


def _descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def _command(number: int, mark: str) -> str:
    """Calls that are short, that go on for ever, that flood, and that leave the group behind."""
    return (
        "echo begun",
        f"echo begun; setsid sleep {mark} & sleep {mark}",
        "yes | head -c 30000000",
        "echo begun; sleep 0.02; echo done",
    )[number % 4]


@pytest.mark.attack
async def test_two_hundred_calls_that_are_cancelled_at_random_moments_leave_nothing(
    runner: Any, processes: Any, until: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    events: list[Event] = []
    run = runner(events=events.append, max_running=_AT_ONCE // 2)
    await asyncio.gather(*(run("echo", text="warm") for _ in range(4)))
    chance, mark = random.Random(5), f"37.{random.randrange(10**6, 10**7)}"
    tasks_before = asyncio.all_tasks()
    line = asyncio.Semaphore(_AT_ONCE)

    async def slow(stream: str, data: bytes) -> None:
        await asyncio.sleep(0.001)

    async def one(number: int, moment: float) -> None:
        async with line:
            call_id = f"cancelled-{number}"
            command = {"command": _command(number, mark)}
            call = ToolCall(call_id=call_id, name="shell", arguments=command)
            options = RunOptions(tap=slow) if number % 3 == 0 else None
            task = asyncio.create_task(run.controller.handle(call, options))
            await asyncio.sleep(moment)
            cancelled = run.controller.cancel(call_id)
            result = await task
            assert isinstance(result, ToolResult)
            # Whoever is told that it was cancelled finds it so; what had ended before stays so.
            assert (result.status == "cancelled") is cancelled, (number, result)

    moments = [
        chance.choice((0, chance.uniform(0, 0.01), chance.uniform(0, 0.06))) for _ in range(_CALLS)
    ]
    await asyncio.gather(*(one(number, moment) for number, moment in enumerate(moments)))
    ends = Counter(each.call_id for each in events if each.kind == "finished")
    assert {call: n for call, n in ends.items() if n != 1} == {}
    assert sum(call.startswith("cancelled-") for call in ends) == _CALLS
    reached = {each.kind for each in events if each.call_id.startswith("cancelled-")}
    assert {"received", "started", "ended"} <= reached, "they got as far as running"
    assert (await run.sh("echo still works")).output == "still works\n"
    await run.controller.close()
    gc.collect()
    await until(lambda: not processes(mark), "no process of a call is left")
    await until(lambda: asyncio.all_tasks() <= tasks_before, "no task is left")
    assert psutil.Process().children() == []
    assert list(scratch.iterdir()) == []
