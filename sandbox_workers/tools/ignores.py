"""What ignore files say: .gitignore at every level, .git/info/exclude and .ignore.

The last line of a file that fits decides, a file further down before one further up; .ignore
before .gitignore, and that before .git/info/exclude, as git and ripgrep do. They count whether
or not the workspace is a repository. Last of all come directories that nobody keeps by hand,
for workspaces without any ignore file.

Files in an ignored directory are never looked at, so no line further down can bring them back.
"""

import os
import re
import stat
from collections.abc import Container
from typing import NamedTuple

from sandbox_workers.tools.globs import GlobError, expression

_EXCLUDE = ".git/info/exclude"
_NAMES = (".ignore", ".gitignore", _EXCLUDE)
_LONGEST = 256 << 10
# The last file of all, so to say.
_ALWAYS = "__pycache__/\nnode_modules/\n.venv/\n.hg/\n.svn/\n"


class _Line(NamedTuple):
    source: str
    for_paths: bool
    for_directories: bool
    negated: bool


class Rules:
    """The lines of one ignore file."""

    def __init__(self, text: str) -> None:
        lines = text.removeprefix("\ufeff").split("\n")
        self._lines = [line for line in map(_read, lines) if line is not None]
        self._fits: dict[tuple[bool, bool], tuple[re.Pattern[str], list[int]] | None] = {}

    def verdict(self, path: str, name: str, is_directory: bool) -> bool | None:
        """Say whether something is ignored, or kept by a `!` line, or neither (None).

        `path` is relative to the directory that the file lies in.
        """
        found = max(self._last(name, False, is_directory), self._last(path, True, is_directory))
        return None if found < 0 else not self._lines[found].negated

    def _last(self, text: str, for_paths: bool, is_directory: bool) -> int:
        """Return the number of the last line that fits, or -1."""
        key = (for_paths, is_directory)
        if key not in self._fits:
            self._fits[key] = self._compiled(for_paths, is_directory)
        fits = self._fits[key]
        found = fits[0].fullmatch(text) if fits else None
        return fits[1][found.lastindex - 1] if fits and found and found.lastindex else -1

    def _compiled(
        self, for_paths: bool, is_directory: bool
    ) -> tuple[re.Pattern[str], list[int]] | None:
        """Join the lines into one expression, the last first: `re` takes the first that fits."""
        numbers = [
            number
            for number, line in reversed(list(enumerate(self._lines)))
            if line.for_paths is for_paths and (is_directory or not line.for_directories)
        ]
        branches = "|".join(f"({self._lines[number].source})" for number in numbers)
        return (re.compile(branches), numbers) if numbers else None


class Ignores:
    """What counts in one directory: its own ignore files, and those of the directories above.

    `unreadable` gets the names of ignore files that could not be read.
    """

    def __init__(self, unreadable: list[str]) -> None:
        self._unreadable = unreadable
        self._levels: list[list[tuple[int, Rules]]] = [[], [], [], [(0, Rules(_ALWAYS))]]

    def below(self, prefix: str, names: Container[str]) -> "Ignores":
        """Return what counts in a directory, given its path with a slash and what is in it."""
        present = [name for name in _NAMES if name.split("/")[0] in names]
        found = [(name, text) for name in present if (text := self._rules(prefix, name))]
        if not found:
            return self
        inner = Ignores(self._unreadable)
        inner._levels = [*self._levels]
        for name, text in found:
            kind = _NAMES.index(name)
            inner._levels[kind] = [(len(prefix), Rules(text)), *self._levels[kind]]
        return inner

    def ignored(self, path: str, name: str, is_directory: bool) -> bool:
        """Say whether something in that directory is ignored."""
        for level in self._levels:
            for start, rules in level:
                verdict = rules.verdict(path[start:], name, is_directory)
                if verdict is not None:
                    return verdict
        return False

    def _rules(self, prefix: str, name: str) -> str:
        """Return what an ignore file says; git's own can lie elsewhere."""
        if name == _EXCLUDE and (directory := self._git_elsewhere(prefix)):
            return self._text(f"{directory}/info/exclude")
        return self._text(prefix + name)

    def _git_elsewhere(self, prefix: str) -> str:
        """Follow a `.git` that is a file, as of a worktree or submodule; "" outside of here.

        See gitrepository-layout(5): `gitdir:` names a directory, and that one may name another
        in `commondir`, which holds what worktrees share.
        """
        said = self._text(f"{prefix}.git")
        if not said.startswith("gitdir:") or "\0" in said:
            return ""
        directory = _inside(os.path.join(prefix, said.removeprefix("gitdir:").strip()))  # noqa: PTH118
        shared = self._text(f"{directory}/commondir").strip() if directory else ""
        if not shared or "\0" in shared:
            return directory
        return _inside(os.path.join(directory, shared))  # noqa: PTH118

    def _text(self, path: str) -> str:
        """Return the content of an ignore file; empty for a link, as in git, and where none is."""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            place = os.lstat(path)
            if not stat.S_ISREG(place.st_mode):
                return ""
            with open(os.open(path, flags), "rb") as file:  # noqa: PTH123  # a descriptor
                data = file.read(_LONGEST)
                if file.read(1):
                    self._unreadable.append(f"{path} past {_LONGEST >> 10} KiB")
        except (FileNotFoundError, NotADirectoryError):
            return ""
        except OSError:
            self._unreadable.append(path)
            return ""
        return data.decode(errors="surrogateescape")


def _inside(directory: str) -> str:
    """Return where a directory really is, if in the workspace; else ""."""
    place, workspace = os.path.realpath(directory), os.path.realpath(".")
    return place if place == workspace or place.startswith(f"{workspace}/") else ""


def _read(text: str) -> _Line | None:
    """Read one line; None for a comment, and for what git would take for no pattern either."""
    text = _trimmed(text.removesuffix("\r"))
    if not text or text.startswith("#"):
        return None
    negated = text.startswith("!")
    text = text[negated:]
    for_directories = text.endswith("/")
    text = text.removesuffix("/")
    try:
        source = expression(text.removeprefix("/"))
    except GlobError:
        return None
    return _Line(source, "/" in text, for_directories, negated) if text else None


def _trimmed(text: str) -> str:
    """Take the spaces off the end, but for one that a backslash stands before."""
    kept = text.rstrip(" ")
    backslashes = len(kept) - len(kept.rstrip("\\"))
    return text[: len(kept) + 1] if backslashes % 2 else kept
