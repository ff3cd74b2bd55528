"""Databases: toolcell's state on disk, in SQLite files that only their owner can read.

One file has one kind of content (approvals, events) and any number of processes that use
it. Write-ahead logging lets readers go on while one writes; a writer waits for another one,
but not for ever. Whatever goes wrong with a file is a StoreError in words, before anything
that depended on it has run.
"""

import os
import sqlite3
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from toolcell.errors import StoreError

_WAIT_SECONDS = 5.0
_MINE = 0o600
_FAULTS = (sqlite3.Error, UnicodeDecodeError)  # the latter where the schema itself is garbled


def state_directory() -> Path:
    """Return where toolcell keeps what lasts.

    TOOLCELL_STATE_DIR names it; otherwise it is `toolcell` below the XDG state directory.
    """
    if told := os.environ.get("TOOLCELL_STATE_DIR"):
        return Path(told).absolute()
    given = os.environ.get("XDG_STATE_HOME", "")
    # A relative one is to be ignored (XDG base directory specification).
    base = Path(given) if given.startswith("/") else Path("~/.local/state").expanduser()
    return base / "toolcell"


class Database:
    """One SQLite file, opened with its first use and again in a forked child; for any thread."""

    def __init__(
        self,
        path: str | Path,
        schema: str,
        *,
        version: int,
        durable: bool,
        wait: float | None = None,
    ) -> None:
        """Name the file; nothing is touched yet.

        `schema` are the statements that make a new one, `version` is their number. `durable`
        waits for the disk at each commit (synchronous=FULL); without it a crash of the
        machine may lose the last commits, never their order. `wait` is how long to wait for
        other writers, in seconds (5). ":memory:" is a database without a file.
        """
        self.path = path if str(path) == ":memory:" else Path(path).expanduser().absolute()
        self._schema = schema
        self._version = version
        self._durable = durable
        self._wait = _WAIT_SECONDS if wait is None else wait
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._pid = 0

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Use the connection for queries, each of which sees one moment; raises StoreError."""
        with self._lock:
            try:
                yield self._opened()
            except _FAULTS as error:
                raise self._explained(error) from error

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Use the connection for one transaction: all of it is kept, or nothing.

        The lock on the file is taken at once, so that what is read in it stays true. Raises
        StoreError.
        """
        with self._lock:
            try:
                connection = self._opened()
                connection.execute("BEGIN IMMEDIATE")
                try:
                    yield connection
                    connection.execute("COMMIT")
                except BaseException:
                    if connection.in_transaction:  # SQLite ends it itself where the disk is full
                        connection.execute("ROLLBACK")
                    raise
            except _FAULTS as error:
                raise self._explained(error) from error

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            if self._connection is not None and self._pid == os.getpid():
                self._connection.close()
            self._connection = None

    def exists(self) -> bool:
        """Whether there is a file yet; reading makes one."""
        return isinstance(self.path, Path) and self.path.exists()

    def _opened(self) -> sqlite3.Connection:
        # A connection must not be carried over a fork (sqlite.org/howtocorrupt.html, 2.6).
        if self._connection is None or self._pid != os.getpid():
            self._connection = self._open()
            self._pid = os.getpid()
        return self._connection

    def _open(self) -> sqlite3.Connection:
        if isinstance(self.path, Path):
            self._make_file(self.path)
        connection = sqlite3.connect(
            self.path, timeout=self._wait, isolation_level=None, check_same_thread=False
        )
        try:
            self._log_ahead(connection)
            connection.execute(f"PRAGMA synchronous={'FULL' if self._durable else 'NORMAL'}")
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _log_ahead(self, connection: sqlite3.Connection) -> None:
        # Where another process does the same to a new file, SQLite does not wait by itself: two
        # that wait for each other would wait for ever.
        end = time.monotonic() + self._wait
        while True:
            try:
                connection.execute("PRAGMA journal_mode=WAL")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                    raise
                time.sleep(0.002)

    def _make_file(self, path: Path) -> None:
        # A file that is there is not opened here: to close a descriptor of it would drop the
        # locks that another connection of this process holds (sqlite.org/howtocorrupt.html, 2.2).
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with suppress(FileExistsError):
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _MINE))
            found = path.lstat()
            if not stat.S_ISREG(found.st_mode):
                raise StoreError(f"{path} is not a regular file")
            if found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) != _MINE:
                path.chmod(_MINE)  # it may have been there, open to others
        except StoreError:
            raise
        except OSError as error:
            raise StoreError(f"{path} cannot be opened: {error.strerror}") from error

    def _prepare(self, connection: sqlite3.Connection) -> None:
        if self._made(connection):
            return
        connection.execute("BEGIN IMMEDIATE")  # somebody else may be making it
        if not self._made(connection):
            for statement in self._schema.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version={self._version}")
        connection.execute("COMMIT")

    def _made(self, connection: sqlite3.Connection) -> bool:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version not in (0, self._version):
            raise StoreError(
                f"{self.path} has format {version}, and this toolcell knows {self._version}; "
                "use the toolcell that made it, or move the file away to begin a new one"
            )
        return bool(version)

    def _explained(self, error: Exception) -> StoreError:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if isinstance(error, UnicodeDecodeError):
            code = sqlite3.SQLITE_CORRUPT
        words = _WORDS.get(code, "cannot be used: {error}; move it away to begin a new one")
        return StoreError(f"{self.path} {words.format(error=error, wait=self._wait)}")


_WORDS = {
    sqlite3.SQLITE_BUSY: "has been locked by another process for more than {wait:g} s; end that "
    "process, or try again",
    sqlite3.SQLITE_FULL: "cannot be written: the disk is full; free some space",
    sqlite3.SQLITE_IOERR: "cannot be read or written ({error}); look after its disk, and its space",
    sqlite3.SQLITE_READONLY: "cannot be written: it is read-only; correct its owner and mode",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened ({error}); correct its directory's owner and mode",
    sqlite3.SQLITE_NOTADB: "is not a database of toolcell; name another file, or move it away",
    sqlite3.SQLITE_CORRUPT: "is damaged ({error}); keep a copy, and move it away to begin a new "
    "one",
}
