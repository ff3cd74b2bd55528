"""Near misses: where in a file some lines stand almost, for a text that was not found in it.

Bounded: a file is looked at by what its lines have in common with those that are wanted, in time
linear to both. Only a few places are compared letter by letter, because difflib is quadratic.
"""

import re
from collections import Counter
from itertools import takewhile
from typing import NamedTuple

from sandbox_workers.tools.counting import counted

_MOST_LINES = 200_000
_TOO_COMMON = 200
_PLACES = 3
_WORDS_FROM = 40
_LETTERS = 400
_SHOWN = 40
_WORD = re.compile(r"\w+")
_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")


Ends = tuple[bool, bool]
"""Whether the first wanted line may begin inside one, and the last one may end so."""


class Near(NamedTuple):
    """A place where wanted lines may have been meant.

    `line` is the number of its first line, from 1; `differing` are the wanted lines' indexes that
    differ there, and `by_space` says that all do so in white space only.
    """

    line: int
    differing: tuple[int, ...]
    by_space: bool


def nearest(
    lines: list[str], wanted: list[str], places: int = _PLACES, open_ends: Ends = (False, False)
) -> list[Near]:
    """Return where the wanted lines stand almost, the closest first."""
    lines = lines[:_MOST_LINES]
    votes = _votes([_plain(line) for line in lines], [_plain(line) for line in wanted])
    if not votes:
        votes = _by_words(lines, wanted)
    starts = [start for start, _ in votes.most_common(4 * places)]
    found = [_compare(lines, wanted, start, open_ends) for start in starts]
    found.sort(key=lambda near: (len(near.differing), not near.by_space))
    return found[:places]


def difference(found: str, wanted: str, open_ends: Ends = (False, False)) -> str:
    """Name the difference of two lines: of white space, of case, or the words; "" if none."""
    if found == wanted:
        return ""
    if _plain(found) != _plain(wanted):
        if found.casefold() == wanted.casefold():
            return "it differs in case only"
        return _words_apart(found, wanted, open_ends)
    if _indent(found) != _indent(wanted):
        return f"it is indented by {_named(_indent(found))}, not by {_named(_indent(wanted))}"
    if found.rstrip() == wanted.rstrip():
        there, here = found[len(found.rstrip()) :], wanted[len(wanted.rstrip()) :]
        return f"it has {_named(there)} at its end, not {_named(here)}"
    return "it differs in the white space between its words"


def _words_apart(found: str, wanted: str, open_ends: Ends) -> str:
    """Name the columns where two lines differ, and what stands there."""
    parts = _parts_apart(found, wanted)
    if open_ends[0] and len(parts) > 1 and parts[0][0] == 0 and not parts[0][2]:
        del parts[0]
    if open_ends[1] and len(parts) > 1 and not parts[-1][2] and found.endswith(parts[-1][1]):
        del parts[-1]
    told = [
        f"from column {at + 1:,} it has {_quoted(there)}, not {_quoted(here)}"
        for at, there, here in parts[:_PLACES]
    ]
    if len(parts) > _PLACES:
        told.append(f"and differs in {counted(len(parts) - _PLACES, 'place')} more")
    return "; ".join(told)


def _parts_apart(found: str, wanted: str) -> list[tuple[int, str, str]]:
    """Return where in a found line words differ, with those of both lines."""
    if max(len(found), len(wanted)) > _LETTERS:
        alike = takewhile(lambda pair: pair[0] == pair[1], zip(found, wanted, strict=False))
        at = sum(1 for _ in alike)
        return [(at, found[at:], wanted[at:])]
    from difflib import SequenceMatcher

    there, here = _TOKEN.findall(found), _TOKEN.findall(wanted)
    return [
        (len("".join(there[:i])), "".join(there[i:j]), "".join(here[k:m]))
        for tag, i, j, k, m in SequenceMatcher(None, there, here, autojunk=False).get_opcodes()
        if tag != "equal"
    ]


def _quoted(text: str) -> str:
    if not text:
        return "nothing"
    return repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}..."


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
            parts.append(counted(number, name))
    return " and ".join(parts) or counted(len(space), "other blank")


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


def _compare(lines: list[str], wanted: list[str], start: int, open_ends: Ends) -> Near:
    differing, by_space = [], True
    for index, line in enumerate(wanted):
        there = lines[start + index] if start + index < len(lines) else None
        ends = open_ends[0] and index == 0, open_ends[1] and index == len(wanted) - 1
        if there is None or not _same(there, line, ends):
            differing.append(index)
            by_space = by_space and there is not None and _plain(there) == _plain(line)
    return Near(start + 1, tuple(differing), by_space)


def _same(there: str, line: str, ends: Ends) -> bool:
    """Whether a line is the one that is wanted, or ends or begins with it where that is enough."""
    if there == line:
        return True
    return (ends[0] and there.endswith(line)) or (ends[1] and there.startswith(line))
