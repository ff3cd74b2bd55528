"""The key of a log: 32 random bytes in a file beside it, which only its owner can read.

It is written under another name first, and takes its own when the log's head has been sealed
with it and is on the disk. So wherever the making of a log is cut short, a key under its own
name means that there was a log, and a head means that there is a key under one of the two.
"""

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from toolcell.errors import StoreError

_SIZE = 32
_MINE = 0o600
_FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class KeyFile:
    """The file of a log's key."""

    def __init__(self, log: Path) -> None:
        """Name the file for a log: `events.key` for `events.db`; nothing is touched yet."""
        self.path = log.with_suffix(".key")
        self._fresh = self.path.with_name(self.path.name + ".new")
        if self.path == log:
            raise StoreError(f"{log} has the name of a key; give the log another ending")

    def exists(self) -> bool:
        """Whether there is a key of a log that has begun."""
        return os.path.lexists(self.path)

    def read(self) -> bytes | None:
        """Return the key, or None where there is none; raises StoreError."""
        for path in (self.path, self._fresh):
            with suppress(FileNotFoundError), _in_words(path, "read"):
                return _read(path)
        return None

    def make(self) -> bytes:
        """Make a new key, under its first name; raises StoreError.

        Only for who holds the log's lock, while nothing is sealed: what is there under that
        name is what a writer that was ended then has left, perhaps half of a key.
        """
        key = secrets.token_bytes(_SIZE)
        with _in_words(self._fresh, "written"):
            self._fresh.unlink(missing_ok=True)
            fd = os.open(self._fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, _MINE)
            try:
                os.write(fd, key)
                os.fsync(fd)
            finally:
                os.close(fd)
            _sync(self._fresh.parent)
        return key

    def keep(self) -> None:
        """Give a key its own name, whoever made it; raises StoreError."""
        with _in_words(self.path, "written"), suppress(FileNotFoundError):
            self._fresh.rename(self.path)
            _sync(self.path.parent)


@contextmanager
def _in_words(path: Path, what: str) -> Iterator[None]:
    """Turn an OSError, but for a file that is not there, into a StoreError."""
    try:
        yield
    except (StoreError, FileNotFoundError):
        raise
    except OSError as error:
        raise StoreError(
            f"the event log's key {path} cannot be {what}: {error.strerror}; correct its owner "
            "and mode"
        ) from error


def _read(path: Path) -> bytes:
    fd = os.open(path, os.O_RDONLY | _FLAGS)
    try:
        found = os.fstat(fd)
        key = os.read(fd, _SIZE + 1) if stat.S_ISREG(found.st_mode) else b""
        if found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) != _MINE:
            os.fchmod(fd, _MINE)  # it may have been put there, open to others
    finally:
        os.close(fd)
    if len(key) != _SIZE:
        raise StoreError(
            f"{path} is not the key of an event log: that is {_SIZE} bytes in a regular file; "
            "put the right one back"
        )
    return key


def _sync(directory: Path) -> None:
    """Put a name on the disk, and not only what it names (fsync(2))."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
