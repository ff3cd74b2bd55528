"""The tables of `toolcell approvals list`; rich loads with the first one."""

from datetime import datetime

from toolcell.cli.question import covers, cut, gist, span
from toolcell.model import Approval, ApprovalState, RunGrant
from toolcell.visible import visible_line


def print_pending(found: list[Approval], now: datetime) -> None:
    """Print the questions that wait for an answer."""
    rows = [[*_who(each, now), f"in {_left(each, now)}", *_what(each)] for each in found]
    _print(["id", "asked", "expires", "tool", "what", "reason"], rows)


def print_all(found: list[Approval], now: datetime) -> None:
    """Print questions in every state."""
    rows = [[*_who(each, now), _state(each), *_what(each)] for each in found]
    _print(["id", "asked", "state", "tool", "what", "reason"], rows)


def print_grants(grants: list[RunGrant], now: datetime) -> None:
    """Print what may run for the rest of a run without a question."""
    rows = [
        [
            grant.grant_id,
            f"in {span(grant.expires_at - now)}",
            visible_line(grant.run),
            covers(grant),
            visible_line(grant.workspace) or "-",
            visible_line(grant.by),
        ]
        for grant in grants
    ]
    _print(["grant", "expires", "run", "lets run", "workspace", "by"], rows)


def _who(approval: Approval, now: datetime) -> tuple[str, str]:
    request = approval.request
    return request.approval_id, f"{span(now - request.created_at)} ago"


def _left(approval: Approval, now: datetime) -> str:
    return span(approval.request.expires_at - now)


def _what(approval: Approval) -> tuple[str, str, str]:
    request = approval.request
    return visible_line(request.call.name), cut(gist(request)), visible_line(request.reason)


def _state(approval: Approval) -> str:
    if approval.state is ApprovalState.DONE:
        return f"ran: {visible_line(approval.outcome)}"
    return "spent, outcome unknown" if approval.state is ApprovalState.UNKNOWN else approval.state


def _print(headings: list[str], rows: list[list[str]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.markup import escape
    from rich.table import Table

    from toolcell.cli.table import console_for_tables

    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0))
    for number, heading in enumerate(headings):
        table.add_column(heading, no_wrap=number == 0, overflow="fold")
    for row in rows:
        table.add_row(*map(escape, row))
    console_for_tables().print(table)
