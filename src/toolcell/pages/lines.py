"""Where the lines of an output are; it is read in blocks, and no more of it is in memory."""

from collections.abc import Iterator

from toolcell.outputs import OpenOutput

_BLOCK = 1024**2


class Lines:
    """The lines of an open output, counted from 1; places are in bytes, from 0."""

    def __init__(self, output: OpenOutput) -> None:
        self._output = output
        self.size = output.stored.size
        self._block = b""
        self._start = 0

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes between two places."""
        return self._output.read(start, min(end, self.size) - start)

    def count(self) -> int:
        """Count the lines; one without an end is one."""
        ends = sum(block.count(b"\n") for _, block in self._blocks(0))
        return ends + (self.size > 0 and self.read(self.size - 1, self.size) != b"\n")

    def start_of(self, line: int) -> int:
        """Return where a line begins; the end of the output where there is none."""
        before = line - 1
        if before <= 0:
            return 0
        for start, block in self._blocks(0):
            ends = block.count(b"\n")
            if ends >= before:
                return start + _after_ends(block, before)
            before -= ends
        return self.size

    def end_of(self, start: int) -> int:
        """Return where the line ends that begins at a place: behind its line end."""
        if not self._start <= start < self._start + len(self._block):
            self._start, self._block = start, self.read(start, start + _BLOCK)
        found = self._block.find(b"\n", start - self._start)
        if found >= 0:
            return self._start + found + 1
        for begin, block in self._blocks(self._start + len(self._block)):
            found = block.find(b"\n")
            if found >= 0:
                return begin + found + 1
        return self.size

    def _blocks(self, start: int) -> Iterator[tuple[int, bytes]]:
        while start < self.size and (block := self.read(start, start + _BLOCK)):
            yield start, block
            start += len(block)


def _after_ends(block: bytes, count: int) -> int:
    at = 0
    for _ in range(count):
        at = block.find(b"\n", at) + 1
    return at
