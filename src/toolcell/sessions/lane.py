"""A lane: pieces that are dealt with one after another, each once the one before it is.

What waits is joined where it is of one kind, so that many small pieces cost as little as a few
large ones.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable

Deal = Callable[[str, bytes | bytearray], "Iterable[asyncio.Future[None]]"]
"""Deals with a piece of some kind; returns what has to be done before the next one."""


class Lane:
    """Pieces of one call."""

    def __init__(
        self,
        deal: Deal,
        failed: Callable[[BaseException], None],
        moved: Callable[[], None],
    ) -> None:
        """`failed` is told at once what was raised, and `moved` when what waited has gone on."""
        self.waiting = 0
        """Bytes that wait."""
        self._deal = deal
        self._failed = failed
        self._moved = moved
        self._pieces: deque[tuple[str, bytearray]] = deque()
        self._busy: set[asyncio.Future[None]] = set()

    @property
    def idle(self) -> bool:
        """Whether all is dealt with."""
        return not self._busy and not self._pieces

    def take(self, kind: str, data: bytes) -> None:
        """Deal with a piece now, or let it wait behind what waits already."""
        if not self._busy:
            self._begin(kind, data)
            return
        self.waiting += len(data)
        if self._pieces and self._pieces[-1][0] == kind:
            self._pieces[-1][1].extend(data)
        else:
            self._pieces.append((kind, bytearray(data)))

    def _begin(self, kind: str, data: bytes | bytearray) -> None:
        self._busy = set(self._deal(kind, data))
        for future in self._busy:
            future.add_done_callback(self._done)

    def _done(self, future: "asyncio.Future[None]") -> None:
        self._busy.discard(future)
        if not future.cancelled() and (error := future.exception()):
            self._failed(error)
        while not self._busy and self._pieces:
            kind, data = self._pieces.popleft()
            self.waiting -= len(data)
            self._begin(kind, data)
        self._moved()
