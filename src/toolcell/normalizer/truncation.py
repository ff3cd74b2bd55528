"""Truncation: the head and the tail of what was captured, with exact counts between them.

The tail stays because causes stand at the end: a failed build without its last lines
reads like a success.

Secrets are redacted here, because here it is known what is shown: only that is searched, and
as much beyond it as it takes to recognise a secret that the cut goes through. Such a secret is
left out whole. Counts are those of the stream as the tool wrote it.
"""

from toolcell.legible.characters import (
    decode,
    whole_end,
    whole_start,
    without_split_end,
    without_split_start,
)
from toolcell.model import Captured, Truncation
from toolcell.redaction import Redactor, Span, mark, no_redaction


def shorten(
    captured: Captured,
    budget: int,
    redactor: Redactor = no_redaction,
    *,
    ended: bool = True,
) -> tuple[str, Truncation | None]:
    """Return text of at most `budget` bytes of the stream, and what is missing from it.

    One third goes to the head. Cuts fall on line ends where one is near. The marker
    between the two parts says how many bytes and lines are left out. A redacted secret
    counts with its own length, not with that of the words in its place. A stream that has not
    `ended` by itself may have its last secret in part, which is redacted too.
    """
    if captured.left_out == 0:
        kept = captured.head + captured.tail
        if len(kept) <= budget:
            return decode(mark(kept, redactor.find(kept, cut=not ended))), None
        head, tail, beyond = kept, kept, 0
    else:
        # The capture itself cut here, between any two bytes. Of a secret there the other part
        # is gone, so what may be one is not shown.
        head, tail = without_split_end(captured.head), without_split_start(captured.tail)
        beyond = redactor.reach
    head, shown_head = _head(head, min(budget // 3, len(head) - beyond), redactor)
    most = min(budget - budget // 3, len(tail) - beyond)
    tail, shown_tail = _tail(tail, most, redactor, cut=not ended)
    truncation = Truncation(
        total_bytes=captured.total_bytes,
        total_lines=captured.total_lines,
        omitted_bytes=captured.total_bytes - len(head) - len(tail),
        omitted_lines=captured.total_lines - head.count(b"\n") - tail.count(b"\n"),
    )
    marker = _marker(truncation, shown_head)
    return f"{decode(shown_head)}{marker}{decode(shown_tail)}", truncation


def shorten_text(
    text: str, budget: int, redactor: Redactor = no_redaction
) -> tuple[str, Truncation | None]:
    """Shorten text that is whole in memory, such as a returned value."""
    data = text.encode(errors="replace")
    whole = Captured(head=data, total_bytes=len(data), total_lines=data.count(b"\n"))
    return shorten(whole, budget, redactor)


def _head(data: bytes, limit: int, redactor: Redactor) -> tuple[bytes, bytes]:
    """Return the start of the data as it is, at most `limit` bytes, and redacted."""
    end = len(_to_line_end(whole_start(data, max(0, limit))))
    found = redactor.find(data[: end + redactor.reach])
    end = min([end, *(span.start for span in found if span.end > end)])
    return data[:end], mark(data[:end], [span for span in found if span.end <= end])


def _tail(data: bytes, limit: int, redactor: Redactor, *, cut: bool) -> tuple[bytes, bytes]:
    """Return the end of the data as it is, at most `limit` bytes, and redacted."""
    start = len(data) - len(_from_line_start(whole_end(data, max(0, limit))))
    begin = max(0, start - redactor.reach)
    found = [
        Span(begin + span.start, begin + span.end, span.label)
        for span in redactor.find(data[begin:], cut=cut)
    ]
    start = max([start, *(span.end for span in found if span.start < start)])
    after = [
        Span(span.start - start, span.end - start, span.label)
        for span in found
        if span.start >= start
    ]
    return data[start:], mark(data[start:], after)


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
