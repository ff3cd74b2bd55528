"""Slots: how many calls run at once, how many may wait for that, and which there are."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from toolcell.cancellation import Cancellation


class Slots:
    """The places to run in, and the line before them."""

    def __init__(self, running: int, waiting: int) -> None:
        """Let so many run at once, and so many wait."""
        self._places = asyncio.Semaphore(running)
        self.most = running + waiting
        self._there: set[Cancellation] = set()
        self._empty = asyncio.Event()
        self._empty.set()

    @property
    def full(self) -> bool:
        """Whether nobody else can be let in."""
        return len(self._there) >= self.most

    @contextmanager
    def entered(self, cancellation: Cancellation) -> Iterator[None]:
        """Count a call among those that wait or run."""
        self._there.add(cancellation)
        self._empty.clear()
        try:
            yield
        finally:
            self._there.discard(cancellation)
            if not self._there:
                self._empty.set()

    @asynccontextmanager
    async def place(self, cancellation: Cancellation) -> AsyncIterator[None]:
        """Wait for a place, and hold it; raises Withdrawn where that was ended."""
        with cancellation.interrupts():
            await self._places.acquire()
        try:
            yield
        finally:
            self._places.release()

    async def clear(self) -> None:
        """Cancel every call that is there, and wait until none is."""
        for cancellation in tuple(self._there):
            cancellation.request()
        await self._empty.wait()
