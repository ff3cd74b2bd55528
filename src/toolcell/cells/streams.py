"""Streams: what a call writes, from its two pipes into memory, to the store, and to a tap.

A stream is read as fast as the slowest of those who take it: while one of them is busy with a
piece, no more of that stream is read, and the tool waits when the pipe is full.
"""

import asyncio
from collections.abc import Awaitable, Callable

from toolcell.cells.captures import STREAMS, Begin, Captures, Stream
from toolcell.cells.cell import Cell
from toolcell.cells.pipe import FILLING_SECONDS, OutputPipe, readable_bytes

Tap = Callable[[Stream, bytes], Awaitable[None] | None]
"""Called with each piece of output as it arrives, in the event loop; what takes time is
awaited, and no more of that stream is read until then. The pieces are as the tool wrote them:
they go to whoever runs the call, and are not redacted."""


class Streams:
    """Reads the output of one call, from `start` to `drain`."""

    def __init__(
        self,
        cell: Cell,
        limit: int,
        tap: Tap | None,
        spill: Begin | None,
        over: Callable[[], object],
        fail: Callable[[BaseException], object],
    ) -> None:
        """`over` is told of more output than the limit, `fail` of what a tap raised."""
        self.captures = Captures(spill)
        self._cell = cell
        self._limit = limit
        self._tap = tap
        self._over = over
        self._fail = fail
        self._loop = asyncio.get_running_loop()
        self._pipes = {stream: OutputPipe(getattr(cell, stream)) for stream in STREAMS}
        self._taps: dict[Stream, asyncio.Future[None]] = {}
        self._spilling: dict[Stream, asyncio.Future[None]] = {}
        self._untapped: asyncio.Future[None] = self._loop.create_future()
        self._ended = False

    def start(self) -> None:
        """Read from now on."""
        for stream in STREAMS:
            self._loop.add_reader(getattr(self._cell, stream), self._read, stream)

    def end(self) -> None:
        """Take note that the call has ended: what is left is read by `drain`."""
        self._ended = True

    def mute(self) -> None:
        """Give the tap no more."""
        self._tap = None

    def leave_tap(self) -> None:
        """Give the tap no more, and do not wait for it either."""
        self.mute()
        if not self._untapped.done():
            self._untapped.set_result(None)

    async def drain(self) -> None:
        """Read what is in the pipes now, and no more."""
        for stream in STREAMS:
            left = readable_bytes(getattr(self._cell, stream))
            while left > 0:
                await self._taken(stream)
                data = self._read(stream)
                if not data:
                    break
                left -= data
            await self._taken(stream)

    def release(self) -> None:
        """Let go of whoever still takes output."""
        for task in self._taps.values():
            task.cancel()
        self.captures.abandon()

    def _read(self, stream: Stream) -> int:
        """Read once; returns the number of bytes, 0 where none came or the pipe ended."""
        pipe = self._pipes[stream]
        piece = pipe.read()
        if piece is None:
            return 0
        if not piece.size:
            self._loop.remove_reader(getattr(self._cell, stream))
            return 0
        waiting: list[Awaitable[None]] = []
        if spilling := self.captures.feed(stream, piece.data, piece.size):
            self._spilling[stream] = spilling
            waiting.append(spilling)
        if self.captures.total_bytes > self._limit:
            self._over()
        if self._tap:
            try:
                tapping = self._tap(stream, piece.copy())
            except Exception as error:  # noqa: BLE001  # raised again when the cell is gone
                self._fail(error)
            else:
                waiting += [tapping] if tapping is not None else []
        if self.captures.floods(stream):
            pipe.expect_a_flood()
            if pipe.may_fill(piece.size) and not self._ended:
                waiting.append(asyncio.sleep(FILLING_SECONDS))
        if waiting:
            self._pause(stream, waiting[0] if len(waiting) == 1 else _all_of(waiting))
        return piece.size

    def _pause(self, stream: Stream, waiting: Awaitable[None]) -> None:
        """Read no more of a stream until those who take it have dealt with what they were given."""
        fd = getattr(self._cell, stream)
        self._loop.remove_reader(fd)
        task = self._taps[stream] = asyncio.ensure_future(waiting)

        def go_on(task: "asyncio.Future[None]") -> None:
            if not task.cancelled() and (error := task.exception()):
                self._fail(error)
            if not self._ended and getattr(self._cell, stream) >= 0:
                self._loop.add_reader(fd, self._read, stream)

        task.add_done_callback(go_on)

    async def _taken(self, stream: Stream) -> None:
        """Wait until the tap has dealt with what it was given of a stream, or will not any more."""
        if task := self._taps.get(stream):
            await asyncio.wait([task, self._untapped], return_when=asyncio.FIRST_COMPLETED)
        if spilling := self._spilling.pop(stream, None):
            await asyncio.wait([spilling])  # until then the buffer is in use


async def _all_of(waiting: list[Awaitable[None]]) -> None:
    await asyncio.gather(*waiting)
