"""read_file: a text file or some of its lines; what is no text is named instead of shown.

The answer is the text, in pages of whole lines that fit into a result. What has to be said of it
stands in brackets on its last line: which lines these are and how to read on, the encoding and the
line endings where they are not the usual ones.
"""

import os
from typing import BinaryIO

from sandbox_workers.tools import ToolError
from sandbox_workers.tools.answering import ROOM
from sandbox_workers.tools.counting import counted
from sandbox_workers.tools.encoding import UTF8, Encoding, encoding_of
from sandbox_workers.tools.kinds import SNIFF, binary_kind, svg_size
from sandbox_workers.tools.pages import Page, number_before, read_page
from sandbox_workers.tools.places import existing_file, opened, refused


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
        return f"[{path} is not text: {kind}, {counted(size, 'byte')}]"
    file.seek(len(encoding.mark))
    page = read_page(file, encoding, first, last, ROOM, size, numbered=numbers)
    if page.lines == 0 and first > 1:
        lines = counted(page.total or 0, "line")
        raise ToolError(f"{path} has {lines}; line {first:,} is past its end")
    notes = [*_extent(page, first, last), *_unusual(page, encoding)]
    if page.cut:
        notes[:0] = [_cut(page, path, first, size, encoding)]
    if first == 1:
        notes += filter(None, [svg_size(page.text[:SNIFF])])
    return _put_together(page.text, first, numbers, notes or _nothing(page, path))


def _extent(page: Page, first: int, last: int | None) -> list[str]:
    """Which lines these are, where they are not the whole file and were not cut."""
    end = first + page.lines - 1
    past = last is not None and page.total is not None and last > page.total
    if page.cut or not page.lines or (first == 1 and end == page.total and not past):
        return []
    of = "; more follow" if page.total is None else f" of {page.total:,}"
    beyond = f"; end_line={last} is past the end" if past else ""
    return [f"{_named(first, end)}{of}{beyond}"]


def _cut(page: Page, path: str, first: int, size: int, encoding: Encoding) -> str:
    """Which lines of how many these are, and how to read on."""
    end = first + page.lines - 1
    lines = "" if page.total is None else f"{counted(page.total, 'line')}, "
    whole = f"of {lines}{counted(size, 'byte')}"
    if not page.in_line:
        return f"{_named(first, end)} {whole}; read on with start_line={end + 1}"
    more = page.total is None or page.total > end
    then = f"; the next line is start_line={end + 1}" if more else ""
    rest = "the rest of a line this long is for the shell or python tool"
    if encoding == UTF8 and not page.invalid:
        rest += f", such as: {_next_piece(page, path, end)}"
    return f"the start of line {end:,} {whole}; {rest}{then}"


def _next_piece(page: Page, path: str, number: int) -> str:
    """The command that shows as much again of a line of which the page has the start."""
    import shlex

    shown = len(page.text.encode())
    return f"sed -n {number}p < {shlex.quote(path)} | cut -b {shown + 1}-{2 * shown}"


def _named(first: int, end: int) -> str:
    return f"line {first:,}" if first == end else f"lines {first:,} to {end:,}"


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
        text = "".join(
            f"{number_before(number)}{line}\n" for number, line in enumerate(lines, first)
        )
    if not notes:
        return text
    between = "" if not text or text.endswith("\n") else "\n"
    return f"{text}{between}[{'; '.join(notes)}]\n"
