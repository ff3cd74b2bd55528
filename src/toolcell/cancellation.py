"""Cancellation: the wish to end one call, at whatever moment of its life it comes.

What a call awaits before it runs (a line that is read, a place to run in, the making of its cell, a
pause between two tries) is interrupted the way asyncio itself interrupts: the task is cancelled
at that await, so that whatever it holds is released as it would be if the host had cancelled the
task. The exception is turned into Withdrawn at the border of the stage, as `asyncio.timeout` does
it. What runs is not interrupted but told: only who runs it can keep the output so far.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

from toolcell.timing import Timing


class Withdrawn(Exception):  # noqa: N818  # caught on the path, where it becomes a result
    """A call was cancelled, or ran out of time, while something was awaited for it."""


@dataclass(slots=True, eq=False)
class Cancellation:
    """The wish to end one call, which may come before, while or after it runs.

    `late` says that the call's time is up: it does not begin any more, and what runs has a
    deadline of its own.
    """

    requested: bool = False
    late: bool = False
    _ends: list[Callable[[], object]] = field(default_factory=list)
    _interrupt: Callable[[], object] | None = None

    def request(self) -> None:
        """End the call: now if it runs or waits, otherwise as soon as it would begin."""
        self.requested = True
        self._stop_waiting()
        for end in tuple(self._ends):
            end()

    def expire(self) -> None:
        """End what the call waits for."""
        self.late = True
        self._stop_waiting()

    def check(self) -> None:
        """Raise Withdrawn where the call is not to begin or to go on."""
        if self.requested or self.late:
            raise Withdrawn

    @contextmanager
    def ends(self, end: Callable[[], object]) -> Iterator[None]:
        """Let a request call `end` for as long as the body of the `with` runs."""
        self._ends.append(end)
        try:
            yield
        finally:
            self._ends.remove(end)

    @contextmanager
    def interrupts(self) -> Iterator[None]:
        """Let a request end what the body awaits, by Withdrawn; it also keeps it from beginning."""
        self.check()
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a call can be waited for in a task only")
        before, interrupted = task.cancelling(), False

        def interrupt() -> None:
            nonlocal interrupted
            if not interrupted:
                interrupted = True
                task.cancel()

        self._interrupt = interrupt
        try:
            yield
        except asyncio.CancelledError:
            # Where the task itself was cancelled as well, that has to go on.
            if interrupted and task.cancelling() <= before + 1:
                raise Withdrawn from None
            raise
        finally:
            self._interrupt = None
            if interrupted:
                task.uncancel()

    def _stop_waiting(self) -> None:
        if self._interrupt is not None:
            self._interrupt()


class OnTheirWay:
    """The calls that are on their way to a result, by their ids, which providers may repeat."""

    def __init__(self) -> None:
        """Begin with none."""
        self._calls: dict[str, list[Cancellation]] = {}

    @contextmanager
    def entered(
        self, call_id: str, cancellation: Cancellation | None = None
    ) -> Iterator[Cancellation]:
        """Let `cancel` find a call for as long as the body of the `with` takes it on its way."""
        cancellation = cancellation or Cancellation()
        there = self._calls.setdefault(call_id, [])
        there.append(cancellation)
        try:
            yield cancellation
        finally:
            there.remove(cancellation)
            if not there:
                del self._calls[call_id]

    def cancel(self, call_id: str) -> bool:
        """End the calls of an id; False if there is none."""
        found = tuple(self._calls.get(call_id, ()))
        for cancellation in found:
            cancellation.request()
        return bool(found)


@asynccontextmanager
async def expiring(
    cancellation: Cancellation, seconds: float | None, timing: Timing
) -> AsyncIterator[None]:
    """Let the time of a call be up after so many seconds, as long as the body runs."""
    if seconds is None:
        yield
        return

    async def expire() -> None:
        await timing.elapse(seconds)
        cancellation.expire()

    timer = asyncio.create_task(expire())
    try:
        yield
    finally:
        timer.cancel()
