"""Output that leaves memory: all of it is kept, whatever becomes of the call."""

import asyncio
import json
import re
import threading
from typing import Any

import pytest

from toolcell import RunOptions
from toolcell.cells import captures
from toolcell.errors import StoreError
from toolcell.outputs import OutputStore, no_outputs

pytestmark = [pytest.mark.isolation, pytest.mark.any_user]

# Lines that are all different, as many as make 10 MB.
_MUCH = "seq -f 'line %g of the output of a tool' 1 300000"
_LINES = 300_000


@pytest.fixture
def store(tmp_path: Any) -> OutputStore:
    """A store that nobody else writes to."""
    return OutputStore(tmp_path / "outputs")


def whole(count: int = _LINES) -> bytes:
    return b"".join(b"line %d of the output of a tool\n" % n for n in range(1, count + 1))


@pytest.mark.parametrize(("redirect", "stream"), [("", "output"), (">&2", "stderr")])
async def test_every_byte_of_much_output_is_kept_and_the_page_says_what_is_missing(
    runner: Any, store: OutputStore, redirect: str, stream: str
) -> None:
    result = await runner(outputs=store).sh(f"{_MUCH} {redirect}")
    handle = result.handles[stream]
    cut = result.truncation or result.metadata.stderr_truncation
    assert store.read(handle) == whole()
    assert (cut.handle, cut.stored_bytes, cut.total_bytes) == (handle, *[len(whole())] * 2)
    assert (cut.total_lines, cut.not_stored) == (_LINES, "")
    assert handle in result.for_llm()
    stored = store.get(handle)
    assert (stored.call_id, stored.tool_name) == (result.call_id, "shell")
    assert store.list() == [stored]


async def test_the_event_at_the_end_names_the_handles(runner: Any, store: OutputStore) -> None:
    events: list[Any] = []
    result = await runner(outputs=store, events=events.append).sh("seq 1 9000; seq 1 9 >&2")
    assert set(result.handles) == {"output", "stderr"}
    assert events[-1].data["handles"] == result.handles


async def test_a_store_in_the_workspace_is_refused(runner: Any, workspace: Any) -> None:
    with pytest.raises(StoreError, match="lies in the workspace"):
        runner(outputs=OutputStore(workspace / "outputs"))


async def test_what_was_cut_but_never_left_memory_is_kept_too(
    runner: Any, store: OutputStore
) -> None:
    result = await runner(outputs=store).sh("seq 1 9000; seq 1 9000 >&2")
    text = "".join(f"{n}\n" for n in range(1, 9001)).encode()
    assert store.read(result.handles["output"]) == text
    assert store.read(result.handles["stderr"]) == text


async def test_the_model_reads_every_byte_by_its_handle(runner: Any, store: OutputStore) -> None:
    run = runner(outputs=store, policy="strict")
    result = await run("echo", text="".join(f"line {n}\n" for n in range(30_000)))
    read, more = "", {"start_line": 1}
    while more:
        page = await run("read_output", handle=result.handles["output"], **more)
        assert page.success
        assert page.truncation is None
        text, _, note = page.output.rpartition("\n")
        found = re.search(r"to go on: (\{.*\})\]$", note)
        read, more = f"{read}{text}\n", json.loads(found[1]) if found else {}
    assert read == "".join(f"line {n}\n" for n in range(30_000))
    found = await run("read_output", handle=result.handles["output"], search="^line 2999[89]$")
    assert found.output.startswith("29999: line 29998\n30000: line 29999\n[2 matching lines")


async def test_a_handle_does_not_open_for_another_workspace(
    runner: Any, store: OutputStore, tmp_path: Any
) -> None:
    result = await runner(outputs=store).sh("seq 1 9000")
    (tmp_path / "other").mkdir()
    for lend in (tmp_path / "other", None):
        other = runner(outputs=store, lend=lend, cell={"workspace": "none"})
        answer = await other("read_output", handle=result.handles["output"])
        assert answer.error.category == "tool_error"
        assert "another workspace" in answer.error.message
    again = await runner(outputs=store)("read_output", handle=result.handles["output"])
    assert again.output.startswith("1\n2\n")


async def test_small_output_does_not_touch_the_disk(runner: Any, store: OutputStore) -> None:
    result = await runner(outputs=store).sh("seq 1 1000; seq 1 4 >&2")
    assert result.handles == {}
    assert not store.path.exists()


async def test_what_the_model_is_not_shown_of_standard_error_is_kept(
    runner: Any, store: OutputStore
) -> None:
    result = await runner(outputs=store).sh("seq 1 12 >&2")
    assert "stderr, last 5 of 12 lines" in result.for_llm()
    assert f'read_output {{"handle": "{result.handles["stderr"]}"}}' in result.for_llm()
    assert store.read(result.handles["stderr"]).startswith(b"1\n2\n")


async def test_a_returned_value_is_kept_as_it_would_be_shown(
    runner: Any, store: OutputStore, module: Any
) -> None:
    own = module("def repeat(count: int) -> list[str]:\n    return ['0123456789'] * count\n")
    result = await runner(own.repeat, outputs=store)("repeat", count=10_000)
    assert json.loads(store.read(result.handles["output"])) == result.structured
    assert store.get(result.handles["output"]).kind == "value"


ENDS = {
    "timed_out": ({"wall": 1.0}, "sleep 60"),
    "signal": ({}, "kill -9 $$"),
    "exit_code": ({}, "exit 3"),
    "output_limit": ({"output": "12MB"}, "cat /dev/zero"),
}


@pytest.mark.parametrize("end", ENDS)
async def test_however_a_call_ends_its_output_is_kept(
    runner: Any, store: OutputStore, end: str
) -> None:
    limits, then = ENDS[end]
    result = await runner(outputs=store, limits=limits).sh(f"{_MUCH}; {then}")
    assert end in (result.status, result.error.category)
    assert store.read(result.handles["output"], 0, len(whole())) == whole()
    cut = result.truncation
    assert store.get(result.handles["output"]).total_bytes == cut.total_bytes == cut.stored_bytes


async def test_the_output_of_a_call_that_is_cancelled_is_kept(
    runner: Any, store: OutputStore
) -> None:
    run, seen, all_seen = runner(outputs=store), [0], asyncio.Event()

    def tap(_: str, data: bytes) -> None:
        seen[0] += len(data)
        if seen[0] == len(whole()):
            all_seen.set()

    command = f"{_MUCH}; sleep 60"
    call = asyncio.ensure_future(run.with_options("shell", RunOptions(tap=tap), command=command))
    await all_seen.wait()
    assert run.controller.cancel(run.last_id)
    result = await call
    assert result.status == "cancelled"
    assert store.read(result.handles["output"]) == whole()


async def test_a_disk_that_hangs_does_not_hold_up_the_deadline(
    runner: Any, store: OutputStore, monkeypatch: Any, processes: Any, until: Any
) -> None:
    write, goes_on = captures._write, threading.Event()

    def hang(*arguments: Any) -> None:
        goes_on.wait(20)
        write(*arguments)

    monkeypatch.setattr(captures, "_write", hang)
    run = runner(outputs=store, limits={"wall": 0.5})
    call = asyncio.ensure_future(run.sh("yes 'the disk hangs'"))
    try:
        await until(lambda: processes("the disk hangs"), "the flood")
        await until(lambda: not processes("the disk hangs"), "its end")
        assert not call.done()
    finally:
        goes_on.set()
    result = await call
    assert result.status == "timed_out"
    assert store.read(result.handles["output"], 0, 15) == b"the disk hangs\n"


async def test_past_the_cap_the_rest_is_counted_and_the_page_says_so(
    runner: Any, tmp_path: Any
) -> None:
    store = OutputStore(tmp_path / "outputs", cap=1_000_000)
    result = await runner(outputs=store).sh(_MUCH)
    cut = result.truncation
    assert store.read(cut.handle) == whole()[:1_000_000]
    assert (cut.stored_bytes, cut.total_bytes) == (1_000_000, len(whole()))
    assert "only its first 1,000,000 bytes are kept" in result.output
    assert store.get(cut.handle).total_lines == _LINES


async def test_a_disk_that_cannot_be_written_does_not_fail_the_call(
    runner: Any, tmp_path: Any
) -> None:
    (tmp_path / "outputs").write_text("in the way")
    result = await runner(outputs=OutputStore(tmp_path / "outputs" / "here")).sh(_MUCH)
    assert result.success
    assert result.handles == {}
    assert "it could not be kept: " in result.output
    assert result.truncation.total_bytes == len(whole())


async def test_where_nothing_is_to_be_kept_nothing_is(runner: Any) -> None:
    result = await runner(outputs=no_outputs).sh(_MUCH)
    assert result.handles == {}
    assert "outputs are not kept here" in result.output
