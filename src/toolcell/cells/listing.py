"""The workspace as it is at one moment: every file with what tells that it changed.

What is listed is written by tools, so each step is bounded and no link is followed: directories
are opened by descriptor, one below the other. A tool can set a modification time back, but not
the time of the last change of the inode (ctime, inode(7)).

A directory that the tool can neither enter nor open to itself is passed over: nothing in there
can be the tool's doing, and its names are not for the tool to know (see `rights`).
"""

import errno
import os
import stat
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from sandbox_workers.plain_files import OPEN_DIRECTORY
from toolcell.cells.rights import ENTER, Rights
from toolcell.model import FileChange
from toolcell.visible import visible_line

_MOST = 100_000  # files and directories
_SECONDS = 10.0
_DEEPEST = 128
_LISTED = 200


class Mark(NamedTuple):
    """What a file was: its size in bytes, and what is another value after each change."""

    size: int
    change: tuple[int, int, int, int]


@dataclass(slots=True)
class Listing:
    """Paths below the workspace, each with its mark; `unknown` says why they are not all."""

    marks: dict[str, Mark] = field(default_factory=dict)
    unknown: str = ""


def mark_of(found: os.stat_result) -> Mark:
    """Return the mark of a file."""
    change = (found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_mode)
    return Mark(found.st_size, change)


def listed(workspace: Path) -> Listing:
    """List a workspace; never raises for what is in it."""
    listing, until = Listing(), time.monotonic() + _SECONDS
    try:
        root = os.open(workspace, OPEN_DIRECTORY)
    except OSError as error:
        listing.unknown = f"the workspace cannot be opened: {error.strerror}"
        return listing
    _List(listing, until, Rights.within(root)).below(root, "", 0)
    return listing


@dataclass(frozen=True, slots=True)
class _List:
    """One listing while it is made."""

    listing: Listing
    until: float
    rights: Rights

    def below(self, directory: int, above: str, depth: int) -> None:
        """List what is below an open directory, and close it."""
        try:
            with os.scandir(directory) as entries:
                for entry in entries:
                    if self.listing.unknown or _is_enough(self.listing, self.until, depth):
                        return
                    found = entry.stat(follow_symlinks=False)
                    path = above + entry.name
                    if not stat.S_ISDIR(found.st_mode):
                        self.listing.marks[path] = mark_of(found)
                        continue
                    inner = self._entered(directory, entry.name, found)
                    if inner is not None:
                        self.below(inner, f"{path}/", depth + 1)
        except FileNotFoundError:
            pass  # another call, or its owner, removed it in this moment
        except OSError as error:
            self.listing.unknown = (
                f"{visible_line(above) or 'it'} cannot be listed: {error.strerror}"
            )
        finally:
            os.close(directory)

    def _entered(self, directory: int, name: str, found: os.stat_result) -> int | None:
        """Open a directory, or return None where it is closed to the tool."""
        own = found.st_uid == self.rights.uid
        try:
            inner = os.open(name, OPEN_DIRECTORY, dir_fd=directory)
        except PermissionError:
            if own:  # the tool may have closed it, over what it did there
                raise
            return None
        if self.rights.permit_open(inner, ENTER):
            return inner
        os.close(inner)
        if own:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return None


def _is_enough(listing: Listing, until: float, depth: int) -> bool:
    if len(listing.marks) >= _MOST:
        listing.unknown = f"it has more than {_MOST:,} files"
    elif depth > _DEEPEST:
        listing.unknown = f"its directories are more than {_DEEPEST} deep"
    elif time.monotonic() > until:
        listing.unknown = f"to list it takes longer than {_SECONDS:.0f} s"
    return bool(listing.unknown)


def changes(before: Listing, after: Listing) -> tuple[tuple[FileChange, ...], str]:
    """Return what is different, hidden places last, and a note on what is not told."""
    if unknown := before.unknown or after.unknown:
        return (), f"what changed in the workspace is not known: {unknown}"
    paths = before.marks.items() ^ after.marks.items()
    different = sorted({path for path, _ in paths}, key=lambda path: (_is_hidden(path), path))
    told = tuple(
        _change(path, before.marks.get(path), after.marks.get(path)) for path in different[:_LISTED]
    )
    return told, f"{len(different):,} files changed in all" if len(different) > len(told) else ""


def _change(path: str, before: Mark | None, after: Mark | None) -> FileChange:
    return FileChange(
        path=visible_line(path),
        kind="added" if before is None else "removed" if after is None else "changed",
        size_before=before.size if before else None,
        size=after.size if after else None,
    )


def _is_hidden(path: str) -> bool:
    """Whether a path lies in a place such as .git, whose many files would fill the list."""
    return path.startswith(".") or "/." in path
