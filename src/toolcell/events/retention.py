"""Retention: which of the oldest events may go.

Only a beginning of the chain goes, never something out of its middle, and only what fits the
chain: an edited event is evidence, and stays. What is pruned was whole when it was.
"""

import math
import sqlite3
from dataclasses import dataclass
from datetime import datetime, timedelta

from toolcell.errors import StoreError
from toolcell.events.chain import Head, Row, fault, microseconds
from toolcell.events.table import EVERYTHING, bytes_used, read_head, rows_after

_A_DAY = timedelta(days=1)
_COLUMNS_BYTES = 100
"""About what an event takes beside its JSON."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Lets go of what was recorded before a time, or of what is in excess of a size in bytes."""

    before: datetime | None = None
    keep_bytes: int | None = None

    @property
    def reason(self) -> str:
        """Why, for the record."""
        if self.before is not None:
            return f"recorded before {self.before.isoformat(timespec='seconds')}"
        return f"the log is to take no more than {self.keep_bytes} bytes"

    def last_to_go(self, connection: sqlite3.Connection, head: Head, most: int) -> Row | None:
        """Return the last event to go of the next `most`, or None; raises StoreError.

        It does where the first that would go does not fit the chain.
        """
        excess, most = self._excess(connection, head, most)
        last, previous, freed = None, head.anchor_hash, 0
        for row in rows_after(connection, head.anchor_sequence, EVERYTHING, most):
            if freed >= excess:
                break
            if wrong := self._wrong(head, last, previous, row):
                if last is None:
                    raise StoreError(
                        f"event {row.sequence} of the log was edited: {wrong}; it and all that "
                        "follow it stay, see `toolcell events verify`"
                    )
                break
            if self.before is not None and row.columns[0] >= microseconds(self.before):
                break
            last, previous = row, row.hash
            freed += len(row.body) + _COLUMNS_BYTES
        return last

    def _excess(self, connection: sqlite3.Connection, head: Head, most: int) -> tuple[float, int]:
        """Return the bytes to free, and after how many events to look again how many they were."""
        if self.keep_bytes is None:
            return math.inf, most
        used, rows = bytes_used(connection), max(1, head.sequence - head.anchor_sequence)
        excess = used - self.keep_bytes
        # One event goes for the one that tells of it; so at least two, or it would never end.
        return excess, min(most, max(2, math.ceil(excess * rows / used)))

    @staticmethod
    def _wrong(head: Head, last: Row | None, previous: str, row: Row) -> str:
        expected = (last.sequence if last else head.anchor_sequence) + 1
        return "those before it are missing" if row.sequence != expected else fault(previous, row)


def overdue(connection: sqlite3.Connection, before: datetime, step: int) -> bool:
    """Whether a whole step is too old, or something for a day: each step is an event, too."""
    found = read_head(connection)
    anchor = found[0].anchor_sequence if found else 0
    first = list(rows_after(connection, anchor, EVERYTHING, 1))
    last = list(rows_after(connection, anchor + step - 1, EVERYTHING, 1))
    limits = [(first, before - _A_DAY), (last, before)]
    return any(row.columns[0] < microseconds(limit) for rows, limit in limits for row in rows)
