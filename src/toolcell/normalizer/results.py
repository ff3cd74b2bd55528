"""Results from their pieces: the one place where a ToolResult is made."""

import json
import time
from dataclasses import dataclass, field
from typing import Any, Literal

from toolcell.model import (
    STATUS_OF,
    Enforcement,
    ErrorInfo,
    Limits,
    Report,
    ResultMetadata,
    Status,
    ToolCall,
    ToolDefinition,
    ToolResult,
    Truncation,
)
from toolcell.normalizer.truncation import shorten, shorten_text
from toolcell.normalizer.verdict import Verdict, judge

_ONE_LINE = 200


@dataclass(frozen=True, slots=True)
class Origin:
    """What every result of one call shares: whose it is, when it came, what decided it."""

    call: ToolCall
    began: float = field(default_factory=time.perf_counter)
    digest: str | None = None
    rule_id: str | None = None
    policy_version: str | None = None
    approval_id: str | None = None

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
    budget: int,
) -> ToolResult:
    """The result of a call that ran in a cell; `budget` is how many bytes of output are shown."""
    verdict = judge(report, definition, limits, wall)
    if report.setup is not None:
        return _result(origin, verdict.error, "controller", enforcement)
    stdout, stdout_cut = shorten(report.stdout, budget)
    stderr, stderr_cut = shorten(report.stderr, budget)
    value = report.reply["value"] if report.reply and "value" in report.reply else None
    # A tool that prints and returns nothing has its print as output, as a program does.
    printed = value is None
    output, output_cut = (stdout, stdout_cut) if printed else rendered(value, budget)
    metadata = ResultMetadata(
        stderr=stderr,
        stderr_truncation=stderr_cut,
        stdout="" if printed else stdout,
        stdout_truncation=None if printed else stdout_cut,
        attempts=attempts,
        cpu_seconds=report.usage and report.usage.cpu_seconds,
        peak_memory=report.usage and report.usage.peak_memory,
        processes=report.usage and report.usage.processes,
        refused=report.refused,
        ended_by=report.mechanism,
        survivors_checked=report.gone,
    )
    return _result(
        origin,
        verdict.error,
        "cell",
        enforcement,
        verdict=verdict,
        metadata=metadata,
        output=output,
        truncation=output_cut,
        structured=None if isinstance(value, str) else value,
    )


def from_inline(
    origin: Origin,
    value: Any,
    error: ErrorInfo | None,
    enforcement: Enforcement,
    budget: int,
) -> ToolResult:
    """The result of trusted host code that ran in the controller; `value` is JSON."""
    output, cut = ("", None) if value is None else rendered(value, budget)
    return _result(
        origin,
        error,
        "inline",
        enforcement,
        metadata=ResultMetadata(attempts=1),
        output=output,
        truncation=cut,
        structured=None if isinstance(value, str) else value,
    )


def rendered(value: Any, budget: int) -> tuple[str, Truncation | None]:
    """Render a returned value as text for the model: text as it is, the rest as JSON.

    JSON of some length stands on many lines, to be read; what will be cut stays compact,
    because laying it out takes long for what nobody sees.
    """
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if not isinstance(value, str) and _ONE_LINE < len(text) <= budget:
        text = json.dumps(value, ensure_ascii=False, indent=1)
    return shorten_text(text, budget)


def _result(
    origin: Origin,
    error: ErrorInfo | None,
    source: Literal["controller", "cell", "inline"],
    enforcement: Enforcement,
    *,
    verdict: Verdict | None = None,
    metadata: ResultMetadata | None = None,
    output: str = "",
    truncation: Truncation | None = None,
    structured: Any = None,
) -> ToolResult:
    status = STATUS_OF[error.category] if error else Status.SUCCEEDED
    decided = {
        "digest": origin.digest,
        "rule_id": origin.rule_id,
        "policy_version": origin.policy_version,
        "approval_id": origin.approval_id,
    }
    return ToolResult(
        call_id=origin.call.call_id,
        tool_name=origin.call.name,
        status=status,
        success=status is Status.SUCCEEDED,
        output=output,
        error=error,
        return_code=verdict.return_code if verdict else None,
        signal=verdict.signal if verdict else None,
        latency_ms=round(origin.latency_ms(), 3),
        structured=structured,
        truncation=truncation,
        source=source,
        enforcement=enforcement,
        metadata=(metadata or ResultMetadata()).model_copy(update=decided),
    )
