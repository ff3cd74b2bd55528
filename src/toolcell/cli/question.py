r"""A question as a person sees it: exactly what will run, in full, and what it is bound to.

All that comes from a model or a tool stands behind a gutter of ours on each of its lines, also
where a long one is folded, so that it can play no line of ours:

    command
      | text as it is, one gutter a line
      : the rest of a line that was folded
    options
      = JSON, for what is not text

Nothing is cut, and what would not show is spelled (see `toolcell.visible`). A `gist` is for
lists, where there is room for one line; nobody is asked to decide by it.
"""

import shlex
import unicodedata
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from toolcell.cli.cells import in_words
from toolcell.model import (
    Approval,
    ApprovalRequest,
    ApprovalResponse,
    ApprovalState,
    RunGrant,
)
from toolcell.visible import runs_leftwards, spelled_out, visible, visible_json, visible_line

_GIST = 60
_INDENT = "  "
_LABEL = 9
_NARROWEST = 24
_TAB = 8
_WIDE = "WFA"
"""East Asian widths that may take two columns (Unicode Standard Annex 11)."""

STATES = {
    ApprovalState.PENDING: "waits for an answer",
    ApprovalState.APPROVED: "approved, not used yet",
    ApprovalState.SPENT: "its call runs now",
    ApprovalState.DONE: "its call has run",
    ApprovalState.UNKNOWN: "spent, outcome unknown: its call may have run, or not; it will not run "
    "again",
    ApprovalState.DENIED: "denied",
    ApprovalState.CANCELLED: "taken back",
    ApprovalState.EXPIRED: "expired",
}


def account(request: ApprovalRequest, now: datetime, width: int | None = None) -> str:
    """Return all that a person has to know before an answer, in lines of `width` columns."""
    tool = visible_line(request.call.name)
    lines = [f"Approval {visible_line(request.approval_id)}: may {tool} run with this?"]
    lines += _arguments(request.call.arguments, width)
    policy = f"{request.rule_id or 'a rule'}, of policy {request.policy_version}"
    lines += _fact("in", request.workspace or "no workspace", width)
    if request.cell and request.limits:
        lines += _fact("cell", in_words(request.cell, request.limits), width)
    lines += _fact("because", request.reason, width)
    lines += _fact("rule", policy, width)
    lines += _fact("asked", f"{moment(request.created_at)}, {_when(request, now)}", width)
    lines += _fact("call", request.call.call_id, width)
    if request.run:
        lines += _fact("run", request.run, width)
    lines += _fact("digest", request.digest, width)
    return "\n".join(lines)


def standing(approval: Approval, width: int | None = None) -> str:
    """Return where an approval stands, and how it came there."""
    lines = _fact("state", STATES[approval.state], width)
    if approval.by:
        at = f" at {moment(approval.answered_at)}" if approval.answered_at else ""
        lines += _fact("answer", f"by {approval.by}{at}", width)
    if approval.note:
        lines += _fact("note", approval.note, width)
    if approval.spent_at:
        lines += _fact("let go", moment(approval.spent_at), width)
    if approval.settled_at:
        lines += _fact("ended", f"{approval.outcome}, {moment(approval.settled_at)}", width)
    return "\n".join(lines)


def gist(request: ApprovalRequest) -> str:
    """Return a call as one line, for where there is no room for more; a list may cut it."""
    arguments = request.call.arguments
    if isinstance(arguments, str):
        return visible_line(arguments)
    if isinstance(command := arguments.get("command"), str):
        return visible_line(command)
    return ", ".join(f"{_name(key)}={visible_json(value)}" for key, value in arguments.items())


def cut(line: str) -> str:
    """Return as much of a line as a table has room for."""
    return line if len(line) <= _GIST else line[: _GIST - 3] + "..."


def words(prefix: tuple[str, ...]) -> str:
    """Return the words of a command as a shell takes them."""
    return visible_line(shlex.join(prefix))


def covers(grant: RunGrant) -> str:
    """Return what a grant lets run."""
    tool = visible_line(grant.tool_name)
    if grant.prefix:
        return f"{tool}: {words(grant.prefix)} ..."
    return f"{tool}: exactly the call of {grant.approval_id}"


def moment(at: datetime) -> str:
    """Return a moment in words."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def span(time: timedelta) -> str:
    """Return a length of time in the unit that says most."""
    seconds = max(0, int(time.total_seconds()))
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def is_said(answer: ApprovalResponse, stands: Approval) -> bool:
    """Whether the answer that stands is this one."""
    state = ApprovalState.APPROVED if answer.approved else ApprovalState.DENIED
    return (stands.state, stands.by, stands.note) == (state, answer.by, answer.note)


def outcome(answer: ApprovalResponse, stands: Approval, now: datetime) -> str:
    """Return what came of an answer."""
    if not is_said(answer, stands):
        return too_late(stands)
    name = stands.request.approval_id
    if not answer.approved:
        return f"{name} is denied"
    left = span(stands.request.expires_at - now)
    return (
        f"{name} is approved, once: {cut(gist(stands.request))}\n"
        f"toolcell: who waits for it runs it now; otherwise make the same call again within {left}"
    )


def too_late(stands: Approval) -> str:
    """Return what an answer came too late for."""
    request = stands.request
    if stands.state is ApprovalState.EXPIRED:
        return (
            f"{request.approval_id} expired at {moment(request.expires_at)}, so nothing can run on "
            "it any more; the call has to be made again"
        )
    if stands.state is ApprovalState.CANCELLED:
        return f"{request.approval_id} was taken back; the call has to be made again"
    word = "denied" if stands.state is ApprovalState.DENIED else "approved"
    at = moment(stands.answered_at) if stands.answered_at else "a time that is not known"
    after = "" if word == "denied" else f"; {STATES[stands.state]}"
    return f"{visible_line(stands.by)} {word} {request.approval_id} before, at {at}{after}"


def _when(request: ApprovalRequest, now: datetime) -> str:
    age = f"{span(now - request.created_at)} ago"
    if request.expired(now):
        return f"{age}; expired at {moment(request.expires_at)}"
    return f"{age}; expires in {span(request.expires_at - now)}"


def _arguments(arguments: dict[str, Any] | str, width: int | None) -> list[str]:
    if isinstance(arguments, str):
        return _text(arguments, width)
    if not arguments:
        return [f"{_INDENT}(no arguments)"]
    lines: list[str] = []
    for name, value in arguments.items():
        lines += _heading(_name(name) + (" (empty text)" if value == "" else ""), width)
        if value and isinstance(value, str):
            lines += _text(value, width)
        elif value != "":
            lines += _block(visible_json(value, indent=2), "=", width)
    return lines


def _text(value: str, width: int | None) -> list[str]:
    lines = [*_block(visible(value), "|", width)]
    if runs_leftwards(value):
        lines.append(f"{_INDENT}  (in part from right to left; in its own order:)")
        lines += _block("\n".join(map(spelled_out, value.split("\n"))), "|", width)
    return lines


def _name(name: str) -> str:
    return name if name.isidentifier() and name.isascii() else visible_json(name)


def _heading(name: str, width: int | None) -> Iterator[str]:
    for number, part in enumerate(_folded(name, width and width - len(f"{_INDENT}: "))):
        yield f"{_INDENT}: {part}" if number else f"{_INDENT}{part}"


def _fact(label: str, value: str, width: int | None) -> list[str]:
    indent = _INDENT + " " * _LABEL
    folded = list(_folded(visible_line(value), width and width - len(indent)))
    return [
        (indent if number else f"{_INDENT}{label:{_LABEL}}") + part
        for number, part in enumerate(folded)
    ]


def _block(text: str, gutter: str, width: int | None) -> Iterator[str]:
    for line in text.split("\n"):
        room = width and width - len(f"{_INDENT}  {gutter} ")
        for number, part in enumerate(_folded(line, room)):
            yield f"{_INDENT}  {':' if number else gutter} {part}"


def _folded(line: str, width: int | None) -> Iterator[str]:
    """Cut a line into parts of so many columns at most; a tab counts as its longest."""
    if width is None:
        yield line
        return
    width = max(width, _NARROWEST)
    start = used = 0
    for place, character in enumerate(line):
        columns = _columns(character)
        if used + columns > width:
            yield line[start:place]
            start, used = place, 0
        used += columns
    yield line[start:]


def _columns(character: str) -> int:
    if character == "\t":
        return _TAB
    return 1 if character.isascii() or unicodedata.east_asian_width(character) not in _WIDE else 2
