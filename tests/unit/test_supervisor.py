"""Claims of `toolcell.cells.supervisor`: what it measures, and one call from feed to report."""

import asyncio
import errno
import os

import pytest

from sandbox_workers import wire
from toolcell.artifacts import Shelf
from toolcell.cells import pipe, watch
from toolcell.cells.cell import END
from toolcell.cells.supervisor import Supervisor
from toolcell.cells.tree import Look
from toolcell.model import Limits, Usage
from toolcell.outputs import Keeper, OutputStore
from toolcell.registry import define

from .peers import READY, Peer, descriptors
from .samples import greet, prepared

REPLY = {"type": "reply", "value": "hello"}


def test_what_is_in_a_pipe_now_is_counted_without_reading_it():
    read, write = os.pipe()
    try:
        assert pipe.readable_bytes(read) == 0
        os.write(write, bytes(1234))
        assert pipe.readable_bytes(read) == 1234
        assert len(os.read(read, 4096)) == 1234
    finally:
        os.close(write)
        assert pipe.readable_bytes(read) == 0
        os.close(read)


@pytest.fixture
def peer():
    made = Peer()
    made.send(READY)
    yield made
    made.end()


async def running(peer, limits=None, tap=None, wall=10.0, name="Ada"):
    """Begin a call in a cell that the peer plays."""
    cell = peer.cell()
    await cell.ready()
    made = Supervisor(cell, limits or Limits(), tap)
    call = asyncio.create_task(made.run(prepared(define(greet), name=name), None, wall))
    await asyncio.sleep(0)
    return made, call


async def test_the_evidence_of_a_call_is_what_came_through_its_pipes(peer):
    before = descriptors()
    _, call = await running(peer)
    reader = wire.FrameReader()
    reader.feed(os.read(peer.request, 65536))
    assert reader.next()["arguments"] == {"name": "Ada", "times": 1}
    assert os.read(peer.request, 1) == b"", "one call, and the end"
    os.write(peer.stdout, b"out")
    os.write(peer.stderr, b"err")
    peer.send(REPLY)
    os.write(peer.status, b'0 1500000 4096 3 0 0 [{"number":999,"arguments":[0],"count":2}]')
    peer.process.communicate()
    report = await call
    assert (report.exit, report.killed, report.reply) == (0, None, REPLY)
    assert (report.stdout.head, report.stderr.head) == (b"out", b"err")
    assert report.usage == Usage(cpu_seconds=1.5, peak_memory=4096, processes=3)
    assert report.refused == ("system call 999",)
    assert report.gone
    assert descriptors() == before - 7, "six ends, and the pipe that ended the process"


@pytest.mark.parametrize("grace", [0, 2])
async def test_files_behind_the_account_come_with_the_report_and_nothing_ends_them_early(
    peer, tmp_path, grace
):
    store = OutputStore(tmp_path / "outputs")
    cell = peer.cell()
    await cell.ready()
    made = Supervisor(cell, Limits(grace=grace), None, Shelf(Keeper(store)))
    call = asyncio.create_task(made.run(prepared(define(greet), name="Ada"), None, 10.0))
    await asyncio.sleep(0)
    peer.send(REPLY)
    os.write(peer.status, b'0 1 1 1 0 0 []\n{"name":"a","size":6}\nab\n')
    while not made._last_word.has_files:
        await asyncio.sleep(0)
    made._deadline()  # the call is over
    os.write(peer.status, b'cde{"name":"b","size":9}\n123')
    peer.process.communicate()
    report = await call
    assert (report.exit, report.killed) == (0, None)
    assert [(each.name, each.size) for each in report.left.artifacts] == [("a", 6)]
    assert store.read(report.left.artifacts[0].handle) == b"ab\ncde"
    assert [each.name for each in report.left.refused] == ["b", ""]
    assert len(store.list()) == 1, "what did not come whole is not kept"


@pytest.mark.parametrize("end", ["wall", "cancel", "output", "reply"])
async def test_a_call_that_is_ended_by_us_says_why_and_keeps_its_output(peer, end):
    limits = Limits(output=1024)
    made, call = await running(peer, limits, wall=0.05 if end == "wall" else 10)
    os.write(peer.stdout, b"kept" if end != "output" else bytes(2048))
    if end == "cancel":
        made.cancel()
    if end == "reply":
        os.write(peer.reply, wire.frame(REPLY) + wire.frame(REPLY))
    report = await call
    assert report.killed == end
    assert (report.exit, report.usage, report.reply) == (None, None, None)
    assert report.stdout.total_bytes == (2048 if end == "output" else 4)
    assert report.gone


async def test_a_tap_that_fails_is_raised_when_the_cell_is_gone(peer):
    def tap(stream, data):
        raise KeyError(stream)

    _, call = await running(peer, tap=tap)
    os.write(peer.stderr, b"x")
    with pytest.raises(KeyError, match="stderr"):
        await call
    assert peer.process.wait() == -END, "asked to end, and to tell"
    assert len(peer.closed) == 1


async def test_a_call_that_is_too_large_to_send_gives_the_cell_back(peer):
    _, call = await running(peer, name="x" * wire.MAX_FRAME)
    with pytest.raises(wire.WireError, match="over the limit"):
        await call
    assert len(peer.closed) == 1


async def test_a_measurement_that_fails_once_for_want_of_descriptors_is_made_again(
    peer, monkeypatch
):
    measured = []

    def measure(pid, processes):
        measured.append(pid)
        if len(measured) == 1:
            raise OSError(errno.EMFILE, "Too many open files")
        peer.process.kill()
        return Look(tasks=1, seconds=0.0, own={})

    monkeypatch.setattr(watch, "_WATCH_SECONDS", 0.01)
    monkeypatch.setattr(watch, "look", measure)
    monkeypatch.setattr(watch, "uses_more_than", lambda *_, **__: False)
    _, call = await running(peer)
    report = await call
    assert report.killed is None


@pytest.mark.parametrize(
    ("seen", "sweeps", "killed"),
    [
        (Look(tasks=21, seconds=0.0, own={}), True, "processes"),
        (Look(tasks=21, seconds=0.0, own={}), False, None),
        (Look(tasks=1, seconds=3.5, own={}), False, "cpu"),
        (Look(tasks=1, seconds=2.5, own={}), False, None),
    ],
    ids=str,
)
async def test_what_no_kernel_counts_is_looked_for(peer, monkeypatch, seen, sweeps, killed):
    looks = []

    def seeing(pid, processes):
        looks.append(pid)
        if len(looks) == 3:
            peer.process.kill()
        return seen

    monkeypatch.setattr(watch, "_WATCH_SECONDS", 0.01)
    monkeypatch.setattr(watch, "look", seeing)
    monkeypatch.setattr(watch, "uses_more_than", lambda *_, **__: False)
    made, call = await running(peer, Limits(processes=4, cpu=2))
    made._cell.sweeps = sweeps
    report = await call
    assert report.killed == killed


@pytest.mark.parametrize(
    ("line", "seen", "met"),
    [
        (b"1 0 0 9 4 0 []", 0, True),
        (b"1 0 0 9 3 0 []", 0, False),
        (b"1 0 0 9 0 0 []", 4, True),
        (b"1 0 0 3 0 0 []", 4, False),
        (b"1 0 0 4 0 0 []", 0, False),
        (b"1 0 0 -1 0 0 []", 4, True),
    ],
)
async def test_the_process_limit_was_met_where_as_many_were_seen(peer, line, seen, met):
    made, call = await running(peer, Limits(processes=4))
    made._watch.most_tasks = seen
    os.write(peer.status, line)
    peer.process.communicate()
    assert (await call).at_process_limit is met


async def test_a_cell_that_sweeps_and_tells_nothing_of_it_is_lost(peer):
    made, call = await running(peer)
    made._cell.sweeps = True
    peer.process.kill()
    report = await call
    assert not report.gone
    assert peer.closed[0].lost
