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
from collections.abc import Callable
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
# Places in all states, and moves between them, before the table is emptied: a few MiB.
_MAX_HELD = 50_000
_is_word = re.compile(r"\w").fullmatch


class _Before(Enum):
    """What stands before a place."""

    NOTHING = 0
    WORD = 1
    OTHER = 2


class _Step(NamedTuple):
    """One instruction: where to go on, after a character that fits, or where an assertion holds.

    With neither, it is gone through at once.
    """

    following: tuple[int, ...]
    fits: Callable[[str], object] | None = None
    assertion: str = ""


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
        self._program: list[_Step] = [_Step(())]  # place 0: it matches
        self._start = self._compile(node, 0)
        self._states: dict[tuple[frozenset[int], _Before], _State] = {}
        self._held = 0
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
                for step in map(self._program.__getitem__, places)
                if step.fits is not None and step.fits(character)
                for place in step.following
            )
            before = _Before.WORD if _is_word(character) else _Before.OTHER
            found = self._known(onward, before)
        self._held += 1
        state[character] = found
        return found

    def _known(self, places: frozenset[int], before: _Before) -> _State:
        if self._held > _MAX_HELD:
            self._states.clear()
            self._first.clear()
            self._held = 0
        key = (places, before)
        if key not in self._states:
            self._states[key] = _State(self, places, before)
            self._held += len(places)
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
            if step.fits is None and (
                not step.assertion or _holds(step.assertion, state.before, character)
            ):
                ahead += step.following
        self.steps += len(seen)
        return seen

    def _compile(self, node: Node, following: int) -> int:
        """Add a node's instructions before what follows it; returns where they begin."""
        match node:
            case Character():
                single = node.literal and not node.folded
                fits = node.literal.__eq__ if single else re.compile(python_class(node)).match
                return self._add(_Step((following,), fits=fits))
            case Assertion(kind):
                return self._add(_Step((following,), assertion=kind))
            case Sequence(items):
                for item in reversed(items):
                    following = self._compile(item, following)
                return following
            case Choice(items):
                return self._add(_Step(tuple(self._compile(item, following) for item in items)))
            case Repeat(item, low, high):
                return self._repeat(item, low, high, following)

    def _repeat(self, item: Node, low: int, high: int | None, following: int) -> int:
        if high is None:
            loop = self._add(_Step(()))
            self._program[loop] = _Step((following, self._compile(item, loop)))
            following = loop
        else:
            after = following
            for _ in range(high - low):
                following = self._add(_Step((after, self._compile(item, following))))
        for _ in range(low):
            following = self._compile(item, following)
        return following

    def _add(self, step: _Step) -> int:
        self._program.append(step)
        return len(self._program) - 1


def _holds(kind: str, before: _Before, character: str) -> bool:
    if kind == "start":
        return before is _Before.NOTHING
    if kind == "end":
        return character == END
    at_edge = (before is _Before.WORD) != bool(_is_word(character))
    return at_edge if kind == "boundary" else not at_edge
