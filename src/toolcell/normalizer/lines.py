"""Lines: a stretch of a stream, clean, with its secrets found, given out line by line.

No cut goes through a character or a secret. A secret of several lines is one line here.
"""

import sys
from bisect import bisect_right
from dataclasses import dataclass
from typing import NamedTuple

from toolcell.legible import clean
from toolcell.redaction import Redactor, Span, mark

UNBOUNDED = sys.maxsize
"""As many lines as there are."""

_MARKER = 64  # about what the words in a folded line take


@dataclass(frozen=True, slots=True)
class Room:
    """How much of a stretch may be shown: bytes, lines, and bytes of one line."""

    size: int
    lines: int
    line: int


@dataclass(slots=True)
class Shown:
    """What is shown of a stretch: the text, up to or from where, and what its folds left out."""

    text: bytes
    edge: int
    folded: int = 0
    folded_lines: int = 0

    def add(self, line: "_Line", edge: int) -> None:
        """Go on to the other edge of a line."""
        self.edge = edge
        self.folded += line.folded
        self.folded_lines += line.folded_lines


class _Line(NamedTuple):
    """One line, redacted, and what is left out of its middle: bytes, and line ends."""

    text: bytes
    folded: int = 0
    folded_lines: int = 0


class Stretch:
    """A stretch of a stream, as it is, and the clean text of it."""

    def __init__(self, data: bytes, redactor: Redactor, *, terminal: bool, cut: bool) -> None:
        """Clean it and find its secrets; `cut` says that its end is not the tool's own."""
        self._data = data
        self._cleaned = clean(data, terminal=terminal)
        self._text = self._cleaned.text
        self._found = redactor.find(self._text, cut=cut)
        self._starts = [span.start for span in self._found]

    def __len__(self) -> int:
        return len(self._text)

    @property
    def lines(self) -> int:
        """How many lines the text has, one without an end among them."""
        return self._text.count(b"\n") + (self._text[-1:] not in (b"", b"\n"))

    def whole(self) -> bytes:
        """Return all of it, redacted."""
        return mark(self._text, self._found)

    def raw(self, start: int, end: int) -> tuple[int, int]:
        """Return how many bytes and line ends of the stream a part of the text stands for."""
        first, last = self._cleaned.raw_at(start) if start else 0, self._cleaned.raw_at(end)
        return last - first, self._data.count(b"\n", first, last)

    def first(self, room: Room, stop: int) -> Shown:
        """Return as many of the first lines as there is room for, none from `stop` on."""
        stop, shown, parts, left = self._before(stop), Shown(b"", 0), list[bytes](), room.size
        while shown.edge < stop and len(parts) < room.lines:
            end = self._line_end(shown.edge, stop)
            line = self._line(shown.edge, end, room.line)
            if len(line.text) > left:
                if 2 * left <= room.size:
                    break
                # Rather a part of a line than little at all.
                end, stop = self._before(shown.edge + left), shown.edge
                line = _Line(self._marked(shown.edge, end))
            parts.append(line.text)
            left -= len(line.text)
            shown.add(line, end)
        shown.text = b"".join(parts)
        return shown

    def last(self, room: Room, start: int) -> Shown:
        """Return as many of the last lines as there is room for, none before `start`."""
        start, parts, left = self._after(start), list[bytes](), room.size
        shown = Shown(b"", len(self._text))
        while shown.edge > start and len(parts) < room.lines:
            begin = self._line_start(shown.edge, start)
            line = self._line(begin, shown.edge, room.line)
            if len(line.text) > left:
                if 2 * left <= room.size:
                    break
                begin, start = self._after(shown.edge - left), shown.edge
                line = _Line(self._marked(begin, shown.edge))
            parts.append(line.text)
            left -= len(line.text)
            shown.add(line, begin)
        shown.text = b"".join(reversed(parts))
        return shown

    def _line(self, start: int, end: int, most: int) -> _Line:
        """Return one line, its middle left out where it is longer than `most`."""
        if end - start <= most:
            return _Line(self._marked(start, end))
        half = max(0, most - _MARKER) // 2
        first, last = self._before(start + half), self._after(end - half)
        left_out, lines = self.raw(first, last)
        words = b"[... %b bytes of this line left out ...]" % f"{left_out:,}".encode()
        text = self._marked(start, first) + words + self._marked(last, end)
        return _Line(text, left_out, lines)

    def _marked(self, start: int, end: int) -> bytes:
        first, last = bisect_right(self._starts, start - 1), bisect_right(self._starts, end - 1)
        spans = [Span(s.start - start, s.end - start, s.label) for s in self._found[first:last]]
        return mark(self._text[start:end], spans)

    def _line_end(self, start: int, stop: int) -> int:
        end = self._text.find(b"\n", start, stop) + 1
        while end and (span := self._around(end)):
            end = self._text.find(b"\n", span.end, stop) + 1
        return end or stop

    def _line_start(self, end: int, start: int) -> int:
        begin = self._text.rfind(b"\n", start, end - 1) + 1
        while begin and (span := self._around(begin)):
            begin = self._text.rfind(b"\n", start, span.start) + 1
        return begin or start

    def _before(self, at: int) -> int:
        """Return where to cut, at this place or as little as can be before it."""
        if (span := self._around(at)) is not None:
            return span.start
        for back in range(4):
            if not self._inside_a_character(at - back):
                return max(0, at - back)
        return at  # no character is as long: these bytes are none

    def _after(self, at: int) -> int:
        """Return where to cut, at this place or as little as can be behind it."""
        if (span := self._around(at)) is not None:
            return span.end
        for ahead in range(4):
            if not self._inside_a_character(at + ahead):
                return at + ahead
        return at

    def _inside_a_character(self, at: int) -> bool:
        return 0 < at < len(self._text) and self._text[at] & 0xC0 == 0x80

    def _around(self, at: int) -> Span | None:
        """Return the secret that a cut at this place would go through."""
        before = bisect_right(self._starts, at - 1)
        span = self._found[before - 1] if before else None
        return span if span is not None and at < span.end else None
