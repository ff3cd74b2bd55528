"""The worker: goes into the jail, announces itself, reads exactly one call, answers, exits.

Everything here until the jail is shut is ours; from the tool's import on, the process
belongs to the tool, and nothing it writes is more than a claim. Frames it sends:

    {"type": "ready"}                                      the jail is shut
    {"type": "failed", "stage", "message", "errno"}        it could not be shut (before ready)
    {"type": "reply", "value"}                             what the handler returned
    {"type": "error", "kind", "name", "message", "hint", "retryable"}    what it raised
    {"type": "waiting", "state", "handle", "note"}         it is not done, and may be asked again

A tool that answers by its exit code (shell, python) sends none of the last three, but for an
error that says which limit it met, or why it did not run. The pipe does not survive an execve.

A worker that is asked to be a session takes many calls, and says all on its standard output
(see `session`).
"""

import binascii
import importlib
import io
import os
import sys
from pathlib import Path
from typing import Any, NoReturn

from sandbox_workers import handlers, libc, outbox, private, sweep, tracebacks, wire
from sandbox_workers.claims import limit_of, words
from sandbox_workers.jail import REPLY, REQUEST, lower_limits
from sandbox_workers.libc import Call
from sandbox_workers.tools import surroundings

_READY = wire.frame({"type": "ready"})
_CHUNK = 65536
_LONG_TEXT = 1024 * 1024  # characters


def prepare(plan: dict[str, Any]) -> None:
    """Do once in the launcher what every worker would do again."""
    # Not before: what a policy sets, such as LD_PRELOAD, is for tools, and the launcher and
    # the keeper were executed without it.
    os.environ.clear()
    os.environ.update(plan["environment"])
    sys.dont_write_bytecode = True
    sys.stdout = sys.__stdout__ = text_stream(1)  # type: ignore[misc]  # final only by convention
    sys.stderr = sys.__stderr__ = text_stream(2)  # type: ignore[misc]
    handlers.prepare()
    if plan["preload"]:
        _preload(plan["preload"], plan["preload_path"])


def _preload(names: list[str], path: list[str]) -> None:
    """Import what the operator trusts, from where no tool can write."""
    before, sys.path[:] = sys.path[:], path
    opened = _open_files()
    for name in names:
        try:
            importlib.import_module(name)
        except (Exception, SystemExit) as error:  # whatever a module raises
            words = f"{type(error).__name__}: {error}"
            raise OSError(f"the module {name} cannot be preloaded: {words}") from error
        if len(sweep.threads(os.getpid())) > 1:
            raise OSError(
                f"the module {name} cannot be preloaded: it starts threads, which no fork "
                "carries along; some libraries start none when told to, such as by "
                'OPENBLAS_NUM_THREADS = "1" in `env`'
            )
        if _open_files() > opened:
            raise OSError(f"the module {name} cannot be preloaded: it leaves a file open")
    sys.path[:] = before


def _open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def main(plan: dict[str, Any], jail: list[Call]) -> NoReturn:
    """Go into the jail and run one call; never returns."""
    try:
        libc.do(*jail)
        place = private.SCRATCH[0]
        if plan["scratch"]:  # init went there
            place = str(Path.cwd())
            for name in ("HOME", "TMPDIR"):
                os.environ.setdefault(name, place)
        os.environ["TOOLCELL_OUTBOX"] = outbox.make(place)
        os.chdir(plan["directory"])
        # Only behind the jail: it may name directories that tools can write to.
        sys.path[:] = plan["python_path"]
        # Without site the interpreter does not know of its virtual environment.
        sys.prefix = sys.exec_prefix = plan["python_prefix"]
    except OSError as error:
        os.write(REPLY, failed("worker", error))
        os._exit(1)
    os.write(REPLY, _READY)
    reader = wire.FrameReader()
    call = _read_call(reader)
    if call is None:  # the cell was made ready and never used
        os._exit(0)
    if call["type"] == "session":
        _be_session(call, reader)
    os.close(REQUEST)
    lower_limits(plan["limits"], call["limits"])
    if call["stdin"] is not None:
        surroundings.place_input(binascii.a2b_base64(call["stdin"]))
    try:
        code = _answer_by_exit(call) if call["answers"] == "exit" else _answer(call)
    except OSError:  # the tool closed the pipe that answers are sent on
        code = 1
    os._exit(code)


def failed(stage: str, error: OSError) -> bytes:
    """The frame that says why a cell could not be set up."""
    number = error.errno or 0
    return wire.frame({"type": "failed", "stage": stage, "message": str(error), "errno": number})


def text_stream(fd: int) -> io.TextIOWrapper:
    """Make a stream that, unlike the interpreter's own, knows that its file cannot seek.

    Line by line: what a tool printed before it is killed has to be in the pipe by then.
    """
    kept = os.dup(fd)
    read, write = os.pipe()
    os.dup2(write, fd)
    stream = io.TextIOWrapper(
        io.BufferedWriter(io.FileIO(fd, "w", closefd=False)),
        encoding="utf-8",
        errors="backslashreplace",
        line_buffering=True,
    )
    os.dup2(kept, fd)
    for spare in (kept, read, write):
        os.close(spare)
    return stream


def _read_call(reader: wire.FrameReader) -> dict[str, Any] | None:
    while (call := reader.next()) is None:
        data = os.read(REQUEST, _CHUNK)
        if not data:
            return None
        reader.feed(data)
    return call


def _be_session(request: dict[str, Any], reader: wire.FrameReader) -> NoReturn:
    """Take many calls instead of one; what was read behind the request is the first of them."""
    from sandbox_workers.session import host

    host.serve(request, reader)


def _answer_by_exit(call: dict[str, Any]) -> int:
    code = 0
    try:
        handlers.run(call)
    except handlers.HandlerError as error:
        _write_all(REPLY, _error("tool_error", error, error.hint))
        code = 1
    except BaseException as error:  # noqa: BLE001  # the tool's own, whatever it is
        code = handlers.exit_code(error)
        if kind := limit_of(error):
            _write_all(REPLY, _error(kind, error))
    return handlers.finish(code)


def _answer(call: dict[str, Any]) -> int:
    code = 0
    try:
        value = handlers.run(call)
        message = _waiting(value) or _reply(handlers.plain(value))
    except SystemExit as error:
        return handlers.finish(handlers.exit_code(error))
    except wire.WireError as error:
        message = _error("bad_reply", error)
    except handlers.HandlerError as error:
        message = _error("tool_error", error, error.hint)
    except BaseException as error:  # noqa: BLE001  # the tool's own, whatever it is
        # By a mark, not by class: tools raise toolcell's, the built-in ones their own.
        hint = _hint(error)
        if hint is None:
            tracebacks.show(error)
            message = _error(limit_of(error) or "exception", error)
        else:
            message = _error("tool_error", error, hint, retryable=_retryable(error))
    code = handlers.finish(code)
    _write_all(REPLY, message)
    return code


def _reply(value: Any) -> bytes:
    """The frame of an answer. Long text is written instead: as output it may have any length."""
    if isinstance(value, str) and len(value) > _LONG_TEXT:
        handlers.flush()
        # Not through sys.stdout, which the tool may have replaced.
        _write_all(1, value.encode(errors="backslashreplace"))
        value = None
    return wire.frame({"type": "reply", "value": value}, wire.MAX_REPLY)


def _waiting(value: Any) -> bytes | None:
    """The frame of an answer that says, by its mark, that the tool is not done."""
    # By its class: an object may answer to any name, and a value is data.
    if not getattr(type(value), "is_tool_waiting", False):
        return None
    told = {name: words(getattr(value, name)) for name in ("state", "handle", "note")}
    return wire.frame({"type": "waiting", **told})


def _error(kind: str, error: BaseException, hint: str = "", *, retryable: bool = False) -> bytes:
    return wire.frame(
        {
            "type": "error",
            "kind": kind,
            "name": type(error).__name__,
            "message": words(error),
            "hint": words(hint),
            "retryable": retryable,
        }
    )


def _hint(error: BaseException) -> str | None:
    """The hint of a tool's own refusal; None for every other exception."""
    try:
        refusal = bool(getattr(error, "is_tool_error", False))
        return words(getattr(error, "hint", None) or "") if refusal else None
    except BaseException:  # noqa: BLE001  # properties of the tool's own
        return None


def _retryable(error: BaseException) -> bool:
    """Whether a tool's own refusal says that the same call can do better in a moment."""
    try:
        return getattr(error, "retryable", False) is True
    except BaseException:  # noqa: BLE001  # properties of the tool's own
        return False


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
