"""What came of a call in a session: its streams, who listens to them, and the files that it left.

A call's output waits here for a slow tap or disk, and nobody else's does: all calls of a session
come through one pipe. Files go a way of their own, so that a tap cannot hold them up.
"""

import asyncio
from collections.abc import Callable

from toolcell.cells.arriving import Arriving
from toolcell.cells.captures import STREAMS, Begin, Captures
from toolcell.cells.parcels import Shelf
from toolcell.cells.streams import Tap
from toolcell.model import Captured, LeftFiles, Limits
from toolcell.sessions.lane import Lane
from toolcell.sessions.protocol import Output


class Evidence:
    """What came of one call; `moved` is called whenever what waited has gone on."""

    def __init__(
        self, limits: Limits, tap: Tap | None, shelf: Shelf | None, spill: Begin | None
    ) -> None:
        self.failed: BaseException | None = None
        """What the tap raised, to be raised when the call is over."""
        self.moved: Callable[[], None] = lambda: None
        self._limit = limits.output
        self._tap = tap
        self._tapping: asyncio.Future[None] | None = None
        self._captures = Captures(spill)
        self._arriving = Arriving(shelf, limits)
        self._output = Lane(self._deal, self._fail, self._on)
        self._files = Lane(self._keep, self._fail, self._on)

    @property
    def too_much(self) -> bool:
        """Whether the call wrote more than its limit."""
        return self._captures.total_bytes + self._output.waiting > self._limit

    @property
    def waiting(self) -> int:
        """Bytes of output that wait for the tap or the disk."""
        return self._output.waiting

    @property
    def waiting_files(self) -> int:
        """Bytes of files that wait for the disk."""
        return self._files.waiting

    @property
    def problem(self) -> str:
        """What was wrong with the files; empty where nothing was."""
        return self._arriving.problem

    @property
    def idle(self) -> bool:
        """Whether all that came is dealt with."""
        return self._output.idle and self._files.idle

    def take(self, output: Output) -> None:
        """Take a piece of output or of files."""
        lane = self._files if output.stream == "files" else self._output
        lane.take(output.stream, output.data)

    def untap(self) -> None:
        """Tell the tap no more, and wait for it no longer."""
        self._tap = None
        if self._tapping is not None:
            self._tapping.cancel()

    async def finish(self, *, cut: bool) -> LeftFiles:
        """Close what was spilled, and return the files; `cut`: the call did not end its streams."""
        await self._captures.finish(cut=cut)
        return await self._arriving.finish()

    def release(self) -> None:
        """Let go of a tap that still takes its time, and of what is not finished."""
        self.untap()
        self._captures.abandon()
        self._arriving.abandon()

    def streams(self) -> dict[str, Captured]:
        """Both streams."""
        return {stream: self._captures.result(stream) for stream in STREAMS}

    def _deal(self, stream: str, data: bytes | bytearray) -> "list[asyncio.Future[None]]":
        name = next(each for each in STREAMS if each == stream)
        spilling = self._captures.feed(name, data)
        found = [spilling] if spilling else []
        if self._tap is None or self.failed is not None:
            return found
        try:
            waiting = self._tap(name, bytes(data))
        except Exception as error:  # noqa: BLE001  # raised again when the call is over
            self.failed = error
            return found
        if waiting is not None:
            self._tapping = asyncio.ensure_future(waiting)
            found.append(self._tapping)
        return found

    def _keep(self, _: str, data: bytes | bytearray) -> "list[asyncio.Future[None]]":
        keeping = self._arriving.feed(data)
        return [keeping] if keeping else []

    def _fail(self, error: BaseException) -> None:
        self.failed = self.failed or error

    def _on(self) -> None:
        self.moved()  # whoever that is by now
