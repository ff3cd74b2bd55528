"""Nothing outlives a call, and nothing of a call is left with the controller."""

import asyncio
import gc
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from toolcell import ToolCall

pytestmark = pytest.mark.isolation

_ORPHANS = {
    "a background child": "sleep 31.{n} & echo started",
    "a session of its own": "setsid sleep 31.{n} & echo started",
    "a double fork": "(setsid sh -c 'sleep 31.{n} & sleep 31.{n}' &) ; echo started",
    "a process substitution": "echo started > >(cat; sleep 31.{n})",
    "one deaf to SIGTERM": "(trap '' TERM HUP; setsid sleep 31.{n}) & echo started",
    "nohup": "nohup sleep 31.{n} & echo started",
}


@pytest.mark.attack
@pytest.mark.parametrize("kind", _ORPHANS)
async def test_a_success_is_not_delayed_and_leaves_no(run: Any, processes: Any, kind: str) -> None:
    mark = f"31.{random.randrange(10**6, 10**7)}"
    began = time.monotonic()
    result = await run.sh(_ORPHANS[kind].replace("31.{n}", mark))
    assert result.success, result.for_llm()
    assert time.monotonic() - began < 3
    assert "started" in result.output or kind == "a process substitution"
    assert processes(mark) == []


@pytest.mark.attack
@pytest.mark.parametrize("kind", _ORPHANS)
async def test_the_deadline_holds_whatever_was_started(
    runner: Any, processes: Any, kind: str
) -> None:
    mark = f"32.{random.randrange(10**6, 10**7)}"
    run = runner(limits={"wall": 0.4})
    began = time.monotonic()
    result = await run.sh(
        f"{_ORPHANS[kind]}; sleep 32.x".replace("31.{n}", mark).replace("32.x", mark)
    )
    assert result.status == "timed_out"
    assert time.monotonic() - began < 2
    assert processes(mark) == []
    assert result.metadata.survivors_checked


async def test_the_control_such_children_do_live_on_without_a_cell(
    processes: Any, until: Any
) -> None:
    mark = f"33.{random.randrange(10**6, 10**7)}"
    subprocess.run(["sh", "-c", f"setsid sleep {mark} >/dev/null 2>&1 & true"], check=True)
    await until(lambda: processes(f"sleep\0{mark}"), "the sleep lives on")
    for pid in processes(mark):
        os.kill(pid, signal.SIGKILL)


@pytest.mark.attack
async def test_a_tool_that_ignores_sigterm_is_killed_after_its_grace(runner: Any) -> None:
    run = runner(limits={"wall": 0.3, "grace": 0.3})
    deaf = await run.py("import signal, time\nsignal.signal(15, signal.SIG_IGN)\ntime.sleep(30)")
    assert deaf.status == "timed_out"
    assert 550 < deaf.latency_ms < 3000
    polite = await run.sh("trap 'echo tidied; exit 0' TERM; sleep 30 & wait")
    assert polite.status == "timed_out"
    assert polite.output == "tidied\n"


_CONTROLLER = """
import asyncio, sys
from toolcell import ToolCall, ToolController, ToolRegistry
async def main():
    async with ToolController(ToolRegistry.builtin(), workspace=sys.argv[1]) as controller:
        await asyncio.gather(*(controller.handle(ToolCall(call_id=str(n), name="shell",
            arguments={"command": f"touch on{n}; setsid sleep %(mark)s & sleep %(mark)s"}))
            for n in range(2)))
asyncio.run(main())
"""


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.attack
async def test_the_death_of_the_controller_ends_every_cell(
    workspace: Path, processes: Any, until: Any
) -> None:
    mark = f"34.{random.randrange(10**6, 10**7)}"
    command = [sys.executable, "-c", _CONTROLLER % {"mark": mark}, str(workspace)]
    with subprocess.Popen(command) as process:
        await until(lambda: len(list(workspace.iterdir())) == 2, "both calls run")
        family = psutil.Process(process.pid).children(recursive=True)
        assert len(family) > 6, "keeper, launcher, and inits, shells and sleeps"
        process.kill()
    await until(lambda: not any(map(_lives, family)), "all are gone", seconds=2)
    assert processes(mark) == []


_AT_REST = 6
"""Keeper and launcher, and the init and the worker of two cells that wait for calls."""


def _family() -> list[psutil.Process]:
    """The keeper and the launcher, in this order, then all of the cells."""
    keeper = psutil.Process().children()[0]
    launcher = keeper.children()[0]
    return [keeper, launcher, *launcher.children(recursive=True)]


@pytest.mark.attack
@pytest.mark.parametrize("which", [0, 1])
async def test_the_death_of_keeper_or_launcher_is_survived(
    run: Any, which: int, workspace: Path, until: Any
) -> None:
    assert (await run.sh("true")).success
    running = asyncio.create_task(run.sh("touch on; sleep 30"))
    await until((workspace / "on").exists, "a call runs")
    family = _family()
    family[which].kill()
    lost = await running
    assert lost.error.category in ("worker_lost", "signal")
    await until(lambda: not any(map(_lives, family)), "its family is gone")
    results = [await run.sh("echo again") for _ in range(4)]
    assert [result.output for result in results] == ["again\n"] * 4, results[0].for_llm()
    assert _family()[0].pid != family[0].pid


def _entries(place: str) -> int:
    return sum(1 for _ in Path(place).iterdir())


async def _rest(until: Any) -> None:
    """Wait until two cells wait for calls, and their descriptors have come as well."""
    gc.collect()  # what earlier tests left to the collector is not to be counted here
    await until(lambda: len(_family()) == _AT_REST, "two cells wait")
    before, now = -1, _entries("/proc/self/fd")
    while now != before:
        await asyncio.sleep(0.1)
        before, now = now, _entries("/proc/self/fd")


def _mounts() -> list[str]:
    return Path("/proc/self/mountinfo").read_text().splitlines()


async def test_two_hundred_calls_leak_nothing(
    run: Any, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, until: Any
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    await asyncio.gather(*(run("echo", text="warm") for _ in range(8)))
    await _rest(until)

    def held() -> tuple[int, int, int]:
        # The launcher and the cells that wait for calls are there before and after.
        children = psutil.Process().children(recursive=True)
        return _entries("/proc/self/fd"), len(children), len(_mounts())

    def grown() -> list[int]:
        return [now - before for now, before in zip(held(), seen, strict=True)]

    seen = held()
    for batch in range(25):
        texts = [f"{batch}-{n}" for n in range(8)]
        calls = [run.sh(f"echo {text} > /tmp/f; cat /tmp/f") for text in texts]
        assert [r.output for r in await asyncio.gather(*calls)] == [f"{text}\n" for text in texts]
    try:
        await until(lambda: max(grown()) <= 0, "no more than before")
    except AssertionError:
        pytest.fail(f"descriptors, processes, mounts: {seen} grew by {grown()}; {_family()}")
    assert list(workspace.iterdir()) == []
    assert list(scratch.iterdir()) == []


async def test_parallel_calls_do_not_mix_their_outputs(run: Any) -> None:
    command = "for n in $(seq 50); do echo {0}; echo {0} >&2; done"
    results = await asyncio.gather(*(run.sh(command.format(f"call{n:02}")) for n in range(20)))
    for number, result in enumerate(results):
        assert set(result.output.split()) == {f"call{number:02}"}
        assert set(result.metadata.stderr.split()) == {f"call{number:02}"}
        assert len(result.output.split()) == 50


async def test_closing_the_controller_ends_calls_that_still_run(
    runner: Any, workspace: Path, processes: Any, until: Any
) -> None:
    mark = f"36.{random.randrange(10**6, 10**7)}"
    run = runner()
    task = asyncio.create_task(run.sh(f"touch on; exec sleep {mark}"))
    await until((workspace / "on").exists, "the call runs")
    await run.controller.close()
    await until(lambda: not processes(mark), "the sleep is gone", seconds=2)
    assert (await task).error.category in ("worker_lost", "cancelled", "signal")
    assert psutil.Process().children() == []


@pytest.mark.attack
async def test_cancelling_the_task_ends_the_cell(
    run: Any, workspace: Path, until: Any, processes: Callable[[str], list[int]]
) -> None:
    task = asyncio.create_task(run.sh("touch on; exec sleep 30.0917"))
    await until((workspace / "on").exists, "the command runs")
    await until(lambda: processes("30.0917"), "the sleep is seen")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not processes("30.0917")
    assert (await run("echo", text="next")).success


@pytest.mark.attack
async def test_cancelling_at_any_moment_leaves_nothing(run: Any, until: Any) -> None:
    mark = f"35.{random.randrange(10**6, 10**7)}"
    await run("echo", text="warm")
    await _rest(until)
    descriptors = _entries("/proc/self/fd")
    chance = random.Random(2)
    for number in range(50):
        command = f"setsid sleep {mark} & sleep {mark}"
        call = ToolCall(call_id=str(number), name="shell", arguments={"command": command})
        task = asyncio.create_task(run.controller.handle(call))
        await asyncio.sleep(chance.uniform(0, 0.03))
        if number % 2:
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        else:
            await until(partial(run.controller.cancel, str(number)), "it can be cancelled")
            assert (await task).status == "cancelled"
    assert (await run.sh("echo still works")).output == "still works\n"
    await until(lambda: len(_family()) == _AT_REST, "two cells wait, and no other is left")
    await until(lambda: _entries("/proc/self/fd") == descriptors, "no descriptor is left")
