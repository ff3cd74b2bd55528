"""Handlers: find the function that a call names, give it its arguments, plain its answer.

Runs inside the cell only. A handler is named by module and function; a module that
was the controller's own script comes with its file instead, since it cannot be
imported by name.

The launcher imports this module, and each cell is a fork of it. What few calls need is
imported where it is needed: every page of the launcher is copied or mapped again in
every cell, and threading would run a handler of its own after each fork.
"""

import atexit
import importlib
import sys
import types
import typing
from collections.abc import Callable
from contextlib import suppress
from pathlib import PurePath
from typing import Any

from sandbox_workers import tracebacks, wire

_SCRIPT_NAME = "__toolcell_main__"
_PREPARED = (
    *("basic", "listing", "searching", "reading", "writing", "editing", "patching", "moving"),
    *("shell", "python"),
)


class HandlerError(Exception):
    """The handler cannot be had in this cell; the message and hint say what to change."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def prepare() -> None:
    """Import the built-in tools in the launcher: they are ours, and each cell would pay.

    All of them: to import one in a cell takes milliseconds, many of them where no bytecode is
    stored, and to fork their pages along takes some tens of microseconds.
    """
    for name in _PREPARED:
        importlib.import_module(f"sandbox_workers.tools.{name}")
    if sys.version_info >= (3, 13):
        importlib.import_module("ast")  # tracebacks import it late, when no file may open


def run(call: dict[str, Any]) -> Any:
    """Call the handler with its arguments; lets whatever the tool raises pass."""
    function = _find(call)
    arguments: dict[str, Any] = call["arguments"]
    if call["typed"]:
        arguments |= _built(function, {name: arguments[name] for name in call["typed"]})
    value = function(**arguments)
    if isinstance(value, types.CoroutineType):
        import asyncio

        return asyncio.run(value)
    return value


def _find(call: dict[str, Any]) -> Callable[..., Any]:
    sys.path[:0] = call["import_path"]
    try:
        target: Any = _load(call["module"], call["file"])
    except ModuleNotFoundError as error:
        raise HandlerError(
            f"the tool's module {call['module']} cannot be imported in the cell: {error}",
            f"the cell sees the interpreter, the workspace and the tool's own module; to let it "
            f"see {error.name} too, add its directory to `read` in the policy's [cell] table",
        ) from error
    for name in call["function"].split("."):
        try:
            target = getattr(target, name)
        except AttributeError:
            raise HandlerError(
                f"{call['module']} has no {call['function']} when a cell imports it",
                'define the tool at the top level, above `if __name__ == "__main__":`',
            ) from None
    return target  # type: ignore[no-any-return]  # checked as a function when it was registered


def _load(module: str, file: str | None) -> Any:
    if file is None:
        return importlib.import_module(module)
    from importlib import util

    spec = util.spec_from_file_location(_SCRIPT_NAME, file)
    if spec is None or spec.loader is None:
        raise HandlerError(f"{file} is not a Python file", "register the tool from a .py file")
    loaded = util.module_from_spec(spec)
    sys.modules[_SCRIPT_NAME] = loaded
    spec.loader.exec_module(loaded)
    return loaded


def _built(function: Callable[..., Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """Build the objects (models, enums, dates) that the handler's annotations ask for."""
    from pydantic import TypeAdapter  # the tool's own dependency, imported in the cell only

    hints = typing.get_type_hints(function, include_extras=True)
    return {
        name: TypeAdapter(hints[name]).validate_json(wire.encode(value))
        for name, value in arguments.items()
    }


def plain(value: Any) -> Any:
    """Turn a returned value into JSON's own types; leaves the rest for the codec to refuse."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, dict):
        return {_key(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if hasattr(value, "__dataclass_fields__"):
        return {name: plain(getattr(value, name)) for name in value.__dataclass_fields__}
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if isinstance(value, PurePath):
        return str(value)
    return plain(value.value) if hasattr(value, "_value_") else value


def _key(key: Any) -> Any:
    return key if isinstance(key, str | bool | int | float) or key is None else str(key)


def exit_code(error: BaseException) -> int:
    """Say how the interpreter would have exited, printing what it would have printed."""
    if not isinstance(error, SystemExit):
        tracebacks.show(error)
        return 1
    if error.code is None or isinstance(error.code, int):
        return (error.code or 0) & 0xFF
    print(error.code, file=sys.stderr)
    return 1


def flush() -> None:
    """Write out what the two streams still hold."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, ValueError):  # the tool closed it, or took it away
            stream.flush()


def finish(code: int) -> int:
    """Wait for the tool's threads and run its exit handlers, as an interpreter does at its end."""
    try:
        # What multiprocessing runs at the end of its own forked children (CPython 3.11 on).
        if threading := sys.modules.get("threading"):
            threading._shutdown()
        atexit._run_exitfuncs()
        flush()
    except BrokenPipeError:
        return code
    except BaseException as error:  # noqa: BLE001  # an exit handler's own
        tracebacks.show(error)
        return code or 1
    return code
