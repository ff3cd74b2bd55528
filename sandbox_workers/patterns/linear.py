"""The engine that cannot hang: an automaton, built as far as a text needs it.

A pattern becomes a program of few instructions (Thompson). Where the program can be after some
characters is a set of places; each such set is one state, with a table of the states that
follow. A state is worked out once and then looked up, so a text costs one look-up for each of
its characters. Where a pattern has very many states the table is emptied from time to time,
and a character costs at most one visit of each instruction: linear in the text either way.

What `^`, `$` and `\\b` say depends on both neighbours of a place, so a state remembers what kind
of character came before, and assertions wait in it until the next character is known.
"""

import re
from enum import Enum
from typing import NamedTuple

from sandbox_workers.patterns.nodes import (
    Assertion,
    Character,
    Choice,
    Node,
    Repeat,
    Sequence,
)
from sandbox_workers.patterns.rendering import python_class

END = ""
_MAX_STATES = 1000
_MAX_MOVES = 100_000
_is_word = re.compile(r"\w").fullmatch


class _Before(Enum):
    """What stands before a place."""

    NOTHING = 0
    WORD = 1
    OTHER = 2


class _Step(NamedTuple):
    """One instruction: to go from `here` on; a test that is None always passes."""

    test: "re.Pattern[str] | str | None"
    following: tuple[int, ...]


class _State(dict[str, "_State"]):
    """Places in the program, and the states that follow, by character."""

    __slots__ = ("before", "machine", "places")

    def __init__(self, machine: "Automaton", places: frozenset[int], before: _Before) -> None:
        self.machine, self.places, self.before = machine, places, before

    def __missing__(self, character: str) -> "_State":
        return self.machine.follow(self, character)


class Automaton:
    """Looks for a pattern in lines; `steps` counts what it did: instructions and characters."""

    def __init__(self, node: Node) -> None:
        self._program: list[_Step] = [_Step(None, ())]  # place 0: it matches
        self._start = self._compile(node, 0)
        self._states: dict[tuple[frozenset[int], _Before], _State] = {}
        self._moves = 0
        self.steps = 0
        self._matched = _State(self, frozenset({0}), _Before.OTHER)
        self._first = _State(self, frozenset(), _Before.NOTHING)

    def find(self, line: str) -> int:
        """Return the place in a line at which it is first certain that it matches, or -1."""
        state, matched, at = self._first, self._matched, 0
        for at, character in enumerate(line):
            state = state[character]
            if state is matched:
                self.steps += at
                return at
        self.steps += len(line)
        return len(line) if state[END] is matched else -1

    def follow(self, state: _State, character: str) -> _State:
        """Work out the state after a character, or after END, and keep it in the table."""
        places = self._reachable(state, character)
        if 0 in places:
            found = self._matched
        else:
            onward = frozenset(
                place
                for here in places
                if isinstance(test := self._program[here].test, re.Pattern)
                and test.match(character)
                for place in self._program[here].following
            )
            before = _Before.WORD if _is_word(character) else _Before.OTHER
            found = self._known(onward, before)
        self._moves += 1
        state[character] = found
        return found

    def _known(self, places: frozenset[int], before: _Before) -> _State:
        if len(self._states) > _MAX_STATES or self._moves > _MAX_MOVES:
            self._states.clear()
            self._first.clear()
            self._moves = 0
        key = (places, before)
        if key not in self._states:
            self._states[key] = _State(self, places, before)
        return self._states[key]

    def _reachable(self, state: _State, character: str) -> set[int]:
        """Return the places reached without a character, from a state's and from the start."""
        seen: set[int] = set()
        ahead = [*state.places, self._start]
        while ahead:
            here = ahead.pop()
            if here in seen:
                continue
            seen.add(here)
            step = self._program[here]
            if step.test is None or (
                isinstance(step.test, str) and _holds(step.test, state.before, character)
            ):
                ahead += step.following
        self.steps += len(seen)
        return seen

    def _compile(self, node: Node, following: int) -> int:
        """Add a node's instructions before what follows it; returns where they begin."""
        match node:
            case Character():
                return self._add(re.compile(python_class(node)), following)
            case Assertion(kind):
                return self._add(kind, following)
            case Sequence(items):
                for item in reversed(items):
                    following = self._compile(item, following)
                return following
            case Choice(items):
                return self._add(None, *[self._compile(item, following) for item in items])
            case Repeat(item, low, high):
                return self._repeat(item, low, high, following)

    def _repeat(self, item: Node, low: int, high: int | None, following: int) -> int:
        if high is None:
            loop = self._add(None, following)
            self._program[loop] = _Step(None, (following, self._compile(item, loop)))
            following = loop
        else:
            after = following
            for _ in range(high - low):
                following = self._add(None, after, self._compile(item, following))
        for _ in range(low):
            following = self._compile(item, following)
        return following

    def _add(self, test: "re.Pattern[str] | str | None", *following: int) -> int:
        self._program.append(_Step(test, following))
        return len(self._program) - 1


def _holds(kind: str, before: _Before, character: str) -> bool:
    if kind == "start":
        return before is _Before.NOTHING
    if kind == "end":
        return character == END
    at_edge = (before is _Before.WORD) != bool(_is_word(character))
    return at_edge if kind == "boundary" else not at_edge
