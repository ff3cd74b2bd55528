"""The lines of an answer of search_text, as grep writes them.

    src/a.py:12:the line that matches
    src/a.py-13-a line around it
    --                            between lines that do not stand together, where there is context

A long line is cut around the place where it matches, and says how much of it is not shown.
"""

from collections.abc import Iterable

from sandbox_workers.patterns.matching import Matcher
from sandbox_workers.tools.answering import ROOM
from sandbox_workers.tools.naming import shown

WIDTH = 400
_Numbered = tuple[int, str]


class Page:
    """The lines of all files, until `limit` matches or ROOM bytes are shown."""

    def __init__(self, matcher: Matcher, before: int, after: int, limit: int) -> None:
        self.matcher = matcher
        self.before, self.after = before, after
        self.lines: list[str] = []
        self.matches = 0
        self._limit, self._room = limit, ROOM

    @property
    def full(self) -> bool:
        """Whether no further match is shown."""
        return self.matches >= self._limit or self._room < 0

    def add(self, lines: list[str]) -> bool:
        """Add lines that belong together; when they are too many, nothing is added any more."""
        self._room -= sum(len(line.encode()) + 1 for line in lines)
        if self._room < 0:
            return False
        self.lines += lines
        return True


class Excerpt:
    """What is shown of one file, which comes in pieces of whole lines; counts its matches."""

    def __init__(self, page: Page, path: str) -> None:
        self._page, self._name = page, shown(path)
        self.matches = 0
        self._number = 1  # of the first line of the piece
        self._last = 0  # the last line shown
        self._owed = 0  # lines to show after it
        self._tail: list[_Numbered] = []  # the last lines of the piece before
        self._text, self._at = "", 0  # the piece, and where the first line not shown begins

    @property
    def owes(self) -> bool:
        """Whether lines after a match are still to be shown."""
        return self._owed > 0

    def piece(self, text: str, matches: Iterable[tuple[int, int]]) -> None:
        """Take the next lines of the file, and where in them those begin and end that match."""
        page, number, counted = self._page, self._number, 0
        self._text, self._at = text, 0
        for low, high in matches:
            self.matches += 1
            if page.full and not self._owed:
                continue
            self._show_after(low)
            if page.full:
                self._owed = 0
                continue
            number += text.count("\n", counted, low)
            counted = low
            self._show_match(low, high, number)
        self._show_after(len(text))
        self._number += text.count("\n")
        self._tail = self._before(len(text), self._number, 0)

    def _show_match(self, low: int, high: int, number: int) -> None:
        above = self._before(low, number, self._at)
        first = above[0][0] if above else number
        apart = ["--"] if self._page.lines and self._apart(first) else []
        lines = [f"{self._name}-{at}-{_cut(line)}" for at, line in above]
        match = f"{self._name}:{number}:{self._window(self._text[low:high])}"
        if self._page.add([*apart, *lines, match]):
            self._page.matches += 1
            self._last, self._at, self._owed = number, high + 1, self._page.after

    def _apart(self, first: int) -> bool:
        context = self._page.before or self._page.after
        return bool(context) and (not self._last or first > self._last + 1)

    def _before(self, low: int, number: int, floor: int) -> list[_Numbered]:
        """Return the lines before a place, down to `floor` and to the last line shown."""
        found: list[_Numbered] = []
        end = low - 1
        while len(found) < self._page.before and end >= floor:
            start = self._text.rfind("\n", 0, end) + 1
            found.append((number - len(found) - 1, self._text[start:end]))
            end = start - 1
        missing = self._page.before - len(found)
        if missing and end < 0:
            found += [item for item in reversed(self._tail[-missing:]) if item[0] > self._last]
        return found[::-1]

    def _show_after(self, until: int) -> None:
        while self._owed and self._at < until:
            high = self._text.find("\n", self._at)
            high = len(self._text) if high < 0 else high
            line = _cut(self._text[self._at : high])
            self._last, self._at = self._last + 1, high + 1
            self._owed -= 1
            if not self._page.add([f"{self._name}-{self._last}-{line}"]):
                self._owed = 0

    def _window(self, line: str) -> str:
        if len(line) <= WIDTH:
            return _cut(line)
        place = self._page.matcher.where(line)
        start = max(0, min(place - WIDTH // 2, len(line) - WIDTH))
        return (f"[{start:,} characters] … " if start else "") + _cut(line[start:])


def _cut(line: str) -> str:
    """Cut a line at its end, and make it text that every codec takes."""
    more = len(line) - WIDTH
    line = line[:WIDTH].encode(errors="surrogateescape").decode(errors="replace")
    return f"{line} … [{more:,} more characters]" if more > 0 else line
