"""A pipe that is read as fast as its other end writes: one buffer, and few, large reads.

A pipe holds 64 KiB, and a reader that waits for it is woken as soon as something is in it: a
flood would come in small pieces, and each costs a turn of the event loop. So the pipe of a flood
is made larger (F_SETPIPE_SZ in fcntl(2), as far as the user may), and is given a moment to fill.
"""

import fcntl
import os
import termios
from array import array
from contextlib import suppress
from typing import NamedTuple

_READ = 64 * 1024
_LARGE = 1024**2
FILLING_SECONDS = 0.001


class Piece(NamedTuple):
    """What was read: the first `size` bytes of a buffer that the next read writes over."""

    data: bytes | bytearray
    size: int

    def copy(self) -> bytes:
        """Return the bytes, to be kept."""
        return bytes(memoryview(self.data)[: self.size])


class OutputPipe:
    """Reads one pipe, which somebody else owns and closes."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._buffer: bytearray | None = None
        self._grown = False

    def read(self) -> Piece | None:
        """Read once; None says that nothing is there now, no bytes that the stream ended."""
        try:
            if self._buffer is None:
                data = os.read(self._fd, _READ)
                return Piece(data, len(data))
            return Piece(self._buffer, os.readv(self._fd, [self._buffer]))
        except BlockingIOError:
            return None

    def expect_a_flood(self) -> None:
        """Make room for one."""
        if self._buffer is None:
            self._buffer = bytearray(_LARGE)
            # Past what one user's pipes may take together it stays as it is (pipe(7)).
            with suppress(OSError):
                self._grown = fcntl.fcntl(self._fd, fcntl.F_SETPIPE_SZ, _LARGE) >= _LARGE

    def may_fill(self, size: int) -> bool:
        """Whether after a read of this size it is better to wait a moment before the next."""
        return self._grown and 0 < size < _LARGE // 2


def readable_bytes(fd: int) -> int:
    """How many bytes are in a pipe now (FIONREAD, ioctl_pipe in pipe(7))."""
    count = array("i", [0])
    fcntl.ioctl(fd, termios.FIONREAD, count)
    return count[0]
