"""Streaming: the output of one call while it runs, as an iterator of chunks, and then its outcome.

The call runs in a task of its own, and its tap fills a short queue. A consumer that is slow makes
the tap wait, and the tool with it, as a pipe that nobody reads does; its deadline goes on. Whoever
leaves the iterator early (by `break`, by an exception, by being cancelled) ends the call.
"""

import asyncio
import codecs
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, replace
from types import TracebackType

from toolcell.cancellation import Cancellation
from toolcell.cells.captures import Stream
from toolcell.cells.streams import Tap
from toolcell.grants import RunOptions
from toolcell.model import ApprovalRequest, ToolResult
from toolcell.outputs import through_sequences
from toolcell.redaction import Redactor

Outcome = ToolResult | ApprovalRequest
Take = Callable[[RunOptions, Cancellation], Awaitable[Outcome]]

# With chunks of at most 256 KiB, 2 MiB.
_CHUNKS = 8


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of output as it came: its bytes, and the text that is whole by now.

    A character whose bytes came in two chunks is in the text of the second. The last chunk of a
    stream may have text and no bytes.
    """

    stream: Stream
    data: bytes
    text: str


class OutputStream:
    """What one call writes, chunk by chunk; the call begins with the first one that is asked for.

    async for chunk in stream:
        print(chunk.text, end="")
    result = await stream.outcome()

    It is used by one consumer, once.
    """

    def __init__(
        self, take: Take, options: RunOptions | None, redactor: Redactor | None = None
    ) -> None:
        """Stream the call that `take` takes to its outcome; with a redactor, redacted."""
        self._take = take
        self._options = options or RunOptions()
        self._cancellation = Cancellation()
        self._streams = {name: _Decoding(name, redactor) for name in _STREAMS}
        self._queue: asyncio.Queue[Chunk | None] = asyncio.Queue(_CHUNKS)
        self._call: asyncio.Task[Outcome] | None = None
        self._iterated = False
        self._left = False

    async def __aiter__(self) -> AsyncGenerator[Chunk, None]:
        call, self._iterated = self._begun(), True
        try:
            while not (call.done() and self._queue.empty()):
                chunk = await self._queue.get()
                if chunk is None:
                    break
                yield chunk
            await asyncio.shield(call)  # raises what a tap of the host's raised
        finally:
            self._iterated = False
            await self.aclose()

    @property
    def result(self) -> Outcome | None:
        """The result of the call, or the question that it has become; None before its end."""
        ended = self._call is not None and self._call.done() and not self._call.cancelled()
        return self._call.result() if self._call and ended else None

    async def outcome(self) -> Outcome:
        """Return what became of the call once it has; output that nobody took is passed over."""
        call = self._begun()
        if not self._iterated:
            async for _ in self:
                pass
        return await asyncio.shield(call)

    async def aclose(self) -> None:
        """End the call where it still runs, and wait until nothing of it is left."""
        self._leave()
        if self._call is not None and not self._call.done():
            self._cancellation.request()
            await asyncio.wait([self._call])

    async def __aenter__(self) -> "OutputStream":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    def _begun(self) -> "asyncio.Task[Outcome]":
        if self._call is None:
            self._call = asyncio.create_task(self._run())
        return self._call

    async def _run(self) -> Outcome:
        options = replace(self._options, tap=self._tap(self._options.tap))
        if self._left:
            self._cancellation.request()
        try:
            return await self._take(options, self._cancellation)
        except asyncio.CancelledError:  # its loop ends, and nobody takes anything any more
            self._leave()
            raise
        finally:
            for each in self._streams.values():
                await self._put(each.rest())
            if not self._left:
                await self._queue.put(None)

    def _leave(self) -> None:
        """Take no more chunks; lets a tap go that waits for room, and a consumer for a chunk."""
        self._left = True
        while not self._queue.empty():
            self._queue.get_nowait()
        self._queue.put_nowait(None)

    def _tap(self, given: Tap | None) -> Tap:
        async def tap(stream: Stream, data: bytes) -> None:
            if given is not None and (waiting := given(stream, data)) is not None:
                await waiting
            await self._put(self._streams[stream].chunk(data))

        return tap

    async def _put(self, chunk: Chunk) -> None:
        if (chunk.data or chunk.text) and not self._left:
            await self._queue.put(chunk)


_STREAMS: tuple[Stream, ...] = ("stdout", "stderr")


class _Decoding:
    """One stream of bytes on its way to chunks: redacted where that is asked for, then decoded."""

    def __init__(self, name: Stream, redactor: Redactor | None) -> None:
        self._name = name
        self._redacted = through_sequences(redactor) if redactor else None
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def chunk(self, data: bytes) -> Chunk:
        shown = self._redacted.feed(data) if self._redacted else data
        return Chunk(self._name, shown, self._decoder.decode(shown))

    def rest(self) -> Chunk:
        shown = self._redacted.close() if self._redacted else b""
        return Chunk(self._name, shown, self._decoder.decode(shown, final=True))
