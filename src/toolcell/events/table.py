"""The tables of a log: its events, and the one row that says where they begin and end.

Triggers refuse to change an event, and to remove one that the head does not call pruned. They
stand in the way of mistakes, not of an attacker, who can drop them; what an attacker does is
found by `verify`. An insert has no trigger, so they cost an append nothing.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from urllib.parse import quote

from toolcell.database import Database, state_directory
from toolcell.errors import StoreError
from toolcell.events.chain import Head, Row, microseconds
from toolcell.events.record import EventKind

_VERSION = 1
_SCHEMA = """
CREATE TABLE events (
    sequence INTEGER PRIMARY KEY, body TEXT NOT NULL, hash TEXT NOT NULL, at INTEGER NOT NULL,
    kind TEXT NOT NULL, run TEXT NOT NULL, key TEXT NOT NULL, call_id TEXT NOT NULL,
    tool_name TEXT NOT NULL);
CREATE TABLE head (
    one INTEGER PRIMARY KEY CHECK (one = 1), sequence INTEGER NOT NULL, hash TEXT NOT NULL,
    anchor_sequence INTEGER NOT NULL, anchor_hash TEXT NOT NULL, key_id TEXT NOT NULL,
    seal TEXT NOT NULL)"""
_GUARDS = (
    """CREATE TRIGGER an_event_stays_as_it_is BEFORE UPDATE ON events
    BEGIN SELECT RAISE(ABORT, 'the event log is append-only'); END""",
    """CREATE TRIGGER an_event_stays_until_it_is_pruned BEFORE DELETE ON events
    WHEN OLD.sequence > (SELECT anchor_sequence FROM head)
    BEGIN SELECT RAISE(ABORT, 'the event log is append-only; use toolcell events prune'); END""",
)
_COLUMNS = "sequence, body, hash, at, kind, run, key, call_id, tool_name"
_HEAD = "sequence, hash, anchor_sequence, anchor_hash"
_MATCHES = (
    " AND (:call = '' OR key = :call OR call_id = :call) AND (:run = '' OR run = :run)"
    " AND (:kind = '' OR kind = :kind) AND at >= :since"
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which events to read; `call` is the key or the id of a call, and empty is all."""

    call: str = ""
    run: str = ""
    kind: EventKind | None = None
    since: datetime | None = None

    def parameters(self) -> dict[str, str | int]:
        """Return the values of a query."""
        since = microseconds(self.since) if self.since else -(2**63)
        return {"call": self.call, "run": self.run, "kind": self.kind or "", "since": since}


EVERYTHING = Wanted()


@dataclass(frozen=True, slots=True)
class Seal:
    """What stands beside a head: the HMAC over it, and of which key."""

    key_id: str
    hmac: str


def place_of(path: str | Path | None) -> Path:
    """Return the absolute path of a log; None is the one in the state directory."""
    return Path(path or state_directory() / "events.db").expanduser().absolute()


def open_table(path: Path, wait: float | None = None) -> Database:
    """Return the log's database; nothing is touched yet."""
    return Database(path, _SCHEMA, version=_VERSION, durable=False, wait=wait)


def guard(connection: sqlite3.Connection) -> None:
    """Make a new table append-only."""
    for trigger in _GUARDS:
        connection.execute(trigger)


def read_head(connection: sqlite3.Connection) -> tuple[Head, Seal] | None:
    """Return the head and its seal, or None where no log has begun."""
    found = connection.execute(f"SELECT {_HEAD}, key_id, seal FROM head").fetchone()  # noqa: S608  # our own names
    return (Head(*found[:4]), Seal(*found[4:])) if found else None


def write_head(connection: sqlite3.Connection, head: Head, seal: Seal) -> None:
    """Put the head in the place of the one before."""
    connection.execute(
        "REPLACE INTO head VALUES (1, ?, ?, ?, ?, ?, ?)",
        (
            head.sequence,
            head.hash,
            head.anchor_sequence,
            head.anchor_hash,
            seal.key_id,
            seal.hmac,
        ),
    )


def insert(connection: sqlite3.Connection, row: Row) -> None:
    """Add one event."""
    connection.execute(
        "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (row.sequence, row.body, row.hash, *row.columns),
    )


def accept_anything(connection: sqlite3.Connection) -> None:
    """Read also what is no text: an edited row may hold anything."""
    connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")


def is_empty(connection: sqlite3.Connection) -> bool:
    """Whether there is no event."""
    return connection.execute("SELECT 1 FROM events LIMIT 1").fetchone() is None


def rows_after(
    connection: sqlite3.Connection, sequence: int | None, wanted: Wanted, most: int
) -> Iterator[Row]:
    """Yield the next rows in their order; None is from the very first."""
    after = -(2**63) if sequence is None else sequence
    return _rows(connection, "ASC", wanted, most, after)


def last_rows(connection: sqlite3.Connection, wanted: Wanted, most: int) -> list[Row]:
    """Return the last rows in their order."""
    return list(_rows(connection, "DESC", wanted, most, -(2**63)))[::-1]


def bytes_used(connection: sqlite3.Connection) -> int:
    """Return how much of the file is in use; what pruning has freed is used again."""
    pages, free, size = (
        int(connection.execute(f"PRAGMA {name}").fetchone()[0])
        for name in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * size


def _rows(
    connection: sqlite3.Connection, order: str, wanted: Wanted, most: int, after: int
) -> Iterator[Row]:
    accept_anything(connection)
    query = (
        f"SELECT {_COLUMNS} FROM events WHERE sequence > :after{_MATCHES}"  # noqa: S608  # our own names
        f" ORDER BY sequence {order} LIMIT :most"
    )
    parameters = {**wanted.parameters(), "after": after, "most": most}
    for sequence, body, digest, *columns in connection.execute(query, parameters):
        yield Row(sequence, _text(body), _text(digest), tuple(columns))


def _text(value: object) -> str:
    return value if isinstance(value, str) else repr(value)


def is_there(path: Path) -> bool:
    """Whether there is something of that name; raises StoreError where that cannot be known."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise StoreError(f"{path} cannot be looked at: {error.strerror}") from error
    return True


def refuse_foreign(path: Path) -> None:
    """Keep out of the databases of others, in which the tables would be made; a StoreError."""
    if not is_there(path) or path.is_symlink() or not path.is_file():
        return
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as connection:
            found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            names = {name for (name,) in found}
    except UnicodeDecodeError as error:  # of the message about a schema that is no text
        raise StoreError(
            f"{path} is damaged; keep a copy, and move it away to begin a new one"
        ) from error
    except sqlite3.Error:
        return  # to open it will say why, in words
    if names and not {"events", "head"} <= names:
        raise StoreError(f"{path} is a database of something else; name another file")
