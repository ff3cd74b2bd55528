"""Decisions: what a policy said of a prepared call, and what a person said when asked."""

from datetime import datetime
from enum import StrEnum
from typing import Literal

from pydantic import AwareDatetime, Field

from toolcell.model.base import SCHEMA_VERSION, Frozen
from toolcell.model.calls import ToolCall


class Action(StrEnum):
    """What happens to a call."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class PolicyDecision(Frozen):
    """Allow, ask or deny, with the rule that said so and a reason that is never empty."""

    v: Literal[1] = SCHEMA_VERSION
    action: Action
    rule_id: str = Field(min_length=1)
    reason: str = Field(min_length=1)


class ApprovalRequest(Frozen):
    """A question for a person: may exactly this prepared call run, once?

    `call` holds the canonical arguments, which are those that will run.
    """

    v: Literal[1] = SCHEMA_VERSION
    approval_id: str
    call: ToolCall
    digest: str
    policy_version: str
    reason: str = Field(min_length=1)
    created_at: AwareDatetime
    expires_at: AwareDatetime

    def expired(self, now: datetime) -> bool:
        """Whether the question can no longer be answered."""
        return now >= self.expires_at


class ApprovalResponse(Frozen):
    """A person's answer; `note` reaches the model when the answer is no."""

    v: Literal[1] = SCHEMA_VERSION
    approval_id: str
    approved: bool
    by: str = Field(min_length=1)
    note: str = ""
