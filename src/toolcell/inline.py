"""Inline tools: trusted host code in the controller's own process, asked for by name.

There is no wall, and no way to kill: at its deadline a call is answered as timed out,
while a thread may well go on. The result says so.
"""

import asyncio
import inspect
import threading
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_jsonable_python

from toolcell.model import Category, Enforcement, ErrorInfo, PreparedToolCall

ENFORCEMENT = Enforcement(rung="inline")


async def run_inline(prepared: PreparedToolCall, wall: float) -> tuple[Any, ErrorInfo | None]:
    """Run the function, for at most `wall` seconds; returns its value as JSON, or the error."""
    definition = prepared.definition
    function = definition.function
    if function is None or definition.arguments_model is None:
        raise TypeError(f"the inline tool {definition.name} has no function; define it with @tool")
    arguments = _objects(definition.arguments_model, prepared.arguments)
    try:
        async with asyncio.timeout(wall):
            if inspect.iscoroutinefunction(function):
                value = await function(**arguments)
            else:
                value = await _in_thread(function, arguments)
        return to_jsonable_python(value, inf_nan_mode="strings"), None
    except TimeoutError:
        return None, ErrorInfo(
            category=Category.WALL,
            message=f"the call was given up at its time limit of {wall:g} s; inline code cannot "
            "be killed and may still be running",
        )
    except PydanticSerializationError as error:
        return None, ErrorInfo(
            category=Category.BAD_REPLY, message=f"the tool's answer is not JSON: {error}"
        )
    except Exception as error:  # noqa: BLE001  # whatever the tool raises is its result
        return None, _raised(error)


def _objects(model: type[BaseModel], arguments: dict[str, Any]) -> dict[str, Any]:
    """Build the objects that the annotations ask for from the canonical arguments."""
    built = model.model_validate(arguments)
    fields = type(built).model_fields
    return {str(info.alias): getattr(built, name) for name, info in fields.items()}


async def _in_thread(function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    # A thread of its own, and a daemon: a pool would fill with calls that never end, and
    # the interpreter would wait for them at its exit.
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def settle(value: Any, error: BaseException | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(value)
        else:
            done.set_exception(error)

    def body() -> None:
        value: Any = None
        failed: BaseException | None = None
        try:
            value = function(**arguments)
        except StopIteration as error:  # a future refuses to carry it
            failed = RuntimeError(f"StopIteration: {error}")
        except BaseException as error:  # noqa: BLE001  # carried to the caller's task
            failed = error
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, value, failed)

    threading.Thread(target=body, name=f"toolcell-inline-{id(done):x}", daemon=True).start()
    return await done


def _raised(error: Exception) -> ErrorInfo:
    if getattr(error, "is_tool_error", False):
        return ErrorInfo(
            category=Category.TOOL_ERROR,
            message=str(error) or "the tool said no",
            hint=getattr(error, "hint", ""),
        )
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return ErrorInfo(category=Category.EXCEPTION, message=text[:4000])
