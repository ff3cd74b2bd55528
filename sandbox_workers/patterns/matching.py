"""Lines that match, out of a text: by `re` as far as it is sure to be quick, else linearly.

Both engines give the same answer, so which of them looks at a line is only a matter of time. What
`re` might do to a line is bounded before (`cost`); a text is cut where the bounds of its lines
add up to a budget, and between the pieces it is seen whether `re` keeps the pace that the other
engine would have. Patterns that make it slow are searched linearly from there on.
"""

import math
import re
from collections.abc import Iterator
from enum import Enum
from functools import cached_property
from time import perf_counter

from sandbox_workers.patterns.cost import effort, ways
from sandbox_workers.patterns.linear import Automaton
from sandbox_workers.patterns.literals import required
from sandbox_workers.patterns.nodes import Node
from sandbox_workers.patterns.rendering import for_python

# What `re` may do at a stretch: about a second at the worst.
_BUDGET = 50_000_000
# Seconds: what `re` may take beyond the pace of the linear engine before it has lost.
_PATIENCE = 1.0
_LINEAR_PACE = 1e-7
# Shorter texts are on too many lines.
_WORTH_JUMPING = 3


class Pace(Enum):
    """How many bytes a second are searched, roughly: 200 MB, 40 MB, 10 MB."""

    FAST = "fast"
    MIDDLING = "middling"
    SLOW = "slow"


class Matcher:
    """Looks for one pattern in one text after another."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._required = required(node)
        self._expression = re.compile(for_python(node), re.MULTILINE)
        self._effort = effort(node)
        self._prices: dict[int, float] = {}
        self._spent = self._allowed = 0.0
        self._needles = [text.encode() for text in self._required.texts] if self._required else []

    @cached_property
    def _automaton(self) -> Automaton:
        return Automaton(self._node)

    def may_match(self, data: bytes) -> bool:
        """Say whether a text could hold a match, from what every match holds."""
        if self._required is None:
            return True
        data = data.lower() if self._required.folded else data
        return any(needle in data for needle in self._needles)

    @property
    def pace(self) -> Pace:
        """How fast most texts are searched: all of it in C, or by `re`, or by the automaton."""
        if self._needles and min(map(len, self._needles)) >= _WORTH_JUMPING:
            return Pace.FAST
        return Pace.MIDDLING if ways(self._node, 1000) < math.inf else Pace.SLOW

    def where(self, line: str) -> int:
        """Return a place of a match in a line that holds one."""
        if self._price(len(line)) > _BUDGET:
            return self._automaton.find(line)
        found = self._expression.search(line)
        return found.start() if found else 0

    def lines(self, text: str) -> Iterator[tuple[int, int]]:
        """Give where each line that matches begins and ends, without its line feed."""
        end = len(text) - text.endswith("\n")
        needle = self._needle(text)
        if not text:
            return
        stretches = self._holding(*needle, end) if needle else self._stretches(text, end)
        for low, high, quick in stretches:
            if quick and self._spent <= self._allowed + _PATIENCE:
                yield from self._by_re(text, low, high)
            else:
                yield from self._by_automaton(text, low, high)

    def _needle(self, text: str) -> tuple[str, str] | None:
        """Return a text that each match holds, and where to look for it.

        `re` looks for what a pattern begins with as fast as can be, but not for what stands in
        its middle or behind an assertion.
        """
        required = self._required
        if required is None or len(required.texts) > 1 or len(required.texts[0]) < _WORTH_JUMPING:
            return None
        if not required.folded:
            return required.texts[0], text
        # Outside ASCII lower case can be longer than upper case.
        return (required.texts[0], text.lower()) if text.isascii() else None

    def _holding(self, needle: str, text: str, end: int) -> Iterator[tuple[int, int, bool]]:
        """Give each line that holds a text, and whether it is one for `re`."""
        start = 0
        while (place := text.find(needle, start, end)) >= 0:
            low, high = text.rfind("\n", 0, place) + 1, _line_end(text, place, end)
            yield low, high, self._price(high - low) <= _BUDGET
            start = high + 1

    def _stretches(self, text: str, end: int) -> Iterator[tuple[int, int, bool]]:
        """Cut a text at line ends; says of each piece whether it is one for `re`."""
        if self._whole(text):
            yield 0, end, True
            return
        start, sum_ = 0, 0.0
        for low, high in _lines(text, 0, end):
            price = self._price(high - low)
            if sum_ and sum_ + price > _BUDGET:
                yield start, low - 1, True
                start, sum_ = low, 0.0
            if price > _BUDGET:
                yield low, high, False
                start = high + 1
            else:
                sum_ += price
        if sum_:
            yield start, end, True

    def _whole(self, text: str) -> bool:
        if self._price(len(text)) <= _BUDGET:
            return True
        longest = max(map(len, text.split("\n")))
        return self._price(longest) * len(text) <= _BUDGET * max(1, longest)

    def _price(self, length: int) -> float:
        """Bound what `re` does to one line, or to lines of one length each, in characters."""
        if length not in self._prices:
            self._prices[length] = max(1, length) * ways(self._node, length) * self._effort
        return self._prices[length]

    def _by_re(self, text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
        self._allowed += (end - start) * _LINEAR_PACE
        while start <= end:
            began = perf_counter()
            found = self._expression.search(text, start, end)
            self._spent += perf_counter() - began
            if found is None:
                return
            low, high = text.rfind("\n", 0, found.start()) + 1, _line_end(text, found.end(), end)
            yield low, high
            start = high + 1

    def _by_automaton(self, text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
        for low, high in _lines(text, start, end):
            line = text[low:high]
            if self._has_required(line) and self._automaton.find(line) >= 0:
                yield low, high

    def _has_required(self, line: str) -> bool:
        if self._required is None:
            return True
        line = line.lower() if self._required.folded else line
        return any(text in line for text in self._required.texts)


def _lines(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while start <= end:
        high = _line_end(text, start, end)
        yield start, high
        start = high + 1


def _line_end(text: str, start: int, end: int) -> int:
    found = text.find("\n", start, end)
    return end if found < 0 else found
