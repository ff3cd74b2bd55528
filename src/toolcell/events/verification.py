"""Verification: whether a log is what was written to it, and if not, where it is not."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from toolcell.database import Database
from toolcell.errors import StoreError
from toolcell.events.chain import Head, Row, fault, key_id, link, seal
from toolcell.events.key import KeyFile
from toolcell.events.table import (
    EVERYTHING,
    Seal,
    accept_anything,
    is_empty,
    is_there,
    open_table,
    place_of,
    read_head,
    refuse_foreign,
    rows_after,
)
from toolcell.model.base import SCHEMA_VERSION, Frozen

_BATCH = 1000
_MOST_FINDINGS = 20
_OUT_OF_REACH = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_READONLY,
}
"""What says nothing of the log itself (sqlite.org/rescode.html)."""


class Finding(Frozen):
    """One thing that is wrong, and at which event, where it is at one."""

    sequence: int | None = None
    what: str


class Verification(Frozen):
    """What was found: `intact` is that there is no finding; findings stop at the first twenty.

    `events` are in the log, from `first` to `last`; `pruned` were removed before them, and
    `hash` is that of the last: every later state of this log has that event, until it is pruned.
    `noted` says what became of an event that the caller had noted.
    """

    v: int = SCHEMA_VERSION
    path: str
    intact: bool
    events: int = 0
    pruned: int = 0
    first: int | None = None
    last: int | None = None
    hash: str | None = None
    noted: Literal["found", "pruned"] | None = None
    findings: tuple[Finding, ...] = Field(default=())


def verify(path: str | Path | None = None, *, noted: tuple[int, str] | None = None) -> Verification:
    """Check the seal and every event of a log; None is the state directory's.

    `noted` are the `last` and `hash` of an earlier verification: a log that was put back from
    a copy made before it, together with its key, does not have that event. Raises StoreError
    where the log cannot be read at all, for want of permission for one.
    """
    place = place_of(path)
    key_file = KeyFile(place)
    if not is_there(place):
        what = (
            f"the log was removed: its key is still there, {key_file.path}"
            if key_file.exists()
            else "there is no log: nothing was recorded yet, or the log and its key were removed"
        )
        return Verification(path=str(place), intact=False, findings=(Finding(what=what),))
    check = _Check(key_file, noted)
    try:
        refuse_foreign(place)
        with closing(open_table(place)) as database:
            check.run(database)
    except StoreError as error:
        code = getattr(error.__cause__, "sqlite_errorcode", 0) & 0xFF
        if isinstance(error.__cause__, OSError) or code in _OUT_OF_REACH:
            raise
        check.find(None, str(error))
    return check.outcome(place)


class _Check:
    """One walk along the chain."""

    def __init__(self, key_file: KeyFile, noted: tuple[int, str] | None) -> None:
        self._key_file = key_file
        self._noted = noted
        self._noted_is: Literal["found", "pruned"] | None = None
        self._findings: list[Finding] = []
        self._misfits: list[tuple[str, Row]] = []
        self._head = Head()
        self._events = 0
        self._first: int | None = None
        self._last: Row | None = None

    def run(self, database: Database) -> None:
        with database.reading() as connection:
            connection.execute("BEGIN")  # one moment of it, whatever others append and prune
            accept_anything(connection)
            try:
                found = read_head(connection)
                if found is None:
                    self._check_beginning(connection)
                    self._check_noted(None)
                    return
                self._head = found[0]
                if not _sound(*found):
                    self.find(None, "the head was edited into something that is no head")
                    return
                self._check_seal(*found)
                self._walk(connection)
            finally:
                if connection.in_transaction:  # SQLite ends it itself where the file is damaged
                    connection.execute("ROLLBACK")

    def find(self, sequence: int | None, what: str) -> None:
        if len(self._findings) < _MOST_FINDINGS:
            self._findings.append(Finding(sequence=sequence, what=what))

    def outcome(self, place: Path) -> Verification:
        return Verification(
            path=str(place),
            intact=not self._findings,
            events=self._events,
            pruned=max(0, self._head.anchor_sequence)
            if isinstance(self._head.anchor_sequence, int)
            else 0,
            first=self._first,
            last=self._last.sequence if self._last else None,
            hash=self._last.hash if self._last else None,
            noted=self._noted_is,
            findings=tuple(self._findings),
        )

    def _check_beginning(self, connection: sqlite3.Connection) -> None:
        """A log without a head has not begun, if it has no event and no key either."""
        if not is_empty(connection):
            self.find(None, "the head is missing, and there are events")
        elif self._key_file.exists():
            self.find(None, "the head and all events were removed: the key of the log is there")

    def _check_seal(self, head: Head, sealed: Seal) -> None:
        try:
            key = self._key_file.read()
        except StoreError as error:
            self.find(None, f"the seal cannot be checked: {error}")
            return
        if key is None:
            what = f"the seal cannot be checked: the key is missing, {self._key_file.path}"
            self.find(None, what)
        elif key_id(key) != sealed.key_id:
            what = f"the seal cannot be checked: {self._key_file.path} is the key of another log"
            self.find(None, what)
        elif seal(key, head) != sealed.hmac:
            what = "the seal is broken: the head was edited by somebody without the key"
            self.find(None, what)

    def _walk(self, connection: sqlite3.Connection) -> None:
        self._check_before_the_anchor(connection)
        expected, previous = self._head.anchor_sequence + 1, self._head.anchor_hash
        for row in _kept(connection, self._head):
            if row.sequence > self._head.sequence:
                self.find(row.sequence, f"event {row.sequence} was added behind the head")
                continue
            if row.sequence != expected:
                self._find_missing(expected, row.sequence - 1)
                previous = ""
            self._check(previous, row)
            self._check_noted(row)
            expected, previous = row.sequence + 1, row.hash
            self._events += 1
            self._first = self._first or row.sequence
            self._last = row
        self._check_end(expected, previous)
        self._check_noted(None)
        self._find_moved()

    def _check_before_the_anchor(self, connection: sqlite3.Connection) -> None:
        query = "SELECT sequence FROM events WHERE sequence <= ? LIMIT 3"
        for (sequence,) in connection.execute(query, (self._head.anchor_sequence,)):
            self.find(sequence, f"event {sequence} was added before the first that is kept")

    def _check(self, previous: str, row: Row) -> None:
        if previous and (wrong := fault(previous, row)):
            self.find(row.sequence, f"event {row.sequence}: {wrong}")
            if len(self._misfits) < _MOST_FINDINGS:
                self._misfits.append((previous, row))

    def _check_noted(self, row: Row | None) -> None:
        """Look for the noted event; without a row, at the end, say that it was not there."""
        if self._noted is None or self._noted_is:
            return
        if row is not None and (row.sequence, row.hash) == self._noted:
            self._noted_is = "found"
        elif row is None and self._noted[0] <= self._head.anchor_sequence:
            self._noted_is = "pruned"
        elif row is None:
            what = "is not in the log: it is an older copy, or another log"
            self.find(self._noted[0], f"event {self._noted[0]} that was noted {what}")

    def _check_end(self, expected: int, previous: str) -> None:
        if expected <= self._head.sequence:
            self._find_missing(expected, self._head.sequence, "at the end")
        elif previous != self._head.hash:
            self.find(None, "the head names another hash than the last event has")

    def _find_missing(self, first: int, last: int, where: str = "") -> None:
        which = f"event {first} is" if first == last else f"events {first} to {last} are"
        self.find(first, f"{which} missing {where}".rstrip())

    def _find_moved(self) -> None:
        """Say of events that do not fit whether they fit in the place of another of these."""
        hashes = {row.hash for _, row in self._misfits}
        before = hashes | {previous for previous, _ in self._misfits}
        places = [row.sequence for _, row in self._misfits]
        for (_, row), place in product(self._misfits, places):
            if place == row.sequence:
                continue
            if any(link(previous, place, row.body) in hashes for previous in before):
                what = f"what is event {row.sequence} now was event {place}: they are out of order"
                self.find(row.sequence, what)


def _kept(connection: sqlite3.Connection, head: Head) -> Iterator[Row]:
    after = head.anchor_sequence
    while rows := list(rows_after(connection, after, EVERYTHING, _BATCH)):
        yield from rows
        after = rows[-1].sequence


def _sound(head: Head, sealed: Seal) -> bool:
    texts: list[Any] = [head.hash, head.anchor_hash, sealed.key_id, sealed.hmac]
    numbers: list[Any] = [head.sequence, head.anchor_sequence]
    return all(isinstance(text, str) for text in texts) and all(
        isinstance(number, int) and number >= 0 for number in numbers
    )
