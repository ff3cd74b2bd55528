"""Decisions: what a policy said of a prepared call, and what a person said when asked."""

from datetime import datetime
from enum import StrEnum
from typing import Literal

from pydantic import AwareDatetime, Field

from toolcell.model.base import SCHEMA_VERSION, Frozen
from toolcell.model.calls import ToolCall
from toolcell.model.cells import CellSettings, Limits


class Action(StrEnum):
    """What happens to a call."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class PolicyDecision(Frozen):
    """Allow, ask or deny, with the rule that said so and a reason that is never empty.

    `cell` and `limits` are those of the cell that the call would run in: the policy's, narrowed
    by the rules that match.
    """

    v: Literal[1] = SCHEMA_VERSION
    action: Action
    rule_id: str = Field(min_length=1)
    reason: str = Field(min_length=1)
    cell: CellSettings = CellSettings()
    limits: Limits = Limits()


class ApprovalRequest(Frozen):
    """A question for a person: may exactly this prepared call run, once?

    `call` holds the canonical arguments, which are those that will run, in `workspace`. `run` is
    the controller's run that asked, `key` the call's in the events. `prefix` is the start of the
    command that a grant for the rest of the run may name; it is empty where none can. `cell` and
    `limits` are what it would run in, by the policy that asked.
    """

    v: Literal[1] = SCHEMA_VERSION
    approval_id: str
    call: ToolCall
    digest: str
    policy_version: str
    rule_id: str = ""
    reason: str = Field(min_length=1)
    run: str = ""
    key: str = ""
    workspace: str = ""
    prefix: tuple[str, ...] = ()
    cell: CellSettings | None = None
    limits: Limits | None = None
    created_at: AwareDatetime
    expires_at: AwareDatetime

    def expired(self, now: datetime) -> bool:
        """Whether the question can no longer be answered."""
        return now >= self.expires_at


class ApprovalState(StrEnum):
    """Where an approval stands.

    pending -> approved -> spent -> done, or denied, cancelled or expired instead. `unknown` is
    spent by a process that is gone and told no outcome: its call may have run, or not.
    """

    PENDING = "pending"
    APPROVED = "approved"
    SPENT = "spent"
    DONE = "done"
    UNKNOWN = "unknown"
    DENIED = "denied"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


class Approval(Frozen):
    """A question, and where it stands; `outcome` is the status of the call that it was spent on.

    `spent_at` is when that call was let go, `settled_at` when it had ended.
    """

    v: Literal[1] = SCHEMA_VERSION
    request: ApprovalRequest
    state: ApprovalState
    by: str = ""
    note: str = ""
    answered_at: AwareDatetime | None = None
    spent_at: AwareDatetime | None = None
    settled_at: AwareDatetime | None = None
    outcome: str = ""


class ApprovalResponse(Frozen):
    """A person's answer; `note` reaches the model when the answer is no.

    `remember` also gives a grant for the rest of the run: for exactly this call again, or for
    commands of this tool that start with `prefix`, in this workspace.
    """

    v: Literal[1] = SCHEMA_VERSION
    approval_id: str
    approved: bool
    by: str = Field(min_length=1)
    note: str = ""
    remember: Literal["once", "call", "prefix"] = "once"
    prefix: tuple[str, ...] = ()


class RunGrant(Frozen):
    """A standing yes for the rest of one run: to one digest, or to a prefix of commands.

    It turns an ask into an allow, never a deny, and only under the policy version and in the
    workspace that it was given for, with the answer to `approval_id`.
    """

    v: Literal[1] = SCHEMA_VERSION
    grant_id: str
    approval_id: str = ""
    run: str
    tool_name: str
    digest: str = ""
    prefix: tuple[str, ...] = ()
    workspace: str = ""
    policy_version: str
    by: str
    created_at: AwareDatetime
    expires_at: AwareDatetime
    revoked_at: AwareDatetime | None = None

    def stands(self, now: datetime) -> bool:
        """Whether it has neither expired nor been revoked."""
        return self.revoked_at is None and now < self.expires_at
