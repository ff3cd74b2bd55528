"""The verdict: from evidence to one category.

Evidence is what we did (our kill flags), what the kernel says (the wait status), and
only then what the worker claims. What a tool printed is never looked at.
"""

import signal
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from toolcell.model import Category, ErrorInfo, Limits, Report, ToolDefinition

# What a shell says of a child that ended by SIGXCPU, or by the SIGKILL that follows.
_BY_CPU_LIMIT = (128 + signal.SIGXCPU, 128 + signal.SIGKILL)


class Verdict(NamedTuple):
    """Why a call failed, or None where it did not; and how its process ended."""

    error: ErrorInfo | None
    return_code: int | None = None
    signal: str | None = None


def judge(
    report: Report,
    definition: ToolDefinition,
    limits: Limits,
    wall: float,
    whose: Mapping[str, str] = MappingProxyType({}),
) -> Verdict:
    """Compute the verdict; `wall` is the deadline that was in force, in seconds.

    `whose` says of limits that are not the policy's who named them.
    """
    code = report.exit if report.exit is not None and report.exit >= 0 else None
    name = signal_name(-report.exit) if report.exit is not None and report.exit < 0 else None
    error = (
        _never_ran(report)
        or _ended_by_us(report, limits, wall, definition)
        or _out_of_memory(report, limits)
        or _ended_at_process_limit(report, limits)
        or _ended_by_signal(report, name, limits)
        or _bad_reply(report)
        or _by_answer(report, definition, limits)
    )
    return Verdict(error and named(error, whose), code, name)


def named(error: ErrorInfo, whose: Mapping[str, str]) -> ErrorInfo:
    """Say whose the limit was that ended a call, where it was not the policy's."""
    said = whose.get(error.category if error.category is not Category.OUTPUT_LIMIT else "output")
    return error.model_copy(update={"message": f"{error.message} ({said})"}) if said else error


def signal_name(number: int) -> str:
    """Name a signal; real-time ones by their number."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _never_ran(report: Report) -> ErrorInfo | None:
    if report.setup is None:
        return None
    if report.session is not None:
        return ErrorInfo(
            category=Category.WORKER_LOST,
            message=f"the call was not run: {report.setup}",
            retryable=True,
            hint=report.remedy,
        )
    return ErrorInfo(
        category=Category.CELL_SETUP,
        message=f"the call was not run: {report.setup}",
        hint=report.remedy,
    )


_IN_PART = "the patch may have been applied in part: look at its files"


def _ended_by_us(
    report: Report, limits: Limits, wall: float, definition: ToolDefinition
) -> ErrorInfo | None:
    # A kill between two files leaves nobody who could put the first one back.
    in_part = _IN_PART if definition.patch else ""
    match report.killed:
        case None | "reply":  # what was wrong with the reply is told by the reply
            return None
        case "cancel":
            return ErrorInfo(
                category=Category.CANCELLED, message="the call was cancelled", hint=in_part
            )
        case "wall":
            return ErrorInfo(
                category=Category.WALL,
                message=f"the call was ended at its time limit of {wall:g} s",
                hint=in_part or f"{_kept(report)}do less in one call, or do it in steps",
            )
        case "output":
            return ErrorInfo(
                category=Category.OUTPUT_LIMIT,
                message=f"the call wrote more than its limit of {limits.output:,} bytes",
                hint="write less, or write to a file",
            )
        case "memory":
            return _over_memory(limits)
        case "cpu":
            return _over_cpu(limits)
        case "processes":
            return _too_many(limits)


def _kept(report: Report) -> str:
    wrote = report.stdout.total_bytes or report.stderr.total_bytes
    return "the output so far is kept; " if wrote else ""


def _out_of_memory(report: Report, limits: Limits) -> ErrorInfo | None:
    """What failed after the kernel had ended a process of it at the memory limit."""
    failed = report.exit != 0 or (report.reply or {}).get("type") == "error"
    return _over_memory(limits) if failed and report.memory_kills else None


def _over_memory(limits: Limits) -> ErrorInfo:
    return ErrorInfo(
        category=Category.MEMORY,
        message=f"the call used more than its limit of {limits.memory:,} bytes of memory",
        hint="work on less data at a time",
    )


_TOO_MUCH = "a value that is returned is bounded; text, printed or returned, may have any length"


def _bad_reply(report: Report) -> ErrorInfo | None:
    if report.bad_reply is None:
        return None
    return ErrorInfo(
        category=Category.BAD_REPLY,
        message=f"the tool's answer is unusable: {report.bad_reply}",
        hint=_smaller(report.bad_reply),
    )


def _smaller(problem: str) -> str:
    """What to do about an answer that the codec found too large."""
    return _TOO_MUCH if "over the limit" in problem or "more than" in problem else ""


def _ended_by_signal(report: Report, name: str | None, limits: Limits) -> ErrorInfo | None:
    if name is None or report.killed:  # by us, for what its reply was
        return None
    used = report.usage.cpu_seconds if report.usage else 0.0
    if name == "SIGXCPU" or (name == "SIGKILL" and used >= limits.cpu):
        return _over_cpu(limits)
    if name == "SIGSYS":
        return ErrorInfo(
            category=Category.SANDBOX_VIOLATION,
            message="the process was ended for a system call of a foreign kind (32-bit or x32)",
            hint="use a program built for this machine",
        )
    if name == "SIGXFSZ":
        return ErrorInfo(
            category=Category.DISK,
            message=f"the call wrote a file larger than its limit of {limits.file_size:,} bytes",
            hint="write smaller files",
        )
    return ErrorInfo(category=Category.SIGNAL, message=f"the process was ended by {name}")


def _over_cpu(limits: Limits) -> ErrorInfo:
    return ErrorInfo(
        category=Category.CPU,
        message=f"the call used more than its limit of {limits.cpu:g} s of CPU time",
        hint="do less in one call",
    )


def _too_many(limits: Limits) -> ErrorInfo:
    return ErrorInfo(
        category=Category.PROCESSES,
        message=f"the call met its limit of {limits.processes} processes and threads",
        hint="start fewer at a time",
    )


def _ended_at_process_limit(report: Report, limits: Limits) -> ErrorInfo | None:
    """Init itself ends a call that has too many processes, where no kernel counts them."""
    by_kill = report.exit == -signal.SIGKILL
    return _too_many(limits) if by_kill and report.at_process_limit else None


def _at_a_limit(report: Report, limits: Limits, ended: str) -> ErrorInfo | None:
    """Why a call failed that met a limit, or was refused something, and then gave up itself."""
    if report.at_process_limit:
        return _too_many(limits)
    if report.scratch_full:
        return ErrorInfo(
            category=Category.DISK,
            message=f"{ended}; its scratch space of {limits.scratch:,} bytes was full",
            hint="write less to /tmp and /dev/shm, or write to the workspace",
        )
    if report.refused:
        return ErrorInfo(
            category=Category.SANDBOX_VIOLATION,
            message=f"{ended}, after the sandbox had refused {', '.join(report.refused)}",
            hint="tools cannot do this here; find a way that does without it",
        )
    return None


def _by_answer(report: Report, definition: ToolDefinition, limits: Limits) -> ErrorInfo | None:
    if report.exit is None:
        of_session = f"its session was ended: {report.session.ended}" if report.session else ""
        return ErrorInfo(
            category=Category.WORKER_LOST,
            message=of_session or "the cell was lost before the call ended",
            retryable=True,
        )
    if report.reply and report.reply["type"] == "error":
        claimed = _claimed(report.reply)
        if claimed.category is Category.EXCEPTION and definition.answers == "exit":
            return ErrorInfo(
                category=Category.EXIT_CODE, message=f"the code raised {claimed.message}"
            )
        if claimed.category is Category.EXCEPTION:
            return _at_a_limit(report, limits, claimed.message) or claimed
        return claimed
    if report.exit:
        used = report.usage.cpu_seconds if report.usage else 0.0
        if report.exit in _BY_CPU_LIMIT and used >= limits.cpu:
            return _over_cpu(limits)
        words = f"{_who_ended(report, definition)} with code {report.exit}{_meaning(report.exit)}"
        return _at_a_limit(report, limits, words) or ErrorInfo(
            category=Category.EXIT_CODE, message=words
        )
    if report.reply is None and definition.answers == "value":
        return ErrorInfo(
            category=Category.WORKER_LOST,
            message="the tool's process ended without an answer",
        )
    return None


def _claimed(reply: dict[str, Any]) -> ErrorInfo:
    kind, message = reply["kind"], reply["message"]
    if kind == "exception":
        message = f"{reply['name']}: {message}" if message else reply["name"]
    elif kind == "memory":
        message = "the tool ran out of memory"
    elif kind in ("disk", "open_files"):
        message = f"the tool met a limit: {message}"
    return ErrorInfo(
        category=Category(kind),
        message=message or kind,
        hint=_smaller(message) if kind == "bad_reply" else reply["hint"],
        retryable=bool(reply["retryable"]),
    )


def _who_ended(report: Report, definition: ToolDefinition) -> str:
    """What it was that ended with a code: in a session that goes on, no process did."""
    if report.session is None or report.session.state == "lost":
        return "the process exited"
    return "the command ended" if definition.session == "shell" else "the code ended"


def _meaning(code: int) -> str:
    if code == 126:
        return " (a shell says so of a command that cannot be executed)"
    if code == 127:
        return " (a shell says so of a command that is not found)"
    if 128 < code < 128 + 65:
        return f" (a shell says so where a command was ended by {signal_name(code - 128)})"
    return ""


def signal_number(name: str) -> int:
    """Return the number behind what `signal_name` returned."""
    digits = name.removeprefix("signal ")
    return int(digits) if digits.isdigit() else signal.Signals[name].value
