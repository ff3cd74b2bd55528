"""The host: what a session's worker becomes. See the package for the theory."""

import binascii
import os
import signal
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

from sandbox_workers import libc, records, sweep, wire
from sandbox_workers.jail import REPLY, REQUEST
from sandbox_workers.records import FILES
from sandbox_workers.session import interpreter, shell
from sandbox_workers.session.executor import BadReportError, Channel, Executor, Speaker
from sandbox_workers.session.leaving import Leaving
from sandbox_workers.session.loop import Loop, Sender

_CHUNK = 65536
_NO_BASH = 127


def serve(session: dict[str, Any], requests: wire.FrameReader) -> NoReturn:
    """Be the host of a session; `requests` may hold some already."""
    host = _Host(session, requests)
    host.start()
    host.run()
    os._exit(0)


class _Host:
    def __init__(self, session: dict[str, Any], requests: wire.FrameReader) -> None:
        self._kind: str = session["kind"]
        self._limits: dict[str, int] = session["limits"]
        self._leaving: dict[int, Leaving] = {}  # by branch
        self._requests = requests
        self._loop = Loop()
        self._out = Sender(self._loop, 1, self._go_on)
        self._executors: dict[int, Executor] = {}
        self._forks: dict[int, tuple[list[int], list[Channel]]] = {}
        # How processes ended: a copy may do so before it is known to be one.
        self._statuses: dict[int, int] = {}

    def start(self) -> None:
        """Start the executor of branch 0, and wait for requests."""
        os.close(REPLY)
        # Whatever loses its parent becomes a child of the host: copies, and background jobs.
        libc.do(libc.prctl(libc.PR_SET_CHILD_SUBREAPER, 1))
        near, far = os.pipe()
        os.set_blocking(near, False)
        os.set_blocking(far, False)
        signal.set_wakeup_fd(far, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._loop.on_readable(near, lambda: self._reap(near))
        self._loop.on_readable(REQUEST, self._hear)
        channel = Channel()
        speaker: Speaker
        if self._kind == "shell":
            bash = shell.path()
            if bash is None:
                self._say(type="ended", branch=0, exit=_NO_BASH, why="there is no bash here")
                return
            speaker = shell.Shell(channel)
            pid = _forked(lambda: shell.become(bash, channel))
            self._add(0, pid, channel, speaker).tell(shell.setup())
        else:
            pid = _forked(lambda: interpreter.become(channel))
            self._add(0, pid, channel, interpreter.Python())
        self._answer()

    def run(self) -> None:
        """Turn until no executor is left, and all is said."""
        while self._executors or self._leaving:
            self._loop.turn()
        self._out.flush()

    def _add(self, branch: int, pid: int, channel: Channel, speaker: Speaker) -> Executor:
        executor = Executor(self._loop, branch, pid, channel, speaker)
        self._executors[branch] = executor
        self._loop.on_readable(channel.listen, lambda: self._listen(executor))
        return executor

    def _say(self, **message: Any) -> None:
        self._out.send(records.message(message))

    # What the controller asks for.

    def _hear(self) -> None:
        data = os.read(REQUEST, _CHUNK)
        if not data:  # the controller let go of the session
            os._exit(0)
        self._requests.feed(data)
        self._answer()

    def _answer(self) -> None:
        while (request := self._requests.next()) is not None:
            if request["type"] == "interrupt":
                self._interrupt(request)
            elif request["type"] == "hold":
                self._hold(request)
            elif executor := self._executors.get(request["branch"]):
                getattr(self, f"_do_{request['type']}")(executor, request)
            # Otherwise it ended, and the controller is about to hear of that.

    def _interrupt(self, request: dict[str, Any]) -> None:
        for executor in self._executors.values():
            if executor.call == request["call"] and not executor.reported:
                executor.interrupt(again=request["again"])

    def _hold(self, request: dict[str, Any]) -> None:
        """Read no output of a call for a while: its reader is slow, and the others' are not."""
        for executor in self._executors.values():
            if executor.call == request["call"] and executor.outputs is not None:
                executor.held = request["held"]
                if executor.held:
                    executor.outputs.pause()
                elif not self._out.busy and not executor.reported:
                    self._relay(executor)

    def _do_call(self, executor: Executor, request: dict[str, Any]) -> None:
        given = request["stdin"]
        try:
            executor.begin(request, None if given is None else binascii.a2b_base64(given))
        except OSError as error:
            claim = ["open_files", type(error).__name__, str(error)]
            self._done(executor, {"call": request["call"], "exit": 1, "error": claim})
            return
        if not self._out.busy:
            self._relay(executor)

    def _do_fork(self, executor: Executor, request: dict[str, Any]) -> None:
        channels: list[Channel] = []
        try:
            channels += [Channel() for _ in request["copies"]]
        except OSError as error:
            self._unforked(executor, f"no more files can be opened: {error}")
            return
        self._forks[executor.branch] = request["copies"], channels
        if not executor.fork(request, channels):
            self._unforked(executor, "only a Python session can be forked")

    def _do_kill(self, executor: Executor, _: dict[str, Any]) -> None:
        executor.kill()

    # What executors report.

    def _listen(self, executor: Executor) -> None:
        try:
            data = os.read(executor.channel.listen, _CHUNK)
        except BlockingIOError:
            return
        try:
            for report in executor.speaker.hear(data):
                self._take(executor, report)
        except BadReportError as error:
            executor.kill(str(error))

    def _take(self, executor: Executor, report: dict[str, Any]) -> None:
        if report["type"] == "done":
            if (
                report["call"] == executor.call and not executor.reported
            ):  # a shell may say it twice
                executor.reported = True
                self._read_out(executor)
                executor.settle(
                    lambda: self._after_files(executor, lambda: self._done(executor, report))
                )
        elif report["type"] == "synced":
            executor.synced(report["number"])
        elif report["type"] == "missed":
            executor.interrupt_again()
        elif executor.branch not in self._forks:
            raise BadReportError("the answer to a fork that nobody asked for")
        elif report["type"] == "forked":
            self._forked(executor, report)
        else:
            self._unforked(executor, report["message"])

    def _read_out(self, executor: Executor) -> None:
        """Send what its call wrote until this moment."""
        if executor.outputs is not None:
            executor.outputs.drain(self._sink(executor.call))

    def _after_files(self, executor: Executor, then: Callable[[], None]) -> None:
        """Send what its call left in the outbox, if anything, and then go on."""
        branch, call = executor.branch, executor.call
        leaving = self._left(branch) if call else None  # only a call can be sent anything for
        if leaving is None:
            then()
            return
        if executor.outputs is not None:  # what writes to them now is what the call left running
            executor.outputs.relay(executor.earlier.add)

        def end() -> None:
            del self._leaving[branch]
            then()

        self._leaving[branch] = leaving
        leaving.relay(partial(self._sink(call), FILES), end)
        if not self._out.busy:
            leaving.go_on()

    def _left(self, branch: int) -> Leaving | None:
        try:
            return Leaving.begin(self._loop, branch, self._limits)
        except OSError:  # no room for one more process or file: they stay for the next call
            return None

    def _done(self, executor: Executor, report: dict[str, Any]) -> None:
        earlier, total, lines = executor.since()
        executor.end_call()
        executor.last = report["exit"]
        self._say(
            type="done",
            branch=executor.branch,
            call=report["call"],
            exit=report["exit"],
            error=report["error"],
            earlier=binascii.b2a_base64(earlier, newline=False).decode(),
            earlier_total=total,
            earlier_lines=lines,
        )

    def _forked(self, executor: Executor, report: dict[str, Any]) -> None:
        copies, channels = self._forks[executor.branch]
        pids = report["pids"]
        known = {executor.pid for executor in self._executors.values()}
        new = {pid for pid in pids if isinstance(pid, int) and pid > 1} - known
        if not len(new) == len(pids) == len(copies):
            raise BadReportError("other copies than were asked for")
        del self._forks[executor.branch]
        for branch, pid, channel in zip(copies, pids, channels, strict=True):
            self._add(branch, pid, channel, interpreter.Python())
        open_files = report["open_files"]
        self._say(type="forked", branch=executor.branch, open_files=open_files)
        self._bury_ended()

    def _unforked(self, executor: Executor, message: str) -> None:
        _, channels = self._forks.pop(executor.branch, ([], []))
        for channel in channels:
            channel.close()
        self._say(type="unforked", branch=executor.branch, message=message)

    # Output, and ends.

    def _relay(self, executor: Executor) -> None:
        if executor.outputs is not None and not executor.held:
            executor.outputs.relay(self._sink(executor.call))

    def _sink(self, call: int) -> Callable[[int, bytes], None]:
        """Send what comes of a call as records; who writes waits while the controller is slow."""

        def send(stream: int, data: bytes) -> None:
            was_free = not self._out.busy
            self._out.send(records.head(stream, call, len(data)), data)
            if was_free and self._out.busy:
                for executor in self._executors.values():
                    if executor.outputs is not None and not executor.reported:
                        executor.outputs.pause()
                for leaving in self._leaving.values():
                    leaving.pause()

        return send

    def _go_on(self) -> None:
        for executor in self._executors.values():
            if not executor.reported:
                self._relay(executor)
        for leaving in self._leaving.values():
            leaving.go_on()

    def _reap(self, wakeup: int) -> None:
        os.read(wakeup, _CHUNK)
        sweep.reap(self._statuses)
        self._bury_ended()

    def _bury_ended(self) -> None:
        for executor in list(self._executors.values()):
            if (status := self._statuses.pop(executor.pid, None)) is not None:
                self._bury(executor, os.waitstatus_to_exitcode(status))
        if not self._forks:  # nobody else can turn out to be an executor
            self._statuses.clear()

    def _bury(self, executor: Executor, code: int) -> None:
        executor.be_gone()
        # What it said with its last breath: a call that ended before it did.
        self._listen(executor)
        if not executor.reported:
            self._read_out(executor)
        del self._executors[executor.branch]
        if executor.branch in self._forks:
            _, channels = self._forks.pop(executor.branch)
            for channel in channels:
                channel.close()
        end = partial(self._ended, executor, code)
        if leaving := self._leaving.get(executor.branch):  # files of its last call, which is over
            leaving.afterwards(end)
        else:
            self._after_files(executor, end)

    def _ended(self, executor: Executor, code: int) -> None:
        executor.close()
        self._say(type="ended", branch=executor.branch, exit=code, why=executor.why)


def _forked(become: Any) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            os.setpgid(0, 0)
            signal.set_wakeup_fd(-1)
            become()
        finally:
            os._exit(1)
    return pid
