"""Files of a call while they arrive: kept in a writing thread, one piece after another.

A disk may be slow, and the event loop has the deadlines of other calls to keep. So no more is to
be fed until the piece before is dealt with, and who sends waits for that in its pipe.
"""

import asyncio
import threading

from toolcell.cells.parcels import Parcels, Shelf
from toolcell.model import LeftFiles, Limits
from toolcell.outputs import writing


class Arriving:
    """The files of one call; made in an event loop."""

    def __init__(self, shelf: Shelf | None, limits: Limits) -> None:
        self.began = False
        """Whether anything came."""
        self._parcels = Parcels(shelf, limits)
        # The end may have to be told while the thread is still at a piece.
        self._lock = threading.Lock()

    @property
    def problem(self) -> str:
        """What was wrong with what came; empty where nothing was."""
        return self._parcels.problem

    def feed(self, data: bytes | bytearray) -> "asyncio.Future[None] | None":
        """Take the next bytes; until the future is done, no more is to be fed."""
        self.began = True
        if self.problem:
            return None
        return asyncio.get_running_loop().run_in_executor(writing, self._feed, data)

    async def finish(self) -> LeftFiles:
        """Return what came, now that no more will."""
        if not self.began:
            return LeftFiles()
        await asyncio.get_running_loop().run_in_executor(writing, self._finish)
        return LeftFiles(
            artifacts=tuple(self._parcels.artifacts), refused=tuple(self._parcels.refused)
        )

    def abandon(self) -> None:
        """Forget a file that did not come whole, where nobody is to be told of any."""
        if self.began:
            writing.submit(self._finish)

    def _feed(self, data: bytes | bytearray) -> None:
        with self._lock:
            self._parcels.feed(data)

    def _finish(self) -> None:
        with self._lock:
            self._parcels.finish()
