"""Retries: which results are tried again, after which pause, and what becomes of them.

Tried again is only what is idempotent by its tool's word, after an error that may pass by the
word of its category, and while there is time: a pause doubles each time, and its length has
some chance in it, so that calls that failed together do not come back together.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from toolcell import rejections
from toolcell.attempt import Attempt
from toolcell.cancellation import Withdrawn
from toolcell.journal import EventLost
from toolcell.model import STATUS_OF, Status, ToolResult
from toolcell.timing import Timing

FIRST_PAUSE = 0.05
_LEAST_LEFT = 0.001

Try = Callable[[Attempt], Awaitable[ToolResult]]


async def tried(first: Attempt, attempt: Try, timing: Timing) -> ToolResult:
    """Try a call until it ends well, or no further try can help or be made in its time.

    A call that was cancelled is told so, also where it had ended just then: whoever cancelled it
    was told the same.
    """
    result = await _last(first, attempt, timing)
    if first.cancellation.requested and result.status is not Status.CANCELLED:
        return _withdrawn(first, result)
    return result


async def _last(first: Attempt, attempt: Try, timing: Timing) -> ToolResult:
    until = min(timing.monotonic() + first.wall, first.until)
    tries = 1 + first.prepared.definition.retries  # more than one of what is idempotent only
    number, result = 1, await attempt(first)
    while number < tries and result.error is not None and result.error.retryable:
        pause = FIRST_PAUSE * 2 ** (number - 1) * (0.5 + timing.jitter() / 2)
        if timing.monotonic() + pause >= until:
            break
        number += 1
        try:
            with first.cancellation.interrupts():
                await timing.sleep(pause)
            left = max(until - timing.monotonic(), _LEAST_LEFT)
            result = await attempt(replace(first, wall=left, number=number))
        except Withdrawn:
            return _withdrawn(first, result)
        except EventLost:
            return result  # of the attempt before: this one could not be recorded
    return result


def _withdrawn(first: Attempt, result: ToolResult) -> ToolResult:
    """The end of a call that was cancelled after a try; it keeps what that left."""
    error = rejections.withdrawn(first.cancellation, after=result.metadata.attempts)
    ended = {"status": STATUS_OF[error.category], "success": False, "error": error}
    return result.model_copy(update=ended | {"waiting": None})
