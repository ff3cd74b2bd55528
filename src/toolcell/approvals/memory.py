"""Approvals in memory, for a controller whose questions are answered where they are asked."""

from typing import Any

from toolcell.approvals.sqlite import SqliteApprovals
from toolcell.approvals.store import Clock, utc_now
from toolcell.model import ApprovalRequest, PolicyDecision, PreparedToolCall


class PendingApprovals(SqliteApprovals):
    """An ApprovalStore in memory; safe to use from several threads, gone with the process."""

    def __init__(self, lifetime: float = 3600.0, clock: Clock = utc_now) -> None:
        """Make an empty store; `lifetime` is how long a question stays open, in seconds."""
        super().__init__(":memory:", lifetime, clock)

    def create(
        self,
        prepared: PreparedToolCall,
        decision: PolicyDecision,
        policy_version: str,
        **rest: Any,
    ) -> ApprovalRequest:
        """Keep a new question; those that ended a lifetime ago are forgotten.

        Until then a late answer is told why it is late.
        """
        self.prune(self._clock() - self._lifetime)
        return super().create(prepared, decision, policy_version, **rest)

    def _unknown(self, approval_id: str) -> str:
        return (
            f"no approval {approval_id!r} is known here; approvals that are kept in memory "
            "end with the process that asked"
        )
