"""What is stored: the tables, and their rows read back with suspicion.

A question is kept whole as JSON. The columns beside it are there to find it by, and have to
agree with it. A row that does not make sense, which only a hand or a broken disk can bring
about, is a StoreError: nothing runs on it.
"""

import json
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from toolcell.approvals.spender import lives
from toolcell.errors import StoreError
from toolcell.model import Approval, ApprovalRequest, ApprovalState, RunGrant

VERSION = 1
SCHEMA = """
CREATE TABLE approvals (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    request TEXT NOT NULL,
    digest TEXT NOT NULL,
    policy_version TEXT NOT NULL,
    workspace TEXT NOT NULL,
    run TEXT NOT NULL,
    expires_at TEXT NOT NULL,
    state TEXT NOT NULL,
    by TEXT NOT NULL DEFAULT '',
    note TEXT NOT NULL DEFAULT '',
    answered_at TEXT,
    spender TEXT NOT NULL DEFAULT '',
    spent_at TEXT,
    outcome TEXT NOT NULL DEFAULT '',
    settled_at TEXT
);
CREATE INDEX approvals_by_state ON approvals (state, expires_at);
CREATE INDEX approvals_by_digest ON approvals (digest);
CREATE TABLE grants (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    granted TEXT NOT NULL,
    approval TEXT NOT NULL,
    run TEXT NOT NULL,
    expires_at TEXT NOT NULL,
    revoked_at TEXT
);
CREATE INDEX grants_by_run ON grants (run, expires_at);
CREATE INDEX grants_by_approval ON grants (approval)
"""

OPEN = (ApprovalState.PENDING, ApprovalState.APPROVED)
"""The states that end when the time is up."""

REFUSED = (ApprovalState.DENIED, ApprovalState.CANCELLED, ApprovalState.EXPIRED)
"""The states in which the call will not run."""

BEFORE: Mapping[ApprovalState, tuple[ApprovalState, ...]] = {
    ApprovalState.APPROVED: (ApprovalState.PENDING,),
    ApprovalState.DENIED: OPEN,  # a no is never too late, as long as nothing has run
    ApprovalState.CANCELLED: OPEN,
    ApprovalState.EXPIRED: OPEN,
    ApprovalState.SPENT: (ApprovalState.APPROVED,),
    ApprovalState.DONE: (ApprovalState.SPENT,),
}
"""All transitions: from which states each state is reached. `unknown` is never stored."""

_ANSWER = ("by", "note", "answered_at", "spent_at", "settled_at", "outcome")
_STORED = (ApprovalState.PENDING, *BEFORE)


def moment(at: datetime) -> str:
    """Write a moment so that two of them compare as text as they do in time."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")


def rows_of(
    connection: sqlite3.Connection, query: str, values: Sequence[object]
) -> list[sqlite3.Row]:
    """Return all rows that a query finds, by the names of their columns."""
    cursor = connection.cursor()
    cursor.row_factory = sqlite3.Row
    return cursor.execute(query, values).fetchall()


def insert(connection: sqlite3.Connection, table: str, columns: Mapping[str, str]) -> bool:
    """Add a row; False where there is one of its id, which is never overwritten."""
    done = connection.execute(
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks(columns)}) "  # noqa: S608  # names of ours only
        "ON CONFLICT (id) DO NOTHING RETURNING id",
        tuple(columns.values()),
    )
    return bool(done.fetchall())


def marks(values: Collection[object]) -> str:
    """Return as many question marks as there are values."""
    return ", ".join("?" * len(values))


def approval_columns(request: ApprovalRequest) -> dict[str, str]:
    """Return the columns of a new question."""
    return {
        "id": request.approval_id,
        "request": json.dumps(request.model_dump(mode="json")),
        "state": ApprovalState.PENDING,
        **_found_by(request),
    }


def grant_columns(grant: RunGrant) -> dict[str, str]:
    """Return the columns of a new grant."""
    return {
        "id": grant.grant_id,
        "granted": json.dumps(grant.model_dump(mode="json", exclude={"revoked_at"})),
        "approval": grant.approval_id,
        "run": grant.run,
        "expires_at": moment(grant.expires_at),
    }


def read_approval(path: object, row: sqlite3.Row, now: datetime) -> Approval:
    """Read a row: the state is the one of this moment, and of its process. Raises StoreError."""
    with _sense(path, "approval", row["id"]):
        request = ApprovalRequest.model_validate(json.loads(row["request"]))
        state = ApprovalState(row["state"])
        if state not in _STORED:
            raise ValueError(f"the state is {state}, which is never stored")
        if request.approval_id != row["id"] or _found_by(request) != {
            name: row[name] for name in _found_by(request)
        }:
            raise ValueError("the question and its columns do not agree")
        if state in OPEN and request.expired(now):
            state = ApprovalState.EXPIRED
        if state is ApprovalState.SPENT and not lives(row["spender"]):
            state = ApprovalState.UNKNOWN
        return Approval.model_validate(
            {
                "request": request,
                "state": state,
                **{name: row[name] for name in _ANSWER},
            }
        )


def read_grant(path: object, row: sqlite3.Row) -> RunGrant:
    """Read a row; raises StoreError."""
    with _sense(path, "grant", row["id"]):
        grant = RunGrant.model_validate(
            json.loads(row["granted"]) | {"revoked_at": row["revoked_at"]}
        )
        columns = grant_columns(grant)
        if [row[name] for name in ("id", "approval", "run", "expires_at")] != [
            columns[name] for name in ("id", "approval", "run", "expires_at")
        ]:
            raise ValueError("the grant and its columns do not agree")
        return grant


def _found_by(request: ApprovalRequest) -> dict[str, Any]:
    return {
        "digest": request.digest,
        "policy_version": request.policy_version,
        "workspace": request.workspace,
        "run": request.run,
        "expires_at": moment(request.expires_at),
    }


@contextmanager
def _sense(path: object, kind: str, name: object) -> Iterator[None]:
    try:
        yield
    except (ValueError, TypeError, RecursionError) as error:
        why = str(error)
        if isinstance(error, ValidationError):
            first = error.errors()[0]
            why = f"{'.'.join(map(str, first['loc']))}: {first['msg'].lower()}"
        raise StoreError(
            f"{path}: {kind} {name!r} makes no sense ({why}), so it was changed by something other "
            "than toolcell; nothing runs on it. Restore the file, delete that row, or move the "
            "file away to begin a new one"
        ) from error
