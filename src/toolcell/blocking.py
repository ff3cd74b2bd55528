"""The sync face: the controller's names, for code that has no event loop.

The controller lives in a loop on a thread of its own, so that several threads can call
at once and the pool goes on making cells between calls.
"""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError, Future
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from toolcell.controller import ToolController
from toolcell.errors import ToolcellError
from toolcell.grants import RunOptions
from toolcell.model import ApprovalRequest, ApprovalResponse, ToolCall, ToolResult
from toolcell.policy import ToolPolicy
from toolcell.registry import ToolRegistry

T = TypeVar("T")


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
    def stopped(self) -> str:
        """Why this run takes no more calls; empty while it does."""
        return self._controller.stopped

    def handle(
        self, call: ToolCall, options: RunOptions | None = None
    ) -> ToolResult | ApprovalRequest:
        """Take one call as far as it goes: to its result, or to a question for a person."""
        return self._wait(self._controller.handle(call, options))

    def resolve(self, response: ApprovalResponse, options: RunOptions | None = None) -> ToolResult:
        """Take a person's answer; raises UnknownApprovalError for a question never asked here."""
        return self._wait(self._controller.resolve(response, options))

    def wait(self, request: ApprovalRequest, options: RunOptions | None = None) -> ToolResult:
        """Wait for an answer that is given elsewhere (`toolcell approvals`), and go on with it."""
        return self._wait(self._controller.wait(request, options))

    def cancel(self, call_id: str) -> bool:
        """End a running call by its id; False if none runs."""

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
