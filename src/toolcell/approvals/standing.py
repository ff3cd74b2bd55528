"""Grants for the rest of a run: what a yes may lead to beyond the one call."""

from datetime import timedelta

from toolcell.errors import ToolcellError
from toolcell.model import Approval, ApprovalRequest, ApprovalResponse, RunGrant


def grant_of(
    approval: Approval, response: ApprovalResponse, grant_id: str, lifetime: timedelta
) -> RunGrant:
    """Make the grant that a yes asks for; raises ToolcellError where there can be none."""
    request = approval.request
    if not request.run:
        raise ToolcellError(
            f"approval {request.approval_id} belongs to no run, so there is no rest of it to "
            "grant anything for; approve it for once"
        )
    by_prefix = response.remember == "prefix"
    now = approval.answered_at or request.created_at
    return RunGrant(
        grant_id=grant_id,
        approval_id=request.approval_id,
        run=request.run,
        tool_name=request.call.name,
        digest="" if by_prefix else request.digest,
        prefix=_prefix_of(request, response) if by_prefix else (),
        workspace=request.workspace,
        policy_version=request.policy_version,
        by=response.by,
        created_at=now,
        expires_at=now + lifetime,
    )


def _prefix_of(request: ApprovalRequest, response: ApprovalResponse) -> tuple[str, ...]:
    """The prefix that was named, or the one on offer; one agrees with the other."""
    named = response.prefix or request.prefix
    if not request.prefix:
        raise ToolcellError(
            f"approval {request.approval_id} is not for a plain command, so no prefix can be "
            "granted; approve it for once, or for exactly this call"
        )
    if named[: len(request.prefix)] != request.prefix or not all(named):
        raise ToolcellError(
            f"the prefix {list(named)} is wider than the command that was asked about, or another: "
            f"it has to start with {list(request.prefix)}"
        )
    return named
