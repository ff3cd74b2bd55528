"""Claims of `toolcell.cells.supervisor`: what it measures, and one call from feed to report."""

import asyncio
import errno
import os
import subprocess
import sys

import psutil
import pytest

from sandbox_workers import wire
from toolcell.cells import supervisor
from toolcell.cells.supervisor import Supervisor, uses_more_than
from toolcell.model import Limits
from toolcell.registry import define

from .peers import READY, Peer, descriptors
from .samples import greet, prepared

MIB = 1024**2
_HOLDS = "block = bytearray(b'x') * ({0} << 20); print(flush=True); input()"
_PARENT = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {_HOLDS!r}.format(64)])"
REPLY = {"type": "reply", "value": "hello"}


@pytest.fixture
def tree():
    """A process whose one child holds 64 MiB, and holds them already."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", _PARENT], **pipes) as process:
        process.stdout.readline()
        yield process
        process.stdin.close()


def test_the_memory_of_descendants_counts_and_inits_own_does_not(tree):
    assert uses_more_than(64 * MIB, tree.pid)
    assert not uses_more_than(256 * MIB, tree.pid)
    (child,) = psutil.Process(tree.pid).children()
    assert not uses_more_than(0, child.pid), "it has no descendants"


def test_shared_pages_count_once(tree, monkeypatch):
    monkeypatch.setattr(supervisor, "_resident", lambda process: 512 * MIB)
    assert not uses_more_than(256 * MIB, tree.pid)
    monkeypatch.setattr(supervisor, "_proportional", lambda process: 512 * MIB)
    assert uses_more_than(256 * MIB, tree.pid), "the control"


def test_a_program_that_hides_its_memory_counts_with_its_resident_size(tree, monkeypatch):
    def hidden(process):
        raise psutil.AccessDenied(process.pid)

    monkeypatch.setattr(psutil.Process, "memory_full_info", hidden)
    assert uses_more_than(64 * MIB, tree.pid)


def test_a_tree_that_is_gone_uses_nothing():
    assert not uses_more_than(0, 2**31 - 1)


def test_a_process_that_ends_while_it_is_measured_uses_nothing(tree, monkeypatch):
    def gone(process):
        raise psutil.NoSuchProcess(process.pid)

    monkeypatch.setattr(psutil.Process, "memory_info", gone)
    assert not uses_more_than(0, tree.pid)


def test_what_is_in_a_pipe_now_is_counted_without_reading_it():
    read, write = os.pipe()
    try:
        assert supervisor._readable_bytes(read) == 0
        os.write(write, bytes(1234))
        assert supervisor._readable_bytes(read) == 1234
        assert len(os.read(read, 4096)) == 1234
    finally:
        os.close(write)
        assert supervisor._readable_bytes(read) == 0
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
    os.write(peer.status, b"0 1500000 4096\n")
    peer.process.communicate()
    report = await call
    assert (report.exit, report.killed, report.reply) == (0, None, REPLY)
    assert (report.stdout.head, report.stderr.head) == (b"out", b"err")
    assert (report.usage.cpu_seconds, report.usage.peak_memory) == (1.5, 4096)
    assert report.gone
    assert descriptors() == before - 7, "six ends, and the pipe that ended the process"


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
    assert peer.process.wait() == -9
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

    def measure(limit, pid):
        measured.append(pid)
        if len(measured) == 1:
            raise OSError(errno.EMFILE, "Too many open files")
        peer.process.kill()
        return False

    monkeypatch.setattr(supervisor, "_WATCH_SECONDS", 0.01)
    monkeypatch.setattr(supervisor, "uses_more_than", measure)
    _, call = await running(peer)
    report = await call
    assert report.killed is None
