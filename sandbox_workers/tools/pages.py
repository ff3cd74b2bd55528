"""Pages: some lines of a file of any size, read in pieces, with a count of all its lines.

Lines are split at line feeds only, as editors and grep count them. Lines before the page are
counted and dropped; a page ends at its last line, or at the end of a line before its limit; of
a line that is longer than the limit the page has the start.
"""

import codecs
from collections.abc import Iterator
from typing import AnyStr, BinaryIO, NamedTuple

from sandbox_workers.tools.encoding import Encoding

_PIECE = 1024**2
MOST_COUNTED = 1024**3
"""Past this many bytes a file's lines are not counted: it would take seconds."""


class Page(NamedTuple):
    """The text of some lines.

    `lines` are how many; `total` is the file's number, None where it was not counted. `cut` says
    that the limit ended the page, `in_line` that it did so inside its only line. `invalid`
    counts what is not valid in the encoding, and stands as U+FFFD.
    """

    text: str
    lines: int
    total: int | None
    cut: bool
    in_line: bool
    invalid: int


def read_page(
    file: BinaryIO, encoding: Encoding, first: int, last: int | None, limit: int, size: int
) -> Page:
    """Read the lines from `first` to `last` (from 1, both included), at most `limit` bytes.

    `file` stands behind its mark. Of an encoding other than UTF-8 characters are counted, not
    bytes.
    """
    if encoding.codec == "utf-8":
        kept, total = _collect(_pieces(file), b"\n", first, last, limit, size)
        data, cut, in_line = _cut(kept, b"\n", limit)
        data = _whole(data) if in_line else data
        text = data.decode("utf-8", "replace")
        invalid = text.count("\ufffd") - data.count("\ufffd".encode())
    else:
        texts, total = _collect(_decoded(file, encoding), "\n", first, last, limit, size)
        text, cut, in_line = _cut(texts, "\n", limit)
        invalid = text.count("\ufffd")
    return Page(text, _count(text), total, cut, in_line, invalid)


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    while piece := file.read(_PIECE):
        yield piece


def _decoded(file: BinaryIO, encoding: Encoding) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder(encoding.codec)("replace")
    for piece in _pieces(file):
        yield decoder.decode(piece)
    yield decoder.decode(b"", True)


def _collect(
    pieces: Iterator[AnyStr], newline: AnyStr, first: int, last: int | None, limit: int, size: int
) -> tuple[AnyStr, int | None]:
    """Return the page, up to one more than its limit, and the number of lines of the file."""
    kept, seen, end = newline[:0], 0, newline
    for piece in pieces:
        ends = piece.count(newline)
        begin = _after(piece, newline, first - 1 - seen, ends)
        stop = len(piece) if last is None else _after(piece, newline, last - seen, ends)
        kept += piece[begin : min(stop, begin + limit + 1 - len(kept))]
        seen += ends
        end = piece[-1:] or end
        if size > MOST_COUNTED and (len(kept) > limit or (last is not None and seen >= last)):
            return kept, None
    return kept, seen + (end != newline)


def _after(piece: AnyStr, newline: AnyStr, number: int, ends: int) -> int:
    """The place behind a line end, by its number in the piece, which has `ends` of them."""
    if number > ends:
        return len(piece)
    place = 0
    for _ in range(number):
        place = piece.index(newline, place) + 1
    return place


def _cut(kept: AnyStr, newline: AnyStr, limit: int) -> tuple[AnyStr, bool, bool]:
    """Cut what is over the limit, at a line's end if it can; says whether, and if inside one."""
    if len(kept) <= limit:
        return kept, False, False
    end = kept.rfind(newline, 0, limit) + 1
    return (kept[:end], True, False) if end else (kept[:limit], True, True)


def _whole(data: bytes) -> bytes:
    """Drop the start of a character at the end, whose rest was cut off."""
    for back in range(1, min(4, len(data)) + 1):
        if data[-back] & 0xC0 != 0x80:
            length = 1 + (data[-back] >= 0xC0) + (data[-back] >= 0xE0) + (data[-back] >= 0xF0)
            return data[:-back] if length > back else data
    return data


def _count(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n") and text != "")
