"""The protocol of a session, without I/O: what to send, and what was said.

The host may be hostile. Every message that the table does not have, or that has other fields
than these, breaks the dialogue for good, told as a value; output for a call that does not run
does as well. What we ourselves do out of turn is a defect of ours, and raises.
"""

import binascii
from base64 import b64encode
from enum import StrEnum
from typing import Any, Literal, NamedTuple

from sandbox_workers import records, wire
from toolcell.visible import visible_line

Stream = Literal["stdout", "stderr", "files"]


class State(StrEnum):
    """Where one branch of a session stands."""

    IDLE = "idle"
    RUNNING = "running"
    FORKING = "forking"
    ENDED = "ended"


_NEXT = {
    (State.IDLE, "call"): State.RUNNING,
    (State.RUNNING, "done"): State.IDLE,
    (State.IDLE, "fork"): State.FORKING,
    (State.FORKING, "forked"): State.IDLE,
    (State.FORKING, "unforked"): State.IDLE,
    (State.IDLE, "ended"): State.ENDED,
    (State.RUNNING, "ended"): State.ENDED,
    (State.FORKING, "ended"): State.ENDED,
}

_FIELDS: dict[str, dict[str, type]] = {
    "done": {
        **{"type": str, "branch": int, "call": int, "exit": int, "error": object},
        **{"earlier": str, "earlier_total": int, "earlier_lines": int},
    },
    "forked": {"type": str, "branch": int, "open_files": list},
    "unforked": {"type": str, "branch": int, "message": str},
    "ended": {"type": str, "branch": int, "exit": int, "why": str},
}

_STREAMS: dict[int, Stream] = {
    records.STDOUT: "stdout",
    records.STDERR: "stderr",
    records.FILES: "files",
}
_ERROR_KINDS = frozenset({"memory", "disk", "open_files", "exception"})
_LONGEST_LINE = 400
_LONGEST_WORDS = 4000
_MOST_FILES = 20  # that are told of a fork
_NUMBERS = range(-(2**31), 2**62)
_EXITS = range(-64, 256)  # of a process: negative for a signal


class Output(NamedTuple):
    """A piece of what a running call wrote, or of the files that it left (see `parcels`)."""

    call: int
    stream: Stream
    data: bytes


class Done(NamedTuple):
    """A call is over and its branch goes on.

    `error` is what it claims to have ended by: the kind of a limit or "exception", the exception's
    name and its words.
    `earlier` is the end of what calls before it left running wrote, of `earlier_total` bytes and
    `earlier_lines` lines.
    """

    branch: int
    call: int
    exit: int
    error: tuple[str, str, str] | None
    earlier: bytes
    earlier_total: int
    earlier_lines: int


class Forked(NamedTuple):
    """A branch has copies now; they share these files, which are open for writing."""

    branch: int
    copies: tuple[int, ...]
    open_files: tuple[str, ...]


class Unforked(NamedTuple):
    """A branch could not be copied, and goes on."""

    branch: int
    message: str


class Ended(NamedTuple):
    """A branch ended, and whatever it ran; `why` says more than the exit code where it can."""

    branch: int
    exit: int
    why: str


Message = Output | Done | Forked | Unforked | Ended


class Dialogue:
    """What was said between the controller and one host so far."""

    def __init__(self) -> None:
        self._reader = records.RecordReader()
        self._states = {0: State.IDLE}
        self._calls: dict[int, int] = {}  # those that run, by branch
        self._copies: dict[int, tuple[int, ...]] = {}
        self._last_call = self._last_branch = 0
        self.problem: str | None = None

    @property
    def living(self) -> int:
        """How many branches have not ended."""
        return sum(state is not State.ENDED for state in self._states.values())

    @property
    def coming(self) -> int:
        """How many copies are being made."""
        return sum(map(len, self._copies.values()))

    def start(self, kind: str, limits: dict[str, int | bool]) -> bytes:
        """What makes a worker a session; the limits are those of files that come back."""
        return wire.frame({"type": "session", "kind": kind, "limits": limits})

    def call(self, branch: int, code: str, stdin: bytes | None) -> tuple[int, bytes]:
        """Start a call; returns its number. Raises WireError where it is too large to send."""
        number = self._last_call + 1
        text = None if stdin is None else b64encode(stdin).decode()
        request = {"type": "call", "branch": branch, "call": number, "code": code, "stdin": text}
        frame = wire.frame(request)
        self._states[branch] = _NEXT[self._states[branch], "call"]
        self._calls[branch] = self._last_call = number
        return number, frame

    def interrupt(self, call: int, *, again: bool) -> bytes:
        """Interrupt a call."""
        return wire.frame({"type": "interrupt", "call": call, "again": again})

    def fork(self, branch: int, copies: int, *, reseed: bool) -> bytes:
        """Copy a branch so many times."""
        self._states[branch] = _NEXT[self._states[branch], "fork"]
        first = self._last_branch + 1
        self._last_branch += copies
        numbers = self._copies[branch] = tuple(range(first, first + copies))
        return wire.frame(
            {"type": "fork", "branch": branch, "copies": list(numbers), "reseed": reseed}
        )

    def hold(self, call: int, *, held: bool) -> bytes:
        """Have the output of a call wait where it is written, or go on."""
        return wire.frame({"type": "hold", "call": call, "held": held})

    def kill(self, branch: int) -> bytes:
        """End a branch."""
        return wire.frame({"type": "kill", "branch": branch})

    def feed(self, data: bytes) -> None:
        """Take bytes as they were read."""
        self._reader.feed(data)

    def next(self) -> Message | None:
        """What was said next; None until more is fed, and for good where there is a problem.

        What a branch may do is known by what was returned here, and nothing is known before.
        """
        if self.problem is not None:
            return None
        try:
            record = self._reader.next()
            return None if record is None else self._taken(record)
        except wire.WireError as error:
            self.problem = str(error)
            return None

    def _taken(self, record: records.Record) -> Message | None:
        stream = _STREAMS.get(record.kind)
        if stream is not None:
            if record.body and record.number in self._calls.values():
                return Output(record.number, stream, record.body)
            self.problem = "output of no call that runs"
            return None
        message = wire.decode(record.body)
        kind = message.get("type") if isinstance(message, dict) else None
        if not isinstance(kind, str) or not _fits(message, _FIELDS.get(kind, {})):
            self.problem = "a message of no known form"
            return None
        state = self._states.get(message["branch"], State.ENDED)
        following = _NEXT.get((state, kind))
        if following is None:
            self.problem = f"`{kind}` out of turn"
            return None
        self._states[message["branch"]] = following
        return self._said(kind, message)

    def _said(self, kind: str, message: dict[str, Any]) -> Message | None:
        branch = message["branch"]
        if kind == "done":
            return self._done(message)
        if kind == "forked":
            copies = self._copies.pop(branch)
            return self._forked(branch, copies, message["open_files"])
        self._copies.pop(branch, None)
        if kind == "unforked":
            return Unforked(branch, _line(message["message"]))
        self._calls.pop(branch, None)
        if message["exit"] not in _EXITS:
            self.problem = "no exit code of a process"
            return None
        return Ended(branch, message["exit"], _line(message["why"]))

    def _forked(self, branch: int, copies: tuple[int, ...], files: list[Any]) -> Forked | None:
        if len(files) > _MOST_FILES or not all(isinstance(name, str) for name in files):
            self.problem = "a fork of no known form"
            return None
        self._states |= dict.fromkeys(copies, State.IDLE)
        return Forked(branch, copies, tuple(map(_line, files)))

    def _done(self, message: dict[str, Any]) -> Done | None:
        branch, call, code = message["branch"], message["call"], message["exit"]
        try:
            earlier = binascii.a2b_base64(message["earlier"], strict_mode=True)
        except ValueError:
            earlier = None
        error, total, lines = message["error"], message["earlier_total"], message["earlier_lines"]
        if call != self._calls.pop(branch) or code not in range(256) or earlier is None:
            self.problem = "the end of another call"
            return None
        possible = 0 <= lines - earlier.count(b"\n") <= total - len(earlier)
        if not possible or not (error is None or _is_error(error)):
            self.problem = "an end of no known form"
            return None
        claim = None if error is None else tuple(error)
        return Done(branch, call, code, claim, earlier, total, lines)


def _line(text: str) -> str:
    """Words that may be anybody's, as one line of a bounded length."""
    return visible_line(text[:_LONGEST_LINE])


def _is_error(error: Any) -> bool:
    if not (isinstance(error, list) and len(error) == 3):
        return False
    words = all(isinstance(each, str) and len(each) <= _LONGEST_WORDS for each in error)
    return words and error[0] in _ERROR_KINDS


def _fits(message: dict[str, Any], fields: dict[str, type]) -> bool:
    return (
        bool(fields)
        and message.keys() == fields.keys()
        and all(_is(message[name], kind) for name, kind in fields.items())
    )


def _is(value: Any, kind: type) -> bool:
    if kind is int:
        return type(value) is int and value in _NUMBERS
    return isinstance(value, kind)
