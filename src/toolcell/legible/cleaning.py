"""Cleaning: what a terminal would act on is taken out, and what it would overwrite is.

What comes out is still bytes, because secrets are looked for in it before anything is cut. Which
bytes of the stream each part of it stands for is kept, so that what is left out can be counted as
the tool wrote it: a position in the text has one in the stream, in the same order, and the two
ends of both are the same.
"""

import re
from array import array
from bisect import bisect_right

from toolcell.legible.characters import decode
from toolcell.legible.sequences import MOVES_BACK, SEQUENCE, none_in, spelled
from toolcell.legible.terminal import rendered

_LEFT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


class Cleaned:
    """Clean text, and the stream's bytes that it stands for."""

    def __init__(self, text: bytes, parts: "_Parts | None") -> None:
        self.text = text
        self._parts = parts

    def raw_at(self, at: int) -> int:
        """Return the place in the stream of one in the text; what is removed there lies before."""
        if self._parts is None:
            return at
        text_ends, raw_ends = self._parts.text_ends, self._parts.raw_ends
        part = bisect_right(text_ends, at)
        text_start = text_ends[part - 1] if part else 0
        raw_start = raw_ends[part - 1] if part else 0
        if part == len(text_ends):
            return raw_start
        return min(raw_start + at - text_start, raw_ends[part])

    def raw_span(self, start: int, end: int) -> tuple[int, int]:
        """Return the part of the stream that a part of the text, which is not empty, came from."""
        if self._parts is None:
            return start, end
        first = self._parts.range_of(start)
        last = self._parts.range_of(end - 1)
        return first[0], last[1]


class _Parts:
    """The text's parts in order, by their ends in text and stream.

    A copy is as long in both. Of others (removed, spelled, overwritten) only their ends
    stand for each other.
    """

    def __init__(self) -> None:
        self.text_ends = array("q")
        self.raw_ends = array("q")
        self._copied = bytearray()
        self._text = 0
        self._raw = 0

    def add(self, text: int, raw: int, *, copied: bool = False) -> None:
        if not (text or raw):
            return
        self._text += text
        self._raw += raw
        self.text_ends.append(self._text)
        self.raw_ends.append(self._raw)
        self._copied.append(copied)

    def range_of(self, at: int) -> tuple[int, int]:
        """Return the part of the stream that one byte of the text came from."""
        part = bisect_right(self.text_ends, at)
        text_start = self.text_ends[part - 1] if part else 0
        raw_start = self.raw_ends[part - 1] if part else 0
        if self._copied[part]:
            return raw_start + at - text_start, raw_start + at - text_start + 1
        return raw_start, self.raw_ends[part]


def clean(data: bytes, *, terminal: bool = True) -> Cleaned:
    """Clean bytes that are whole as far as they go.

    A `terminal`'s stream is shown as it would show it in the end. In other text nothing is
    overwritten: what would be is spelled.
    """
    if none_in(data):
        return Cleaned(data, None)
    parts, pieces, at = _Parts(), list[bytes](), 0
    for match in MOVES_BACK.finditer(data) if terminal else ():
        if match.start() < at:
            continue
        start = max(at, data.rfind(b"\n", at, match.start()) + 1)
        end = data.find(b"\n", match.end())
        end = len(data) if end < 0 else end
        _edit(data[at:start], pieces, parts)
        line = rendered(data[start:end].rstrip(b"\r"))
        pieces.append(line)
        parts.add(len(line), end - start)
        at = end
    _edit(data[at:], pieces, parts)
    return Cleaned(b"".join(pieces), parts)


def stripped(data: bytes) -> Cleaned:
    """Take out whatever would be removed or spelled; nothing is overwritten."""
    parts, pieces = _Parts(), list[bytes]()
    _edit(data, pieces, parts, spell=False)
    return Cleaned(b"".join(pieces), parts)


def clean_text(text: str) -> str:
    """Return text for a reader, such as a message: nothing in it acts on a terminal."""
    return legible(clean(text.encode(errors="replace"), terminal=False).text)


def legible(data: bytes) -> str:
    """Decode cleaned bytes.

    What was no character, and became a control character when something between its bytes was
    taken out, is not one either.
    """
    return _LEFT.sub("\ufffd", decode(data))


def _edit(data: bytes, pieces: list[bytes], parts: _Parts, *, spell: bool = True) -> None:
    """Remove and spell, with no regard to lines."""
    at = 0
    for match in SEQUENCE.finditer(data):
        start, end = match.span()
        pieces.append(data[at:start])
        parts.add(start - at, start - at, copied=True)
        word = spelled(match[0]) if spell and match["spelled"] is not None else b""
        pieces.append(word)
        parts.add(len(word), end - start)
        at = end
    pieces.append(data[at:])
    parts.add(len(data) - at, len(data) - at, copied=True)
