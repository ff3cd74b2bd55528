"""Approvals: questions that wait for a person, each answered once.

`ApprovalStore` is what keeps them; `PendingApprovals` is the one that lives in memory.
Whatever keeps them, an approval is never overwritten and is spent by one atomic step.
"""

import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, Protocol

from toolcell.errors import ToolcellError, UnknownApprovalError
from toolcell.model import ApprovalRequest, PolicyDecision, PreparedToolCall, ToolCall

Clock = Callable[[], datetime]
Spent = Literal["spent", "already_spent", "expired"]


def utc_now() -> datetime:
    """The clock that approvals and events are stamped by."""
    return datetime.now(UTC)


class ApprovalStore(Protocol):
    """What the controller needs of a place that keeps approvals."""

    def create(
        self, prepared: PreparedToolCall, decision: PolicyDecision, policy_version: str
    ) -> ApprovalRequest:
        """Keep a new question and return it."""
        ...

    def get(self, approval_id: str) -> ApprovalRequest:
        """Return a question; raises UnknownApprovalError."""
        ...

    def spend(self, approval_id: str) -> Spent:
        """Use a question up, atomically: only one caller ever gets "spent"."""
        ...

    def pending(self) -> list[ApprovalRequest]:
        """Return the questions that can still be answered, oldest first."""
        ...


@dataclass(slots=True)
class _Entry:
    request: ApprovalRequest
    spent: bool = False


class PendingApprovals:
    """An ApprovalStore in memory; safe to use from several threads, gone with the process."""

    def __init__(self, lifetime: float = 3600.0, clock: Clock = utc_now) -> None:
        """Make an empty store; `lifetime` is how long a question stays open, in seconds."""
        self._lifetime = timedelta(seconds=lifetime)
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: dict[str, _Entry] = {}

    def create(
        self, prepared: PreparedToolCall, decision: PolicyDecision, policy_version: str
    ) -> ApprovalRequest:
        """Keep a new question under a fresh random id."""
        now = self._clock()
        call = ToolCall(
            call_id=prepared.call.call_id, name=prepared.call.name, arguments=prepared.arguments
        )
        request = ApprovalRequest(
            approval_id=f"apr_{secrets.token_urlsafe(12)}",
            call=call,
            digest=prepared.digest,
            policy_version=policy_version,
            reason=decision.reason,
            created_at=now,
            expires_at=now + self._lifetime,
        )
        with self._lock:
            self._forget(now)
            if request.approval_id in self._entries:
                raise ToolcellError("the system's random numbers repeat; no approval was made")
            self._entries[request.approval_id] = _Entry(request)
        return request

    def get(self, approval_id: str) -> ApprovalRequest:
        """Return a question, answered or not."""
        return self._entry(approval_id).request

    def spend(self, approval_id: str) -> Spent:
        """Use a question up; an expired one is used up by that as well."""
        entry = self._entry(approval_id)
        with self._lock:
            if entry.spent:
                return "already_spent"
            entry.spent = True
        return "expired" if entry.request.expired(self._clock()) else "spent"

    def pending(self) -> list[ApprovalRequest]:
        """Return the questions that are neither answered nor expired."""
        now = self._clock()
        with self._lock:
            entries = list(self._entries.values())
        return [e.request for e in entries if not e.spent and not e.request.expired(now)]

    def _forget(self, now: datetime) -> None:
        """Drop what nobody can answer any more, a lifetime after it could not; by the lock's owner.

        Until then a late answer is told why it is late.
        """
        before = now - self._lifetime
        self._entries = {
            key: entry for key, entry in self._entries.items() if not entry.request.expired(before)
        }

    def _entry(self, approval_id: str) -> _Entry:
        with self._lock:
            entry = self._entries.get(approval_id)
        if entry is None:
            raise UnknownApprovalError(
                f"no approval {approval_id!r} is known here; approvals that are kept in memory "
                "end with the process that asked"
            )
        return entry
