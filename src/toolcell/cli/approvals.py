"""`toolcell approvals`: the questions that wait, and a person's answers to them."""

import io
import json
import os
import pwd
import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from toolcell.approvals import SqliteApprovals, utc_now
from toolcell.cli.exits import FAILED, OWN_FAULT, SUCCEEDED
from toolcell.cli.options import FLAG, AsJson, choices, one_of
from toolcell.cli.question import account, covers, is_said, outcome, standing, too_late
from toolcell.errors import StoreError, UnknownApprovalError
from toolcell.model import (
    Approval,
    ApprovalRequest,
    ApprovalResponse,
    ApprovalState,
    RunGrant,
)
from toolcell.visible import visible_line

app = typer.Typer(
    name="approvals",
    help="Answer the questions that calls wait for: list, show, approve, deny, watch.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

_GIST = 60
_LOOK_SECONDS = 0.3


class ForRun(StrEnum):
    """What a yes covers for the rest of the run that asked."""

    call = "call"
    prefix = "prefix"


Id = Annotated[str, typer.Argument(metavar="ID", help="The id, or enough of its beginning.")]
Store = Annotated[
    Path | None,
    typer.Option(
        "--store",
        metavar="FILE",
        help="Where the approvals are kept. Default: approvals.db in the state directory.",
    ),
]
By = Annotated[
    str | None, typer.Option("--by", metavar="NAME", help="Who answers. Default: your login name.")
]
Note = Annotated[str, typer.Option("--note", metavar="TEXT", help="Kept with the answer.")]


@app.command("list")
def list_approvals(
    everything: Annotated[
        bool, typer.Option("--all", metavar=FLAG, help="Also those that have been answered.")
    ] = False,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """List the questions that wait, and the grants that stand for the rest of a run."""
    with _opened(store) as approvals:
        there = approvals.exists()
        found = approvals.approvals(None if everything else ApprovalState.PENDING) if there else []
        unknown = approvals.approvals(ApprovalState.UNKNOWN) if there else []
        grants = approvals.grants() if there else []
    if as_json:
        _print_json({"approvals": [*map(_plain, found)], "grants": [*map(_plain, grants)]})
        return
    _print_lists(found, grants, everything=everything)
    if unknown and not everything:
        _say(f"{len(unknown)} spent, outcome unknown: toolcell approvals list --all")


def _print_lists(found: list[Approval], grants: list[RunGrant], *, everything: bool) -> None:
    from toolcell.cli.approval_tables import print_all, print_grants, print_pending

    if not found:
        _say("nobody has asked yet" if everything else "no question waits")
    elif everything:
        print_all(found, utc_now())
    else:
        print_pending(found, utc_now())
    if grants:
        print_grants(grants, utc_now())


@app.command()
def show(approval_id: Id, store: Store = None, as_json: AsJson = False) -> None:
    """Show exactly what will run, in full, and where the question stands."""
    with _opened(store) as approvals:
        approval = approvals.get(_named(approvals, approval_id))
    if as_json:
        _print_json(_plain(approval))
        return
    width = os.get_terminal_size().columns if sys.stdout.isatty() else None
    print(account(approval.request, utc_now(), width or None))
    print(standing(approval, width or None))


@app.command()
def approve(
    approval_id: Id,
    note: Note = "",
    by: By = None,
    for_run: Annotated[
        ForRun | None,
        typer.Option(
            "--for-run",
            parser=one_of(ForRun),
            metavar=choices(ForRun),
            help="Also for the rest of its run: exactly this call, or a prefix of commands.",
        ),
    ] = None,
    prefix: Annotated[
        str,
        typer.Option("--prefix", metavar="WORDS", help='The prefix, such as "git push".'),
    ] = "",
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Approve a call: it may run, once.

    Example: toolcell approvals approve k3f9 --for-run prefix --prefix "git push"
    """
    if prefix and for_run is not ForRun.prefix:
        raise typer.BadParameter("--prefix goes with --for-run prefix")
    try:
        named = tuple(shlex.split(_text(prefix)))
    except ValueError as error:
        raise typer.BadParameter(f"--prefix: {error}") from None
    rest = {"note": note, "remember": for_run.value if for_run else "once", "prefix": named}
    _answer(approval_id, store, by, as_json=as_json, approved=True, **rest)


@app.command()
def deny(
    approval_id: Id, note: Note = "", by: By = None, store: Store = None, as_json: AsJson = False
) -> None:
    """Deny a call; the note tells the model why, or what to do instead."""
    _answer(approval_id, store, by, as_json=as_json, approved=False, note=note)


@app.command()
def cancel(approval_id: Id, store: Store = None) -> None:
    """Take a question back, or an approval that was not used yet."""
    with _opened(store) as approvals:
        name = _named(approvals, approval_id)
        done = approvals.cancel(name)
        approval = approvals.get(name)
    _say(f"{name} is taken back" if done else too_late(approval))
    raise typer.Exit(SUCCEEDED if done else FAILED)


@app.command()
def revoke(
    grant_id: Annotated[str, typer.Argument(metavar="GRANT", help="The grant's id.")],
    store: Store = None,
) -> None:
    """End a grant for the rest of a run; what it let run already goes on."""
    with _opened(store) as approvals:
        name = _named(approvals, grant_id, "grants")
        done = approvals.revoke(name)
    _say(f"grant {name} is revoked" if done else f"grant {name} had ended before")
    raise typer.Exit(SUCCEEDED if done else FAILED)


@app.command()
def prune(
    days: Annotated[
        int, typer.Option("--days", min=0, metavar="N", help="Keep those of the last N days.")
    ] = 30,
    store: Store = None,
) -> None:
    """Delete old approvals that are settled; what may still run or is unknown stays."""
    with _opened(store) as approvals:
        gone = approvals.prune(utc_now() - timedelta(days=days))
    _say(f"{gone} deleted")


@app.command()
def watch(by: By = None, store: Store = None) -> None:
    """Show each new question and ask for the answer; without a terminal, print them as JSONL."""
    from toolcell.cli.prompt import Left, ask_watching, can_ask

    with _opened(store) as approvals:
        asks = can_ask() and sys.stdout.isatty()
        if asks:
            _say("waiting for questions; q or Ctrl-C ends")
        for request in _coming(approvals):
            if not asks:
                print(json.dumps(_plain(request)), flush=True)
                continue
            answer = ask_watching(request, by=_name(by))
            if answer is Left.ENDED:
                return
            if isinstance(answer, ApprovalResponse):
                _say(outcome(answer, approvals.answer(answer), utc_now()))


def _coming(approvals: SqliteApprovals) -> Iterator[ApprovalRequest]:
    """Yield each question once, for ever, and only while it can be answered."""
    seen: set[str] = set()
    while True:
        waiting = {request.approval_id: request for request in approvals.pending()}
        seen &= waiting.keys()
        fresh = [request for name, request in waiting.items() if name not in seen]
        if not fresh:
            time.sleep(_LOOK_SECONDS)
            continue
        seen.add(fresh[0].approval_id)
        yield fresh[0]


def _answer(start: str, store: Path | None, by: str | None, *, as_json: bool, **said: Any) -> None:
    with _opened(store) as approvals:
        name = _named(approvals, start)
        before = approvals.get(name)
        said["note"] = _text(said["note"])
        answer = ApprovalResponse(approval_id=name, by=_name(by), **said)
        late = before.state is not ApprovalState.PENDING
        stands = before if late else approvals.answer(answer)
        grants = [grant for grant in approvals.grants() if grant.approval_id == name]
    if as_json:
        _print_json(_plain(stands))
    if late or not is_said(answer, stands):
        _say(too_late(stands))
        raise typer.Exit(FAILED)
    _say(outcome(answer, stands, utc_now()))
    for grant in grants:
        _say(
            f"grant {grant.grant_id} lets {covers(grant)} run; revoke it with: "
            f"toolcell approvals revoke {grant.grant_id}"
        )


@contextmanager
def _opened(path: Path | None) -> Iterator[SqliteApprovals]:
    """Open the approvals; says what went wrong with them, and ends with its exit code."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # What the terminal's encoding does not have is spelled, as what would not show is.
        sys.stdout.reconfigure(errors="backslashreplace")
    approvals = SqliteApprovals(path)
    try:
        yield approvals
    except UnknownApprovalError as error:
        _say(str(error))
        raise typer.Exit(FAILED) from None
    except StoreError as error:
        _say(str(error))
        raise typer.Exit(OWN_FAULT) from None
    finally:
        approvals.close()


def _named(
    approvals: SqliteApprovals, start: str, kind: Literal["approvals", "grants"] = "approvals"
) -> str:
    """Return the one id that begins so; raises UnknownApprovalError."""
    start = _text(start)
    found = approvals.named(start.lower(), kind) if start and approvals.exists() else []
    if len(found) == 1:
        return found[0]
    what = kind.removesuffix("s")
    if not found:
        raise UnknownApprovalError(
            f"no {what} begins with {visible_line(start)!r} in {approvals.path}; "
            "toolcell approvals list shows them"
        )
    raise UnknownApprovalError(
        f"{visible_line(start)} could be any of {len(found)} {kind}, such as {found[0]} and "
        f"{found[1]}; type more of it"
    )


def _plain(value: Approval | ApprovalRequest | RunGrant) -> dict[str, Any]:
    return value.model_dump(mode="json")


def _print_json(value: Any) -> None:
    # In ASCII, so that what it holds can do nothing to a terminal.
    print(json.dumps(value, indent=2))


def _say(text: str) -> None:
    print(f"toolcell: {text}", file=sys.stderr)


def _name(given: str | None) -> str:
    """Who answers: the one who was named, or the one who is logged in."""
    if given:
        return _text(given)
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"


def _text(argument: str) -> str:
    """An argument as text; bytes that are none show as such."""
    return argument.encode(errors="surrogateescape").decode(errors="replace")
