"""Search: the lines of an output that match, without more of it in memory than a window.

A window is some whole lines, or a part of one that is longer. The engine is asked about all of
its lines at once, and about fewer only where it says yes: to ask takes longer than to look. As
nothing stops the engine, windows are small; between two of them a search ends when its time is
up, or when nobody waits for it any more.
"""

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from toolcell.legible import clean, legible
from toolcell.outputs import Stored
from toolcell.pages.lines import Lines
from toolcell.pages.page import Room, with_note
from toolcell.pages.pattern import Pattern

_WINDOW = 32 * 1024
# A line longer than a window is searched in parts, each with the end of the one before.
_AGAIN = 4096
_AT_ONCE = 4  # lines: for so few, each is asked about
_SECONDS = 5.0
MOST_COUNTED = 10_000


class Unfinished(Exception):  # noqa: N818  # an end among others, and what it means is the caller's
    """The time was up, or nobody waits any more; `line` and `byte` say how far it came."""

    def __init__(self, line: int, byte: int) -> None:
        super().__init__(f"the search came to line {line:,}")
        self.line = line
        self.byte = byte


@dataclass(slots=True)
class Patience:
    """How long a search may go on: some seconds, and as long as `stop` is not set."""

    seconds: float = _SECONDS
    stop: threading.Event = field(default_factory=threading.Event)
    _until: float = 0.0

    def __post_init__(self) -> None:
        self._until = time.monotonic() + self.seconds

    @property
    def is_over(self) -> bool:
        """Whether to end."""
        return self.stop.is_set() or time.monotonic() >= self._until

    def anew(self) -> "Patience":
        """Return as much again, as long as the same `stop` is not set."""
        return Patience(self.seconds, self.stop)


class Match(NamedTuple):
    """A line that matches; of a long one, the part that does, and at which byte that begins."""

    number: int
    text: str
    part_at: int | None = None


def matching(
    lines: Lines,
    pattern: Pattern,
    first: int = 1,
    last: int | None = None,
    patience: Patience | None = None,
) -> Iterator[Match]:
    """Yield the lines that match, of some; raises Unfinished where patience ends first."""
    at, number = lines.start_of(first), first
    while at < lines.size and (last is None or number <= last):
        if patience is not None and patience.is_over:
            raise Unfinished(number, at)
        end, data = _window(lines, at)
        if end - at > _WINDOW:
            found = _in_long_line(lines, at, end, number, pattern, patience)
            yield from () if found is None else (found,)
            count = 1
        else:
            texts = _texts(data)
            count = len(texts)
            hits = _hits(texts, pattern, 0, count, {})
            yield from (Match(number + place, texts[place]) for place in _up_to(hits, number, last))
        at, number = end, number + count


def page_of_matches(
    lines: Lines,
    stored: Stored,
    pattern: Pattern,
    first: int,
    last: int | None,
    room: Room,
    limit: int,
    patience: Patience,
) -> str:
    """Return the lines that match, each with its number, as far as there is room; and the total."""
    total, parts, left = lines.count(), list[str](), room.size
    until = total if last is None else min(last, total)
    stopped, count, more = until, 0, ""
    try:
        for match in matching(lines, pattern, first, until, patience):
            count += 1
            if stopped == until:
                part = f"{match.number}: {_around(match, pattern, room.line)}\n"
                size = len(part.encode(errors="replace"))
                if len(parts) < min(limit, room.lines) and (size <= left or not parts):
                    parts.append(part)
                    left -= size
                    continue
                stopped = match.number - 1
            if count >= MOST_COUNTED:
                more = " or more"
                break
    except Unfinished as end:
        if not parts and end.line == first:
            raise  # there is no page, and the next one would begin at the same line
        more = " or more" if stopped < until else ""
        stopped = min(stopped, end.line - 1)
    of = f" of {count:,}{more}" if count > len(parts) else ""
    found = f"{len(parts):,}{of} matching line{'' if count == 1 else 's'}"
    words = f"{found} in lines {first:,} to {stopped:,} of {total:,}"
    go_on = {"start_line": stopped + 1} if stopped < total else None
    return with_note("".join(parts), words, go_on, stored)


def _window(lines: Lines, at: int) -> tuple[int, bytes]:
    """Return where a window of whole lines ends, and its bytes; a long line's are not read."""
    data = lines.read(at, at + _WINDOW)
    whole = data if at + len(data) >= lines.size else data[: data.rfind(b"\n") + 1]
    return (at + len(whole), whole) if whole else (lines.end_of(at), b"")


def _texts(data: bytes) -> list[str]:
    """Return the clean text of each line."""
    ends, text = data.count(b"\n"), legible(clean(data).text)
    if text.count("\n") != ends:  # a sequence goes over the end of a line
        return [legible(clean(line).text).replace("\n", "") for line in _split(data, ends)]
    return text.removesuffix("\n").split("\n")


def _split(data: bytes, ends: int) -> list[bytes]:
    return data.split(b"\n")[: ends if data.endswith(b"\n") else None]


def _hits(
    texts: list[str], pattern: Pattern, low: int, high: int, known: dict[str, bool]
) -> Iterator[int]:
    """Yield which of some lines match; equal ones are asked about once."""
    if high - low > _AT_ONCE:
        if pattern.is_in("\n".join(texts[low:high])):
            middle = (low + high) // 2
            yield from _hits(texts, pattern, low, middle, known)
            yield from _hits(texts, pattern, middle, high, known)
        return
    for place in range(low, high):
        text = texts[place]
        if text not in known:
            known[text] = pattern.is_in(text)
        if known[text]:
            yield place


def _up_to(hits: Iterator[int], number: int, last: int | None) -> Iterator[int]:
    return (place for place in hits if last is None or number + place <= last)


def _in_long_line(
    lines: Lines, start: int, end: int, number: int, pattern: Pattern, patience: Patience | None
) -> Match | None:
    at = start
    while True:
        stop = min(end, at + _WINDOW)
        text = legible(clean(lines.read(at, stop)).text).rstrip("\n")
        if pattern.is_in(text):
            return Match(number, text, at)
        if stop >= end:
            return None
        if patience is not None and patience.is_over:
            raise Unfinished(number, stop)
        at = stop - _AGAIN


def _around(match: Match, pattern: Pattern, most: int) -> str:
    """Return a line, or of a long one what is around its first match."""
    text = match.text
    place = "" if match.part_at is None else f"[part of a long line, near byte {match.part_at:,}] "
    if len(text) <= most:
        return place + text
    middle = pattern.place_in(text)
    start = max(0, min(middle - most // 2, len(text) - most))
    end = start + most
    before = f"[... {start:,} characters ...]" if start else ""
    after = f"[... {len(text) - end:,} characters ...]" if end < len(text) else ""
    return f"{place}{before}{text[start:end]}{after}"
