"""Near misses: where in a file some lines stand almost, for a text that was not found in it.

Bounded: a file is looked at by what its lines have in common with those that are wanted, in time
linear to both. Only a few places are compared letter by letter, because difflib is quadratic.
"""

import re
from collections import Counter
from typing import NamedTuple

_MOST_LINES = 200_000
_TOO_COMMON = 200
_PLACES = 3
_WORDS_FROM = 40
_LETTERS = 400
_WORD = re.compile(r"\w+")


class Near(NamedTuple):
    """A place where wanted lines may have been meant.

    `line` is the number of its first line, from 1; `differing` are the wanted lines' indexes that
    differ there, and `by_space` says that all do so in white space only.
    """

    line: int
    differing: tuple[int, ...]
    by_space: bool


def nearest(lines: list[str], wanted: list[str], places: int = _PLACES) -> list[Near]:
    """Return where the wanted lines stand almost, the closest first."""
    lines = lines[:_MOST_LINES]
    votes = _votes([_plain(line) for line in lines], [_plain(line) for line in wanted])
    if not votes:
        votes = _by_words(lines, wanted)
    starts = [start for start, _ in votes.most_common(4 * places)]
    found = [_compare(lines, wanted, start) for start in starts]
    found.sort(key=lambda near: (len(near.differing), not near.by_space))
    return found[:places]


def difference(found: str, wanted: str) -> str:
    """Name the difference of two lines where it is one of white space or of case; else ""."""
    if found == wanted:
        return ""
    if _plain(found) != _plain(wanted):
        return "it differs in case only" if found.casefold() == wanted.casefold() else ""
    if _indent(found) != _indent(wanted):
        return f"it is indented by {_named(_indent(found))}, not by {_named(_indent(wanted))}"
    if found.rstrip() == wanted.rstrip():
        there, here = found[len(found.rstrip()) :], wanted[len(wanted.rstrip()) :]
        return f"it has {_named(there)} at its end, not {_named(here)}"
    return "it differs in the white space between its words"


def _plain(line: str) -> str:
    return " ".join(line.split())


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _named(space: str) -> str:
    """Say of what white space is made."""
    if not space:
        return "nothing"
    parts = []
    for mark, name in ((" ", "space"), ("\t", "tab"), ("\r", "carriage return")):
        if number := space.count(mark):
            parts.append(f"{number} {name}{'' if number == 1 else 's'}")
    return " and ".join(parts) or f"{len(space)} other blank(s)"


def _votes(plain: list[str], wanted: list[str]) -> Counter[int]:
    """Count for each start how many of the wanted lines would be in their places."""
    places: dict[str, list[int]] = {line: [] for line in wanted if line}
    for number, line in enumerate(plain):
        found = places.get(line)
        if found is not None and len(found) < _TOO_COMMON:
            found.append(number)
    votes: Counter[int] = Counter()
    for index, line in enumerate(wanted):
        votes.update(number - index for number in places.get(line, ()) if number >= index)
    return votes


def _by_words(lines: list[str], wanted: list[str]) -> Counter[int]:
    """Find the lines that are most like the longest wanted one: by words, then by letters."""
    from difflib import SequenceMatcher

    index = max(range(len(wanted)), key=lambda number: len(wanted[number].strip()))
    line = _plain(wanted[index])[:_LETTERS].casefold()
    words = set(_WORD.findall(line))
    if not words:
        return Counter()
    shared = Counter(
        {
            number: len(common)
            for number, other in enumerate(lines)
            if (common := words.intersection(_WORD.findall(other[:_LETTERS].casefold())))
        }
    )
    matcher = SequenceMatcher(b=line, autojunk=False)
    votes: Counter[int] = Counter()
    for number, _ in shared.most_common(_WORDS_FROM):
        matcher.set_seq1(_plain(lines[number])[:_LETTERS].casefold())
        if number >= index and (ratio := matcher.ratio()) >= 0.6:
            votes[number - index] = round(100 * ratio)
    return votes


def _compare(lines: list[str], wanted: list[str], start: int) -> Near:
    differing, by_space = [], True
    for index, line in enumerate(wanted):
        there = lines[start + index] if start + index < len(lines) else None
        if there != line:
            differing.append(index)
            by_space = by_space and there is not None and _plain(there) == _plain(line)
    return Near(start + 1, tuple(differing), by_space)
