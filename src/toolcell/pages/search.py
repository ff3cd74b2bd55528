"""Search: the lines of an output that match, without more of it in memory than a block."""

from collections.abc import Iterator

from toolcell.legible import clean, legible
from toolcell.outputs import Stored
from toolcell.pages.lines import Lines
from toolcell.pages.page import Room, with_note
from toolcell.pages.pattern import Pattern

# A line longer than this is searched in parts, each with the end of the one before.
_PART = 1024**2
_AGAIN = 4096


def matching(lines: Lines, pattern: Pattern, first: int = 1) -> Iterator[tuple[int, int, str]]:
    """Yield number, place and clean text of the lines that match, from a line on."""
    at, number = lines.start_of(first), first
    while at < lines.size:
        end = lines.end_of(at)
        text = _found(lines, at, end, pattern)
        if text is not None:
            yield number, at, text
        at, number = end, number + 1


def page_of_matches(
    lines: Lines, stored: Stored, pattern: Pattern, first: int, last: int | None, room: Room
) -> str:
    """Return the lines that match, each with its number, as far as there is room."""
    total, parts, left = lines.count(), list[str](), room.size
    until = total if last is None else min(last, total)
    stopped = until
    for number, _, text in matching(lines, pattern, first):
        if number > until:
            break
        part = f"{number}: {_around(text, pattern, room.line)}\n"
        size = len(part.encode(errors="replace"))
        if (size > left and parts) or len(parts) >= room.lines:
            stopped = number - 1
            break
        parts.append(part)
        left -= size
    found = f"{len(parts):,} matching lines" if len(parts) != 1 else "1 matching line"
    words = f"{found} in lines {first:,} to {stopped:,} of {total:,}"
    more = {"start_line": stopped + 1} if stopped < total else None
    return with_note("".join(parts), words, more, stored)


def _found(lines: Lines, start: int, end: int, pattern: Pattern) -> str | None:
    """Return the line, or the part of a long one, that matches."""
    at = start
    while True:
        stop = min(end, at + _PART)
        text = legible(clean(lines.read(at, stop)).text).rstrip("\n")
        if pattern.is_in(text):
            return text
        if stop >= end:
            return None
        at = stop - _AGAIN


def _around(text: str, pattern: Pattern, most: int) -> str:
    """Return a line, or of a long one what is around its first match."""
    if len(text) <= most:
        return text
    middle = pattern.place_in(text)
    start = max(0, min(middle - most // 2, len(text) - most))
    end = start + most
    before = f"[... {start:,} characters ...]" if start else ""
    after = f"[... {len(text) - end:,} characters ...]" if end < len(text) else ""
    return f"{before}{text[start:end]}{after}"
