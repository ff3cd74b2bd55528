"""The sync face: the controller's names, for code that has no event loop.

The controller lives in a loop on a thread of its own, so that several threads can call
at once and the pool goes on making cells between calls.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, TypeVar

from toolcell.controller import ToolController
from toolcell.errors import ToolcellError
from toolcell.grants import RunOptions
from toolcell.model import ApprovalRequest, ApprovalResponse, Spent, ToolCall, ToolResult
from toolcell.policy import ToolPolicy
from toolcell.registry import ToolRegistry
from toolcell.sessions import Kind, SessionFork, SessionInfo, Sessions
from toolcell.streaming import Chunk, OutputStream

T = TypeVar("T")


class _Waits(Protocol):
    def __call__(self, work: Coroutine[Any, Any, T], /) -> T: ...


class BlockingSessions:
    """`Sessions` without async."""

    def __init__(self, sessions: Sessions, wait: _Waits) -> None:
        self._sessions = sessions
        self._wait = wait

    def list(self) -> Sequence[SessionInfo]:
        """All that live, and those that ended and did not say so yet."""

        async def listed() -> Sequence[SessionInfo]:
            return self._sessions.list()

        return self._wait(listed())

    def end(self, name: str, kind: Kind | None = None) -> None:
        """End a session, and what runs in it; raises SessionError where there is none."""
        self._wait(self._sessions.end(name, kind))

    def restart(self, name: str, kind: Kind | None = None) -> None:
        """End a session so that the next call that names it starts a fresh one; see `end`."""
        self._wait(self._sessions.restart(name, kind))

    def fork(
        self,
        name: str = "main",
        copies: int = 1,
        *,
        names: Sequence[str] | None = None,
        reseed: bool = False,
    ) -> SessionFork:
        """Copy a Python session, between two calls; see `Sessions.fork`."""
        return self._wait(self._sessions.fork(name, copies, names=names, reseed=reseed))


class BlockingController:
    """`ToolController` without async; takes the same arguments, and is safe to share by threads.

    with BlockingController(registry, workspace=".") as controller:
        result = controller.handle(call)
    """

    def __init__(
        self,
        registry: ToolRegistry,
        policy: ToolPolicy | str | Path = "default",
        workspace: str | Path | None = None,
        **options: Any,
    ) -> None:
        """Make the controller and start its thread; raises as `ToolController` does."""
        self._controller = ToolController(registry, policy, workspace, **options)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="toolcell", daemon=True)
        self._thread.start()
        self._closing = threading.Lock()

    @property
    def controller(self) -> ToolController:
        """The controller behind this face; its coroutines belong to the thread's loop."""
        return self._controller

    @property
    def spent(self) -> Spent:
        """What the calls of this run have used of its budget."""
        return self._controller.spent

    @property
    def sessions(self) -> "BlockingSessions":
        """The sessions of this controller: list, restart, end, fork."""
        return BlockingSessions(self._controller.sessions, self._wait)

    @property
    def stopped(self) -> str:
        """Why this run takes no more calls; empty while it does."""
        return self._controller.stopped

    def handle(
        self, call: ToolCall, options: RunOptions | None = None
    ) -> ToolResult | ApprovalRequest:
        """Take one call as far as it goes: to its result, or to a question for a person."""
        return self._wait(self._controller.handle(call, options))

    def stream(
        self, call: ToolCall, options: RunOptions | None = None, *, redacted: bool = False
    ) -> "BlockingStream":
        """Take one call as `handle` does, with its output as an iterator while it runs."""
        return BlockingStream(self._controller.stream(call, options, redacted=redacted), self._wait)

    def poll(
        self, result: ToolResult, options: RunOptions | None = None
    ) -> ToolResult | ApprovalRequest:
        """Ask how a call that waits goes on, by the tool that it named for this."""
        return self._wait(self._controller.poll(result, options))

    def resolve(self, response: ApprovalResponse, options: RunOptions | None = None) -> ToolResult:
        """Take a person's answer; raises UnknownApprovalError for a question never asked here."""
        return self._wait(self._controller.resolve(response, options))

    def wait(self, request: ApprovalRequest, options: RunOptions | None = None) -> ToolResult:
        """Wait for an answer that is given elsewhere (`toolcell approvals`), and go on with it."""
        return self._wait(self._controller.wait(request, options))

    def cancel(self, call_id: str) -> bool:
        """End the calls of an id, wherever on their way they are; False if there is none."""

        async def cancel() -> bool:
            return self._controller.cancel(call_id)

        return self._wait(cancel())

    def close(self) -> None:
        """End every cell and the thread; doing it twice does nothing."""
        with self._closing:
            if self._loop.is_closed():
                return
            self._wait(self._end())
            self._stop()

    async def _end(self) -> None:
        await self._controller.close()
        # What other threads still wait for has its result by now, or is cancelled.
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        if tasks:
            await asyncio.wait(tasks, timeout=1)
        for task in tasks:
            task.cancel()
        await self._loop.shutdown_default_executor()

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> "BlockingController":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        if self._loop.is_closed():
            work.close()
            raise ToolcellError("the controller is closed; make a new one")
        future: Future[T] = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except KeyboardInterrupt:
            # Ctrl-C came to the waiting thread: end the call, then let it pass.
            future.cancel()
            try:
                future.result()
            except CancelledError:
                raise KeyboardInterrupt from None
            raise


class BlockingStream:
    """`OutputStream` without async: what one call writes, chunk by chunk, and then its outcome.

    for chunk in stream:
        print(chunk.text, end="")
    result = stream.outcome()
    """

    def __init__(
        self, stream: OutputStream, wait: Callable[[Coroutine[Any, Any, Any]], Any]
    ) -> None:
        """Take a stream, and what waits for coroutines of its loop."""
        self._stream = stream
        self._wait = wait

    def __iter__(self) -> Iterator[Chunk]:
        chunks = aiter(self._stream)

        async def following() -> Chunk | None:
            return await anext(chunks, None)

        async def left() -> None:
            await chunks.aclose()

        try:
            while (chunk := self._wait(following())) is not None:
                yield chunk
        finally:
            self.close()
            with suppress(ToolcellError):  # the controller was closed, and its loop with it
                self._wait(left())

    def outcome(self) -> ToolResult | ApprovalRequest:
        """Return what became of the call once it has; output that nobody took is passed over."""
        outcome: ToolResult | ApprovalRequest = self._wait(self._stream.outcome())
        return outcome

    @property
    def result(self) -> ToolResult | ApprovalRequest | None:
        """The result of the call, or the question that it has become; None before its end."""
        return self._stream.result

    def close(self) -> None:
        """End the call where it still runs."""
        with suppress(ToolcellError):  # the controller was closed, which ended the call
            self._wait(self._stream.aclose())
