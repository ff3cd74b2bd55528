"""read_file: a text file or some of its lines; what is no text is named instead of shown.

The answer is the text. What has to be said of it stands in brackets on its last line: what was left
out and how to read on, the encoding and the line endings where they are not the usual ones.
"""

import os
from typing import BinaryIO

from sandbox_workers.tools import ToolError
from sandbox_workers.tools.encoding import UTF8, Encoding, encoding_of
from sandbox_workers.tools.kinds import SNIFF, binary_kind, svg_size
from sandbox_workers.tools.pages import MOST_COUNTED, Page, read_page
from sandbox_workers.tools.places import existing_file, opened, refused

_MOST = 256 * 1024
_OF_A_LARGE_FILE = 16 * 1024


def read_file(
    path: str, start_line: int = 1, end_line: int | None = None, line_numbers: bool = False
) -> str:
    """Return a text file, or the lines from start_line to end_line (from 1, both included)."""
    if end_line is not None and end_line < start_line:
        raise ToolError(f"end_line {end_line} is before start_line {start_line}")
    with opened(existing_file(path), path) as file:
        try:
            return _read(file, path, start_line, end_line, line_numbers)
        except OSError as error:
            raise refused(path, error) from None


def _read(file: BinaryIO, path: str, first: int, last: int | None, numbers: bool) -> str:
    size = os.fstat(file.fileno()).st_size
    head = file.read(SNIFF)
    encoding = encoding_of(head)
    if encoding == UTF8 and (kind := binary_kind(head, file)):
        return f"[{path} is not text: {kind}, {size:,} bytes]"
    whole = first == 1 and last is None
    limit = _OF_A_LARGE_FILE if whole and size > _MOST else _MOST
    file.seek(len(encoding.mark))
    page = read_page(file, encoding, first, last, limit, size)
    if page.lines == 0 and first > 1:
        raise ToolError(f"{path} has {page.total:,} lines; line {first:,} is past its end")
    notes = [*_missing(page, first, size), *_unusual(page, encoding)]
    if first == 1:
        notes += filter(None, [svg_size(page.text[:SNIFF])])
    return _put_together(page.text, first, numbers, notes or _nothing(page, path))


def _missing(page: Page, first: int, size: int) -> list[str]:
    """What was asked for and is not there, and how to have it."""
    if not page.cut:
        return []
    end = first + page.lines - 1
    total = f"more than {MOST_COUNTED:,} bytes of" if page.total is None else f"{page.total:,}"
    whole = f"of {total} lines, {size:,} bytes"
    if not page.in_line:
        return [f"lines {first:,} to {end:,} {whole}; read on with start_line={end + 1}"]
    here = f"the start of line {end:,} {whole}; the rest of a line this long is for the shell tool"
    more = page.total is None or page.total > end
    return [here + (f"; the next line is start_line={end + 1}" if more else "")]


def _unusual(page: Page, encoding: Encoding) -> list[str]:
    notes = []
    if encoding.mark:
        notes.append(str(encoding))
    if page.invalid:
        parts = "1 part is" if page.invalid == 1 else f"{page.invalid:,} parts are"
        notes.append(f"{parts} not valid {encoding.codec.upper()} and shown as \ufffd")
    crlf = page.text.count("\r\n")
    if crlf:
        some = "lines" if crlf == page.text.count("\n") else f"{crlf:,} of these lines"
        notes.append(f"{some} end in CRLF, shown as LF")
    return notes


def _nothing(page: Page, path: str) -> list[str]:
    return [] if page.text else [f"{path} is empty"]


def _put_together(text: str, first: int, numbers: bool, notes: list[str]) -> str:
    text = text.replace("\r\n", "\n")
    if numbers and text:
        lines = text.removesuffix("\n").split("\n")
        text = "".join(f"{number:6}\t{line}\n" for number, line in enumerate(lines, first))
    if not notes:
        return text
    between = "" if not text or text.endswith("\n") else "\n"
    return f"{text}{between}[{'; '.join(notes)}]\n"
