"""The directory of outputs: two files each, and how processes share it without a server.

The data is in a file that has the handle for its name; what is known of it is in HANDLE.json.
The latter is written last, and its being there makes the output one that can be found: what
has none is being written, or was when its process died. A file that is being written is locked
(flock(2)), so that another process can tell the two apart. The kernel drops that lock with
the process, however it ends.

To remove an output, its description goes first. Who has opened the data reads on.
"""

import fcntl
import os
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from toolcell.outputs.stored import HANDLE

_MINE = 0o600
_RECOUNT_SECONDS = 2.0
_MOST = 10_000
"""How many outputs are kept at most: to count them takes a while."""
_SHARE = 8
"""One part in so many of the quota is cleared at once: each time, all files are looked at."""


class Entry(NamedTuple):
    """A file of data: its handle, bytes, when it was last written, and whether it is finished."""

    handle: str
    size: int
    written: float
    finished: bool


class Directory:
    """The files; for any thread, and any number of processes. Raises OSError as they do."""

    def __init__(self, path: Path, quota: int) -> None:
        """Name the place; it is made with the first file."""
        self.path = path
        self._quota = quota
        self._lock = threading.Lock()
        self._total = 0
        self._counted = float("-inf")

    def create(self, handle: str) -> int:
        """Make a file of data and lock it; the descriptor is the caller's.

        Without a lock on it a sweep may take the new file for one that was left behind.
        """
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        while True:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            fd = os.open(self.path / handle, flags, _MINE)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX)
                if os.fstat(fd).st_nlink:
                    return fd
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)

    def finish(self, handle: str, description: str) -> None:
        """Write the description, whole or not at all."""
        new = self.path / f"{handle}.new"
        fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _MINE)
        try:
            with os.fdopen(fd, "w", encoding="utf-8") as file:
                file.write(description)
            new.rename(self.path / f"{handle}.json")
        except BaseException:
            new.unlink(missing_ok=True)
            raise

    def description(self, handle: str) -> str | None:
        """Return what `finish` wrote, or None where there is no such output."""
        if not HANDLE.fullmatch(handle):
            return None
        with suppress(FileNotFoundError):
            return (self.path / f"{handle}.json").read_text(encoding="utf-8")
        return None

    @contextmanager
    def opened(self, handle: str) -> Iterator[int]:
        """Open the data of a finished output for reading."""
        fd = os.open(self.path / handle, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise FileNotFoundError(f"{handle} is no file")
            yield fd
        finally:
            os.close(fd)

    def entries(self) -> list[Entry]:
        """Return all files of data, the one that was written first in front."""
        try:
            files = {file.name: file for file in os.scandir(self.path)}
        except FileNotFoundError:
            return []
        found = []
        for name, file in files.items():
            if HANDLE.fullmatch(name):
                with suppress(FileNotFoundError):  # removed by somebody else
                    facts = file.stat(follow_symlinks=False)
                    finished = f"{name}.json" in files
                    found.append(Entry(name, facts.st_size, facts.st_mtime, finished))
        return sorted(found, key=lambda entry: entry.written)

    def remove(self, handle: str) -> None:
        """Remove an output; one that is gone already is no error."""
        for name in (f"{handle}.json", f"{handle}.new", handle):
            (self.path / name).unlink(missing_ok=True)

    def sweep(self) -> None:
        """Remove what processes left behind that died while they wrote."""
        for entry in self.entries():
            if not entry.finished:
                self._remove_if_left(entry.handle)

    def room(self, wanted: int) -> int:
        """Return how many more bytes may be written, at most `wanted`; the oldest make room."""
        with self._lock:
            stale = time.monotonic() - self._counted > _RECOUNT_SECONDS
            if stale or self._total + wanted > self._quota:
                self._make_room(wanted)
            granted = max(0, min(wanted, self._quota - self._total))
            self._total += granted
            return granted

    def _make_room(self, wanted: int) -> None:
        entries = self.entries()
        total, count = sum(entry.size for entry in entries), len(entries)
        if total + wanted > self._quota or count >= _MOST:
            most = self._quota - self._quota // _SHARE
            for entry in sorted(entries, key=lambda entry: entry.finished):
                if total + wanted <= most and count < _MOST:
                    break
                if self._clear(entry):
                    total, count = total - entry.size, count - 1
        self._total, self._counted = total, time.monotonic()

    def _clear(self, entry: Entry) -> bool:
        """Remove an entry that nobody is writing; returns whether it is gone."""
        if not entry.finished:
            with suppress(OSError):  # one that cannot be removed only keeps its room
                return self._remove_if_left(entry.handle)
            return False
        self.remove(entry.handle)
        return True

    def _remove_if_left(self, handle: str) -> bool:
        try:
            fd = os.open(self.path / handle, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            return True
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # It may have been finished since it was listed.
            if (self.path / f"{handle}.json").exists():
                return False
            self.remove(handle)
        except BlockingIOError:
            return False
        finally:
            os.close(fd)
        return True
