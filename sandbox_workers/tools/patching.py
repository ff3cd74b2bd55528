"""apply_patch: a unified diff of several files, applied as a whole or not at all.

    read the patch -> work out every file's new content in memory -> stage all -> commit all

Nothing is written before every hunk has its place. Should a commit fail in the middle, what was
committed is put back.
"""

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from sandbox_workers.tools import ToolError
from sandbox_workers.tools.counting import counted
from sandbox_workers.tools.encoding import BYTES, UTF8, Encoding, load
from sandbox_workers.tools.hunks import MOST_REJECTS, Reject, apply_hunks
from sandbox_workers.tools.patches import Section, read_patch
from sandbox_workers.tools.places import entry, near_names, refused
from sandbox_workers.tools.replacing import Replacement, make_directories, remove_directories

_MARK = "\ufeff"


class _State(NamedTuple):
    """A file as it is or will be: its text, how that is encoded, and the status on the disk."""

    text: str
    encoding: Encoding
    status: os.stat_result | None
    program: bool | None = None


def apply_patch(patch: str) -> str:
    """Apply a unified diff to the files that it names: all of it, or nothing."""
    sections = read_patch(patch)
    plan = _Plan(sections)
    for section in sections:
        plan.add(section)
    if plan.rejects:
        raise _rejected(plan.rejects)
    _write(plan)
    return "\n".join([_title(plan.told), *plan.told])


def _title(told: list[str]) -> str:
    return f"applied the patch to {counted(len(told), 'file')}"


def _rejected(rejects: list[Reject]) -> ToolError:
    """Tell why each part does not apply, and once what to do about those of a kind."""
    left_out = len(rejects) - MOST_REJECTS
    more = [f"and {left_out} more"] if left_out > 0 else []
    told = rejects[:MOST_REJECTS]
    said = "\n".join([*(each.why for each in told), *more])
    hints = dict.fromkeys(each.hint for each in told if each.hint)
    return ToolError(f"the patch does not apply, and nothing was changed\n{said}", "; ".join(hints))


class _Plan:
    """What all files will be, worked out in memory; `before` is what they are.

    A section sees what the sections before it made of its file; one that renames or copies
    starts from the file as it is on the disk, as git has it.
    """

    def __init__(self, sections: list[Section]) -> None:
        self.before: dict[Path, _State | None] = {}
        self.after: dict[Path, _State | None] = {}
        self.rejects: list[Reject] = []
        self.told: list[str] = []
        self._arrived: set[Path] = set()
        self._leaving = {each.old for each in sections if each.old != each.new and not each.copied}

    def add(self, section: Section) -> None:
        """Work out one section, or note why it does not apply."""
        try:
            self._add(section)
        except ToolError as error:
            self.rejects.append(Reject(str(error), error.hint))

    def _add(self, section: Section) -> None:
        section = self._as_meant(section)
        moves = section.old is not None and section.new is not None and section.old != section.new
        source = self._state(section, moves) if section.old is not None else _State("", UTF8, None)
        if section.new is not None and section.new != section.old:
            self._check_free(section.new)
        start = _with_mark(source, section)
        applied = apply_hunks(start.text, section.hunks)
        self.rejects += [
            each._replace(why=f"{section.name}: {each.why}") for each in applied.rejects
        ]
        if applied.rejects:
            return
        if section.new is None and applied.text:
            raise ToolError(
                f"{section.name}: the patch deletes it, but does not hold all of its lines; use "
                "the delete tool"
            )
        self._become(section, start._replace(text=applied.text, program=section.program))
        self.told.append("; ".join([_act(section), *applied.notes]))

    def _as_meant(self, section: Section) -> Section:
        """Take a section that only adds, to a file that is not there, for one that makes it."""
        only_adds = not any(hunk.side(" -") for hunk in section.hunks)
        if section.old is not None and section.old == section.new and section.hunks and only_adds:
            place = _place(section.new)
            if self.after.get(place) is None and not os.path.lexists(place):
                return section._replace(old=None)
        return section

    def _become(self, section: Section, state: _State) -> None:
        if section.old is not None and section.old != section.new and not section.copied:
            place = _place(section.old)
            if place not in self._arrived:  # in its place is another by now: two change names
                self.after[place] = None
        if section.new is not None:
            place = _place(section.new)
            self.before.setdefault(place, None)
            self.after[place] = state
            if section.old is not None and section.old != section.new:
                self._arrived.add(place)

    def _state(self, section: Section, moves: bool) -> _State:
        name = section.old or ""
        place = _place(name)
        if place not in self.before:
            self.before[place] = _on_disk(place, name, any_bytes=not section.hunks)
        if moves and not section.copied and place in self.after and place not in self._arrived:
            raise ToolError(
                f"{name}: the patch changes it and then renames it; do both in one part"
            )
        state = self.before[place] if moves else self.after.get(place, self.before[place])
        if state is None:
            raise _missing(name)
        return state

    def _check_free(self, name: str) -> None:
        place = _place(name)
        there = self.after[place] is not None if place in self.after else os.path.lexists(place)
        if there and name not in self._leaving:
            raise ToolError(
                f"{name}: it exists already, and the patch makes it anew",
                "to change it, name it on the `---` line too, in the place of /dev/null",
            )
        if os.path.lexists(place) and place not in self.before:
            self.before[place] = _on_disk(place, name, any_bytes=True)


def _place(name: str) -> Path:
    place = entry(name)
    if place == Path.cwd():
        raise ToolError(
            f"{name}: it is the workspace itself, not a file", "name a file that is in it"
        )
    return place


def _missing(name: str) -> ToolError:
    hint = near_names(name) or "list_files shows what is there"
    return ToolError(
        f"{name}: it does not exist, and the patch changes it",
        f"{hint}; for a new file write /dev/null on the `---` line",
    )


def _on_disk(place: Path, name: str, *, any_bytes: bool) -> _State:
    """Load a file; of one that is only moved, or put back, the bytes need not be text."""
    try:
        mode = place.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise _missing(name) from None
    except OSError as error:
        raise refused(name, error) from None
    if stat.S_ISLNK(mode):
        raise ToolError(f"{name}: it is a link; patch the file that it leads to")
    if not stat.S_ISREG(mode):
        raise ToolError(
            f"{name}: it is {'a directory' if stat.S_ISDIR(mode) else 'no regular file'}"
        )
    try:
        file = load(place, name)
    except ToolError:
        if not any_bytes:
            raise
        file = load(place, name, BYTES)
    return _State(file.text, file.encoding, file.status)


def _with_mark(state: _State, section: Section) -> _State:
    """Let a patch that shows the byte-order mark, as git's do, find it in the text."""
    shows = any(line.startswith(_MARK) for hunk in section.hunks for _, line in hunk.rows)
    if not (shows and state.encoding.mark and state.encoding.codec == "utf-8"):
        return state
    return state._replace(text=_MARK + state.text, encoding=UTF8)


def _act(section: Section) -> str:
    hunks = f" ({counted(len(section.hunks), 'hunk')})"
    if section.old is None:
        return f"created {section.new}"
    if section.new is None:
        return f"deleted {section.old}"
    if section.old != section.new:
        verb = "copied" if section.copied else "renamed"
        return f"{verb} {section.old} to {section.new}{hunks if section.hunks else ''}"
    return f"changed {section.new}{hunks if section.hunks else ', its mode'}"


def _write(plan: _Plan) -> None:
    """Stage every new content, which needs room; then put it all in place, which needs none."""
    made: list[Path] = []
    staged: dict[Path, Replacement] = {}
    done: list[Path] = []
    try:
        for place, state in plan.after.items():
            if state is not None:
                made += make_directories(place.parent)
                staged[place] = _replacement(plan, place, state)
                staged[place].stage()
        for place, state in plan.after.items():
            done.append(place)
            if state is not None:
                staged[place].commit()
            elif plan.before[place] is not None:
                place.unlink()
    except OSError as error:
        for replacement in staged.values():
            replacement.discard()
        lost = _put_back(plan, done)
        remove_directories(made)
        raise _failed(error, lost) from None
    _tidy(plan)


def _replacement(plan: _Plan, place: Path, state: _State) -> Replacement:
    there = plan.before[place]
    old = there.status if there is not None else state.status
    data = state.encoding.encode(state.text)
    return Replacement(place, data, old, program=state.program)


def _put_back(plan: _Plan, done: list[Path]) -> list[str]:
    """Make everything that was committed what it was; returns what could not be."""
    lost = []
    for place in reversed(done):
        before = plan.before[place]
        try:
            if before is None:
                place.unlink(missing_ok=True)
                continue
            back = Replacement(place, before.encoding.encode(before.text), before.status)
            back.stage()
            back.commit()
        except OSError as error:
            lost.append(f"{os.path.relpath(place)} ({error.strerror})")
    return lost


def _failed(error: OSError, lost: list[str]) -> ToolError:
    name = os.path.relpath(error.filename) if isinstance(error.filename, str) else "a file"
    why = f"{name} could not be written: {(error.strerror or str(error)).lower()}"
    if lost:
        return ToolError(f"{why}; half applied, these could not be put back: {', '.join(lost)}")
    return ToolError(f"{why}; nothing was changed")


def _tidy(plan: _Plan) -> None:
    """Remove directories that the patch emptied, as git does."""
    workspace = Path.cwd()
    for place, state in plan.after.items():
        above = place.parent
        # The patch is applied by now: a directory that has to stay, such as one that something is
        # mounted on, is no failure of it.
        with suppress(OSError):
            while state is None and above != workspace and not any(above.iterdir()):
                above.rmdir()
                above = above.parent
