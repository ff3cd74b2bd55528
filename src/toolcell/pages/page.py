"""A page: some lines, or some bytes, and a last line that says what it is and how to go on."""

import json
from dataclasses import dataclass

from toolcell.legible import OutputBudget, clean, legible
from toolcell.legible.characters import (
    whole_end,
    whole_start,
    without_split_end,
    without_split_start,
)
from toolcell.outputs import Stored
from toolcell.pages.lines import Lines

_NOTE = 300  # bytes for the last line
_LEAST = 64


@dataclass(frozen=True, slots=True)
class Room:
    """How much text a page may have, without its last line: bytes, lines, bytes of one line."""

    size: int
    lines: int
    line: int

    @classmethod
    def of(cls, budget: OutputBudget) -> "Room":
        """Leave room for the last line, and for a line end before it."""
        lines = 2**31 if budget.lines is None else max(1, budget.lines - 2)
        size = max(_LEAST, budget.bytes - _NOTE)
        return cls(size, lines, min(budget.line_bytes, max(_LEAST, size // 2)))


def page_of_lines(lines: Lines, stored: Stored, first: int, last: int | None, room: Room) -> str:
    """Return the lines from `first` to `last`, as far as there is room; long ones in part."""
    total, at = lines.count(), lines.start_of(first)
    if first > max(1, total):
        return f"[there is no line {first:,}: it has {total:,}{_unkept(stored)}]"
    parts, number, left = list[str](), first, room.size
    until = total if last is None else min(last, total)
    while number <= until and len(parts) < room.lines:
        end = lines.end_of(at)
        part = _line(lines, at, end, number, room.line, terminal=_terminal(stored))
        size = len(part.encode(errors="replace"))
        if size > left and parts:
            break
        parts.append(part)
        at, number, left = end, number + 1, left - size
    words = f"lines {first:,} to {number - 1:,} of {total:,}"
    more = {"start_line": number} if number <= total else None
    return with_note("".join(parts), words, more, stored)


def page_of_bytes(lines: Lines, stored: Stored, start: int, end: int | None, room: Room) -> str:
    """Return the bytes from `start` up to `end`, as far as there is room; no character is cut."""
    if start >= max(1, lines.size):
        return f"[there is no byte {start:,}: it has {lines.size:,}{_unkept(stored)}]"
    until, size = lines.size if end is None else min(end, lines.size), room.size
    while True:
        data = lines.read(start, min(until, start + size))
        whole = without_split_start(data) or data
        begin = start + len(data) - len(whole)
        if begin + len(whole) < lines.size:
            whole = without_split_end(whole) or whole
        text = legible(clean(whole, terminal=_terminal(stored)).text)
        if len(text.encode(errors="replace")) <= room.size or size <= _LEAST:
            break
        size //= 2  # what is spelled out takes more room than it has bytes
    stop = begin + len(whole)
    words = f"bytes {begin:,} to {stop:,} of {lines.size:,}"
    more = {"start_byte": stop} if stop < lines.size else None
    return with_note(text, words, more, stored)


def with_note(text: str, words: str, more: dict[str, int] | None, stored: Stored) -> str:
    """Put the last line below a page."""
    line_end = "" if not text or text.endswith("\n") else "\n"
    go_on = f"; to go on: {json.dumps(more)}" if more else f": the end{_unkept(stored)}"
    return f"{text}{line_end}[{words}{go_on}]"


def _terminal(stored: Stored) -> bool:
    return stored.kind in ("stdout", "stderr")


def _unkept(stored: Stored) -> str:
    if not stored.lost:
        return ""
    return f" of what is kept, of {stored.total_bytes:,} bytes that were written: {stored.lost}"


def _line(lines: Lines, start: int, end: int, number: int, most: int, *, terminal: bool) -> str:
    """Return one line, its middle left out where it is longer than `most` bytes."""
    if end - start <= most:
        return legible(clean(lines.read(start, end), terminal=terminal).text)
    half = most // 2
    first = whole_start(lines.read(start, start + half + 4), half)
    last = whole_end(lines.read(max(start + half, end - half - 4), end), half)
    left_out, place = end - start - len(first) - len(last), start + len(first)
    note = json.dumps({"start_byte": place})
    return (
        f"{legible(clean(first, terminal=terminal).text)}"
        f"[... {left_out:,} bytes of line {number:,} left out; they are at {note} ...]"
        f"{legible(clean(last, terminal=terminal).text)}"
    )
