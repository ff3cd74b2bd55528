r"""Unified diffs, read: which files they name, what becomes of each, and their hunks.

    patch   := (junk | section)*
    section := [diff --git, and git's lines about modes and names] [--- and +++] hunk*
    hunk    := @@ line, then lines that begin with " ", "-", "+" or "\"

Strict in what names a file, because a policy has read those lines too, on the other side of the
border (`toolcell.policy.patches`): a file's name is taken from a `---` line directly followed by
a `+++` line, from `rename` and `copy` lines, or from a `diff --git` line, and from nowhere else.
Lenient in what models get wrong: counts in hunk headers, a missing space on empty lines.
"""

import re
from typing import NamedTuple

from sandbox_workers.tools import ToolError
from sandbox_workers.tools.patch_names import (
    NO_FILE,
    git_name,
    prefixes_of,
    unquoted,
    without_prefixes,
)

_RANGES = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_RENAMED = re.compile(r"(rename|copy) (from|to) (.*)")
_BINARY = ("Binary files ", "GIT binary patch")
_MOST_FILES = 1000


class Hunk(NamedTuple):
    """One hunk: its header, the line where it says to begin (0 where not), and its lines.

    `rows` are pairs of a mark (" ", "-", "+") and a line; `open_old` and `open_new` say that the
    last line of that side has no line end.
    """

    header: str
    line: int
    rows: list[tuple[str, str]]
    open_old: bool
    open_new: bool

    def side(self, marks: str) -> list[str]:
        """The lines of one side: " -" is what is there before, " +" what is after."""
        return [line for mark, line in self.rows if mark in marks]


class Section(NamedTuple):
    """What becomes of one file.

    `old` is None for a new file, `new` for one that is deleted. They differ where it is renamed,
    or copied. `program` is the right to execute, None where nothing is said of it.
    """

    old: str | None
    new: str | None
    copied: bool
    program: bool | None
    hunks: list[Hunk]

    @property
    def name(self) -> str:
        """The name that it goes by."""
        return self.new or self.old or ""


def read_patch(patch: str) -> list[Section]:
    """Read a patch; raises ToolError where it is none, or one that cannot be applied."""
    reader = _Reader(patch.split("\n"))
    sections = reader.read()
    if not sections:
        raise ToolError(
            "`patch` holds no unified diff: there is no `---` line followed by a `+++` line",
            "write it as `diff -u` or `git diff` does",
        )
    if len(sections) > _MOST_FILES:
        raise ToolError(f"the patch has {len(sections):,} parts; the most is {_MOST_FILES:,}")
    return sections


class _Draft:
    """A section while it is read."""

    def __init__(self, line: int, names: str = "") -> None:
        self.line, self.git_line = line, names
        self.old: str | None = None
        self.new: str | None = None
        self.has_names = self.is_new = self.is_deleted = False
        self.renamed: dict[str, str] = {}
        self.program: bool | None = None
        self.hunks: list[Hunk] = []


class _Reader:
    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._at = 0
        self._drafts: list[_Draft] = []
        self._prefixes = ""
        self._in_git_lines = False

    def read(self) -> list[Section]:
        while self._at < len(self._lines):
            line = self._lines[self._at].removesuffix("\r")
            if line.startswith("diff --git "):
                self._begin(line)
            elif self._is_header(self._at):
                self._take_names(line)
            elif line.startswith("@@"):
                self._take_hunk(line)
            elif self._in_git_lines:
                self._take_git_line(line)
            else:
                self._check_junk(line)
            self._at += 1
        return [self._finished(draft) for draft in self._drafts]

    def _begin(self, line: str) -> None:
        names = line.removeprefix("diff --git ")
        self._prefixes = prefixes_of(names)
        self._drafts.append(_Draft(self._at + 1, names))
        self._in_git_lines = True

    def _is_header(self, at: int) -> bool:
        lines = self._lines[at : at + 2]
        return len(lines) == 2 and lines[0].startswith("--- ") and lines[1].startswith("+++ ")

    def _take_names(self, line: str) -> None:
        if not self._in_git_lines:
            self._drafts.append(_Draft(self._at + 1))
        draft = self._drafts[-1]
        old = self._name(line[4:])
        self._at += 1
        new = self._name(self._lines[self._at].removesuffix("\r")[4:])
        draft.old, draft.new = without_prefixes(old, new, self._prefixes)
        draft.has_names, self._in_git_lines = True, False

    def _name(self, text: str) -> str | None:
        name = unquoted(text)
        if not name:
            raise self._wrong("a file name that cannot be read")
        return None if name == NO_FILE else name

    def _take_git_line(self, line: str) -> None:
        draft = self._drafts[-1]
        word, _, rest = line.rpartition(" ")
        if renamed := _RENAMED.fullmatch(line):
            draft.renamed[f"{renamed[1]} {renamed[2]}"] = self._name(renamed[3]) or NO_FILE
        elif word in ("new file mode", "deleted file mode", "old mode", "new mode"):
            draft.is_new = draft.is_new or word == "new file mode"
            draft.is_deleted = draft.is_deleted or word == "deleted file mode"
            draft.program = self._mode(rest) if word.startswith("new") else draft.program
        elif line.startswith(_BINARY):
            raise self._binary()
        elif not line.startswith(("index ", "similarity ", "dissimilarity ")):
            self._in_git_lines = False

    def _mode(self, mode: str) -> bool:
        if mode in ("120000", "160000"):
            kind = "a symbolic link" if mode == "120000" else "a submodule"
            raise self._wrong(f"{kind}, which this tool does not make; use the shell tool")
        return mode.endswith("755")

    def _check_junk(self, line: str) -> None:
        """Pass over what stands between sections, but for what was meant to be part of one."""
        if line.startswith(_BINARY):
            raise self._binary()
        if line.startswith("*** Begin Patch"):
            raise self._wrong("not a unified diff, but another format; write `---`, `+++` and `@@`")
        if line.startswith(("--- ", "+++ ")):
            raise self._wrong("a `---` line and a `+++` line that do not follow each other")

    def _take_hunk(self, header: str) -> None:
        if not self._drafts or not (self._drafts[-1].has_names or self._drafts[-1].renamed):
            raise self._wrong("a hunk before any `---` and `+++` lines, which say of which file")
        self._in_git_lines = False
        found = _RANGES.match(header)
        counts = (int(found[2] or 1), int(found[4] or 1)) if found else None
        end = self._by_counts(*counts) if counts else None
        rows, marks = self._rows(self._at + 1, end if end else self._by_looks())
        if not rows:
            raise self._wrong("a hunk without lines")
        number = int(found[1]) if found else 0
        self._drafts[-1].hunks.append(Hunk(header, number, rows, *marks))

    def _by_counts(self, old: int, new: int) -> int | None:
        """Where the hunk ends if its counts are right; None where they cannot be."""
        at = self._at + 1
        while old > 0 or new > 0:
            mark = self._mark(at)
            if mark is None or (mark in " -" and not old) or (mark in " +" and not new):
                return None
            old -= mark in " -"
            new -= mark in " +"
            at += 1
        while at < len(self._lines) and self._lines[at].startswith("\\"):
            at += 1
        goes_on = at < len(self._lines) and self._lines[at][:1] in (" ", "+", "-")
        return at if not goes_on or self._is_end(at) else None

    def _is_end(self, at: int) -> bool:
        """Whether a line that may be a hunk's is more likely what follows it."""
        return self._is_header(at) or self._lines[at].rstrip() == "--"  # as in a mail of git's

    def _by_looks(self) -> int:
        """Where the hunk ends if its counts are wrong: at the next thing that is none of it."""
        at = self._at + 1
        while self._mark(at) is not None:
            if (
                self._is_header(at)
                and self._lines[at + 2 : at + 3]
                and self._lines[at + 2][:2] == "@@"
            ):
                break
            at += 1
        while at > self._at + 1 and not self._lines[at - 1].strip("\r"):
            at -= 1  # empty lines at its end are as likely between two sections
        return at

    def _mark(self, at: int) -> str | None:
        """What a line is in a hunk; an empty one is context that lost its space."""
        if at >= len(self._lines):
            return None
        line = self._lines[at]
        if line.startswith("\\"):
            return ""
        if not line.removesuffix("\r"):
            return " "
        return line[0] if line[0] in " +-" else None

    def _rows(self, at: int, end: int) -> tuple[list[tuple[str, str]], tuple[bool, bool]]:
        rows: list[tuple[str, str]] = []
        open_old = open_new = False
        while at < end:
            mark = self._mark(at)
            if mark == "":
                last = rows[-1][0] if rows else " "
                open_old, open_new = open_old or last in " -", open_new or last in " +"
            elif mark is not None:
                line = self._lines[at]
                rows.append((mark, line[1:] if line[:1] == mark else line))
            at += 1
        self._at = end - 1
        return rows, (open_old, open_new)

    def _finished(self, draft: _Draft) -> Section:
        old, new, copied = draft.old, draft.new, False
        for kind in ("rename", "copy"):
            if f"{kind} from" in draft.renamed and f"{kind} to" in draft.renamed:
                old, new = draft.renamed[f"{kind} from"], draft.renamed[f"{kind} to"]
                copied = kind == "copy"
        if not draft.has_names and not draft.renamed:
            old = new = self._of_git_line(draft)
        elif old is not None and new is not None and old != new and not draft.renamed:
            raise self._wrong(
                f"two files, {old} and {new}: name the same one on both lines, or write "
                "`rename from` and `rename to`",
                draft.line,
            )
        if draft.is_new:
            old = None
        if draft.is_deleted:
            new = None
        if old is None and new is None:
            raise self._wrong("no file", draft.line)
        return Section(old, new, copied, draft.program, draft.hunks)

    def _of_git_line(self, draft: _Draft) -> str:
        name = git_name(draft.git_line)
        if name is None:
            raise self._wrong("file names that cannot be told apart", draft.line)
        if not (draft.is_new or draft.is_deleted or draft.program is not None):
            raise self._wrong(f"no change of {name}", draft.line)
        return name

    def _binary(self) -> ToolError:
        return self._wrong("a binary change, which has no lines to apply; write the file instead")

    def _wrong(self, what: str, line: int | None = None) -> ToolError:
        return ToolError(
            f"line {line or self._at + 1} of the patch: {what}",
            "nothing was changed; write it as `git diff` does",
        )
