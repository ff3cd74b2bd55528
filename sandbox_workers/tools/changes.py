"""Changes of a text: pieces that are replaced, put in, and shown as a unified diff.

The diff is made of the pieces, not by comparing two whole texts: difflib is quadratic, and only
used within a piece that is short.
"""

from typing import NamedTuple

from sandbox_workers.tools.counting import counted

_CONTEXT = 3
_ALIGNED = 400
_MOST_LINES = 200
_MOST_LETTERS = 300
_MOST_PIECES = 5
_MOST_ROOM = 8000


class Piece(NamedTuple):
    """What stands from `start` to `end` in a text (in characters) becomes `text`."""

    start: int
    end: int
    text: str


class _Lines(NamedTuple):
    """Some lines, the first of them by its index, and what they become."""

    at: int
    old: list[str]
    new: list[str]


def changed(text: str, pieces: list[Piece]) -> str:
    """Return the text with its pieces replaced; they are in order and apart."""
    parts, end = [], 0
    for piece in pieces:
        parts += [text[end : piece.start], piece.text]
        end = piece.end
    return "".join([*parts, text[end:]])


def unified(name: str, text: str, pieces: list[Piece]) -> str:
    """Show the changes as a unified diff of bounded length: of many pieces the first few."""
    shown = _shown(text, pieces)
    left_out = len(pieces) - shown
    if left_out:  # or lines around the last one might be those that are changed too
        text = text[: text.rfind("\n", 0, pieces[shown].start) + 1]
    lines = split(text)
    rows = [f"--- a/{name}", f"+++ b/{name}"]
    grown = 0
    for group in _grouped(_fine(_by_lines(text, pieces[:shown]))):
        rows += _hunk(lines, group, grown)
        grown += sum(len(each.new) - len(each.old) for each in group)
    fitting = _fitting(rows)
    if fitting < len(rows):
        more = counted(len(rows) - fitting, "more line", "more lines")
        rows[fitting:] = [f"[... {more} of the diff left out]"]
    if left_out:
        are = counted(left_out, "further change is", "further changes are")
        rows.append(f"[... {are} not in the diff]")
    return "\n".join(rows) + "\n"


def _shown(text: str, pieces: list[Piece]) -> int:
    """How many pieces are shown: the first few, and those on the last one's line."""
    shown = min(len(pieces), _MOST_PIECES)
    while shown < len(pieces) and "\n" not in text[pieces[shown - 1].end - 1 : pieces[shown].start]:
        shown += 1
    return shown


def _fitting(rows: list[str]) -> int:
    """How many rows of a diff are shown."""
    room = _MOST_ROOM
    for number, row in enumerate(rows[:_MOST_LINES]):
        room -= len(row) + 1
        if room < 0:
            return number
    return min(len(rows), _MOST_LINES)


def split(text: str) -> list[str]:
    """Split into lines at line feeds, without them; what follows the last one is a line if any."""
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def brief(line: str) -> str:
    """A line short enough to be shown."""
    return line if len(line) <= _MOST_LETTERS else f"{line[:_MOST_LETTERS]}..."


def _by_lines(text: str, pieces: list[Piece]) -> list[_Lines]:
    """Widen pieces to whole lines; those that share a line become one change."""
    found: list[_Lines] = []
    number, counted, index = 0, 0, 0
    while index < len(pieces):
        start = text.rfind("\n", 0, pieces[index].start) + 1
        number, counted = number + text.count("\n", counted, start), start
        end, here, place = start, "", start
        while index < len(pieces) and (place == start or pieces[index].start < end):
            piece = pieces[index]
            here += text[place : piece.start] + piece.text
            place = piece.end
            end = _line_end(text, place, here)
            index += 1
        found.append(_Lines(number, split(text[start:end]), split(here + text[place:end])))
    return found


def _line_end(text: str, place: int, here: str) -> int:
    """Where the last line that is changed ends: at once, if both sides are whole lines there."""
    if (place == 0 or text[place - 1] == "\n") and (here == "" or here.endswith("\n")):
        return place
    end = text.find("\n", place)
    return len(text) if end < 0 else end + 1


def _fine(changes: list[_Lines]) -> list[_Lines]:
    """Take away what is the same on both sides; align what is short."""
    found = []
    for at, old, new in changes:
        if len(old) > _ALIGNED or len(new) > _ALIGNED:
            found.append(_Lines(at, old, new))
            continue
        from difflib import SequenceMatcher

        for tag, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if tag != "equal":
                found.append(_Lines(at + i, old[i:j], new[k:m]))
    return found


def _grouped(changes: list[_Lines]) -> list[list[_Lines]]:
    groups: list[list[_Lines]] = []
    for each in changes:
        last = groups[-1][-1] if groups else None
        if last is not None and each.at - (last.at + len(last.old)) <= 2 * _CONTEXT:
            groups[-1].append(each)
        else:
            groups.append([each])
    return groups


def _hunk(lines: list[str], group: list[_Lines], grown: int) -> list[str]:
    first, last = group[0], group[-1]
    start = max(0, first.at - _CONTEXT)
    end = min(len(lines), last.at + len(last.old) + _CONTEXT)
    length = end - start + sum(len(each.new) - len(each.old) for each in group)
    rows = [f"@@ -{_range(start, end - start)} +{_range(start + grown, length)} @@"]
    place = start
    for at, old, new in group:
        rows += [f" {brief(line)}" for line in lines[place:at]]
        rows += [f"-{brief(line)}" for line in old] + [f"+{brief(line)}" for line in new]
        place = at + len(old)
    return rows + [f" {brief(line)}" for line in lines[place:end]]


def _range(start: int, length: int) -> str:
    return f"{start + 1 if length else start},{length}"
