"""Approvals: questions that wait for a person, each answered once and good for one run.

    pending -> approved -> spent -> done
        or denied, cancelled, expired instead

`ApprovalStore` is what a controller needs of a place that keeps them. `SqliteApprovals`
keeps them in a file that outlives every process, for any number of processes: one asks,
another answers. `PendingApprovals` keeps them in memory.

In `rows` is what a stored one looks like and which state follows which, in `standing` what a
yes may grant beyond the one call, in `spender` how a process is known again, and in `waiting`
how one waits for an answer.
"""

from toolcell.approvals.memory import PendingApprovals
from toolcell.approvals.sqlite import SqliteApprovals
from toolcell.approvals.store import ApprovalStore, Clock, Spending, utc_now
from toolcell.approvals.waiting import answered

__all__ = [
    "ApprovalStore",
    "Clock",
    "PendingApprovals",
    "Spending",
    "SqliteApprovals",
    "answered",
    "utc_now",
]
