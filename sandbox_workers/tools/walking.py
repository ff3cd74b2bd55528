"""What is below a directory, in order, without what nobody asked for.

The order is that of the names in each directory, each followed by what is in it. Links are
named and never followed, so there are no loops. What is passed over is counted, and what
could not be read is named: a listing that says nothing of it would be taken for the whole.

A tree can be of any size. Only the names of the directories on the way down are held, and
after `MOST` names the walk ends and says so.
"""

import os
from collections.abc import Iterator
from typing import NamedTuple

from sandbox_workers.tools.globs import Glob
from sandbox_workers.tools.ignores import Ignores

MOST = 1_000_000
_NEVER = ".git"


class Entry(NamedTuple):
    """Something in a directory; `path` is as seen from the workspace, without a slash at its end.

    `kind` is "file", "directory", "link" or "other".
    """

    path: str
    name: str
    kind: str


class Walk:
    """A walk below a directory; what it passed over is known when it has ended.

    `hidden` and `ignored` count what was left out, each directory as one; `unreadable` names
    directories and ignore files; `complete` is false where the walk ended too early.
    """

    def __init__(
        self, base: str, *, hidden: bool = False, ignored: bool = False, depth: int | None = None
    ) -> None:
        self._base, self._depth = base, depth
        self._with_hidden, self._with_ignored = hidden, ignored
        self.hidden = self.ignored = self.seen = 0
        self.unreadable: list[str] = []
        self.complete = True

    def matching(self, glob: Glob) -> Iterator[Entry]:
        """Give the entries that a glob is for; it sees paths from where the walk begins."""
        start = 0 if self._base == "." else len(self._base) + 1
        return (entry for entry in self if glob.matches(entry.path[start:], entry.name))

    def __iter__(self) -> Iterator[Entry]:
        """Give each entry before what is in it."""
        prefix = "" if self._base == "." else f"{self._base}/"
        ignores = Ignores(self.unreadable)
        for end in _ancestors(prefix):
            ignores = ignores.below(prefix[:end], {".ignore", ".gitignore", _NEVER})
        levels = [self._directory(prefix, ignores)]
        while levels:
            found = next(levels[-1], None)
            if found is None:
                levels.pop()
                continue
            entry, ignores = found
            yield entry
            if entry.kind == "directory" and len(levels) != self._depth:
                levels.append(self._directory(f"{entry.path}/", ignores))

    def _directory(self, prefix: str, ignores: Ignores) -> Iterator[tuple[Entry, Ignores]]:
        names = self._names(prefix)
        ignores = ignores.below(prefix, names)
        for name in sorted(names):
            kind, path = names[name], prefix + name
            if name == _NEVER:
                continue
            if not self._with_ignored and ignores.ignored(path, name, kind == "directory"):
                self.ignored += 1
            elif not self._with_hidden and name.startswith("."):
                self.hidden += 1
            else:
                yield Entry(path, name, kind), ignores

    def _names(self, prefix: str) -> dict[str, str]:
        """Read a directory: its names, each with its kind."""
        names: dict[str, str] = {}
        try:
            with os.scandir(prefix or ".") as entries:
                for entry in entries:
                    if self.seen >= MOST:
                        self.complete = False
                        break
                    self.seen += 1
                    names[entry.name] = _kind(entry)
        except OSError:
            self.unreadable.append(prefix.rstrip("/") or ".")
        return names


def _kind(entry: "os.DirEntry[str]") -> str:
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "directory"
    return "file" if entry.is_file(follow_symlinks=False) else "other"


def _ancestors(prefix: str) -> Iterator[int]:
    """Give the length of each path above a directory, the workspace's first; not its own."""
    parts = prefix.split("/")[:-1]
    end = 0
    for part in parts:
        yield end
        end += len(part) + 1
