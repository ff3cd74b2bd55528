"""The event log: appends to the chain, and lets go of what is old.

An append is one transaction: read the head, check its seal, add the event, seal the new head.
So any number of processes may write one log, a writer that is killed leaves all of an event or
nothing, and nobody's edit of the head is sealed over. A crash of the machine may take the last
events with it, and then their head too: the log is an earlier one, and whole.
"""

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from toolcell.errors import StoreError
from toolcell.events.chain import Head, Row, body_of, columns_of, key_id, link, seal
from toolcell.events.key import KeyFile
from toolcell.events.record import Event, EventKind
from toolcell.events.retention import Rule, overdue
from toolcell.events.table import (
    Seal,
    bytes_used,
    guard,
    insert,
    is_empty,
    open_table,
    place_of,
    read_head,
    refuse_foreign,
    write_head,
)

KEEP_DAYS = 30.0
KEEP_BYTES = 256 * 1024 * 1024
_LOOK_EVERY = 256
_STEP = 512
_STEP_BY_HAND = 4096
_ROOM = 1 / 16


@dataclass(frozen=True, slots=True)
class Pruned:
    """What pruning removed: how many events, and the sequence number of the last of them."""

    rows: int
    through: int


class EventLog:
    """An EventSink that keeps events in a hash-chained file; for any thread and process.

    A log and its key are a pair: `events.db` and `events.key`. What was written cannot be
    changed, cut or reordered without the key so that `verify` does not find it. What cannot be
    found: that both files were removed, or replaced by an older copy of both; write down now
    and then, elsewhere, the sequence number and hash that `toolcell events verify` prints.
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        keep_days: float | None = KEEP_DAYS,
        keep_bytes: int | None = KEEP_BYTES,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        wait: float | None = None,
    ) -> None:
        """Name the log; it is opened with the first event. None is the state directory's.

        Keep it outside of the workspace: a tool that may write there could remove it.

        Events older than `keep_days` are removed, a day later at the most as long as events
        come in; and the oldest where more than `keep_bytes` of the file are in use. The file
        does not shrink by that: its room is used again. None keeps them for ever. `wait` is
        for how long another writer is waited for, in seconds (5).
        """
        self.path = place_of(path)
        self._key_file = KeyFile(self.path)
        self._database = open_table(self.path, wait)
        self._keep_days = keep_days
        self._keep_bytes = keep_bytes
        self._clock = clock
        self._key: bytes | None = None
        self._key_id = ""
        self._until_look = 1

    def __call__(self, event: Event) -> None:
        """Append one event; raises StoreError, and then nothing of it is kept."""
        body = body_of(event)
        columns = columns_of(event)
        key = self._key or self._begin()
        with self._database.writing() as connection:
            self._append(connection, key, self._head(connection, key), body, columns)
        self._until_look -= 1
        if self._until_look <= 0:
            self._until_look = _LOOK_EVERY
            # The event is kept. What is in the way of pruning is in the next append's, too, or
            # it is a break in the oldest events, which is evidence: `verify` tells of it.
            with suppress(StoreError):
                self._let_go()

    def prune(
        self, *, older_than: timedelta | None = None, keep_bytes: int | None = None
    ) -> Pruned:
        """Remove the oldest events now, and give their room back to the disk.

        Removes those older than `older_than`, then the oldest until the others take
        `keep_bytes`. Raises StoreError, for one where an event to be removed does not fit the
        chain: it and all that follow it stay, to be looked into.
        """
        rows = 0
        if older_than is not None:
            rows += self._prune_all(Rule(before=self._clock() - older_than))
        if keep_bytes is not None:
            rows += self._prune_all(Rule(keep_bytes=keep_bytes))
        if rows:
            with self._database.reading() as connection:
                connection.execute("VACUUM")
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        with self._database.reading() as connection:
            found = read_head(connection)
        return Pruned(rows, found[0].anchor_sequence if found else 0)

    def close(self) -> None:
        """Close the file; the next event opens it again."""
        self._database.close()

    def _begin(self) -> bytes:
        """Open the log, or make it where there is none; returns its key."""
        refuse_foreign(self.path)
        with self._database.reading() as connection:
            # The head of a new log has to be on the disk before its key takes its name.
            connection.execute("PRAGMA synchronous=FULL")
        with self._database.writing() as connection:
            found = read_head(connection)
            key = self._known_key(found[1]) if found else self._new_key(connection)
        self._key_file.keep()
        with self._database.reading() as connection:
            connection.execute("PRAGMA synchronous=NORMAL")
        self._key_id = key_id(key)
        self._key = key
        return key

    def _new_key(self, connection: sqlite3.Connection) -> bytes:
        if self._key_file.exists() or not is_empty(connection):
            raise StoreError(
                f"the event log {self.path} has lost its head or its events, as its key or the "
                "rest of them show; put it back from a copy, or move it and "
                f"{self._key_file.path} away to begin a new one"
            )
        key = self._key_file.make()
        guard(connection)
        write_head(connection, Head(), Seal(key_id(key), seal(key, Head())))
        return key

    def _known_key(self, sealed: Seal) -> bytes:
        key = self._key_file.read()
        if key is None or key_id(key) != sealed.key_id:
            what = "is missing" if key is None else "is that of another log"
            raise StoreError(
                f"the key of the event log {self.path} {what}: {self._key_file.path}; put the "
                "right one back, or move the log away to begin a new one"
            )
        return key

    def _head(self, connection: sqlite3.Connection, key: bytes) -> Head:
        found = read_head(connection)
        if found is None or seal(key, found[0]) != found[1].hmac:
            raise StoreError(
                f"the event log {self.path} was changed by something else than toolcell, and is "
                "not written over that; see `toolcell events verify`, and move it and "
                f"{self._key_file.path} away to begin a new one"
            )
        return found[0]

    def _append(
        self,
        connection: sqlite3.Connection,
        key: bytes,
        head: Head,
        body: str,
        columns: tuple[Any, ...],
    ) -> None:
        sequence = head.sequence + 1
        digest = link(head.hash, sequence, body)
        insert(connection, Row(sequence, body, digest, columns))
        head = Head(sequence, digest, head.anchor_sequence, head.anchor_hash)
        write_head(connection, head, Seal(self._key_id, seal(key, head)))

    def _let_go(self) -> None:
        """Remove one step of what is not to be kept, so that an append is not held up for long."""
        if self._keep_bytes is not None:
            with self._database.reading() as connection:
                too_large = bytes_used(connection) > self._keep_bytes
            if too_large:
                target = int(self._keep_bytes * (1 - _ROOM))
                self._prune_step(Rule(keep_bytes=target), _STEP)
        if self._keep_days is not None:
            before = self._clock() - timedelta(days=self._keep_days)
            with self._database.reading() as connection:
                too_old = overdue(connection, before, _STEP)
            if too_old:
                self._prune_step(Rule(before=before), _STEP)

    def _prune_all(self, rule: Rule) -> int:
        total = 0
        # A step of one removes no more than it adds, its own event.
        while (rows := self._prune_step(rule, _STEP_BY_HAND)) > 1:
            total += rows
        return total + rows

    def _prune_step(self, rule: Rule, most: int) -> int:
        key = self._key or self._begin()
        with self._database.writing() as connection:
            head = self._head(connection, key)
            last = rule.last_to_go(connection, head, most)
            if last is None:
                return 0
            rows = last.sequence - head.anchor_sequence
            first = head.anchor_sequence + 1
            head = replace(head, anchor_sequence=last.sequence, anchor_hash=last.hash)
            # The guard lets go only of what the head calls pruned.
            write_head(connection, head, Seal(self._key_id, seal(key, head)))
            connection.execute(
                "DELETE FROM events WHERE sequence BETWEEN ? AND ?", (first, last.sequence)
            )
            data = {"rows": rows, "through": last.sequence, "reason": rule.reason}
            event = Event(
                at=self._clock(), kind=EventKind.PRUNED, call_id="", tool_name="", data=data
            )
            self._append(connection, key, head, body_of(event), columns_of(event))
        return rows
