"""edit_file: a piece of a text file replaced by another, where it stands exactly once.

Line endings do not count in the search: a model sends LF, whatever the file has. What is put in
takes the endings of its place. Where nothing matches, the answer names the places that nearly do.
"""

import re
from bisect import bisect_left
from pathlib import Path

from sandbox_workers.tools import ToolError
from sandbox_workers.tools.changes import Piece, brief, changed, split, unified
from sandbox_workers.tools.encoding import TextFile, load, shown
from sandbox_workers.tools.nearness import Ends, Near, difference, nearest
from sandbox_workers.tools.places import existing_file, refused
from sandbox_workers.tools.replacing import replace

_FEW_LINES = 20
_LONGEST_PATTERN, _LONGEST_TEXT = 20_000, 2_000_000
_TELLING = 12
_NUMBERED = re.compile(r"\s*\d+\t")


def edit_file(path: str, old_text: str, new_text: str, replace_all: bool = False) -> str:
    """Replace old_text, which has to stand there exactly once, and return the diff."""
    _check(old_text, new_text)
    place = existing_file(path)
    file = load(place, path)
    text, wanted = _plain(file.text), _plain(old_text)
    starts = _starts(text, wanted)
    if not starts:
        raise _no_match(path, text, old_text, new_text)
    if not replace_all and (len(starts) > 1 or text.find(wanted, starts[0] + 1) >= 0):
        raise _several(path, text, wanted)
    pieces = [Piece(start, start + len(wanted), _plain(new_text)) for start in starts]
    notes = _write(place, path, file, pieces, new_text)
    times = "" if len(pieces) == 1 else f", {len(pieces):,} times"
    said = "".join(f"; {note}" for note in notes)
    return shown(f"edited {path}{times}{said}\n{unified(path, text, pieces)}")


def _check(old: str, new: str) -> None:
    if not old:
        raise ToolError(
            "old_text is empty",
            "give the text to replace with some lines around it, or use write_file for a new file",
        )
    if old == new:
        raise ToolError("old_text and new_text are the same: there is nothing to change")


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n")


def _starts(text: str, wanted: str) -> list[int]:
    found, place = [], text.find(wanted)
    while place >= 0:
        found.append(place)
        place = text.find(wanted, place + len(wanted))
    return found


def _write(place: Path, path: str, file: TextFile, pieces: list[Piece], new: str) -> list[str]:
    """Put the pieces, found in the text without carriage returns, where they are in the file."""
    ends = [found.start() - n for n, found in enumerate(re.finditer("\r\n", file.text))]
    there = [
        Piece(start + bisect_left(ends, start), end + bisect_left(ends, end), "")
        for start, end, _ in pieces
    ]
    there = [each._replace(text=_with_endings(file.text, each, new)) for each in there]
    data = file.encoding.encode(changed(file.text, there))
    try:
        return replace(place, data, file.status)
    except OSError as error:
        raise refused(path, error) from None


def _with_endings(text: str, piece: Piece, new: str) -> str:
    """Give a text the line endings of the place that it is put in, unless it brings its own."""
    if "\r" in new:
        return new
    end = text.find("\n", piece.start)
    if end < 0:  # in the last line, which has none: as in the line before
        end = text.rfind("\n", 0, piece.start)
    return new.replace("\n", "\r\n") if end > 0 and text[end - 1] == "\r" else new


def _several(path: str, text: str, wanted: str) -> ToolError:
    numbers, number, counted = [], 1, 0
    place = text.find(wanted)
    while place >= 0:
        number, counted = number + text.count("\n", counted, place), place
        numbers.append(number)
        place = text.find(wanted, place + 1)
    few = ", ".join(f"{each:,}" for each in numbers[:_FEW_LINES])
    rest = f" and {len(numbers) - _FEW_LINES:,} more" if len(numbers) > _FEW_LINES else ""
    return ToolError(
        f"old_text stands {len(numbers):,} times in {path}, at lines {few}{rest}",
        "add lines from around the place that is meant, or set `replace_all` to true",
    )


def _no_match(path: str, text: str, old: str, new: str) -> ToolError:
    said = [f"old_text is not in {path}", *_suspicions(text, old, new)]
    lines, wanted = split(text), split(_plain(old)) or [""]
    spaced = _but_for_space(text, old)
    if spaced:
        said.append(f"but for white space it stands at line {', '.join(map(str, spaced))}")
    open_ends = (len(wanted) > 1, not old.endswith("\n"))
    near = nearest(lines, wanted, open_ends=open_ends)
    said += [_told(lines, wanted, each, open_ends) for each in near]
    if not (near or spaced):
        said.append("no line of it is like one of the file's")
    hint = "read the file again, and copy the text as it is, white space too"
    return ToolError(shown("\n".join(said)), hint)


def _suspicions(text: str, old: str, new: str) -> list[str]:
    """What models do that makes a text match nothing."""
    found = []
    if all(_NUMBERED.match(line) for line in split(old)):
        found.append("old_text seems to hold the line numbers of read_file; leave them out")
    if "\n" not in old and "\\n" in old:
        found.append("old_text holds a backslash and an n where a line end may be meant")
    telling = len(new.strip()) >= _TELLING
    if telling and (place := text.find(_plain(new))) >= 0:
        line = text.count("\n", 0, place) + 1
        found.append(f"new_text is there already, at line {line:,}: it may have been edited before")
    return found


def _but_for_space(text: str, old: str) -> list[int]:
    """The lines where the same words and signs stand, with other white space between them."""
    if len(old) > _LONGEST_PATTERN or len(text) > _LONGEST_TEXT:
        return []
    signs = re.findall(r"\w+|[^\w\s]", old)
    if not signs:
        return []
    found = re.finditer(r"\s*".join(map(re.escape, signs)), text)
    return [text.count("\n", 0, each.start()) + 1 for each, _ in zip(found, range(3), strict=False)]


def _told(lines: list[str], wanted: list[str], near: Near, open_ends: Ends) -> str:
    """Show the first line that differs at a place, and say how."""
    if not near.differing:  # all of its lines are there, and not what follows the last
        return f"line {near.line:,}: its lines stand here, but the text goes on differently"
    first = near.differing[0]
    number = near.line + first
    if number > len(lines):
        return f"line {near.line:,}: the file ends before the text does"
    there, here = lines[number - 1], wanted[first]
    ends = open_ends[0] and first == 0, open_ends[1] and first == len(wanted) - 1
    return (
        f"{_counted_lines(wanted, near)}line {number:,}: {difference(there, here, ends)}\n"
        f"  in the file: {brief(there)!r}\n"
        f"  in old_text: {brief(here)!r}"
    )


def _counted_lines(wanted: list[str], near: Near) -> str:
    """Say how many of several lines differ at a place, before the first that does."""
    if len(wanted) == 1:
        return ""
    one = len(near.differing) == 1
    differ = "differs, " if one else "differ, first "
    return f"from line {near.line:,} on {len(near.differing):,} of {len(wanted):,} lines {differ}"
