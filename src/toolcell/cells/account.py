"""Init's account of a call, as it comes on the status pipe (see `sandbox_workers.init`)."""

from typing import Any, NamedTuple

from sandbox_workers import wire


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
