"""Hunks, placed: where in a file each stands, and the text with all of them applied.

A hunk stands where its header says, moved by as much as the hunk before it. Where its lines are
not there, they are searched in the rest of the file, and taken if they are found exactly once:
first letter by letter, then without regard to white space at the ends of lines. What fits
nowhere, or in several places, is told; nothing is guessed.
"""

from typing import NamedTuple

from sandbox_workers.tools.changes import brief, split
from sandbox_workers.tools.counting import counted
from sandbox_workers.tools.nearness import difference, nearest
from sandbox_workers.tools.patches import Hunk

MOST_REJECTS = 12
"""After so many hunks that do not apply the others are not looked at: each costs a search."""

_READ_AGAIN = "read the file again, and make the patch from what it holds now"
_DONE = "leave out the hunks that are applied already"
_ALL_DONE = "there is nothing to do for that file: leave it out of the patch"
_FEW = 5
_TELLING = 2


class Placed(NamedTuple):
    """A hunk, the index of its first line in the file, and whether white space was passed over."""

    hunk: Hunk
    at: int
    loose: bool


class Reject(NamedTuple):
    """Why something in a patch does not apply, and what to do about it, or nothing."""

    why: str
    hint: str = ""


class Applied(NamedTuple):
    """A text with its hunks applied, what is to be said of them, and why some do not apply."""

    text: str
    notes: list[str]
    rejects: list[Reject]


class _File:
    """The lines of a file; `closed` says that the last one has a line end."""

    def __init__(self, text: str) -> None:
        self.lines = split(text)
        self.closed = text.endswith("\n") or not text
        self._views: dict[bool, tuple[list[str], set[str]]] = {}

    def find(self, wanted: list[str], after: int, *, loose: bool = False) -> list[int]:
        """Return the indexes from `after` on where some lines stand."""
        if loose not in self._views:
            lines = _without_ends(self.lines) if loose else self.lines
            self._views[loose] = lines, set(lines)
        lines, known = self._views[loose]
        wanted = _without_ends(wanted) if loose else wanted
        # A line that is nowhere, as there mostly is one, saves the whole search.
        return occurrences(lines, wanted, after) if known.issuperset(wanted) else []


def apply_hunks(text: str, hunks: list[Hunk]) -> Applied:
    """Place all hunks, and apply them if each has its place."""
    file = _File(text)
    placed: list[Placed] = []
    notes: list[str] = []
    rejects: list[Reject] = []
    after = moved = 0
    for number, hunk in enumerate(hunks, 1):
        found = _place(file, hunk, after, moved)
        if isinstance(found, Reject):
            why = f"hunk {number} ({brief(hunk.header)}): {found.why}"
            rejects.append(found._replace(why=why))
            if len(rejects) == MOST_REJECTS:
                rejects.append(Reject(f"of {len(hunks):,} hunks the others were not looked at"))
                break
            continue
        placed.append(found)
        after = found.at + len(hunk.side(" -"))
        if hunk.line:
            notes += _moved(number, found, moved)
            moved = found.at - _wanted(hunk)
    if len(rejects) == len(hunks) and all(each.hint == _DONE for each in rejects):
        rejects = [each._replace(hint=_ALL_DONE) for each in rejects]
    return Applied("" if rejects else _put_in(file, placed), notes, rejects)


def _wanted(hunk: Hunk) -> int:
    """The index that a header names; of a hunk that only adds, the line before is named."""
    return hunk.line - 1 if hunk.side(" -") else hunk.line


def _moved(number: int, placed: Placed, moved: int) -> list[str]:
    notes = []
    offset = placed.at - _wanted(placed.hunk)
    if offset != moved:
        where = f"{counted(abs(offset), 'line')} {'below' if offset > 0 else 'above'}"
        notes.append(f"hunk {number} applied at line {placed.at + 1:,}, {where} what it says")
    if placed.loose and placed.hunk.side(" -"):
        notes.append(f"hunk {number} applied without regard to white space at the ends of lines")
    return notes


def _place(file: _File, hunk: Hunk, after: int, moved: int) -> Placed | Reject:
    """Find a hunk's place behind the one before it, or say why it has none."""
    old = hunk.side(" -")
    wanted = _wanted(hunk) + moved if hunk.line else -1
    if not old:
        return _place_without_context(file.lines, hunk, wanted, after)
    end = len(file.lines) - len(old)
    is_there = wanted >= after and file.lines[wanted : wanted + len(old)] == old
    if is_there and _ends_alike(hunk, file.closed, at_end=wanted == end):
        return Placed(hunk, wanted, False)
    for loose in (False, True):
        found = [
            at
            for at in file.find(old, after, loose=loose)
            if (at == end or not hunk.open_old)
            and (loose or _ends_alike(hunk, file.closed, at_end=at == end))
        ]
        if wanted in found or len(found) == 1:
            return Placed(hunk, wanted if wanted in found else found[0], loose)
        if found:
            return _ambiguous(found)
    return _unplaced(file, hunk, after, wanted)


def _ends_alike(hunk: Hunk, closed: bool, *, at_end: bool) -> bool:
    """Whether the hunk is right on the line end that the file's last line has, or has not."""
    return hunk.open_old is not closed if at_end else not hunk.open_old


def _without_ends(lines: list[str]) -> list[str]:
    return [line.rstrip() for line in lines]


def _place_without_context(
    lines: list[str], hunk: Hunk, wanted: int, after: int
) -> Placed | Reject:
    """Place a hunk that only adds: it can only stand where its header says."""
    if not lines:
        return Placed(hunk, 0, False)
    if not hunk.line:
        return Reject(
            "it has no line of the file, by which its place could be known; add context lines"
        )
    if not after <= wanted <= len(lines):
        has = counted(len(lines), "line")
        return Reject(f"it adds behind line {hunk.line:,}, and the file has {has}", _READ_AGAIN)
    return Placed(hunk, wanted, True)


def _ambiguous(found: list[int]) -> Reject:
    few = ", ".join(f"{at + 1:,}" for at in found[:_FEW])
    rest = f" and {len(found) - _FEW:,} more" if len(found) > _FEW else ""
    return Reject(
        f"its lines are not where it says, but stand {len(found):,} times, at lines {few}{rest}; "
        "add context lines until they are unique"
    )


def _unplaced(file: _File, hunk: Hunk, after: int, wanted: int) -> Reject:
    lines, old, new = file.lines, hunk.side(" -"), hunk.side(" +")
    if len(new) >= _TELLING and (there := file.find(new, 0)):
        where = f"what it makes stands at line {there[0] + 1:,}"
        return Reject(f"it seems to be applied already: {where}", _DONE)
    if any(at < after for at in file.find(old, 0)):
        return Reject(
            f"its lines stand before those of the hunk above it (line {after:,}); sort the hunks"
        )
    near = nearest(lines, old, 1)
    start = near[0].line - 1 if near else max(0, wanted)
    for index, line in enumerate(old):
        if start + index >= len(lines):
            ends = f"the file ends after line {len(lines):,}"
            return Reject(f"{ends}; expected there: {brief(line)!r}", _READ_AGAIN)
        found = lines[start + index]
        if found.rstrip() != line.rstrip():
            why = difference(found, line)
            return Reject(
                f"at line {start + index + 1:,}{f', {why}' if why else ''}\n"
                f"    expected: {brief(line)!r}\n    found:    {brief(found)!r}",
                _READ_AGAIN,
            )
    return Reject(
        "it says that the file ends here, and the file goes on, or the other way round", _READ_AGAIN
    )


def occurrences(lines: list[str], wanted: list[str], after: int) -> list[int]:
    """Return all indexes from `after` on where some lines stand (Knuth-Morris-Pratt: linear)."""
    back = _fallbacks(wanted)
    found, matched = [], 0
    for index in range(after, len(lines)):
        while matched and (matched == len(wanted) or lines[index] != wanted[matched]):
            matched = back[matched - 1]
        if lines[index] == wanted[matched]:
            matched += 1
        if matched == len(wanted):
            found.append(index - matched + 1)
    return found


def _has_crlf(lines: list[str], placed: Placed) -> bool:
    """Whether lines end in CRLF where a hunk stands; where no line tells, in the whole file."""
    there = lines[placed.at : placed.at + 1] if placed.hunk.side(" -") else lines
    return bool(there) and all(line.endswith("\r") for line in there)


def _fallbacks(wanted: list[str]) -> list[int]:
    """For each start of the wanted lines, the length of its longest end that is a start too."""
    back, matched = [0] * len(wanted), 0
    for index in range(1, len(wanted)):
        while matched and wanted[index] != wanted[matched]:
            matched = back[matched - 1]
        matched += wanted[index] == wanted[matched]
        back[index] = matched
    return back


def _put_in(file: _File, placed: list[Placed]) -> str:
    lines, closed = file.lines, file.closed
    out: list[str] = []
    at = 0
    for each in placed:
        out += lines[at : each.at]
        at = each.at
        crlf = each.loose and _has_crlf(lines, each)
        for mark, line in each.hunk.rows:
            if mark == " ":
                out.append(lines[at])
            elif mark == "+":
                out.append(f"{line}\r" if crlf and not line.endswith("\r") else line)
            at += mark != "+"
    out += lines[at:]
    if placed and at == len(lines):
        last = placed[-1]
        ends_alike = last.loose and last.hunk.rows[-1][0] == " "
        closed = closed if ends_alike else not last.hunk.open_new
    return "\n".join(out) + ("\n" if closed and out else "")
