"""Timing: what waits and what measures does it by this, so that tests can turn the hands.

Deadlines of cells are not among it: those are the kernel's and the event loop's to keep.
"""

import asyncio
import random
import time
from typing import Protocol


class Timing(Protocol):
    """A clock that only goes forward, pauses by it, and the chance in their length."""

    def monotonic(self) -> float:
        """Return seconds since some moment."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Pause: the caller goes on once so much time has been let pass."""
        ...

    async def elapse(self, seconds: float) -> None:
        """Wait until so much time has passed, while something else goes on: a deadline."""
        ...

    def jitter(self) -> float:
        """Return a number from 0 to 1."""
        ...


class RealTime:
    """The time of this machine."""

    def monotonic(self) -> float:
        """Return seconds since some moment."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Pause."""
        await asyncio.sleep(seconds)

    async def elapse(self, seconds: float) -> None:
        """Wait until so much time has passed."""
        await asyncio.sleep(seconds)

    def jitter(self) -> float:
        """Return a number from 0 to 1."""
        return random.random()  # noqa: S311  # so that calls that failed together do not retry so


real_time = RealTime()
