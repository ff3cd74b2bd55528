"""Claims of `toolcell.cells.captures` and `pipe`: all of a stream, in the store and counted."""

import asyncio
import fcntl
import os
import threading

import pytest

from toolcell.cells.captures import Captures
from toolcell.cells.pipe import OutputPipe
from toolcell.outputs import OutputStore, no_outputs

DATA = bytes(range(256)) * 8000


@pytest.fixture
def store(tmp_path):
    return OutputStore(tmp_path / "outputs", cap=1_000_000)


async def fed(captures, data, chunk):
    buffer = bytearray(chunk)
    for start in range(0, len(data), chunk):
        piece = data[start : start + chunk]
        buffer[: len(piece)] = piece
        if spilling := captures.feed("stdout", buffer, len(piece)):
            await spilling
    await captures.finish(cut=False)
    return captures.result("stdout")


@pytest.mark.parametrize("chunk", [1000, 65536, 300_000, 1_000_000])
@pytest.mark.parametrize("size", [262_144, 262_145, 900_000, 2_000_000])
async def test_a_stream_spills_whole_when_it_leaves_memory(store, chunk, size):
    made = await fed(Captures(store.begin), DATA[:size], chunk)
    assert (made.total_bytes, made.total_lines) == (size, DATA[:size].count(b"\n"))
    if size <= 262_144:
        assert made.kept is None
        assert not store.path.exists()
        return
    assert store.read(made.kept.handle) == DATA[: min(size, 1_000_000)]
    assert made.kept.size == min(size, 1_000_000)
    assert bool(made.kept.lost) == (size > 1_000_000)
    assert store.get(made.kept.handle).total_bytes == size


@pytest.mark.parametrize("begin", [None, no_outputs.begin])
async def test_without_a_store_the_ends_are_kept_and_all_is_counted(begin):
    made = await fed(Captures(begin), DATA, 70_000)
    assert made.head == DATA[:131_072]
    assert made.tail == DATA[-131_072:]
    assert made.total_bytes == len(DATA)
    assert made.kept is None or made.kept.size == 0


async def test_what_is_abandoned_is_finished_without_anybody_waiting(store):
    captures, before = Captures(store.begin), threading.active_count()
    await captures.feed("stderr", DATA[:500_000])
    captures.abandon()
    while not store.list():
        await asyncio.sleep(0.001)
    assert store.list()[0].size == 500_000
    assert threading.active_count() <= max(before, 4) + 1


@pytest.fixture
def pipe():
    read, write = os.pipe()
    os.set_blocking(read, False)
    yield read, write
    os.close(read)
    if write >= 0:
        os.close(write)


def test_a_pipe_is_read_in_one_buffer_once_there_is_a_flood(pipe):
    read, write = pipe
    reader = OutputPipe(read)
    assert reader.read() is None
    os.write(write, b"small")
    assert reader.read().copy() == b"small"
    reader.expect_a_flood()
    os.write(write, b"first")
    first = reader.read()
    assert first.copy() == b"first"
    os.write(write, b"next!")
    second = reader.read()
    assert second.data is first.data
    assert (second.copy(), second.size) == (b"next!", 5)


def test_the_pipe_of_a_flood_is_larger_and_may_fill(pipe):
    read, _ = pipe
    reader = OutputPipe(read)
    assert not reader.may_fill(100)
    before = fcntl.fcntl(read, fcntl.F_GETPIPE_SZ)
    reader.expect_a_flood()
    grown = fcntl.fcntl(read, fcntl.F_GETPIPE_SZ)
    # Past the soft limit of a user's pipes it stays as it was, and is not waited for.
    assert grown == 1024**2 or grown == before
    assert reader.may_fill(100) == (grown == 1024**2)
    assert not reader.may_fill(1024**2)
    assert not reader.may_fill(0)
