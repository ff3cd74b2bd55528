"""Claims of `toolcell.sessions.lane` and `evidence`: order, and who waits for whom."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from toolcell.model import Limits
from toolcell.sessions.evidence import Evidence
from toolcell.sessions.lane import Lane
from toolcell.sessions.protocol import Output
from toolcell.sessions.running import Run

PIECES = st.lists(st.tuples(st.sampled_from("ab"), st.binary(min_size=1, max_size=3)), max_size=12)


def joined(pieces):
    """Neighbours of one kind as one."""
    found = []
    for kind, data in pieces:
        if found and found[-1][0] == kind:
            found[-1] = (kind, found[-1][1] + bytes(data))
        else:
            found.append((kind, bytes(data)))
    return found


@given(PIECES, st.sets(st.integers(0, 12)))
def test_pieces_are_dealt_with_whole_and_in_their_order_whatever_takes_its_time(pieces, slow):
    async def through():
        dealt, futures = [], []

        def deal(kind, data):
            dealt.append((kind, bytes(data)))
            if len(dealt) not in slow:
                return ()
            futures.append(asyncio.get_running_loop().create_future())
            return futures[-1:]

        lane = Lane(deal, lambda error: None, lambda: None)
        for kind, data in pieces:
            lane.take(kind, data)
        while futures:
            futures.pop(0).set_result(None)
            await asyncio.sleep(0)
        assert lane.idle
        assert lane.waiting == 0
        assert joined(dealt) == joined(pieces)

    asyncio.run(through())


async def test_a_call_is_held_while_much_of_it_waits_and_full_where_that_is_not_heeded():
    go = asyncio.Event()

    async def tap(stream, data):
        await go.wait()

    evidence = Evidence(Limits(), tap, None, None)
    run = Run(0, 1, evidence)
    moved = asyncio.Event()
    evidence.moved = moved.set
    evidence.take(Output(1, "stdout", b"x"))
    assert run.holds() is None
    evidence.take(Output(1, "stdout", bytes(300_000)))
    assert (run.holds(), run.holds(), run.full) == (True, None, False)
    evidence.take(Output(1, "stdout", bytes(9_000_000)))
    assert run.full
    evidence.take(Output(1, "files", b'{"end":true}\n'))
    go.set()
    while not evidence.idle:
        moved.clear()
        await moved.wait()
    assert (run.holds(), run.full, evidence.problem) == (False, False, "")
    assert evidence.streams()["stdout"].total_bytes == 9_300_001


async def test_nobody_waits_for_the_tap_of_a_call_that_was_given_up():
    evidence = Evidence(Limits(), lambda stream, data: asyncio.sleep(3600), None, None)
    evidence.take(Output(1, "stdout", b"x"))
    evidence.take(Output(1, "stderr", b"y"))
    evidence.untap()
    while not evidence.idle:
        await asyncio.sleep(0)
    assert evidence.failed is None
    assert evidence.streams()["stderr"].total_bytes == 1


async def test_what_a_tap_raises_is_kept_and_it_is_told_no_more():
    told = []

    async def tap(stream, data):
        told.append(data)
        raise ValueError("no room")

    evidence = Evidence(Limits(), tap, None, None)
    for _ in range(3):
        evidence.take(Output(1, "stdout", b"x"))
    while not evidence.idle:
        await asyncio.sleep(0)
    assert isinstance(evidence.failed, ValueError)
    assert told == [b"x"]
    assert evidence.streams()["stdout"].total_bytes == 3
