"""Output of a call in a cell, as an iterator while it runs."""

import asyncio
import hashlib
from pathlib import Path
from typing import Any

import psutil
import pytest

from toolcell import BlockingController, RunOptions, ToolCall, ToolPolicy, ToolRegistry

pytestmark = [pytest.mark.isolation, pytest.mark.any_user]

_MARK = "38.0271"


def _shell(command: str) -> ToolCall:
    return ToolCall(call_id="streamed", name="shell", arguments={"command": command})


async def test_output_comes_while_the_call_runs(run: Any, workspace: Path) -> None:
    # The call ends only when the file is there, which is made once its output was seen.
    stream = run.controller.stream(
        _shell("echo é; echo two >&2; until [ -e go ]; do sleep 0.01; done; echo three")
    )
    seen = []
    async for chunk in stream:
        seen.append((chunk.stream, chunk.text))
        if {text for _, text in seen} >= {"é\n", "two\n"}:
            (workspace / "go").touch()
    assert sorted(seen) == [("stderr", "two\n"), ("stdout", "three\n"), ("stdout", "é\n")]
    assert (await stream.outcome()).output == "é\nthree\n"


async def test_every_byte_of_a_flood_comes_to_a_consumer_that_is_slow(run: Any) -> None:
    size = 8_000_000
    stream = run.controller.stream(_shell(f"yes 12345678 | head -c {size}"))
    digest, most, total = hashlib.sha256(), 0, 0
    async for chunk in stream:
        digest.update(chunk.data)
        total += len(chunk.data)
        most = max(most, len(chunk.data))
        await asyncio.sleep(0)
    assert (total, stream.result.status) == (size, "succeeded")
    assert digest.digest() == hashlib.sha256((b"12345678\n" * size)[:size]).digest()


async def test_the_deadline_is_kept_although_nobody_takes_the_output(
    runner: Any, until: Any
) -> None:
    run = runner(limits={"wall": 0.3})
    stream = run.controller.stream(_shell(f"yes & sleep {_MARK}"))
    async for _ in stream:
        await until(lambda: not _running("yes"), "the flood was ended while it was held up")
    assert stream.result.status == "timed_out"


@pytest.mark.attack
async def test_leaving_early_ends_the_cell(run: Any, processes: Any, until: Any) -> None:
    stream = run.controller.stream(_shell(f"setsid sleep {_MARK} & yes"))
    async for _ in stream:
        break
    result = await stream.outcome()
    assert result.status == "cancelled"
    assert result.output.startswith("y\ny\n")
    await until(lambda: not processes(_MARK), "no process of it is left")
    assert not run.controller.cancel("streamed")


async def test_a_deadline_over_all_holds_where_a_call_waits_for_its_place(
    runner: Any, workspace: Path, until: Any
) -> None:
    run = runner(max_running=1)
    first = asyncio.create_task(run.sh("touch on; sleep 30"))
    await until((workspace / "on").exists, "the first call runs")
    late = await run.controller.handle(_shell("echo late"), RunOptions(deadline=0.05))
    assert (late.status, late.source) == ("timed_out", "controller")
    assert "for the whole call was up before it ran" in late.error.message
    run.controller.cancel(run.last_id)
    assert (await first).status == "cancelled"


async def test_a_deadline_over_all_is_told_where_it_is_the_smallest(run: Any) -> None:
    assert (await run("echo", text="warm")).success
    result = await run.controller.handle(_shell("sleep 30"), RunOptions(deadline=1))
    assert result.status == "timed_out"
    assert "what was left of the 1 s that the host gave for the whole call" in result.error.message


def test_the_sync_face_streams_out_of_a_cell(workspace: Path) -> None:
    policy = ToolPolicy(allow=["shell"])
    with BlockingController(ToolRegistry.builtin(), policy, workspace) as controller:
        stream = controller.stream(_shell("echo one; echo two"))
        assert "".join(chunk.text for chunk in stream) == "one\ntwo\n"
        assert stream.outcome().success
        for _ in controller.stream(_shell(f"echo on; sleep {_MARK}")):
            break
    assert not _running(_MARK)


def _running(text: str) -> bool:
    for process in psutil.Process().children(recursive=True):
        try:
            if text in process.cmdline():
                return True
        except psutil.Error:
            continue
    return False
