"""Truncation: the head and the tail of what was captured, with exact counts between them.

The tail stays because causes stand at the end: a failed build without its last lines
reads like a success.
"""

from toolcell.model import Captured, Truncation
from toolcell.normalizer.text import (
    decode,
    whole_end,
    whole_start,
    without_split_end,
    without_split_start,
)


def shorten(captured: Captured, budget: int) -> tuple[str, Truncation | None]:
    """Return text of at most `budget` bytes of the stream, and what is missing from it.

    One third goes to the head. Cuts fall on line ends where one is near. The marker
    between the two parts says how many bytes and lines are left out.
    """
    if captured.left_out == 0 and captured.total_bytes <= budget:
        return decode(captured.head + captured.tail), None
    if captured.left_out == 0:
        kept = captured.head + captured.tail
        head, tail = kept, kept
    else:
        # The capture itself cut here, between any two bytes.
        head, tail = without_split_end(captured.head), without_split_start(captured.tail)
    head = _to_line_end(whole_start(head, budget // 3))
    tail = _from_line_start(whole_end(tail, budget - budget // 3))
    truncation = Truncation(
        total_bytes=captured.total_bytes,
        total_lines=captured.total_lines,
        omitted_bytes=captured.total_bytes - len(head) - len(tail),
        omitted_lines=captured.total_lines - head.count(b"\n") - tail.count(b"\n"),
    )
    return f"{decode(head)}{_marker(truncation, head)}{decode(tail)}", truncation


def shorten_text(text: str, budget: int) -> tuple[str, Truncation | None]:
    """Shorten text that is whole in memory, such as a returned value."""
    data = text.encode(errors="replace")
    return shorten(
        Captured(head=data, total_bytes=len(data), total_lines=data.count(b"\n")), budget
    )


def _marker(truncation: Truncation, head: bytes) -> str:
    before = "" if not head or head.endswith(b"\n") else "\n"
    return (
        f"{before}[... {truncation.omitted_bytes:,} bytes "
        f"({truncation.omitted_lines:,} lines) left out ...]\n"
    )


def _to_line_end(data: bytes) -> bytes:
    end = data.rfind(b"\n", len(data) * 3 // 4)
    return data[: end + 1] if end >= 0 else data


def _from_line_start(data: bytes) -> bytes:
    start = data.find(b"\n", 0, len(data) // 4)
    return data[start + 1 :] if start >= 0 else data
