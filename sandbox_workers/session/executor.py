"""Executors as the host sees them: a process that runs one call at a time, for one branch.

Both kinds hear on a pipe and report on another. A report is a claim of the tool's own side, and
is read strictly.
"""

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

from sandbox_workers import wire
from sandbox_workers.records import STDERR, STDOUT
from sandbox_workers.session.loop import Loop, Sender
from sandbox_workers.session.outputs import Earlier, Outputs

_ROUNDS = 4
_ASK_SECONDS, _SYNC_SECONDS, _MISSED_SECONDS = 0.1, 0.05, 0.02
LEFTOVERS = 32
"""For how many ended calls of a branch the host goes on reading what they left running."""


class BadReportError(ValueError):
    """An executor said what it does not say; something in the session took its place."""


class Channel:
    """The two pipes between the host and one executor; all four ends are the host's.

    The executor opens its own by /proc, and so may the tool's code.
    """

    def __init__(self) -> None:
        """Make the pipes; raises OSError with none left open."""
        self.hears, self.tell = os.pipe()
        try:
            self.listen, self.reports = os.pipe()
        except OSError:
            os.close(self.hears)
            os.close(self.tell)
            raise
        os.set_blocking(self.listen, False)

    def close(self) -> None:
        """Close all four."""
        for fd in (self.hears, self.tell, self.listen, self.reports):
            os.close(fd)


class Speaker(Protocol):
    """How one kind of executor is spoken to.

    `whole_group` says that the first interrupt goes to its whole process group.
    """

    whole_group: bool

    def begin(self, call: dict[str, Any], stdin: str, stdout: str, stderr: str) -> bytes:
        """What starts a call, with the paths of what it reads from and writes to."""
        ...

    def fork(self, request: dict[str, Any], channels: list[Channel]) -> bytes:
        """What forks the executor; empty where this kind cannot."""
        ...

    def nudge(self, call: int) -> bytes:
        """What is said after an interrupt; empty where there is no need."""
        ...

    def sync(self, number: int) -> bytes:
        """What is said after an interrupted call, to be answered; empty where there is no need."""
        ...

    def hear(self, data: bytes) -> list[dict[str, Any]]:
        """Turn what it reported into messages, as an interpreter's; raises BadReportError."""
        ...


class Executor:
    """One branch: its process, the call that it runs, and what earlier calls still write."""

    def __init__(
        self, loop: Loop, branch: int, pid: int, channel: Channel, speaker: Speaker
    ) -> None:
        self.branch = branch
        self.pid = pid
        self.speaker = speaker
        self.channel = channel
        self.call = 0  # none
        self.reported = False  # that its call is over
        self.held = False  # its output waits where it is written
        self.last = 0  # how the call before ended
        self._interrupted = self._gone = False
        self._syncs = self._first_sync = 0
        self._synced: Callable[[], object] | None = None
        self.outputs: Outputs | None = None
        self.earlier = Earlier()
        self.why = ""
        self._loop = loop
        self._sender = Sender(loop, channel.tell)
        self._stdin = -1
        self._old: list[Outputs] = []

    def tell(self, words: bytes) -> None:
        """Say something beside calls."""
        self._sender.send(words)

    def begin(self, request: dict[str, Any], stdin: bytes | None) -> None:
        """Start a call; raises OSError where no more files can be opened."""
        self.call = request["call"]
        outputs = self.outputs = Outputs(self._loop)
        given = os.devnull
        if stdin is not None:
            self._stdin = _memory(stdin)
            given = place(self._stdin)
        ends = [place(outputs.writes[stream]) for stream in (STDOUT, STDERR)]
        self._sender.send(self.speaker.begin(request | {"last": self.last}, given, *ends))

    def end_call(self) -> None:
        """Go on with the call's outputs as those of what it left running."""
        if self.outputs is not None:
            self.outputs.leave()
            self.outputs.relay(self.earlier.add)
            self._old = [*(each for each in self._old if each.open), self.outputs]
            for oldest in self._old[:-LEFTOVERS]:
                oldest.close()
        if self._stdin >= 0:
            os.close(self._stdin)
        self.call, self.outputs, self._stdin = 0, None, -1
        self.reported = self._interrupted = self.held = False

    def since(self) -> tuple[bytes, int, int]:
        """What leftovers of earlier calls wrote until this moment; see `Earlier.take`."""
        for outputs in self._old:
            outputs.drain(self.earlier.add)
        return self.earlier.take()

    def fork(self, request: dict[str, Any], channels: list[Channel]) -> bool:
        """Ask for copies of it; False where this kind has none."""
        words = self.speaker.fork(request, channels)
        self._sender.send(words)
        return bool(words)

    def interrupt(self, *, again: bool) -> None:
        """Interrupt what it runs.

        A shell's jobs in the foreground are of its process group, and those in the background
        ignore SIGINT. An interpreter is asked alone at first: what it started may go on.
        """
        if not self._interrupted:
            self._interrupted = True
            self._loop.after(_ASK_SECONDS, partial(self._ask, self.call))
        self._signal(signal.SIGINT, group=again or self.speaker.whole_group)

    def interrupt_again(self) -> None:
        """Interrupt a call that missed it, once what it hit instead has ended."""
        if self._interrupted and not self.reported:
            self._loop.after(_MISSED_SECONDS, partial(self._interrupt_still, self.call))

    def _interrupt_still(self, call: int) -> None:
        if self.call == call and not self.reported:
            self.interrupt(again=True)

    def settle(self, then: Callable[[], object]) -> None:
        """Go on once no interrupt of its last call can reach the next one."""
        if self._interrupted and not self._gone and self.speaker.sync(0):
            self._synced, self._first_sync = then, self._syncs + 1
            self._sync()
        else:
            then()

    def _ask(self, call: int) -> None:
        """Ask for the report again, which the interrupt may have hit, until it is there."""
        if self.call == call and not self.reported:
            self._sender.send(self.speaker.nudge(call))
            self._loop.after(_ASK_SECONDS, partial(self._ask, call))

    def synced(self, number: int) -> None:
        """Take the answer to one of the questions that `settle` put."""
        if self._synced is not None and number >= self._first_sync:
            then, self._synced = self._synced, None
            then()

    def _sync(self) -> None:
        # Again until one is answered: an interrupt on its way may swallow some, and a bash that was
        # hit between a fork and the wait for it waits for that first, until it is interrupted too.
        if self._synced is not None:
            self._syncs += 1
            if (self._syncs - self._first_sync) % _ROUNDS == _ROUNDS - 1:
                self._signal(signal.SIGINT, group=True)
            self._sender.send(self.speaker.sync(self._syncs))
            self._loop.after(_SYNC_SECONDS, self._sync)

    def kill(self, why: str = "") -> None:
        """End it and its process group."""
        self.why = self.why or why
        self._signal(signal.SIGKILL, group=True)

    def be_gone(self) -> None:
        """Signal no more: the process was waited for, and its PID may be another's."""
        self._gone = True
        if self._synced is not None:
            then, self._synced = self._synced, None
            then()

    def close(self) -> None:
        """Release everything, once the process is gone."""
        self._loop.forget(self.channel.listen)
        self._loop.forget(self.channel.tell)
        self.channel.close()
        self.end_call()
        for outputs in self._old:
            outputs.close()

    def _signal(self, number: int, *, group: bool) -> None:
        if self._gone:
            return
        with suppress(ProcessLookupError):
            if group:
                try:
                    os.killpg(self.pid, number)
                except ProcessLookupError:  # its code moved it to another
                    os.kill(self.pid, number)
            else:
                os.kill(self.pid, number)


def place(fd: int) -> str:
    """The path of a descriptor of the host's."""
    return f"/proc/{os.getpid()}/fd/{fd}"


def strict(message: Any, fields: dict[str, type | tuple[type, ...]]) -> bool:
    """Whether a message has these fields and no others."""
    return (
        isinstance(message, dict)
        and message.keys() == fields.keys()
        and all(isinstance(message[name], kind) for name, kind in fields.items())
    )


def _memory(data: bytes) -> int:
    fd = os.memfd_create("stdin")
    with open(fd, "wb", closefd=False) as file:
        file.write(data)
    return fd


def frames(reader: wire.FrameReader, data: bytes) -> list[dict[str, Any]]:
    """The whole frames that more bytes complete; raises BadReportError."""
    found = []
    try:
        reader.feed(data)
        while (message := reader.next()) is not None:
            found.append(message)
    except wire.WireError as error:
        raise BadReportError(str(error)) from None
    return found
