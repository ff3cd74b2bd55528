"""Claims of `toolcell.streaming`: every byte in order, no character cut, and a way out at any time.

A function plays the call here; `tests/integration/test_streams.py` streams out of cells.
"""

import asyncio
import random
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcell.blocking import BlockingStream
from toolcell.grants import RunOptions
from toolcell.legible import clean_text
from toolcell.model import ToolCall
from toolcell.policy import ToolPolicy
from toolcell.redaction import Redactor
from toolcell.streaming import Chunk, OutputStream
from toolcell.testing import (
    Answers,
    AsyncFakeController,
    FakeClock,
    FakeController,
    Hangs,
    NoCell,
)

from .samples import result

CALL = ToolCall(call_id="1", name="say")


class Played:
    """A call that writes pieces, and then ends or waits for its cancellation."""

    def __init__(self, *pieces, hangs=False):
        self.pieces, self.hangs = pieces, hangs
        self.given, self.cancelled = 0, False

    async def __call__(self, options, cancellation):
        ended = asyncio.Event()
        with cancellation.ends(ended.set):
            for piece in self.pieces:
                if cancellation.requested:
                    break
                await options.tap(*piece)
                self.given += 1
            if self.hangs and not cancellation.requested:
                await ended.wait()
        self.cancelled = cancellation.requested
        return result()


async def taken(stream):
    return [chunk async for chunk in stream]


async def test_chunks_come_in_order_with_their_streams_and_then_the_outcome():
    stream = OutputStream(Played(("stdout", b"one"), ("stderr", b"two"), ("stdout", b"3")), None)
    assert stream.result is None
    assert await taken(stream) == [
        *(Chunk("stdout", b"one", "one"), Chunk("stderr", b"two", "two")),
        Chunk("stdout", b"3", "3"),
    ]
    assert stream.result == await stream.outcome() == result()
    assert await taken(stream) == [], "a stream is read once"


@given(text=st.text(min_size=1, max_size=40), seed=st.integers(0, 2**16))
def test_a_character_is_never_cut_however_its_bytes_come(text, seed):
    data, chance, pieces = text.encode(errors="replace"), random.Random(seed), []
    while data:
        size = chance.randint(1, 3)
        pieces.append(("stdout", data[:size]))
        data = data[size:]
    chunks = asyncio.run(taken(OutputStream(Played(*pieces), None)))
    whole = text.encode(errors="replace")
    assert b"".join(chunk.data for chunk in chunks) == whole
    assert "".join(chunk.text for chunk in chunks) == whole.decode()
    assert not any("\ufffd" in chunk.text for chunk in chunks if "\ufffd" not in text)


async def test_bytes_that_are_no_character_show_at_the_end():
    chunks = await taken(OutputStream(Played(("stdout", "é".encode()[:1])), None))
    assert [(chunk.data, chunk.text) for chunk in chunks] == [(b"\xc3", ""), (b"", "\ufffd")]


async def test_a_consumer_that_is_slow_holds_up_the_call():
    played = Played(*[("stdout", b"x")] * 100)
    stream = OutputStream(played, None)
    async for _ in stream:
        for _ in range(50):
            await asyncio.sleep(0)
        assert played.given < 20, "what waits is bounded"
        break
    await stream.outcome()


@pytest.mark.parametrize("way", ["break", "raise", "aclose", "with"])
async def test_leaving_early_ends_the_call_and_leaves_no_task(way):
    before = asyncio.all_tasks()
    played = Played(*[("stdout", b"x")] * 100, hangs=True)
    stream = OutputStream(played, None)
    if way == "break":
        async for _ in stream:
            break
    elif way == "raise":
        with suppress(KeyError):
            async for _ in stream:
                raise KeyError
    elif way == "aclose":
        iterator = aiter(stream)
        await anext(iterator)
        await stream.aclose()
        assert [chunk async for chunk in iterator] == []
    else:
        async with stream:
            await anext(aiter(stream))
    await stream.outcome()
    assert played.cancelled
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before


async def test_a_consumer_that_is_cancelled_ends_the_call():
    played = Played(("stdout", b"x"), hangs=True)
    stream = OutputStream(played, None)
    consumer = asyncio.create_task(taken(stream))
    while not played.given:
        await asyncio.sleep(0)
    consumer.cancel()
    with pytest.raises(asyncio.CancelledError):
        await consumer
    assert played.cancelled


async def test_nobody_has_to_take_the_output():
    stream = OutputStream(Played(*[("stdout", b"x")] * 100), None)
    assert await stream.outcome() == result()


async def test_a_stream_that_was_closed_before_it_began_takes_a_cancelled_call():
    played = Played(hangs=True)
    stream = OutputStream(played, None)
    await stream.aclose()
    await stream.outcome()
    assert played.cancelled


async def test_a_tap_of_the_hosts_is_given_the_same_and_what_it_raises_is_raised():
    heard = []
    options = RunOptions(tap=lambda stream, data: heard.append((stream, data)))
    pieces = [("stdout", b"a"), ("stderr", b"b")]
    await taken(OutputStream(Played(*pieces), options))
    assert heard == pieces

    def fail(stream, data):
        raise KeyError(data)

    with pytest.raises(KeyError):
        await taken(OutputStream(Played(*pieces), RunOptions(tap=fail)))


async def test_a_redacted_stream_shows_no_secret_however_it_is_cut():
    redactor = Redactor({"KEY": "hunter2hunter2"})
    pieces = [("stdout", bytes([byte])) for byte in b"it is hunter2hunter2!"]
    chunks = await taken(OutputStream(Played(*pieces), None, redactor))
    assert "".join(chunk.text for chunk in chunks) == "it is [redacted: KEY]!"
    chunks = await taken(OutputStream(Played(*pieces), None))
    assert b"hunter2" in b"".join(chunk.data for chunk in chunks), "the control"


@pytest.mark.parametrize(
    ("step", "policy", "ends", "said"),
    [
        (Answers("x", stdout="said"), {"allow": ["say"]}, "succeeded", "said"),
        ("x", {"ask": {"say": "why"}}, "a question", ""),
        ("x", {"deny": ["say"]}, "rejected", ""),
        (NoCell("no room"), {"allow": ["say"]}, "failed", ""),
        (Hangs(stdout="said"), {"allow": ["say"]}, "timed_out", "said"),
    ],
)
async def test_whatever_becomes_of_a_call_its_stream_ends(step, policy, ends, said):
    async with AsyncFakeController({"say": step}, ToolPolicy(**policy)) as controller:
        stream = controller.stream(CALL)
        chunks = await taken(stream)
        outcome = await stream.outcome()
    assert getattr(outcome, "status", "a question") == ends
    assert "".join(chunk.text for chunk in chunks) == said


def test_the_sync_face_streams_as_a_plain_iterator():
    with FakeController({"say": Answers(1, stdout="said")}) as controller:
        stream = controller.stream(CALL)
        assert [chunk.text for chunk in stream] == ["said"]
        assert stream.result == stream.outcome()
        assert stream.result.structured == 1


def test_leaving_the_sync_iterator_ends_the_call():
    with FakeController({"say": Hangs(stdout="said")}, clock=FakeClock()) as controller:
        stream = controller.stream(CALL)
        for _ in stream:
            break
        assert stream.outcome().status == "cancelled"


@pytest.mark.attack
async def test_a_redacted_stream_is_looked_through_as_what_is_kept_is():
    secret = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
    pieces = [f"\x1b[3{ord(each) % 8}m{each}".encode() for each in secret]
    for redactor, shown in ((Redactor(), False), (None, True)):
        stream = OutputStream(Played(*(("stdout", piece) for piece in pieces)), None, redactor)
        text = "".join([chunk.text async for chunk in stream])
        assert (secret in clean_text(text)) is shown


def test_the_sync_face_closes_the_iterator_of_whoever_leaves_early():
    closed = []

    class Endless:
        async def __aiter__(self):
            try:
                while True:
                    yield Chunk("stdout", b"x", "x")
            finally:
                closed.append("iterator")

        async def aclose(self):
            closed.append("call")

    with asyncio.Runner() as loop:
        for _ in BlockingStream(Endless(), loop.run):
            break
        assert closed == ["call", "iterator"]
