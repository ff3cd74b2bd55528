"""The worker: goes into the jail, announces itself, reads exactly one call, answers, exits.

Everything here up to `jail.enter` is ours; from the tool's import on, the process
belongs to the tool, and nothing it writes is more than a claim. Frames it sends:

    {"type": "ready"}                                      the jail is shut
    {"type": "failed", "stage", "message"}                 it could not be shut (before ready)
    {"type": "reply", "value"}                             what the handler returned
    {"type": "error", "kind", "name", "message", "hint"}   what it raised

A tool that answers by its exit code (shell, python) sends neither of the last two: the
reply pipe is closed before it runs.
"""

import io
import os
import signal
import sys
from typing import Any, NoReturn

from sandbox_workers import handlers, jail, wire

_READY = wire.frame({"type": "ready"})
_CHUNK = 65536
_MESSAGE_CAP = 4000


def prepare() -> None:
    """Do once in the launcher what every worker would do again."""
    sys.dont_write_bytecode = True
    handlers.prepare()


def main(plan: dict[str, Any], descriptors: list[int]) -> NoReturn:
    """Run one call on the pipe ends request, reply, stdout, stderr; never returns."""
    request, reply, stdout, stderr = descriptors
    try:
        _place_streams(stdout, stderr)
        jail.enter(plan, [request, reply])
        os.chdir(plan["directory"])
        # Only behind the jail: it may name directories that tools can write to.
        sys.path[:] = plan["python_path"]
        # Without site the interpreter does not know of its virtual environment.
        sys.prefix = sys.exec_prefix = plan["python_prefix"]
    except OSError as error:
        os.write(reply, wire.frame({"type": "failed", "stage": "worker", "message": str(error)}))
        os._exit(1)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.write(reply, _READY)
    call = _read_call(request)
    if call is None:  # the cell was made ready and never used
        os._exit(0)
    if call["stdin"] is not None:
        _place_input(call["stdin"])
    code = _answer_by_exit(call, reply) if call["answers"] == "exit" else _answer(call, reply)
    os._exit(code)


def _place_streams(stdout: int, stderr: int) -> None:
    null = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
    for source, target in ((null, 0), (stdout, 1), (stderr, 2)):
        os.dup2(source, target)
    # The launcher's own objects remember that their file could seek; a pipe cannot.
    # Line by line: what a tool printed before it is killed has to be in the pipe by then.
    sys.stdout = sys.__stdout__ = _text_stream(1)  # type: ignore[misc]  # final only by convention
    sys.stderr = sys.__stderr__ = _text_stream(2)  # type: ignore[misc]


def _text_stream(fd: int) -> io.TextIOWrapper:
    return io.TextIOWrapper(
        io.BufferedWriter(io.FileIO(fd, "w", closefd=False)),
        encoding="utf-8",
        errors="backslashreplace",
        line_buffering=True,
    )


def _place_input(text: str) -> None:
    """Put text on standard input as a memory file: no pipe to fill, nothing to deadlock on."""
    fd = os.memfd_create("stdin", 0)
    with open(fd, "wb", closefd=False) as file:
        file.write(text.encode())
    os.lseek(fd, 0, os.SEEK_SET)
    os.dup2(fd, 0)
    os.close(fd)


def _read_call(request: int) -> dict[str, Any] | None:
    reader = wire.FrameReader()
    while (call := reader.next()) is None:
        data = os.read(request, _CHUNK)
        if not data:
            return None
        reader.feed(data)
    os.close(request)
    return call


def _answer_by_exit(call: dict[str, Any], reply: int) -> int:
    os.close(reply)
    try:
        handlers.run(call)
    except BaseException as error:  # noqa: BLE001  # the tool's own, whatever it is
        return handlers.finish(handlers.exit_code(error))
    return handlers.finish(0)


def _answer(call: dict[str, Any], reply: int) -> int:
    code = 0
    try:
        reply_frame = {"type": "reply", "value": handlers.plain(handlers.run(call))}
        message = wire.frame(reply_frame, wire.MAX_REPLY)
    except SystemExit as error:
        return handlers.finish(handlers.exit_code(error))
    except wire.WireError as error:
        message = _error("bad_reply", error)
    except handlers.HandlerError as error:
        message = _error("tool_error", error, error.hint)
    except MemoryError as error:
        message = _error("memory", error)
    except BaseException as error:  # noqa: BLE001  # the tool's own, whatever it is
        # By a mark, not by class: tools raise toolcell's, the built-in ones their own.
        if getattr(error, "is_tool_error", False):
            message = _error("tool_error", error, str(getattr(error, "hint", "") or ""))
        else:
            handlers.print_traceback(error)
            message = _error("exception", error)
    code = handlers.finish(code)
    _write_all(reply, message)
    return code


def _error(kind: str, error: BaseException, hint: str = "") -> bytes:
    text = str(error)[:_MESSAGE_CAP].encode(errors="replace").decode()
    return wire.frame(
        {
            "type": "error",
            "kind": kind,
            "name": type(error).__name__,
            "message": text,
            "hint": hint[:_MESSAGE_CAP].encode(errors="replace").decode(),
        }
    )


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
