"""Results from their pieces: the one place where a ToolResult is made, and secrets redacted."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any, Literal

from toolcell.legible import OutputBudget, clean_text
from toolcell.model import (
    STATUS_OF,
    Action,
    Captured,
    Enforcement,
    ErrorInfo,
    Kept,
    LeftFiles,
    Limits,
    Report,
    ResultMetadata,
    SessionFacts,
    SessionOutcome,
    Status,
    ToolCall,
    ToolDefinition,
    ToolResult,
    Truncation,
    WaitingInfo,
)
from toolcell.model.results import summary_lines
from toolcell.normalizer.truncation import Keep, shorten, shorten_text
from toolcell.normalizer.verdict import Verdict, judge
from toolcell.redaction import Redactor, no_redaction

_ONE_LINE = 200
_NO_FILES = LeftFiles()
# The length at which cells and inline code cut a message (`_MESSAGE_CAP` there).
_CUT_MESSAGE = 4000


@dataclass(frozen=True, slots=True)
class Origin:
    """What every result of one call shares: whose it is, when it came, what decided it.

    `key` is the call's in the events. `redactor` takes secrets out of whatever the result shows.
    """

    call: ToolCall
    began: float = field(default_factory=time.perf_counter)
    digest: str | None = None
    rule_id: str | None = None
    policy_version: str | None = None
    approval_id: str | None = None
    decision: Action | None = None
    key: str = ""
    redactor: Redactor = no_redaction

    def latency_ms(self) -> float:
        """Milliseconds since the call arrived."""
        return (time.perf_counter() - self.began) * 1000


def refused(origin: Origin, error: ErrorInfo) -> ToolResult:
    """The result of a call that ended before any process was asked to run it."""
    return _result(origin, error, "controller", Enforcement())


def from_report(
    origin: Origin,
    report: Report,
    definition: ToolDefinition,
    limits: Limits,
    enforcement: Enforcement,
    *,
    wall: float,
    attempts: int,
    budget: OutputBudget | int,
    whose: Mapping[str, str] = MappingProxyType({}),
    keep: Keep | None = None,
) -> ToolResult:
    """The result of a call that ran in a cell.

    `whose` says of limits that are not the policy's who named them. `keep` takes what is not
    shown in full.
    """
    verdict = judge(report, definition, limits, wall, whose)
    if report.setup is not None:
        return _result(origin, verdict.error, "controller", enforcement)
    redactor, ended = origin.redactor, report.ended_by_itself
    on_stdout, on_stderr = _keeping(keep, "stdout"), _keeping(keep, "stderr")
    stdout, stdout_cut = shorten(report.stdout, budget, redactor, ended=ended, keep=on_stdout)
    stderr, stderr_cut = shorten(report.stderr, budget, redactor, ended=ended, keep=on_stderr)
    if stderr_cut is None and stderr.count("\n") > sum(
        summary_lines(success=verdict.error is None)
    ):
        kept = on_stderr(_whole(report.stderr)) if on_stderr else None
    else:
        kept = None
    value = report.reply["value"] if report.reply and "value" in report.reply else None
    value = redactor.value(value)
    # A tool that prints and returns nothing has its print as output, as a program does.
    printed = value is None
    output, output_cut = (
        (stdout, stdout_cut)
        if printed
        else rendered(value, budget, redactor, _keeping(keep, "value"))
    )
    metadata = ResultMetadata(
        stderr=stderr,
        stderr_truncation=stderr_cut,
        stderr_handle=kept.handle if kept and kept.size else None,
        stdout="" if printed else stdout,
        stdout_truncation=None if printed else stdout_cut,
        attempts=attempts,
        cpu_seconds=report.usage and report.usage.cpu_seconds,
        peak_memory=report.usage and report.usage.peak_memory,
        processes=report.usage and report.usage.processes,
        refused=report.refused,
        ended_by=report.mechanism,
        survivors_checked=report.gone,
        session=_session(report.session, budget, redactor, on_stdout),
    )
    waiting = None
    if verdict.error is None and report.reply and report.reply["type"] == "waiting":
        told = {name: report.reply[name] for name in ("state", "handle", "note")}
        waiting = WaitingInfo.model_validate(told)
    return _result(
        origin,
        verdict.error,
        "cell",
        enforcement,
        waiting=_asked_by(definition.asked_by, waiting, redactor),
        verdict=verdict,
        metadata=metadata,
        output=output,
        truncation=output_cut,
        structured=None if isinstance(value, str) else value,
        left=_files(report.left, redactor),
    )


def _session(
    facts: SessionFacts | None,
    budget: OutputBudget | int,
    redactor: Redactor,
    keep: Callable[[bytes], Kept] | None,
) -> SessionOutcome | None:
    if facts is None:
        return None
    earlier, cut = shorten(facts.earlier, budget, redactor, ended=False, keep=keep)
    return SessionOutcome(
        state=facts.state,
        ended=redactor.text(facts.ended),
        earlier=earlier,
        earlier_truncation=cut,
        note=redactor.text(facts.note),
    )


def from_inline(
    origin: Origin,
    value: Any,
    error: ErrorInfo | None,
    enforcement: Enforcement,
    budget: OutputBudget | int,
    attempts: int = 1,
    poll: str | None = None,
    keep: Keep | None = None,
) -> ToolResult:
    """The result of trusted host code that ran in the controller; `value` is JSON, or waiting."""
    waiting = _asked_by(poll, value, origin.redactor) if isinstance(value, WaitingInfo) else None
    value = None if waiting else origin.redactor.value(value)
    output, cut = (
        ("", None)
        if value is None
        else rendered(value, budget, origin.redactor, _keeping(keep, "value"))
    )
    return _result(
        origin,
        error,
        "inline",
        enforcement,
        waiting=waiting,
        metadata=ResultMetadata(attempts=attempts),
        output=output,
        truncation=cut,
        structured=None if isinstance(value, str) else value,
    )


def _asked_by(
    poll: str | None, waiting: WaitingInfo | None, redactor: Redactor
) -> WaitingInfo | None:
    """Name the tool that a waiting call is asked for by; what is shown is redacted, like all."""
    if waiting is None:
        return None
    shown = {name: redactor.text(getattr(waiting, name)) for name in ("handle", "note")}
    return waiting.model_copy(update={"poll": poll, **shown})


def _keeping(
    keep: Keep | None, kind: Literal["stdout", "stderr", "value"]
) -> Callable[[bytes], Kept] | None:
    return partial(keep, kind) if keep else None


def _whole(captured: Captured) -> bytes:
    return captured.head + captured.tail


def rendered(
    value: Any,
    budget: OutputBudget | int,
    redactor: Redactor = no_redaction,
    keep: Callable[[bytes], Kept] | None = None,
) -> tuple[str, Truncation | None]:
    """Render a returned value as text for the model: text as it is, the rest as JSON.

    JSON of some length stands on many lines, to be read; what will be cut stays compact,
    because laying it out takes long for what nobody sees.
    """
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if not isinstance(value, str) and _ONE_LINE < len(text) <= OutputBudget.of(budget).bytes:
        text = json.dumps(value, ensure_ascii=False, indent=1)
    return shorten_text(text, budget, redactor, keep)


def _redacted(error: ErrorInfo, redactor: Redactor) -> ErrorInfo:
    words = {"message": error.message, "hint": error.hint}
    told = {name: _redacted_text(text, redactor) for name, text in words.items()}
    return error if told == words else error.model_copy(update=told)


def _redacted_text(text: str, redactor: Redactor) -> str:
    """Redact a message; where an escape sequence goes through a secret, without sequences."""
    cut, clean = len(text) >= _CUT_MESSAGE, clean_text(text)
    shown = redactor.text(clean, cut=cut)
    return shown if shown != clean else redactor.text(text, cut=cut)


def _files(left: LeftFiles, redactor: Redactor) -> LeftFiles:
    """What is told of files: their names may hold secrets."""
    if redactor is no_redaction or left == _NO_FILES:
        return left

    def renamed(each: Any, field: str) -> Any:
        return each.model_copy(update={field: redactor.text(getattr(each, field))})

    return left.model_copy(
        update={
            "artifacts": tuple(renamed(each, "name") for each in left.artifacts),
            "refused": tuple(renamed(each, "name") for each in left.refused),
            "changes": tuple(renamed(each, "path") for each in left.changes),
        }
    )


def _result(
    origin: Origin,
    error: ErrorInfo | None,
    source: Literal["controller", "cell", "inline"],
    enforcement: Enforcement,
    *,
    waiting: WaitingInfo | None = None,
    verdict: Verdict | None = None,
    metadata: ResultMetadata | None = None,
    output: str = "",
    truncation: Truncation | None = None,
    structured: Any = None,
    left: LeftFiles = _NO_FILES,
) -> ToolResult:
    done = Status.WAITING if waiting else Status.SUCCEEDED
    status = STATUS_OF[error.category] if error else done
    decided = {
        "digest": origin.digest,
        "rule_id": origin.rule_id,
        "policy_version": origin.policy_version,
        "approval_id": origin.approval_id,
        "decision": origin.decision,
    }
    return ToolResult(
        call_id=origin.call.call_id,
        tool_name=origin.call.name,
        status=status,
        success=status is Status.SUCCEEDED,
        output=output,
        error=error and _redacted(error, origin.redactor),
        waiting=waiting,
        return_code=verdict.return_code if verdict else None,
        signal=verdict.signal if verdict else None,
        latency_ms=round(origin.latency_ms(), 3),
        structured=structured,
        truncation=truncation,
        artifacts=left.artifacts,
        refused_artifacts=left.refused,
        changes=left.changes,
        changes_note=left.changes_note,
        source=source,
        enforcement=enforcement,
        metadata=(metadata or ResultMetadata()).model_copy(update=decided),
    )
