"""Results: the one shape that every call ends in."""

import json
from enum import StrEnum
from typing import Any, Literal

from pydantic import Field, model_validator

from toolcell.model.base import SCHEMA_VERSION, Frozen
from toolcell.model.cells import Enforcement
from toolcell.model.decisions import Action
from toolcell.model.files import (
    Artifact,
    FileChange,
    RefusedArtifact,
    told_artifacts,
    told_changes,
)


class Status(StrEnum):
    """How a call ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    REJECTED = "rejected"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    WAITING = "waiting"


class Category(StrEnum):
    """Why a call did not succeed: one cause, one category, always from evidence.

    `budget_spent` is a call past the budget of its run: of calls, seconds or bytes of output.
    """

    UNKNOWN_TOOL = "unknown_tool"
    INVALID_ARGUMENTS = "invalid_arguments"
    POLICY_DENIED = "policy_denied"
    APPROVAL_DENIED = "approval_denied"
    APPROVAL_EXPIRED = "approval_expired"
    APPROVAL_SPENT = "approval_spent"
    APPROVAL_MISMATCH = "approval_mismatch"
    OVERLOADED = "overloaded"
    BUDGET_SPENT = "budget_spent"
    TOOL_ERROR = "tool_error"
    EXCEPTION = "exception"
    EXIT_CODE = "exit_code"
    SIGNAL = "signal"
    MEMORY = "memory"
    CPU = "cpu"
    PROCESSES = "processes"
    DISK = "disk"
    OPEN_FILES = "open_files"
    OUTPUT_LIMIT = "output_limit"
    SANDBOX_VIOLATION = "sandbox_violation"
    BAD_REPLY = "bad_reply"
    WORKER_LOST = "worker_lost"
    CELL_SETUP = "cell_setup"
    WALL = "wall"
    CANCELLED = "cancelled"


_REJECTED = frozenset(list(Category)[: list(Category).index(Category.TOOL_ERROR)])

_ITS_OWN = frozenset(
    {
        Category.TOOL_ERROR,
        Category.EXCEPTION,
        Category.EXIT_CODE,
        Category.SIGNAL,
        Category.APPROVAL_EXPIRED,
    }
)

_INTERRUPTED = frozenset({Category.WALL, Category.CANCELLED, Category.OUTPUT_LIMIT})

STATUS_OF: dict[Category, Status] = {
    category: Status.REJECTED
    if category in _REJECTED
    else Status.TIMED_OUT
    if category is Category.WALL
    else Status.CANCELLED
    if category is Category.CANCELLED
    else Status.FAILED
    for category in Category
}
"""The one status that goes with each category."""


_SUMMARY_LINE = 500
# An error may quote what a model or a tool wrote; it is told, and acts on nothing.
_SPELLED = {n: f"\\x{n:02x}" for n in (*range(9), *range(11, 32), *range(127, 160))}


class ErrorInfo(Frozen):
    """Why a call did not succeed, in words for the model: no traces, no secrets.

    `retryable` says whether the same call, sent again unchanged, can end better.
    """

    category: Category
    message: str = Field(min_length=1)
    retryable: bool = False
    hint: str = ""


class Truncation(Frozen):
    """What the model was not shown of one stream, exactly; as the tool wrote it, unredacted.

    `handle` opens what is kept of it, `stored_bytes` with its secrets redacted; `not_stored`
    says why not all of it is kept.
    """

    total_bytes: int
    total_lines: int
    omitted_bytes: int
    omitted_lines: int
    handle: str | None = None
    stored_bytes: int = 0
    not_stored: str = ""


class SessionOutcome(Frozen):
    """What a call in a session left of it: whether its state is kept, and if not, why.

    `earlier` is what calls before it had left running, and that wrote since the one before.
    `note` says what is to be known of a session that began with the call.
    """

    state: Literal["kept", "lost"]
    ended: str = ""
    earlier: str = ""
    earlier_truncation: Truncation | None = None
    note: str = ""

    def for_llm(self, error: ErrorInfo | None) -> list[str]:
        """What the model should know of it."""
        parts = [f"[{self.note}]"] if self.note else []
        if self.earlier:
            parts.append(f"[written since by what earlier calls left running]\n{self.earlier}")
        if self.state == "lost":
            parts.append(f"[session: its state is lost: {self.ended}]")
        elif error and error.category in _INTERRUPTED:
            parts.append("[session: the call was interrupted; the session's state is kept]")
        elif error:
            parts.append("[session: its state is kept]")
        return parts


class ResultMetadata(Frozen):
    """Runtime facts, kept from the model unless asked for.

    `stdout` is what a tool printed beside its returned value. Bytes and seconds;
    `peak_memory` is that of the whole tree where a cgroup counts it, otherwise the largest
    resident size of one process of the call, and `processes` how many processes and threads
    it had (see `Usage`). `refused` names system calls that the filter refused, of those that
    reach for more than a tool has. `decision` is what the policy said, by `rule_id`.
    `stderr_handle` opens standard error where `for_llm` shows only the end of what is here.
    `event_lost` says which event or outcome of this call could not be kept. `session` is set
    for a call that ran in a session.
    """

    stderr: str = ""
    stderr_truncation: Truncation | None = None
    stderr_handle: str | None = None
    stdout: str = ""
    stdout_truncation: Truncation | None = None
    attempts: int = 0
    cpu_seconds: float | None = None
    peak_memory: int | None = None
    processes: int | None = None
    refused: tuple[str, ...] = ()
    ended_by: str = ""
    survivors_checked: bool = False
    digest: str | None = None
    rule_id: str | None = None
    policy_version: str | None = None
    approval_id: str | None = None
    decision: Action | None = None
    event_lost: str = ""
    session: SessionOutcome | None = None


WaitingState = Literal["accepted", "queued", "dry_run"]

_STATES: dict[WaitingState, str] = {
    "accepted": "The call was accepted and is not done yet",
    "queued": "The call is in a queue and is not done yet",
    "dry_run": "This was a dry run: nothing was done yet",
}


class WaitingInfo(Frozen):
    """What a tool answered that is not done: taken up, in a queue, or only tried out.

    `poll` names the tool that takes the handle, if there is one; its answer settles the call.
    """

    state: WaitingState
    handle: str = Field(min_length=1, max_length=512)
    note: str = Field(default="", max_length=4000)
    poll: str | None = None

    def told(self) -> str:
        """Say in words where the call stands, and how to go on."""
        handle = json.dumps(self.handle, ensure_ascii=False)
        note = f": {self.note}" if self.note else ""
        how = (
            f'To go on, call {self.poll} with {{"handle": {handle}}}.'
            if self.poll
            else "No tool settles it; do not call again to find out."
        )
        return f"{_STATES[self.state]}, under the handle {handle}{note}. {how}"


class ToolResult(Frozen):
    """The one shape that every call ends in.

    `success` is explicit and agrees with `status`. `output` is text for the model;
    `structured` is the returned value where it was more than text. `return_code` is the
    process's own code, None where a signal ended it or nothing ran; `signal` names that
    signal. `latency_ms` counts from the call's arrival to the result. `source` says
    where the result was made. `waiting` is set where the tool answered that it is not done.
    `artifacts` are files that came back, as the tool wrote them and not redacted. `changes` are
    files that changed while the call ran, where the policy asks for them, and `changes_note`
    says what is not among them.
    """

    v: Literal[1] = SCHEMA_VERSION
    call_id: str
    tool_name: str
    status: Status
    success: bool
    output: str = ""
    error: ErrorInfo | None = None
    waiting: WaitingInfo | None = None
    return_code: int | None = None
    signal: str | None = None
    latency_ms: float = 0.0
    structured: Any = None
    truncation: Truncation | None = None
    artifacts: tuple[Artifact, ...] = ()
    refused_artifacts: tuple[RefusedArtifact, ...] = ()
    changes: tuple[FileChange, ...] = ()
    changes_note: str = ""
    source: Literal["controller", "cell", "inline"]
    enforcement: Enforcement = Enforcement()
    metadata: ResultMetadata = ResultMetadata()

    @model_validator(mode="after")
    def _agrees(self) -> "ToolResult":
        if self.success != (self.status is Status.SUCCEEDED):
            raise ValueError(f"success={self.success} does not go with status {self.status}")
        if self.error and STATUS_OF[self.error.category] is not self.status:
            raise ValueError(f"{self.error.category} does not go with status {self.status}")
        if not self.error and self.status not in (Status.SUCCEEDED, Status.WAITING):
            raise ValueError(f"a result that is {self.status} says why")
        if (self.waiting is not None) != (self.status is Status.WAITING):
            raise ValueError(f"waiting={self.waiting} does not go with status {self.status}")
        return self

    @property
    def handles(self) -> dict[str, str]:
        """The handles of what is kept of its output, by stream."""
        cuts = {
            "output": self.truncation,
            "stdout": self.metadata.stdout_truncation,
            "stderr": self.metadata.stderr_truncation,
        }
        found = {stream: cut.handle for stream, cut in cuts.items() if cut and cut.handle}
        return found | ({"stderr": h} if (h := self.metadata.stderr_handle) else {})

    def for_llm(self) -> str:
        """Return the text that the model should read.

        On failure it still holds the output, then what went wrong (category, exit code
        or signal) and whether a retry can help. Standard error is summarised.
        """
        parts = [self.output] if self.output else []
        if self.metadata.stdout:
            parts.append(f"[printed]\n{self.metadata.stdout}")
        if self.metadata.stderr:
            parts.append(self._stderr_summary())
        parts += told_artifacts(self.artifacts, self.refused_artifacts)
        parts += told_changes(self.changes, self.changes_note)
        if self.waiting:
            parts.append(f"[waiting: {self.waiting.state}] {self.waiting.told()}")
        if self.metadata.session:
            parts += self.metadata.session.for_llm(self.error)
        if self.error:
            parts.append(_account(self.status, self.error, self.metadata.attempts))
        return "\n".join(part.rstrip("\n") for part in parts) or "(no output)"

    def _stderr_summary(self) -> str:
        """Keep the start of standard error, where compilers say what came first, and the end."""
        lines = self.metadata.stderr.rstrip("\n").split("\n")
        first, last = summary_lines(success=self.success)
        if len(lines) <= first + last:
            return "[stderr]\n" + "\n".join(map(_beginning, lines))
        cut, handle = self.metadata.stderr_truncation, self.handles.get("stderr")
        shown = f"first {first} and last {last}" if first else f"last {last}"
        label = f"stderr, {shown} of {cut.total_lines if cut else len(lines):,} lines"
        label += f"; read_output {json.dumps({'handle': handle})}" if handle else ""
        gap = ["[...]"] if first else []
        kept = [*map(_beginning, lines[:first]), *gap, *map(_beginning, lines[-last:])]
        return f"[{label}]\n" + "\n".join(kept)


def summary_lines(*, success: bool) -> tuple[int, int]:
    """How many lines of standard error the model is shown, of its start and of its end."""
    return (0, 5) if success else (20, 40)


def _beginning(line: str) -> str:
    over = len(line) - _SUMMARY_LINE
    return line if over <= 0 else f"{line[:_SUMMARY_LINE]}[... {over:,} more characters]"


def _account(status: Status, error: ErrorInfo, attempts: int) -> str:
    """Why it failed: the message as it is, and the hint below it, so that neither runs on.

    [failed: exit_code, repeating it is unlikely to help] the process exited with code 1
    """
    cancelled = error.category is Category.CANCELLED
    facts = ["cancelled" if cancelled else f"{status}: {error.category}"]
    if attempts > 1:
        facts.append(f"tried {attempts} times")
    if not cancelled:  # whoever cancelled it knows what is to come
        facts.append(f"repeating it {_chance(error)} help")
    hint = f"\nHint: {error.hint}" if error.hint else ""
    return f"[{', '.join(facts)}] {error.message.rstrip()}{hint}".translate(_SPELLED)


def _chance(error: ErrorInfo) -> str:
    if error.retryable:
        return "may"
    # Of what the tool itself did, such as a failing test, nobody knows for certain.
    return "is unlikely to" if error.category in _ITS_OWN else "will not"
