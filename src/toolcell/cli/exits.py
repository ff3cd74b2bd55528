"""Exit codes, the same for every command."""

from toolcell.model import ApprovalRequest, Category, Status, ToolResult
from toolcell.normalizer.verdict import signal_number

SUCCEEDED = 0
FAILED = 1
USAGE = 2
APPROVAL_NEEDED = 3
TIMED_OUT = 124
OWN_FAULT = 125
DENIED = 126
INTERRUPTED = 130
KILLED = 137

_BY_CATEGORY = {
    Category.POLICY_DENIED: DENIED,
    Category.APPROVAL_DENIED: DENIED,
    Category.BUDGET_SPENT: DENIED,
    Category.CELL_SETUP: OWN_FAULT,
    Category.WALL: TIMED_OUT,
    Category.CANCELLED: INTERRUPTED,
}


def of_call(outcome: ToolResult | ApprovalRequest) -> int:
    """Return the exit code of `toolcell call`."""
    if isinstance(outcome, ApprovalRequest):
        return APPROVAL_NEEDED
    if outcome.error is None:
        return SUCCEEDED
    return _BY_CATEGORY.get(outcome.error.category, FAILED)


def of_command(outcome: ToolResult | ApprovalRequest) -> int:
    """Return the exit code of `toolcell run`: the command's own, 128+N for a signal."""
    if isinstance(outcome, ApprovalRequest):
        return APPROVAL_NEEDED
    if outcome.error and outcome.error.category in _BY_CATEGORY:
        return _BY_CATEGORY[outcome.error.category]
    if outcome.return_code is not None:
        return outcome.return_code
    if outcome.signal is not None:
        return 128 + signal_number(outcome.signal)
    # Ended by us at a limit before its init could say how: by SIGKILL.
    return KILLED if outcome.status is Status.FAILED else FAILED
