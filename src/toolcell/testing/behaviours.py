"""Behaviours: what one run of a tool comes to, as the evidence that a cell would have left.

The result is then computed from it as from any report, so that a test meets the words, the
categories and the truncation that its agent will meet.
"""

import math
import signal
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, Literal

from toolcell.cells.capture import StreamCapture
from toolcell.model import Captured, Limits, Report, WaitingState, canonical_json

_KEPT = 128 * 1024


@dataclass(frozen=True, kw_only=True)
class Behaviour:
    """One run: what it prints, and how long it takes by the clock of the test, in seconds."""

    stdout: str = ""
    stderr: str = ""
    seconds: float = 0.0

    @abstractmethod
    def evidence(self, limits: Limits) -> dict[str, Any]:
        """Return what a report says of its end, where it comes to its end."""

    def output(self, limits: Limits) -> dict[str, Captured]:
        """Return what was kept of its output."""
        return {"stdout": _captured(self.stdout), "stderr": _captured(self.stderr)}

    def report(self, limits: Limits, **ended: Any) -> Report:
        """Return the evidence of a run, or of one that was `ended` before."""
        said = ended or self.evidence(limits)
        answer = canonical_json(said["reply"]) if said.get("reply") else ""
        return Report(**self.output(limits), **said, answer_bytes=len(answer.encode()))


@dataclass(frozen=True)
class Answers(Behaviour):
    """It returns a value, which JSON can carry."""

    value: Any = None

    def evidence(self, limits: Limits) -> dict[str, Any]:
        """Return a reply."""
        return {"exit": 0, "reply": {"type": "reply", "value": self.value}}


@dataclass(frozen=True)
class Raises(Behaviour):
    """It raises: a `ToolError` is what it says no by, everything else an exception."""

    error: BaseException

    def evidence(self, limits: Limits) -> dict[str, Any]:
        """Return an error as a worker tells it."""
        refusal = bool(getattr(self.error, "is_tool_error", False))
        reply = {
            "type": "error",
            "kind": "tool_error" if refusal else "exception",
            "name": type(self.error).__name__,
            "message": str(self.error),
            "hint": str(getattr(self.error, "hint", "")) if refusal else "",
            "retryable": refusal and getattr(self.error, "retryable", False) is True,
        }
        return {"exit": 0, "reply": reply}


@dataclass(frozen=True)
class Waits(Behaviour):
    """It answers that it is not done; the tool that its `poll` names settles it."""

    handle: str
    state: WaitingState = "queued"
    note: str = ""

    def evidence(self, limits: Limits) -> dict[str, Any]:
        """Return a waiting answer."""
        reply = {"type": "waiting", "state": self.state, "handle": self.handle, "note": self.note}
        return {"exit": 0, "reply": reply}


@dataclass(frozen=True)
class Exits(Behaviour):
    """Its process ends with an exit code."""

    code: int = 0

    def evidence(self, limits: Limits) -> dict[str, Any]:
        """Return a code; where that is 0, also for tools that answer by a value."""
        nothing = None if self.code else {"type": "reply", "value": None}
        return {"exit": self.code, "reply": nothing}


@dataclass(frozen=True)
class IsKilled(Behaviour):
    """Its process is ended by a signal, such as "SIGSEGV"."""

    by: str = "SIGKILL"

    def evidence(self, limits: Limits) -> dict[str, Any]:
        """Return a signal's number."""
        return {"exit": -signal.Signals[self.by].value}


@dataclass(frozen=True)
class Exceeds(Behaviour):
    """It is ended at one of its limits."""

    limit: Literal["memory", "cpu", "processes"] = "memory"

    def evidence(self, limits: Limits) -> dict[str, Any]:
        """Return a kill of ours."""
        return {"exit": -signal.SIGKILL.value, "killed": self.limit}


@dataclass(frozen=True)
class Floods(Behaviour):
    """It writes so many bytes to standard output; past its limit it is ended."""

    size: int = 10_000_000
    line: str = "y\n"

    def evidence(self, limits: Limits) -> dict[str, Any]:
        """Return a kill where it was too much."""
        if self.size > limits.output:
            return {"exit": -signal.SIGKILL.value, "killed": "output"}
        return {"exit": 0, "reply": {"type": "reply", "value": None}}

    def output(self, limits: Limits) -> dict[str, Captured]:
        """Return its ends, without making what lies between them."""
        line = self.line.encode()
        size = min(self.size, limits.output + len(line))
        whole = line * (min(size, 2 * _KEPT) // len(line) + 1)
        head, tail = whole[: min(size, _KEPT)], b""
        if size > _KEPT:
            end = whole[: size % len(line) or len(line)]
            tail = (whole + end)[-min(size - _KEPT, _KEPT) :]
        flood = Captured(head=head, tail=tail, total_bytes=size, total_lines=size // len(line))
        return {"stdout": flood, "stderr": _captured(self.stderr)}


@dataclass(frozen=True)
class Hangs(Behaviour):
    """It goes on until its deadline, or until it is cancelled."""

    seconds: float = field(default=math.inf, init=False)

    def evidence(self, limits: Limits) -> dict[str, Any]:
        """Return nothing: it has no end of its own."""
        raise AssertionError("what hangs comes to no end of its own")


@dataclass(frozen=True)
class IsLost(Behaviour):
    """Its cell is lost: nobody can tell how it ended, and the same call may do better."""

    def evidence(self, limits: Limits) -> dict[str, Any]:
        """Return nothing of its end."""
        return {"exit": None, "mechanism": "lost"}


@dataclass(frozen=True)
class NoCell(Behaviour):
    """No cell could be made for it, so it never ran."""

    why: str = "this machine has no user namespaces"

    def evidence(self, limits: Limits) -> dict[str, Any]:
        """Return why."""
        return {"setup": self.why}


def behaviour(step: Any) -> Behaviour:
    """Take what a script may hold for a behaviour: a value is an answer, an exception is raised."""
    if isinstance(step, Behaviour):
        return step
    return Raises(step) if isinstance(step, BaseException) else Answers(step)


def _captured(text: str) -> Captured:
    capture = StreamCapture(_KEPT, _KEPT)
    capture.feed(text.encode(errors="replace"))
    return capture.result()
