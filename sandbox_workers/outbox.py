"""The outbox: a directory of each cell in which a tool leaves files that shall come back.

The worker makes it in the cell's scratch space, which dies with the cell. So init, after it has
ended all of the call and told of its end, sends what it finds there behind its account on the
status pipe. By then nobody is left who could change a file, or hold up who reads it.

Nothing in the directory is trusted: no link is followed, nothing is opened that could block or
act, and what is not a plain file with one name and its own content is refused, in words. For
each entry goes one line of JSON, and behind that of a file exactly its bytes:

    {"name": "plot.png", "size": 1234}          the bytes follow
    {"name": "pipe", "refused": "it is a pipe"}
    {"more": 5}                                 so many further refusals are not told
    {"end": true}
"""

import os
import stat
from itertools import islice
from typing import Any

from sandbox_workers import wire
from sandbox_workers.plain_files import OPEN, OPEN_DIRECTORY, refusal

_PLACE = ".toolcell-outbox"  # hidden, so that scratch space looks as empty as it is
_CHUNK = 64 * 1024
_DEEPEST = 4  # directories in directories
_MOST_SEEN = 1000  # entries
_MOST_REFUSED = 32


def make(scratch: str) -> str:
    """Make the outbox of a cell in its scratch space, and return its path."""
    place = f"{scratch}/{_PLACE}"
    os.mkdir(place, 0o700)  # noqa: PTH102  # pathlib's pages would be copied in every cell
    return place


def is_used(scratch: str) -> bool:
    """Whether there is anything to tell of it: it holds something, or is no directory any more."""
    try:
        directory = os.open(f"{scratch}/{_PLACE}", OPEN_DIRECTORY)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        return bool(os.listdir(directory))  # noqa: PTH208  # of a descriptor
    finally:
        os.close(directory)


def send(scratch: str, pipe: int, limits: dict[str, int]) -> None:
    """Write all that may come back to the pipe; raises BrokenPipeError where nobody reads."""
    _Sender(pipe, limits).send(f"{scratch}/{_PLACE}")


class _Sender:
    """Sends files until as many, or as much, as the limits allow are sent."""

    def __init__(self, pipe: int, limits: dict[str, int]) -> None:
        self._pipe = pipe
        self._files = limits["artifacts"]
        self._largest = limits["artifact_size"]
        self._left = limits["artifact_total"]
        self._seen = 0
        self._refused = 0

    def send(self, place: str) -> None:
        try:
            directory = os.open(place, OPEN_DIRECTORY)
        except OSError:  # a tool put something else in its place, or took away the right to read
            self._refuse(_PLACE, "it is not the directory any more that it was")
        else:
            self._directory(directory, "", 0)
        if self._refused > _MOST_REFUSED:
            self._tell({"more": self._refused - _MOST_REFUSED})
        self._tell({"end": True})

    def _directory(self, directory: int, above: str, depth: int) -> None:
        for name in self._names(directory):
            path = above + name
            try:
                if stat.S_ISDIR(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode):
                    self._inner(directory, name, path, depth + 1)
                else:
                    self._file(directory, name, path)
            except _Refused as refused:
                self._refuse(path, str(refused))
            except OSError as error:
                self._refuse(path, (error.strerror or str(error)).lower())

    def _names(self, directory: int) -> list[str]:
        """The first entries, sorted: there may be millions."""
        room = _MOST_SEEN - self._seen
        with os.scandir(directory) as entries:
            names = [entry.name for entry in islice(entries, room + 1)]
        if len(names) > room:
            self._refuse("", f"only the first {_MOST_SEEN} entries were looked at")
        self._seen += len(names)
        return sorted(names[:room])

    def _inner(self, directory: int, name: str, path: str, depth: int) -> None:
        if depth > _DEEPEST:
            raise _Refused("it lies too deep")
        inner = os.open(name, OPEN_DIRECTORY, dir_fd=directory)
        try:
            self._directory(inner, f"{path}/", depth)
        finally:
            os.close(inner)

    def _file(self, directory: int, name: str, path: str) -> None:
        # Twice: to open some kinds of files does something.
        self._check(os.stat(name, dir_fd=directory, follow_symlinks=False))
        file = os.open(name, OPEN, dir_fd=directory)
        try:
            found = os.fstat(file)
            self._check(found)
            self._files -= 1
            self._left -= found.st_size
            self._tell({"name": _readable(path), "size": found.st_size})
            self._copy(file, found.st_size)
        finally:
            os.close(file)

    def _check(self, found: os.stat_result) -> None:
        if words := refusal(found, self._largest):
            raise _Refused(words)
        if self._files <= 0:
            raise _Refused("as many artifacts as one call may have came before it")
        if found.st_size > self._left:
            raise _Refused("together with those before it, it is more than one call may have")

    def _copy(self, file: int, size: int) -> None:
        """Send exactly so many bytes; what cannot be read ends all, and so counts for nothing."""
        while size > 0:
            data = os.read(file, min(_CHUNK, size))
            if not data:
                raise BrokenPipeError("a file became shorter while it was sent")
            size -= len(data)
            self._write(data)

    def _refuse(self, path: str, words: str) -> None:
        self._refused += 1
        if self._refused <= _MOST_REFUSED:
            self._tell({"name": _readable(path), "refused": words})

    def _tell(self, entry: dict[str, Any]) -> None:
        self._write(wire.encode(entry) + b"\n")

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._pipe, view) :]


class _Refused(Exception):  # noqa: N818  # an answer about a file, not a fault
    """Why a file does not come back, in words."""


def _readable(path: str) -> str:
    """A path as text: a name may be any bytes."""
    return os.fsencode(path).decode(errors="replace")
