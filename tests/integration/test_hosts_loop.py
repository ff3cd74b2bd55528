"""What a host does with its own loop, files and machine neither stops a call nor weakens it."""

import asyncio
import dataclasses
import resource
import tempfile
import time
from pathlib import Path
from threading import Event
from typing import Any

import psutil
import pytest

from toolcell import RunOptions, ToolCall, ToolPolicy
from toolcell.cells.capabilities import capabilities

pytestmark = [pytest.mark.isolation, pytest.mark.any_user]

_TREE = """
import os, time
for _ in range(4):
    if os.fork() == 0:
        block = bytearray(os.urandom(1)) * (40 << 20)
        time.sleep(20)
time.sleep(20)
"""


@pytest.fixture
async def full_executor() -> Any:
    """Fill the loop's default executor; what it returns frees it again."""
    release, loop = Event(), asyncio.get_running_loop()

    def fill() -> Any:
        for _ in range(64):  # more than it has threads on any machine of up to 60 processors
            loop.run_in_executor(None, release.wait)
        return release.set

    yield fill
    release.set()


@pytest.fixture
def without_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make this machine one where memory can only be watched."""
    real = capabilities()
    if hasattr(real, "groups"):
        less = dataclasses.replace(real, groups=None)
        for name in ("toolcell.supply", "toolcell.cells.pool"):
            monkeypatch.setattr(f"{name}.capabilities", lambda: less)


async def test_memory_is_watched_though_the_host_filled_the_loops_threads(
    runner: Any, without_groups: None, full_executor: Any
) -> None:
    run = runner(limits={"memory": 96 << 20})
    await run("echo", text="warm")
    release = full_executor()
    result = await run.py(_TREE)
    release()
    assert result.error.category == "memory", result.for_llm()
    assert result.latency_ms < 8000


async def test_a_launcher_is_closed_though_the_host_filled_the_loops_threads(
    runner: Any, full_executor: Any
) -> None:
    run = runner()
    await run("echo", text="warm")
    release = full_executor()
    closing = asyncio.create_task(run.controller.close())
    done, _ = await asyncio.wait([closing], timeout=5)
    release()
    await closing
    assert done


async def test_cancelling_a_call_that_waits_for_a_slot_returns_at_once(
    runner: Any, workspace: Path, until: Any
) -> None:
    run = runner(max_running=1)
    first = asyncio.create_task(run.sh("touch on; until [ -e go ]; do sleep 0.01; done"))
    await until((workspace / "on").exists, "the first one runs")
    call = ToolCall(call_id="waits", name="shell", arguments={"command": "touch ran"})
    waiting = asyncio.create_task(run.controller.handle(call))
    await until(lambda: run.controller.cancel("waits"), "it waits")
    began = time.monotonic()
    result = await waiting
    assert time.monotonic() - began < 1
    assert (result.status, result.source) == ("cancelled", "controller")
    assert not first.done()
    (workspace / "go").touch()
    assert (await first).success
    assert not (workspace / "ran").exists()
    assert (await run.sh("touch ran")).success, "the slot is free again"


@pytest.mark.parametrize("grace", [0, 1])
async def test_a_call_that_ended_in_time_is_a_success_however_slow_the_tap(
    runner: Any, grace: float
) -> None:
    run = runner(limits={"wall": 1, "grace": grace})
    await run("echo", text="warm")
    late = asyncio.Event()

    async def tap(stream: str, data: bytes) -> None:
        await late.wait()

    asyncio.get_running_loop().call_later(1.3, late.set)
    result = await run.with_options("shell", RunOptions(tap=tap), command="echo done")
    assert late.is_set()
    assert (result.status, result.output) == ("succeeded", "done\n"), result.for_llm()


async def test_a_tool_that_ends_during_its_grace_was_still_too_late(runner: Any) -> None:
    run = runner(limits={"wall": 0.3, "grace": 5})
    result = await run.sh("trap 'exit 0' TERM; sleep 30 & wait")
    assert (result.status, result.error.category) == ("timed_out", "wall")


async def test_cells_that_are_given_up_leave_no_words_in_the_launchers_log(
    runner: Any, workspace: Path, until: Any
) -> None:
    policy = workspace / "policy.toml"
    text = 'version = 1\n[tools]\nallow = ["*"]\n'
    policy.write_text(text)
    run = runner(policy=policy)
    await run("echo", text="warm")
    (keeper,) = psutil.Process().children()
    (launcher,) = keeper.children()
    await until(lambda: len(launcher.children(recursive=True)) == 4, "two cells wait")
    with Path(f"/proc/{keeper.pid}/fd/2").open() as log:
        (workspace / "new").write_text(text)
        (workspace / "new").replace(policy)
        assert (await run("echo", text="next")).success
        await until(lambda: not launcher.is_running(), "the old launcher and its cells ended")
        assert log.read() == ""


async def test_a_temporary_directory_that_is_not_there_gives_a_result(
    runner: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = runner()
    monkeypatch.setattr(tempfile, "tempdir", "/nonexistent/scratch")
    result = await run("echo", text="never")
    assert result.error.category == "cell_setup", result.for_llm()
    assert "No such file" in result.error.message
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("TMPDIR", "/nonexistent/scratch")
    assert (await run("echo", text="another is found")).success


async def test_a_workspace_whose_name_is_not_utf8_gives_a_result(
    runner: Any, tmp_path: Path
) -> None:
    place = tmp_path / "na\udcffme"
    place.mkdir()
    result = await runner(lend=place)("echo", text="never")
    assert result.success or result.error.category == "cell_setup"
    assert result.model_dump_json()


@pytest.mark.parametrize("spare", range(0, 16, 2))
async def test_the_first_call_under_few_descriptors_gives_a_result(runner: Any, spare: int) -> None:
    run = runner()
    await asyncio.to_thread(int)
    used = sum(1 for _ in Path("/proc/self/fd").iterdir())
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + spare, hard))
    try:
        result = await run("echo", text="here")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert result.success or result.error.category == "cell_setup"
    assert (await run("echo", text="next")).success


async def test_a_probe_whose_targets_cannot_be_set_up_gives_a_result(
    runner: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(*_: object) -> None:  # as in a container whose loopback is down
        raise OSError(101, "Network is unreachable")

    monkeypatch.setattr("toolcell.cells.attestation._control", unreachable)
    result = await runner()("echo", text="never")
    assert result.error.category == "cell_setup"
    assert "unreachable" in result.error.message


async def test_policies_with_other_limits_do_not_wait_for_each_other(
    runner: Any, workspace: Path, until: Any
) -> None:
    run = runner(policy=ToolPolicy(allow=["*"]))
    running = asyncio.create_task(run.sh("touch on; until [ -e go ]; do sleep 0.01; done"))
    await until((workspace / "on").exists, "the first one runs")
    for processes in range(20, 26):
        run.controller.policy = ToolPolicy(allow=["*"], limits={"processes": processes})
        assert (await run("echo", text="meanwhile")).success
    (workspace / "go").touch()
    assert (await running).success, "its launcher was not ended"
