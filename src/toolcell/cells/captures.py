"""Captures: the output streams of one call, their two ends in memory, the rest spilled.

A stream spills when it leaves memory, from its first byte on and as far as the store takes it.
It is written in a thread, and no more is to be fed of it until then: a disk that is slow slows
the tool, and nothing else. After that it is only counted, and a flood runs at the speed of its
pipe.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Literal

from toolcell.cells.capture import StreamCapture
from toolcell.model import Captured, Kept
from toolcell.outputs import OutputWriter, kept, writing

Stream = Literal["stdout", "stderr"]
Begin = Callable[[Stream], OutputWriter]
STREAMS: tuple[Stream, ...] = ("stdout", "stderr")
_END = 128 * 1024
"""Bytes that are kept in memory of either end of a stream."""


class Captures:
    """Keeps both streams; made in an event loop. Without `begin` nothing is spilled."""

    def __init__(self, begin: Begin | None = None) -> None:
        self._begin = begin
        self._streams = {stream: StreamCapture(_END, _END) for stream in STREAMS}
        self._writers: dict[Stream, OutputWriter] = {}
        self._kept: dict[Stream, Kept] = {}

    @property
    def total_bytes(self) -> int:
        """What both streams have together."""
        return sum(capture.total_bytes for capture in self._streams.values())

    @property
    def spilled(self) -> bool:
        """Whether something is in the store, or on its way."""
        return bool(self._writers)

    def floods(self, stream: Stream) -> bool:
        """Whether a stream has more than memory holds."""
        return not self._streams[stream].holds_all_with(0)

    def feed(
        self, stream: Stream, data: bytes | bytearray, size: int | None = None
    ) -> "asyncio.Future[None] | None":
        """Take the next bytes of a stream, the first `size` of a buffer.

        Where a future comes back, the buffer must be left alone, and no more of that stream be
        fed, until it is done.
        """
        size = len(data) if size is None else size
        spilling = self._spill(stream, data, size)
        self._streams[stream].feed(data, size)
        return spilling

    async def finish(self, *, cut: bool) -> None:
        """Close what was spilled; `cut` says that the streams were not ended by the tool itself."""
        loop = asyncio.get_running_loop()
        for stream, writer in self._writers.items():
            stored = await loop.run_in_executor(writing, partial(writer.close, cut=cut))
            self._kept[stream] = kept(stored)

    def abandon(self) -> None:
        """Let go of what was spilled and is not finished; it stays in the store as it is."""
        for stream, writer in self._writers.items():
            if stream not in self._kept:
                writing.submit(writer.close, cut=True)

    def result(self, stream: Stream) -> Captured:
        """Return what there is of a stream."""
        return self._streams[stream].result(self._kept.get(stream))

    def _spill(
        self, stream: Stream, data: bytes | bytearray, size: int
    ) -> "asyncio.Future[None] | None":
        capture = self._streams[stream]
        if self._begin is None or capture.holds_all_with(size):
            return None
        writer, before = self._writers.get(stream), b""
        if writer is None:
            writer, before = self._begin(stream), capture.all_so_far()
            self._writers[stream] = writer
        if writer.lost:
            writer.pass_over(size, data.count(b"\n", 0, size))
            return None
        return asyncio.get_running_loop().run_in_executor(
            writing, _write, writer, before, memoryview(data)[:size]
        )


def _write(writer: OutputWriter, before: bytes, data: memoryview) -> None:
    writer.write(before)
    writer.write(data)
