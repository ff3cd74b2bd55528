"""Files that a tool declares as artifacts: found by globs below the workspace, and read.

The globs are in the language of a policy's: `*`, `?` and [abc] stay within a name, and `**` alone
stands for any number of directories. Names are the tool's, and may be made to be slow to compare;
fnmatch takes linear time on them.

The tool's process is gone when they are read, but the workspace is not its alone: another call
may write there. So every step to a file is by descriptor and follows no link, a file is looked
at again once it is open, and no directory is gone through that the tool could not enter (see
`rights`).

A file is collected where this call put it there, as far as its mark tells (see `listing`): wrote
it, changed it, or gave it that name. To rename a file into place is to copy it, by a tool that
can read it, and one that cannot gains nothing.
"""

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path

from sandbox_workers.plain_files import OPEN, OPEN_DIRECTORY, refusal
from toolcell.cells.listing import Mark, mark_of
from toolcell.cells.parcels import Receiving, Shelf, shown_name
from toolcell.cells.rights import ENTER, READ, Rights
from toolcell.model import Artifact, LeftFiles, Limits, RefusedArtifact

_MOST_SEEN = 20_000  # entries of directories
_DEEPEST = 32
_MOST_REFUSED = 32
_CHUNK = 1024**2
_CLOSED = "the tool itself could not read it"


def found(workspace: Path, globs: Sequence[str]) -> dict[str, Mark]:
    """Return what is at paths that fit a glob, with marks; never raises for what is there."""
    try:
        root = os.open(workspace, OPEN_DIRECTORY)
    except OSError:
        return {}
    try:
        search = _Search(Rights.within(root))
        for glob in globs:
            search.below(root, "", tuple(glob.split("/")), 0)
        return search.marks
    finally:
        os.close(root)


class _Search:
    """One search; `**` stands for any number of directories."""

    def __init__(self, rights: Rights) -> None:
        self._rights = rights
        self.marks: dict[str, Mark] = {}
        self._seen = 0

    def below(self, directory: int, above: str, parts: tuple[str, ...], depth: int) -> None:
        first, rest = parts[0], parts[1:]
        if first == "**" and rest:
            self.below(directory, above, rest, depth)
        for name, is_directory in self._entries(directory):
            if first == "**":
                if is_directory:
                    self._enter(directory, name, above, parts, depth)
                elif not rest:
                    self._mark(directory, name, above)
            elif fnmatchcase(name, first):
                if not rest and not is_directory:
                    self._mark(directory, name, above)
                elif rest and is_directory:
                    self._enter(directory, name, above, rest, depth)

    def _entries(self, directory: int) -> Iterator[tuple[str, bool]]:
        with suppress(OSError), os.scandir(directory) as entries:
            for entry in entries:
                self._seen += 1
                if self._seen > _MOST_SEEN:
                    return
                yield entry.name, entry.is_dir(follow_symlinks=False)

    def _enter(
        self, directory: int, name: str, above: str, parts: tuple[str, ...], depth: int
    ) -> None:
        if depth < _DEEPEST:
            with _opened(directory, name) as inner:
                if inner is not None and self._rights.permit_open(inner, ENTER):
                    self.below(inner, f"{above}{name}/", parts, depth + 1)

    def _mark(self, directory: int, name: str, above: str) -> None:
        try:
            facts = os.stat(name, dir_fd=directory, follow_symlinks=False)
        except OSError:  # gone since it was listed
            return
        self.marks[above + name] = mark_of(facts)


def collected(
    workspace: Path, paths: Sequence[str], shelf: Shelf, limits: Limits, left: LeftFiles
) -> LeftFiles:
    """Keep the files at these paths, as far as what came before leaves room for them."""
    collection = _Collection(shelf, limits, left)
    for path in paths:
        collection.take(workspace, path)
    return collection.left()


class _Collection:
    """Files as they are kept, and those that are refused."""

    def __init__(self, shelf: Shelf, limits: Limits, left: LeftFiles) -> None:
        self._shelf = shelf
        self._limits = limits
        self._before = left
        self._artifacts = list(left.artifacts)
        self._refused: list[RefusedArtifact] = []

    def left(self) -> LeftFiles:
        refused = self._refused[:_MOST_REFUSED]
        if rest := len(self._refused) - len(refused):
            refused.append(RefusedArtifact(name="", reason=f"{rest} more were refused"))
        return self._before.model_copy(
            update={
                "artifacts": tuple(self._artifacts),
                "refused": (*self._before.refused, *refused),
            }
        )

    def take(self, workspace: Path, path: str) -> None:
        try:
            with _parent(workspace, path) as (root, directory, name):
                kept = self._kept(root, directory, name, path)
        except OSError as error:
            kept = _refused(path, (error.strerror or str(error)).lower())
        if isinstance(kept, Artifact):
            self._artifacts.append(kept)
        else:
            self._refused.append(kept)

    def _kept(self, root: int, directory: int, name: str, path: str) -> Artifact | RefusedArtifact:
        rights = Rights.within(root)
        # Twice: some kinds of files do something when they are opened.
        if reason := self._reason(os.stat(name, dir_fd=directory, follow_symlinks=False), rights):
            return _refused(path, reason)
        fd = os.open(name, OPEN, dir_fd=directory)
        try:
            if reason := self._reason(os.fstat(fd), rights):
                return _refused(path, reason)
            if not rights.permit_open(fd, READ):
                return _refused(path, _CLOSED)
            return self._copied(fd, self._shelf.begin(path), path)
        finally:
            os.close(fd)

    def _reason(self, facts: os.stat_result, rights: Rights) -> str:
        if words := refusal(facts, self._limits.artifact_size):
            return words
        if not rights.permit(facts, READ):
            return _CLOSED
        if len(self._artifacts) >= self._limits.artifacts:
            return "as many artifacts as one call may have came before it"
        total = sum(each.size for each in self._artifacts)
        if total + facts.st_size > self._limits.artifact_total:
            return "together with those before it, it is more than one call may have"
        return ""

    def _copied(self, fd: int, file: Receiving, path: str) -> Artifact | RefusedArtifact:
        left = os.fstat(fd).st_size
        while left > 0 and (data := os.read(fd, min(_CHUNK, left))):
            left -= len(data)
            file.write(memoryview(data))
        if left:
            file.discard()
            return _refused(path, "it became shorter while it was read")
        return file.close()


@contextmanager
def _parent(workspace: Path, path: str) -> Iterator[tuple[int, int, str]]:
    """Open the workspace and the directory of a file below it; with the file's own name."""
    opened = [os.open(workspace, OPEN_DIRECTORY)]
    try:
        *directories, name = path.split("/")
        rights = Rights.within(opened[0])
        for each in directories:
            opened.append(os.open(each, OPEN_DIRECTORY, dir_fd=opened[-1]))
            if not rights.permit_open(opened[-1], ENTER):
                raise PermissionError(errno.EACCES, _CLOSED)
        yield opened[0], opened[-1], name
    finally:
        for fd in opened:
            os.close(fd)


@contextmanager
def _opened(directory: int, name: str) -> Iterator[int | None]:
    try:
        inner = os.open(name, OPEN_DIRECTORY, dir_fd=directory)
    except OSError:  # gone, or a link by now, or closed to its own owner
        yield None
        return
    try:
        yield inner
    finally:
        os.close(inner)


def _refused(path: str, reason: str) -> RefusedArtifact:
    return RefusedArtifact(name=shown_name(path), reason=reason)
