"""Capture: a stream of any length in bounded memory, with exact counts of all of it.

What is kept is what the tool wrote: secrets are found when a result is made of it, in the little
that is shown, and not at the speed of a flood. More is kept than is shown, so that a secret that
a cut goes through can be recognised.
"""

from toolcell.model import Captured


class StreamCapture:
    """Keeps the first and the last bytes of a stream; counts every byte and newline."""

    def __init__(self, head: int, tail: int) -> None:
        """Keep at most `head` and `tail` bytes."""
        self._head_cap = head
        self._tail_cap = tail
        self._head = bytearray()
        self._tail = bytearray()
        self.total_bytes = 0
        self._lines = 0

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        self.total_bytes += len(data)
        self._lines += data.count(b"\n")
        room = self._head_cap - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if len(data) >= self._tail_cap:
            self._tail[:] = data[len(data) - self._tail_cap :]
        elif data:
            self._tail += data
            # Trimming at twice the cap moves each byte once, not once a chunk.
            if len(self._tail) > 2 * self._tail_cap:
                del self._tail[: -self._tail_cap]

    def result(self) -> Captured:
        """Return what was kept, and the totals."""
        tail = bytes(self._tail[-self._tail_cap :]) if self._tail_cap else b""
        return Captured(
            head=bytes(self._head),
            tail=tail,
            total_bytes=self.total_bytes,
            total_lines=self._lines,
        )
