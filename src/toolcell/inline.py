"""Inline tools: trusted host code in the controller's own process, asked for by name.

There is no wall, and no way to kill: at its deadline, or when it is cancelled, a call is
answered, while its code may well go on. The result says so.
"""

import asyncio
import inspect
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from toolcell.model import Category, ErrorInfo, PreparedToolCall, WaitingInfo, canonical_json

_CANNOT = "inline code cannot be killed and may still be running"
_MESSAGE_CAP = 4000


async def run_inline(
    prepared: PreparedToolCall, wall: float, give_up: asyncio.Event | None = None
) -> tuple[Any, ErrorInfo | None]:
    """Run the function for at most `wall` seconds, or until `give_up` is set.

    Returns its value as JSON, or a WaitingInfo, or the error. Only a cancellation of this task is
    raised.
    """
    work = asyncio.ensure_future(_started(prepared))
    stop = asyncio.ensure_future((give_up or asyncio.Event()).wait())
    try:
        await asyncio.wait([work, stop], timeout=wall, return_when=asyncio.FIRST_COMPLETED)
        if work.done() and not stop.done():
            return _outcome(work.result())
        if stop.done():  # who asked was told that the call is ended, so it is
            return None, ErrorInfo(
                category=Category.CANCELLED, message=f"the call was cancelled; {_CANNOT}"
            )
        return None, ErrorInfo(
            category=Category.WALL,
            message=f"the call was given up at its time limit of {wall:g} s; {_CANNOT}",
        )
    finally:
        # Asked to end, not waited for: a coroutine may refuse.
        work.cancel()
        stop.cancel()


class _Ended(NamedTuple):
    """How the function ended. What it raised is a value: it must end no task and no loop."""

    value: Any = None
    raised: BaseException | None = None


async def _started(prepared: PreparedToolCall) -> _Ended:
    definition = prepared.definition
    function = definition.function
    if function is None or definition.arguments_model is None:
        raise TypeError(f"the inline tool {definition.name} has no function; define it with @tool")
    arguments = _objects(definition.arguments_model, prepared.arguments)
    if not inspect.iscoroutinefunction(function):
        return await _in_thread(function, arguments)
    try:
        return _Ended(await function(**arguments))
    except BaseException as error:  # noqa: BLE001  # the tool's own, whatever it is
        return _Ended(raised=error)


async def _in_thread(function: Callable[..., Any], arguments: dict[str, Any]) -> _Ended:
    # A thread of its own, and a daemon: a pool would fill with calls that never end, and
    # the interpreter would wait for them at its exit.
    loop = asyncio.get_running_loop()
    done: asyncio.Future[_Ended] = loop.create_future()

    def settle(ended: _Ended) -> None:
        if not done.done():
            done.set_result(ended)

    def body() -> None:
        try:
            ended = _Ended(function(**arguments))
        except BaseException as error:  # noqa: BLE001  # the tool's own, whatever it is
            ended = _Ended(raised=error)
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, ended)

    threading.Thread(target=body, name="toolcell-inline", daemon=True).start()
    return await done


def _objects(model: type[BaseModel], arguments: dict[str, Any]) -> dict[str, Any]:
    """Build the objects that the annotations ask for from the canonical arguments."""
    built = model.model_validate_json(canonical_json(arguments))
    fields = type(built).model_fields
    return {str(info.alias): getattr(built, name) for name, info in fields.items()}


def _outcome(ended: _Ended) -> tuple[Any, ErrorInfo | None]:
    if ended.raised is not None:
        return None, _error_of(ended.raised)
    if getattr(type(ended.value), "is_tool_waiting", False):
        return _waiting(ended.value)
    try:
        value = to_jsonable_python(ended.value)
        canonical_json(value).encode()  # refuses what JSON cannot carry: NaN, lone surrogates
        return value, None
    except Exception as error:  # noqa: BLE001  # properties and generators are the tool's code
        return None, ErrorInfo(
            category=Category.BAD_REPLY, message=f"the tool's answer is not JSON: {_clean(error)}"
        )


def _waiting(value: Any) -> tuple[WaitingInfo | None, ErrorInfo | None]:
    try:
        told = {name: _clean(getattr(value, name)) for name in ("state", "handle", "note")}
        return WaitingInfo.model_validate(told), None
    except Exception as error:  # noqa: BLE001  # properties are the tool's code
        return None, ErrorInfo(
            category=Category.BAD_REPLY,
            message=f"the tool's waiting answer cannot be one: {_clean(error)}",
        )


def _error_of(error: BaseException) -> ErrorInfo:
    if getattr(error, "is_tool_error", False):
        return ErrorInfo(
            category=Category.TOOL_ERROR,
            message=_clean(error) or "the tool said no",
            hint=_clean(getattr(error, "hint", None) or ""),
            retryable=getattr(error, "retryable", False) is True,
        )
    text = _clean(error)
    name = type(error).__name__
    return ErrorInfo(category=Category.EXCEPTION, message=f"{name}: {text}" if text else name)


def _clean(text: object) -> str:
    """Text that JSON can carry, and not too much of it: it is the tool's own."""
    try:
        words = str(text)
    except Exception:  # noqa: BLE001  # __str__ is the tool's code, too
        words = f"a {type(text).__name__} that cannot be shown"
    return words[:_MESSAGE_CAP].encode(errors="backslashreplace").decode()
