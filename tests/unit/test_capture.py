"""Claims of `toolcell.cells.capture`: bounded memory, exact counts, both ends kept."""

import pytest

from toolcell.cells.capture import StreamCapture

DATA = bytes(range(256)) * 40


@pytest.mark.parametrize("chunk", [1, 7, 100, 1000, len(DATA)])
@pytest.mark.parametrize(("head", "tail"), [(0, 0), (10, 0), (0, 10), (100, 300), (9000, 9000)])
def test_head_and_tail_are_exact_however_the_stream_is_cut(chunk, head, tail):
    capture = StreamCapture(head, tail)
    for start in range(0, len(DATA), chunk):
        capture.feed(DATA[start : start + chunk])
    kept = capture.result()
    assert kept.head == DATA[:head]
    assert kept.tail == DATA[max(head, len(DATA) - tail) :]
    assert (kept.total_bytes, kept.total_lines) == (len(DATA), DATA.count(b"\n"))
    assert kept.left_out == max(0, len(DATA) - head - tail)


def test_an_empty_stream_is_empty():
    capture = StreamCapture(10, 10)
    capture.feed(b"")
    assert capture.result().total_bytes == 0
    assert capture.result().left_out == 0


def test_memory_stays_bounded_while_a_stream_floods():
    capture = StreamCapture(1000, 1000)
    for _ in range(10_000):
        capture.feed(b"x" * 100)
        held = sum(len(part) for part in vars(capture).values() if isinstance(part, bytearray))
        assert held <= 1000 + 2 * 1000
    assert capture.result().total_bytes == 1_000_000
