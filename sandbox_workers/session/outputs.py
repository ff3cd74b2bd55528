"""Outputs: the two pipes of one call, while it runs and for what it leaves running."""

import fcntl
import os
import termios
from array import array
from collections.abc import Callable
from functools import partial

from sandbox_workers.records import STDERR, STDOUT
from sandbox_workers.session.loop import Loop

_READ = 64 * 1024
_KEPT = 32 * 1024

Take = Callable[[int, bytes], None]
"""Takes a piece of a stream: its kind of record, and the bytes."""


class Outputs:
    """Pipes for one call's standard output and error; owns all four ends."""

    def __init__(self, loop: Loop) -> None:
        """Make the pipes; raises OSError with none left open."""
        self._loop = loop
        self._reads: dict[int, int] = {}
        self.writes: dict[int, int] = {}
        try:
            for stream in (STDOUT, STDERR):
                self._reads[stream], self.writes[stream] = os.pipe()
                os.set_blocking(self._reads[stream], False)
        except OSError:
            self.close()
            raise

    @property
    def open(self) -> bool:
        """Whether something may still be written to them."""
        return bool(self._reads)

    def relay(self, take: Take) -> None:
        """Read them in the loop from now on, and hand what comes to `take`."""
        for stream, fd in self._reads.items():
            self._loop.on_readable(fd, partial(self._read, stream, take))

    def pause(self) -> None:
        """Read no more until they are relayed again; who writes to them waits then."""
        for fd in self._reads.values():
            self._loop.forget(fd)

    def drain(self, take: Take) -> None:
        """Read what is in them at this moment, and no more: somebody may go on writing."""
        for stream, fd in list(self._reads.items()):
            left = _readable(fd)
            while left > 0 and (size := self._read(stream, take)):
                left -= size

    def leave(self) -> None:
        """Give up the ends that the executor opened, so that the last writer's end shows."""
        for fd in self.writes.values():
            os.close(fd)
        self.writes = {}

    def close(self) -> None:
        """Close all; whoever still writes is told by SIGPIPE."""
        self.leave()
        for stream in list(self._reads):
            self._end(stream)

    def _read(self, stream: int, take: Take) -> int:
        try:
            data = os.read(self._reads[stream], _READ)
        except BlockingIOError:
            return 0
        if data:
            take(stream, data)
        else:
            self._end(stream)
        return len(data)

    def _end(self, stream: int) -> None:
        fd = self._reads.pop(stream)
        self._loop.forget(fd)
        os.close(fd)


class Earlier:
    """The end of what earlier calls' leftovers wrote, and how many bytes and lines it all was."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self._total = self._lines = 0

    def add(self, _: int, data: bytes) -> None:
        """Take a piece of either stream."""
        self._total += len(data)
        self._lines += data.count(b"\n")
        self._kept += data
        del self._kept[:-_KEPT]

    def take(self) -> tuple[bytes, int, int]:
        """Return what was kept, and how many bytes and lines there were; begin anew."""
        found = bytes(self._kept), self._total, self._lines
        self._kept, self._total, self._lines = bytearray(), 0, 0
        return found


def _readable(fd: int) -> int:
    """How many bytes are in a pipe now (FIONREAD, ioctl_pipe in pipe(7))."""
    count = array("i", [0])
    fcntl.ioctl(fd, termios.FIONREAD, count)
    return count[0]
