"""Claims of `toolcell.cells.cell`: ready or refused in words, killed by pidfd, closed once."""

import os
import signal

import psutil
import pytest

from toolcell.cells import cell as cells
from toolcell.cells.cell import ENDS
from toolcell.errors import CellRefused

from .peers import READY, Peer, descriptors

FAILED = {"type": "failed", "stage": "worker", "message": "setrlimit failed", "errno": 22}


@pytest.fixture
def peer():
    made = Peer()
    yield made
    made.end()


@pytest.fixture
def cell(peer):
    made = peer.cell()
    yield made
    made.close()


async def test_a_cell_is_ready_when_its_worker_says_so(peer, cell):
    peer.send(READY)
    await cell.ready()


async def test_a_jail_that_could_not_be_shut_is_refused_in_the_workers_words(peer, cell):
    peer.send(FAILED)
    with pytest.raises(CellRefused, match="worker could not set up the cell: setrlimit failed"):
        await cell.ready()


@pytest.mark.parametrize("said", [b"", b"\0\0\0\2", b"\0\0\0\2[]"], ids=str)
async def test_a_worker_that_ends_or_talks_nonsense_is_refused(peer, cell, said):
    os.write(peer.reply, said)
    peer.close_end(peer.reply)
    with pytest.raises(CellRefused, match="ended before it was ready"):
        await cell.ready()


async def test_a_worker_that_says_nothing_is_refused_in_time(cell, monkeypatch):
    monkeypatch.setattr(cells, "_READY_SECONDS", 0.02)
    with pytest.raises(CellRefused, match="was not ready within"):
        await cell.ready()


@pytest.mark.parametrize(
    ("end", "number"), [("kill", signal.SIGKILL), ("terminate", signal.SIGTERM)]
)
def test_a_cell_lives_until_it_is_ended_and_ending_it_again_does_nothing(peer, cell, end, number):
    assert cell.alive()
    getattr(cell, end)()
    assert peer.process.wait() == -number
    assert not cell.alive()
    getattr(cell, end)()


def test_a_cell_knows_the_process_of_its_init_until_that_is_reaped(peer, cell):
    assert cell.pid() == peer.process.pid
    cell.kill()
    peer.process.wait()
    with pytest.raises(psutil.NoSuchProcess):
        psutil.Process(cell.pid())


def test_no_pipe_of_a_cell_blocks(cell):
    assert not any(os.get_blocking(getattr(cell, name)) for name in ENDS if name != "pidfd")


def test_closing_releases_every_descriptor_once(peer):
    before = descriptors()
    cell = peer.cell()
    cell.close_end("request")
    reused = os.dup(0)  # takes the number that has just become free
    assert not cell.closed
    cell.close()
    cell.close()
    assert cell.closed
    os.fstat(reused)
    os.close(reused)
    assert descriptors() == before - len(ENDS)
    assert set(peer.closed) == {cell}
