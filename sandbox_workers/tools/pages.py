"""Pages: some lines of a file of any size, read in pieces, with a count of all its lines.

Lines are split at line feeds only, as editors and grep count them. Lines before the page are
counted and dropped; a page ends at its last line, or at the end of a line before its limit; of
a line that is longer than the limit the page has the start.

The limit is one of what is shown, not of what is in the file: a number before each line, a mark
for what is not valid, and the spelling of control characters take more room than what they
stand for. So nobody cuts a page again, and each begins where the one before it ended.
"""

import codecs
import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import AnyStr, BinaryIO, NamedTuple

from sandbox_workers.tools.encoding import Encoding

_PIECE = 1024**2
MOST_COUNTED = 256 * 1024**2
"""Past this many bytes a file's lines are not counted: it could take seconds."""

# Stands for what is not valid until it is counted: no codec gives it, and it is as long as U+FFFD.
_INVALID = "\udfff"
_MARKING = "toolcell-invalid"
# They are spelled where a result is made legible, in at most three bytes more.
_SPELLED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_SPELLING = 3


class Page(NamedTuple):
    """The text of some lines.

    `lines` are how many; `total` is the file's number, None where it was not counted, because
    more follow. `cut` says that the limit ended the page, `in_line` that it did so inside its
    only line. `invalid` counts what is not valid in the encoding, and stands as U+FFFD.
    """

    text: str
    lines: int
    total: int | None
    cut: bool
    in_line: bool
    invalid: int


def read_page(
    file: BinaryIO,
    encoding: Encoding,
    first: int,
    last: int | None,
    limit: int,
    size: int,
    *,
    numbered: bool = False,
) -> Page:
    """Read the lines from `first` to `last` (from 1, both included), at most `limit` bytes.

    `file` stands behind its mark; its lines will be `numbered` or not when they are shown.
    """
    # No line is shown in less than half of its bytes or characters: "\r\n" becomes "\n".
    most = 2 * limit + 8
    if encoding.codec == "utf-8":
        data, total = _collect(_pieces(file), b"\n", first, last, most, size)
        kept = data.decode("utf-8", _MARKING)
    else:
        kept, total = _collect(_decoded(file, encoding), "\n", first, last, most, size)
    text, cut, in_line = _fitting(kept, first if numbered else None, limit)
    invalid = text.count(_INVALID)
    text = text.replace(_INVALID, "\ufffd")
    return Page(text, _count(text), total, cut, in_line, invalid)


def number_before(number: int) -> str:
    """Return what stands before a line that is numbered."""
    return f"{number:6}\t"


def _mark_invalid(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return _INVALID, error.end


codecs.register_error(_MARKING, _mark_invalid)


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    while piece := file.read(_PIECE):
        yield piece


def _decoded(file: BinaryIO, encoding: Encoding) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder(encoding.codec)(_MARKING)
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
        over = len(kept) > limit or (last is not None and seen >= last and stop < len(piece))
        if over and size > MOST_COUNTED:
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


def _fitting(text: str, number: int | None, limit: int) -> tuple[str, bool, bool]:
    """Cut what is over the limit, at a line's end if it can; says whether, and if inside one."""
    at, room = 0, limit
    while at < len(text):
        end = text.find("\n", at) + 1 or len(text)
        room -= _size(text[at:end], number)
        if room < 0:
            break
        at, number = end, number and number + 1
    else:
        return text, False, False
    if at:
        return text[:at], True, False
    lengths = range(1, end + 1)
    fit = bisect_right(lengths, limit, key=lambda length: _size(text[:length], number))
    return text[:fit], True, True


def _size(line: str, number: int | None) -> int:
    """How many bytes a line takes where it is shown."""
    before = len(number_before(number)) if number else 0
    spelled = _SPELLING * len(_SPELLED.findall(line))
    line = line.replace("\r\n", "\n")
    return before + len(line.encode("utf-8", "surrogatepass")) + spelled


def _count(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n") and text != "")
