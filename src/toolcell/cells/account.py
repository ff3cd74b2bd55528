"""Init's last word on a call: its account, and behind that the files that come back.

It comes on the status pipe (see `sandbox_workers.init` and `sandbox_workers.outbox`). A line
break behind the account says that files follow.
"""

import asyncio
from typing import Any, NamedTuple

from sandbox_workers import wire
from toolcell.cells.arriving import Arriving
from toolcell.cells.parcels import Shelf
from toolcell.model import LeftFiles, Limits


class Account(NamedTuple):
    """How the worker ended, and what all of the call used.

    `started` counts processes and threads, and is negative where nobody counted; `alive` are
    those at the end.
    """

    code: int
    cpu_seconds: float
    peak_memory: int
    started: int
    alive: int
    scratch_full: bool
    refused: list[dict[str, Any]]

    def met(self, limit: int, most_seen: int) -> bool:
        """Whether as many processes and threads as a limit allows were alive at once.

        As far as anybody saw; where fewer were ever started, they were not.
        """
        possible = self.started < 0 or self.started >= limit
        return possible and max(self.alive, most_seen) >= limit


def read_account(line: bytes | None) -> Account | None:
    """Read the line; None where init was killed before it could say."""
    if not line:
        return None
    *numbers, refused = line.split(b" ", 6)
    code, cpu, memory, started, alive, full = map(int, numbers)
    return Account(code, cpu / 1e6, memory, started, alive, bool(full), wire.decode(refused))


class LastWord:
    """What init says, as it comes; files go to the shelf."""

    def __init__(self, shelf: Shelf | None, limits: Limits) -> None:
        self.arriving = Arriving(shelf, limits)
        self.has_files = False
        """Whether it sends files."""
        self._line: bytes | None = None

    @property
    def began(self) -> bool:
        """Whether init has spoken: the call is over then."""
        return self._line is not None

    def feed(self, data: bytes) -> "asyncio.Future[None] | None":
        """Take bytes as they were read; init writes its account at once.

        Where a future comes back, no more is to be fed until it is done.
        """
        if not self.has_files:
            self._line, files_follow, data = data.partition(b"\n")
            self.has_files = bool(files_follow)
        return self.arriving.feed(data) if self.has_files else None

    def account(self) -> Account | None:
        """The account; None where init was killed before it could say."""
        return read_account(self._line)

    async def files(self) -> LeftFiles:
        """The files, now that no more will come."""
        return await self.arriving.finish()
