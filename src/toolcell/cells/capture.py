"""Capture: a stream of any length in bounded memory, with exact counts of all of it.

What is kept is what the tool wrote: secrets are found when a result is made of it, in the little
that is shown, and not at the speed of a flood. More is kept than is shown, so that a secret that
a cut goes through can be recognised.
"""

from toolcell.model import Captured, Kept


class StreamCapture:
    """Keeps the first and the last bytes of a stream; counts every byte and newline."""

    def __init__(self, head: int, tail: int) -> None:
        """Keep at most `head` and `tail` bytes."""
        self._head_cap = head
        self._tail_cap = tail
        self._head = bytearray()
        self._tail = bytearray()
        self.total_bytes = 0
        self.total_lines = 0

    def feed(self, data: bytes | bytearray, size: int | None = None) -> None:
        """Take the next bytes of the stream, the first `size` of a buffer."""
        size = len(data) if size is None else size
        self.total_bytes += size
        self.total_lines += data.count(b"\n", 0, size)
        start = max(0, min(size, self._head_cap - len(self._head)))
        with memoryview(data) as view:
            if start:
                self._head += view[:start]
            if size - start >= self._tail_cap:
                self._tail[:] = view[size - self._tail_cap : size]
            elif size > start:
                self._tail += view[start:size]
                # Trimming at twice the cap moves each byte once, not once a chunk.
                if len(self._tail) > 2 * self._tail_cap:
                    del self._tail[: -self._tail_cap]

    def holds_all_with(self, size: int) -> bool:
        """Whether nothing of the stream is left out when `size` more bytes have come."""
        return self.total_bytes + size <= self._head_cap + self._tail_cap

    def all_so_far(self) -> bytes:
        """Return the stream so far, where nothing of it is left out."""
        return bytes(self._head + self._tail)

    def result(self, kept: Kept | None = None) -> Captured:
        """Return what is here, and the totals; `kept` says where the rest went."""
        tail = bytes(self._tail[-self._tail_cap :]) if self._tail_cap else b""
        return Captured(
            head=bytes(self._head),
            tail=tail,
            total_bytes=self.total_bytes,
            total_lines=self.total_lines,
            kept=kept,
        )
