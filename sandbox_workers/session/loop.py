"""The host's loop: descriptors that wait to be read, and bytes that wait to be written."""

import heapq
import os
import select
import time
from collections.abc import Callable


class Loop:
    """Calls what was registered for a descriptor when that can be read, or written to."""

    def __init__(self) -> None:
        self._poll = select.poll()
        self._calls: dict[int, Callable[[], object]] = {}
        self._alarms: list[tuple[float, int, Callable[[], object]]] = []
        self._number = 0

    def on_readable(self, fd: int, call: Callable[[], object]) -> None:
        """Call when there is something to read, or nothing ever will be."""
        self._calls[fd] = call
        self._poll.register(fd, select.POLLIN)

    def on_writable(self, fd: int, call: Callable[[], object]) -> None:
        """Call when a descriptor takes bytes again."""
        self._calls[fd] = call
        self._poll.register(fd, select.POLLOUT)

    def forget(self, fd: int) -> None:
        """Wait for a descriptor no more; before it is closed, and doing it twice does nothing."""
        if self._calls.pop(fd, None):
            self._poll.unregister(fd)

    def after(self, seconds: float, call: Callable[[], object]) -> None:
        """Call once, so much later."""
        self._number += 1  # alarms of one moment go in their order
        heapq.heappush(self._alarms, (time.monotonic() + seconds, self._number, call))

    def turn(self) -> None:
        """Wait, and call once for each descriptor that is ready, and each alarm that is due."""
        left = max(self._alarms[0][0] - time.monotonic(), 0) if self._alarms else None
        ready = self._poll.poll(left if left is None else left * 1000 + 1)
        while self._alarms and self._alarms[0][0] <= time.monotonic():
            heapq.heappop(self._alarms)[2]()
        for fd, _ in ready:
            # An earlier one of this turn may have closed it.
            if call := self._calls.get(fd):
                call()


class Sender:
    """Writes to a descriptor that may be slow, without ever waiting for it."""

    def __init__(self, loop: Loop, fd: int, freed: Callable[[], None] | None = None) -> None:
        """Make the descriptor non-blocking; `freed` is called when all that waited is written."""
        os.set_blocking(fd, False)
        self._loop = loop
        self._fd = fd
        self._freed = freed
        self._waiting = bytearray()

    @property
    def busy(self) -> bool:
        """Whether some bytes wait."""
        return bool(self._waiting)

    def send(self, *pieces: bytes) -> None:
        """Write, or let it wait behind what waits already."""
        written = 0 if self._waiting else self._write(*pieces)
        if written < sum(map(len, pieces)):
            if not self._waiting:
                self._loop.on_writable(self._fd, self._go_on)
            self._waiting += b"".join(pieces)[written:]

    def flush(self) -> None:
        """Write what waits, and wait for it."""
        os.set_blocking(self._fd, True)
        while self._waiting:
            del self._waiting[: self._write(self._waiting)]

    def _go_on(self) -> None:
        del self._waiting[: self._write(self._waiting)]
        if not self._waiting:
            self._loop.forget(self._fd)
            if self._freed:
                self._freed()

    def _write(self, *pieces: bytes | bytearray) -> int:
        try:
            return os.writev(self._fd, pieces)
        except BlockingIOError:
            return 0
        except BrokenPipeError:  # nobody reads it any more; the reader's end tells more than this
            return sum(map(len, pieces))
