"""Rejections: what is said of calls that do not run, in words for the model."""

from difflib import get_close_matches

from toolcell.cancellation import Cancellation
from toolcell.model import (
    Approval,
    ApprovalState,
    Category,
    ErrorInfo,
    PolicyDecision,
)


def unknown_tool(name: str, known: list[str]) -> ErrorInfo:
    """There is no tool of that name."""
    close = get_close_matches(name[:80], known, 1)
    meant = f"; did you mean {close[0]!r}?" if close else ""
    return ErrorInfo(
        category=Category.UNKNOWN_TOOL,
        message=f"there is no tool named {name[:80]!r}{meant}",
        hint=f"the tools are {', '.join(known)}" if known else "no tool is registered",
    )


def invalid(problems: str) -> ErrorInfo:
    """The arguments do not fit."""
    return ErrorInfo(
        category=Category.INVALID_ARGUMENTS,
        message=problems,
        hint="correct the arguments and call again",
    )


def unusable_tool(why: str) -> ErrorInfo:
    """The tool itself cannot be used."""
    return ErrorInfo(category=Category.CELL_SETUP, message=f"the call was not run: {why}")


def overloaded(most: int) -> ErrorInfo:
    """Too many calls are there already."""
    return ErrorInfo(
        category=Category.OVERLOADED,
        message=f"{most} calls are running or waiting already",
        retryable=True,
        hint="wait for some of them to end",
    )


def withdrawn(cancellation: Cancellation, after: int = 0) -> ErrorInfo:
    """It was cancelled, or its time was up, while it waited to run; `after` so many tries."""
    when = f"after attempt {after}" if after else "before it ran"
    if cancellation.requested:
        return ErrorInfo(category=Category.CANCELLED, message=f"the call was cancelled {when}")
    return ErrorInfo(
        category=Category.WALL,
        message=f"the time that the host gave for the whole call was up {when}",
        retryable=not after,
    )


def denied(decision: PolicyDecision) -> ErrorInfo:
    """The policy said no."""
    return ErrorInfo(
        category=Category.POLICY_DENIED,
        message=f"the policy denies this call: {decision.reason}",
        hint="use another tool, or tell the user what you would need",
    )


def stopped(reason: str) -> ErrorInfo:
    """The run takes no more calls."""
    return ErrorInfo(
        category=Category.POLICY_DENIED,
        message=f"this run has ended and takes no more calls: {reason}",
        hint="stop calling tools, and tell the user",
    )


def not_approved(by: str, note: str) -> ErrorInfo:
    """A person said no; the note is that person's."""
    said = f": {note}" if note else ""
    return ErrorInfo(
        category=Category.APPROVAL_DENIED,
        message=f"{by} did not approve this call{said}",
        hint="do not repeat it unchanged",
    )


def mismatch(what: str) -> ErrorInfo:
    """What was approved is not what would run now."""
    return ErrorInfo(
        category=Category.APPROVAL_MISMATCH,
        message=f"{what} after this call was put to a person, so the approval does not cover it",
        retryable=True,
        hint="call again to ask again",
    )


def unusable(approval: Approval) -> ErrorInfo:
    """An approval that can no longer lead to a run, for what it is now."""
    state = approval.state
    if state is ApprovalState.DENIED:
        return not_approved(approval.by, approval.note)
    if state is ApprovalState.EXPIRED:
        return ErrorInfo(
            category=Category.APPROVAL_EXPIRED,
            message="nobody approved this call in time",
            retryable=True,
            hint="call again to ask again",
        )
    if state is ApprovalState.CANCELLED:
        return ErrorInfo(
            category=Category.APPROVAL_DENIED,
            message="the question was taken back before anybody answered it",
            hint="do not repeat it unchanged",
        )
    return ErrorInfo(
        category=Category.APPROVAL_SPENT,
        message=f"this approval is good for one run and {_SPENT[state]}",
        retryable=True,
        hint="call again to ask for another run",
    )


def used_by(call_id: str) -> ErrorInfo:
    """The approval of one call was used when the same call was made again."""
    return ErrorInfo(
        category=Category.APPROVAL_SPENT,
        message=f"the same call was made again, as {call_id}, and ran on this one's approval",
    )


_SPENT = {
    ApprovalState.SPENT: "its call runs now",
    ApprovalState.DONE: "its call has run",
    ApprovalState.UNKNOWN: "was spent by a process that ended: its call may have run, or not; "
    "nobody knows its outcome, and it is not run a second time",
}


def unrecorded(error: Exception) -> ErrorInfo:
    """An event or an approval could not be written, so nothing runs."""
    return ErrorInfo(
        category=Category.CELL_SETUP,
        message=f"the call was not run, because it could not be recorded: {error}",
    )


def no_workspace(error: Exception) -> ErrorInfo:
    """The directory that the call was to work in is not there any more."""
    return ErrorInfo(
        category=Category.CELL_SETUP,
        message=f"the call was not run: {error}",
        hint="the approval still stands; call again when the workspace is back",
    )
