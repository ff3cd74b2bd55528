"""Reading a log, while others write it; a file that is not there is not made."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from toolcell.events.chain import Row
from toolcell.events.table import (
    EVERYTHING,
    Wanted,
    is_there,
    last_rows,
    open_table,
    place_of,
    refuse_foreign,
    rows_after,
)

_BATCH = 500


class EventReader:
    """Reads a log in the order of its events; where there is none yet, there are no events."""

    def __init__(self, path: str | Path | None = None) -> None:
        """Name the log; None is the state directory's. Raises StoreError for what is no log."""
        self.path = place_of(path)
        refuse_foreign(self.path)
        self._database = open_table(self.path)

    def exists(self) -> bool:
        """Whether there is a log yet; raises StoreError where that cannot be known."""
        return is_there(self.path)

    def rows(self, wanted: Wanted = EVERYTHING, after: int | None = None) -> Iterator[Row]:
        """Yield events in their order, those after a sequence number; raises StoreError."""
        while self.exists():
            with self._database.reading() as connection:
                rows = list(rows_after(connection, after, wanted, _BATCH))
            yield from rows
            if len(rows) < _BATCH:
                return
            after = rows[-1].sequence

    def last(self, most: int, wanted: Wanted = EVERYTHING) -> list[Row]:
        """Return the last events, in their order; raises StoreError."""
        if not self.exists():
            return []
        with self._database.reading() as connection:
            return last_rows(connection, wanted, most)

    def follow(
        self, wanted: Wanted = EVERYTHING, after: int | None = None, every: float = 0.2
    ) -> Iterator[Row]:
        """Yield events as they come, for ever; looks for new ones `every` so many seconds."""
        while True:
            for row in self.rows(wanted, after):
                after = row.sequence
                yield row
            time.sleep(every)

    @contextmanager
    def at_one_moment(self) -> Iterator[None]:
        """See the log as it is now, whatever is appended or pruned meanwhile."""
        if not self.exists():
            yield
            return
        with self._database.reading() as connection:
            connection.execute("BEGIN")
            try:
                yield
            finally:
                if connection.in_transaction:  # SQLite ends it itself where the file is damaged
                    connection.execute("ROLLBACK")

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        self._database.close()
