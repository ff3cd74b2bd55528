"""Claims of `toolcell.cells.process`: every descriptor has one owner, every end has words."""

import asyncio
import errno
import gc

import pytest

from toolcell.cells import process
from toolcell.cells.process import Launcher
from toolcell.errors import CellRefused, WallsNotBuilt

from .peers import READY, LauncherPeer, Peer, descriptors
from .samples import plan

STARTED = {"ready": True}


@pytest.fixture
def launch(monkeypatch, workspace):
    """Start a launcher that is played by a peer."""
    peers = []

    async def start(peer):
        peers.append(peer)
        monkeypatch.setattr(process, "_spawn", peer.spawn)
        return await Launcher.start(plan(workspace))

    yield start
    for peer in peers:
        peer.control.close()


@pytest.fixture
async def pair(launch):
    """A started launcher, and its peer."""
    peer = LauncherPeer(STARTED)
    launcher = await launch(peer)
    yield launcher, peer
    await launcher.close()


@pytest.fixture
def cell_peer():
    made = Peer()
    yield made
    made.end()


async def asked(launcher, peer):
    """Ask for a cell, as far as the launcher's answer."""
    making = asyncio.create_task(launcher.make())
    await asyncio.sleep(0)
    return making, peer.asked()


async def test_a_cell_is_made_of_the_descriptors_that_come(pair, cell_peer):
    launcher, peer = pair
    making, number = await asked(launcher, peer)
    assert launcher.open_cells == 1
    cell_peer.send(READY)
    peer.hand_over(number, cell_peer.theirs)
    cell = await making
    assert (cell.alive(), launcher.open_cells) == (True, 1)
    cell.close()
    assert launcher.open_cells == 0


async def test_a_launcher_whose_cell_was_lost_is_given_up_so_that_the_keeper_ends_all(
    pair, cell_peer
):
    launcher, peer = pair
    making, number = await asked(launcher, peer)
    cell_peer.send(READY)
    peer.hand_over(number, cell_peer.theirs)
    cell = await making
    cell.lost = True
    cell.close()
    assert not launcher.alive
    assert peer.control.recv(4096) == b"", "the launcher is told to end"


async def test_too_few_descriptors_are_closed_and_told_as_too_many_open_files(pair, cell_peer):
    launcher, peer = pair
    making, number = await asked(launcher, peer)
    *sent, kept = cell_peer.theirs
    before = descriptors()
    peer.hand_over(number, sent)
    with pytest.raises(WallsNotBuilt, match="too many open files") as caught:
        await making
    assert caught.value.errno == errno.EMFILE
    assert descriptors() == before - len(sent)
    assert launcher.open_cells == 0
    process.os.close(kept)


async def test_a_request_that_failed_carries_the_systems_errno(pair):
    launcher, peer = pair
    making, number = await asked(launcher, peer)
    failed = {"stage": "the fork", "message": "fork failed", "errno": errno.EAGAIN}
    peer.control.send(process.wire.encode({"cell": number, "failed": failed}))
    with pytest.raises(WallsNotBuilt, match="fork failed") as caught:
        await making
    assert caught.value.errno == errno.EAGAIN
    assert launcher.alive


@pytest.mark.parametrize("moment", ["before its descriptors come", "in the turn that they come"])
async def test_a_cell_whose_making_was_cancelled_is_closed(pair, cell_peer, moment):
    launcher, peer = pair
    making, number = await asked(launcher, peer)
    before = descriptors()
    if moment == "before its descriptors come":
        making.cancel()
        await asyncio.wait([making])
    peer.hand_over(number, cell_peer.theirs)
    launcher._receive()
    making.cancel()
    await asyncio.wait([making])
    assert making.cancelled()
    assert launcher.open_cells == 0
    assert descriptors() == before - len(cell_peer.theirs)


async def test_a_cell_that_is_cancelled_before_it_is_ready_is_killed_and_closed(pair, cell_peer):
    launcher, peer = pair
    making, number = await asked(launcher, peer)
    peer.hand_over(number, cell_peer.theirs)
    launcher._receive()
    await asyncio.sleep(0)
    making.cancel()
    with pytest.raises(asyncio.CancelledError):
        await making
    assert cell_peer.process.wait() == -9
    assert launcher.open_cells == 0


async def test_an_answer_that_nobody_waits_for_is_closed(pair, cell_peer):
    launcher, peer = pair
    before = descriptors()
    peer.hand_over(77, cell_peer.theirs)
    launcher._receive()
    assert descriptors() == before - len(cell_peer.theirs)


async def test_the_end_of_a_launcher_fails_what_waits_with_its_last_words(launch):
    peer = LauncherPeer(STARTED, words=b"Traceback\n  a line\nOSError: the last words\n")
    launcher = await launch(peer)
    making, _ = await asked(launcher, peer)
    peer.control.close()
    with pytest.raises(CellRefused, match=r"the launcher ended: OSError: the last words$"):
        await making
    assert not launcher.alive
    await launcher.close()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (b"", "ended at its start"),
        (b" \n", "ended at its start"),
        (b"one\ntwo\n\n", "ended at its start: two"),
        (b"\xff\n", "ended at its start: �"),
    ],
)
async def test_a_launcher_that_ends_at_its_start_is_told_with_its_last_words(launch, words, told):
    with pytest.raises(CellRefused) as caught:
        await launch(LauncherPeer(words=words))
    assert caught.value.cause == f"the launcher {told}"


async def test_a_start_that_fails_inside_carries_the_systems_errno(launch):
    failed = {"stage": "the keeper", "message": "unshare failed", "errno": errno.EPERM}
    with pytest.raises(WallsNotBuilt, match="unshare failed") as caught:
        await launch(LauncherPeer({"failed": failed}))
    assert caught.value.errno == errno.EPERM


async def test_a_start_that_takes_too_long_is_refused(launch, monkeypatch):
    monkeypatch.setattr(process, "_START_SECONDS", 0.02)
    with pytest.raises(CellRefused, match="did not start within"):
        await launch(LauncherPeer(silent=True))


@pytest.mark.parametrize("fails_at", ["program", "temporary file", "plan", "start"])
async def test_a_start_that_fails_leaves_no_descriptor(launch, monkeypatch, workspace, fails_at):
    def refuse(*_):
        raise OSError(errno.ENOSPC, "no space")

    made = plan(workspace)
    await asyncio.to_thread(int)  # its own descriptors come with the first use
    gc.collect()
    before = descriptors()
    if fails_at == "program":
        monkeypatch.setattr(process.sys, "executable", "/nonexistent/python")
    elif fails_at == "temporary file":
        monkeypatch.setattr(process.tempfile, "TemporaryFile", refuse)
    elif fails_at == "plan":
        made = made.model_copy(update={"directory": "/\udcff"})
    else:
        monkeypatch.setattr(process, "_spawn", refuse)
    with pytest.raises(CellRefused, match="could not be started"):
        await Launcher.start(made)
    assert descriptors() == before


async def test_the_launcher_is_sent_what_it_needs_of_a_plan_and_no_more(pair):
    _, peer = pair
    assert set(peer.plan) == {*process._SENT, "limits"}
    assert "enforcement" not in peer.plan
