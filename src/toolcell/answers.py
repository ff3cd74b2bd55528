"""Tools that toolcell answers itself: a table of answerers by the tools' names.

They look into what toolcell keeps, and run nothing of anybody else's, so they need no cell. An
answerer is given a prepared call and returns a JSON value. What it cannot do for the model it
raises as a `ToolError`; what toolcell's files cause, as a `StoreError`. All else that it raises
is a defect of ours, and is raised.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from toolcell.declare import ToolError
from toolcell.errors import StoreError
from toolcell.model import Category, ErrorInfo, PreparedToolCall

Answerer = Callable[[PreparedToolCall], Awaitable[Any]]


async def answer(
    answerers: Mapping[str, Answerer],
    prepared: PreparedToolCall,
    wall: float,
    give_up: asyncio.Event,
) -> tuple[Any, ErrorInfo | None]:
    """Answer within `wall` seconds, or until `give_up` is set; returns the value, or the error."""
    answerer = answerers.get(prepared.definition.name)
    if answerer is None:
        return None, ErrorInfo(
            category=Category.TOOL_ERROR,
            message=f"{prepared.definition.name} is switched off here",
        )
    work = asyncio.ensure_future(answerer(prepared))
    stop = asyncio.ensure_future(give_up.wait())
    try:
        await asyncio.wait([work, stop], timeout=wall, return_when=asyncio.FIRST_COMPLETED)
        if work.done() and not stop.done():
            return _outcome(work)
        return None, _unanswered(wall, cancelled=stop.done())
    finally:
        work.cancel()
        stop.cancel()


def _outcome(work: "asyncio.Future[Any]") -> tuple[Any, ErrorInfo | None]:
    try:
        return work.result(), None
    except ToolError as error:
        return None, ErrorInfo(category=Category.TOOL_ERROR, message=str(error), hint=error.hint)
    except StoreError as error:
        return None, ErrorInfo(category=Category.TOOL_ERROR, message=str(error))


def _unanswered(wall: float, *, cancelled: bool) -> ErrorInfo:
    if cancelled:
        return ErrorInfo(category=Category.CANCELLED, message="the call was cancelled")
    return ErrorInfo(
        category=Category.WALL, message=f"there was no answer within the time limit of {wall:g} s"
    )
