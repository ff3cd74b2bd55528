"""The Python of a session: one namespace, in which the code of all calls of a branch runs.

SIGINT raises KeyboardInterrupt while code of a call runs, and does nothing at other times. What
ends a script ends only its call here: an exception, SystemExit. What ends the process, such as
os._exit, ends the branch.

A copy that a fork makes (see `copying`) is the same in all things (memory, seeds, working
directory) but for what a fork does not carry along: threads.

A descriptor is kept in reserve: where a call has opened as many files as there may be, the next
ones can still run, and close some.
"""

import io
import os
import signal
import sys
import types
from contextlib import suppress
from typing import Any, NoReturn

from sandbox_workers import claims, handlers, tracebacks, wire, worker
from sandbox_workers.session import copying, leaving
from sandbox_workers.session.executor import BadReportError, Channel, frames, place, strict
from sandbox_workers.tools import figures, notebook

INTERRUPTED = 128 + signal.SIGINT
_CHUNK = 65536
_MAX_REPORT = 64 * 1024
_FIELDS: dict[str, dict[str, type | tuple[type, ...]]] = {
    "done": {"type": str, "call": int, "exit": int, "error": (list, type(None))},
    "forked": {"type": str, "pids": list, "open_files": list},
    "unforked": {"type": str, "message": str},
}


class Python:
    """How an interpreter is spoken to."""

    whole_group = False

    def __init__(self) -> None:
        self._reader = wire.FrameReader(_MAX_REPORT)

    def begin(self, call: dict[str, Any], stdin: str, stdout: str, stderr: str) -> bytes:
        """The frame that starts a call."""
        paths = {"stdin": stdin, "stdout": stdout, "stderr": stderr}
        return wire.frame({"type": "call", "call": call["call"], "code": call["code"]} | paths)

    def fork(self, request: dict[str, Any], channels: list[Channel]) -> bytes:
        """The frame that asks for copies, each with a channel of its own."""
        copies = [
            {"branch": branch, "hears": place(channel.hears), "reports": place(channel.reports)}
            for branch, channel in zip(request["copies"], channels, strict=True)
        ]
        return wire.frame({"type": "fork", "copies": copies, "reseed": request["reseed"]})

    def nudge(self, call: int) -> bytes:
        """Nothing: an interrupt hits no report."""
        return b""

    def sync(self, number: int) -> bytes:
        """Nothing: between calls an interrupt does nothing."""
        return b""

    def hear(self, data: bytes) -> list[dict[str, Any]]:
        """The reports that are whole."""
        found = frames(self._reader, data)
        for message in found:
            kind = message.get("type")
            if not isinstance(kind, str) or not strict(message, _FIELDS.get(kind, {})):
                raise BadReportError("the interpreter does not report as it was told to")
        return found


def become(channel: Channel) -> NoReturn:
    """Turn this process, a fork of the host, into the interpreter of branch 0."""
    hears, reports = os.dup(channel.hears), os.dup(channel.reports)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208  # numbers
        if int(name) > 2 and int(name) not in (hears, reports):
            with suppress(OSError):  # that of the listing
                os.close(int(name))
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    sys.path.insert(0, "")
    sys.argv = [""]
    figures.watch()
    _Interpreter(hears, reports, main.__dict__).serve()


class _Interpreter:
    def __init__(self, hears: int, reports: int, namespace: dict[str, Any]) -> None:
        self._hears, self._reports = hears, reports
        self._namespace = namespace
        self._reader = wire.FrameReader()
        self._pid = os.getpid()
        self._running = False
        self._reserve = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        signal.signal(signal.SIGINT, self._interrupted)

    def serve(self) -> NoReturn:
        """Do what the host says until it says no more."""
        while (request := self._next()) is not None:
            if request["type"] == "fork":
                self._fork(request)
                continue
            try:
                code, claim = self._run(request)
            except KeyboardInterrupt:  # it came between two lines of ours
                self._running, code, claim = False, INTERRUPTED, None
            if os.getpid() != self._pid:  # the call forked, and this is the child's end
                os._exit(code)
            self._report({"type": "done", "call": request["call"], "exit": code, "error": claim})
        os._exit(0)

    def _next(self) -> dict[str, Any] | None:
        while (request := self._reader.next()) is None:
            data = os.read(self._hears, _CHUNK)
            if not data:
                return None
            self._reader.feed(data)
        return request

    def _report(self, message: dict[str, Any]) -> None:
        os.write(self._reports, wire.frame(message))

    def _interrupted(self, *_: object) -> None:
        if self._running:
            raise KeyboardInterrupt

    def _run(self, request: dict[str, Any]) -> tuple[int, list[str] | None]:
        try:
            self._redirect(request)
        except OSError as error:
            return 1, _told(error)
        code, claim = 0, None
        try:
            self._running = True
            try:
                try:
                    notebook.run(request["code"], self._namespace, f"<call {request['call']}>")
                finally:
                    figures.save_at_end()
            except BaseException as error:  # noqa: BLE001  # the tool's own, whatever it is
                interrupted = isinstance(error, KeyboardInterrupt)
                code = INTERRUPTED if interrupted else 1
                claim = _told(error)
                code = handlers.exit_code(error) if not interrupted else _shown(error)
            _flush()
        finally:
            self._running = False
        return code, claim

    def _redirect(self, request: dict[str, Any]) -> None:
        with suppress(OSError):  # there was none left to keep, or the tool closed it
            os.close(self._reserve)
        self._reserve = -1
        _redirect(request)
        with suppress(OSError):
            self._reserve = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def _fork(self, request: dict[str, Any]) -> None:
        """Fork; a copy comes back from here too, and serves on a channel of its own."""
        open_files: list[str] = []
        try:
            outcome: list[int] | str = copying.hindrance()
            if not outcome:
                _flush()
                open_files = copying.written_files()
                outcome = self._copied(request)
        except Exception as error:  # noqa: BLE001  # the tool may have put its own in the place of ours
            outcome = f"{type(error).__name__}: {claims.words(error)}"
        if isinstance(outcome, str):
            self._report({"type": "unforked", "message": outcome})
        elif outcome:
            self._report({"type": "forked", "pids": outcome, "open_files": open_files})

    def _copied(self, request: dict[str, Any]) -> list[int] | str:
        numbers = copying.random_state()

        def become(copy: dict[str, Any]) -> None:
            self._go_on_as(copy)
            if request["reseed"]:
                copying.reseed()
            elif numbers is not None:
                sys.modules["random"].setstate(numbers)

        return copying.make(request["copies"], become)

    def _go_on_as(self, copy: dict[str, Any]) -> None:
        os.close(self._hears)
        os.close(self._reports)
        self._hears = os.open(copy["hears"], os.O_RDONLY | os.O_CLOEXEC)
        self._reports = os.open(copy["reports"], os.O_WRONLY | os.O_CLOEXEC)
        self._pid = os.getpid()
        os.environ["TOOLCELL_OUTBOX"] = leaving.make(copy["branch"])
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        os.close(null)


def _told(error: BaseException) -> list[str] | None:
    """The limit that an exception tells of, or that it is one; its class and words."""
    if isinstance(error, SystemExit | KeyboardInterrupt):
        return None
    kind = claims.limit_of(error) or "exception"
    return [kind, claims.words(type(error).__name__), claims.words(error)]


def _shown(error: BaseException) -> int:
    tracebacks.show(error)
    return INTERRUPTED


def _redirect(request: dict[str, Any]) -> None:
    flags = {"stdin": os.O_RDONLY, "stdout": os.O_WRONLY, "stderr": os.O_WRONLY}
    for number, (name, flag) in enumerate(flags.items()):
        fd = os.open(request[name], flag | os.O_CLOEXEC)
        if fd != number:  # it is where the tool closed its own
            os.dup2(fd, number)
            os.close(fd)
        os.set_inheritable(number, True)
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), encoding="utf-8")
    for fd, name in ((1, "stdout"), (2, "stderr")):
        stream = getattr(sys, name)
        if stream is None or getattr(stream, "closed", False):
            setattr(sys, name, worker.text_stream(fd))


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # the tool closed it, took it away, or put its own there
            stream.flush()
