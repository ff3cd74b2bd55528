"""Init's last word on a call: its account, and behind that the files that come back.

It comes on the status pipe (see `sandbox_workers.init` and `sandbox_workers.outbox`). A line
break behind the account says that files follow.
"""

from typing import Any, NamedTuple

from sandbox_workers import wire
from toolcell.cells.parcels import Parcels, Shelf
from toolcell.model import LeftFiles


class Account(NamedTuple):
    """How the worker ended, and what all of the call used.

    `started` counts processes and threads, and is negative where nobody counted; `alive` are
    those at the end, told only where there may have been too many.
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

    def __init__(self, shelf: Shelf | None) -> None:
        self._shelf = shelf
        self._line: bytes | None = None
        self._files: Parcels | None = None

    @property
    def began(self) -> bool:
        """Whether init has spoken: the call is over then."""
        return self._line is not None

    @property
    def has_files(self) -> bool:
        """Whether it sends files."""
        return self._files is not None

    def feed(self, data: bytes) -> None:
        """Take bytes as they were read; init writes its account at once."""
        if self._files is not None:
            self._files.feed(data)
            return
        self._line, files_follow, rest = data.partition(b"\n")
        if files_follow:
            self._files = Parcels(self._shelf)
            self._files.feed(rest)

    def account(self) -> Account | None:
        """The account; None where init was killed before it could say."""
        return read_account(self._line)

    def files(self) -> LeftFiles:
        """The files, now that no more will come."""
        if self._files is None:
            return LeftFiles()
        self._files.finish()
        return LeftFiles(artifacts=tuple(self._files.artifacts), refused=tuple(self._files.refused))
