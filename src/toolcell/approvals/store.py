"""What a controller needs of a place that keeps approvals, whatever keeps them there."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple, Protocol

from toolcell.model import (
    Approval,
    ApprovalRequest,
    ApprovalResponse,
    ApprovalState,
    PolicyDecision,
    PreparedToolCall,
    RunGrant,
)

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """The clock that approvals and events are stamped by."""
    return datetime.now(UTC)


class Spending(NamedTuple):
    """What came of an attempt to spend: only the one who won may run the call.

    For all others `approval` says where it stands: not answered yet, refused, expired, or
    spent before, by somebody who runs now, has run, or is gone.
    """

    won: bool
    approval: Approval

    @property
    def state(self) -> ApprovalState:
        """Where the approval stands now."""
        return self.approval.state


class ApprovalStore(Protocol):
    """Keeps approvals, for any number of threads.

    Every method but `create` and the lists raises UnknownApprovalError for an id that was
    never given out here, and all of them StoreError where what is kept cannot be used; then
    nothing has changed.
    """

    def create(
        self,
        prepared: PreparedToolCall,
        decision: PolicyDecision,
        policy_version: str,
        *,
        run: str = "",
        key: str = "",
        workspace: str = "",
        prefix: tuple[str, ...] = (),
    ) -> ApprovalRequest:
        """Keep a new question under an id of its own, and return it."""
        ...

    def get(self, approval_id: str) -> Approval:
        """Return a question and where it stands."""
        ...

    def answer(self, response: ApprovalResponse) -> Approval:
        """Answer a question that is pending, and return where it stands afterwards.

        The first answer wins, but for a no after a yes that nothing has run on yet; one that
        comes too late changes nothing, and sees what it came too late for. A yes makes the grant
        that it asks for as well, or nothing at all; raises ToolcellError where this question
        cannot lead to such a grant.
        """
        ...

    def spend(self, approval_id: str) -> Spending:
        """Use an approved question up: of all who ever try, one wins."""
        ...

    def settle(self, approval_id: str, outcome: str) -> None:
        """Note the status of the call that an approval was spent on.

        Raises ToolcellError where it was not spent, or is settled.
        """
        ...

    def conclude(self, approval_id: str, outcome: str) -> bool:
        """Note the status of a call that will not run: denied, cancelled or expired.

        Of all who hear how the question ended, one is told True, and ends the call; False too
        where it may still run, or has.
        """
        ...

    def cancel(self, approval_id: str) -> bool:
        """Take a question back that is pending or approved; False where it is too late."""
        ...

    def pending(self) -> list[ApprovalRequest]:
        """Return the questions that can still be answered, oldest first."""
        ...

    def approvals(
        self, state: ApprovalState | None = None, run: str | None = None
    ) -> list[Approval]:
        """Return all questions of a state and a run, oldest first."""
        ...

    def approved(self, digest: str, policy_version: str, workspace: str) -> ApprovalRequest | None:
        """Return the oldest approval that can be spent on exactly this call, if there is one."""
        ...

    def refusal(self, digest: str, policy_version: str, workspace: str) -> Approval | None:
        """Return the oldest denial of exactly this call that nobody has been told of."""
        ...

    def grants(self, run: str | None = None) -> list[RunGrant]:
        """Return the grants that stand, of one run or of all, oldest first."""
        ...

    def revoke(self, grant_id: str) -> bool:
        """End a grant now; False where it had ended before."""
        ...
