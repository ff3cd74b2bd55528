"""Approvals in SQLite, in a file that outlives every process.

Whatever changes a row is one transaction that holds the file's lock from its start: it reads
where the approval stands, and moves it by one UPDATE that names the states it may come from.
A commit is on the disk before anyone is told of it. So a process may be killed anywhere: what
it was told happened, and what it was not told happened whole or not at all.

The arguments are stored as they will run, not redacted; the file is its owner's alone.
"""

import secrets
import sqlite3
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

from toolcell.approvals.rows import (
    BEFORE,
    OPEN,
    REFUSED,
    SCHEMA,
    VERSION,
    approval_columns,
    grant_columns,
    insert,
    marks,
    moment,
    read_approval,
    read_grant,
    rows_of,
)
from toolcell.approvals.spender import this_process
from toolcell.approvals.standing import grant_of
from toolcell.approvals.store import Clock, Spending, utc_now
from toolcell.database import Database, state_directory
from toolcell.errors import ToolcellError, UnknownApprovalError
from toolcell.model import (
    Approval,
    ApprovalRequest,
    ApprovalResponse,
    ApprovalState,
    PolicyDecision,
    PreparedToolCall,
    RunGrant,
    ToolCall,
)

_LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"
"""Crockford's base 32: none that is taken for another when it is read out or typed."""
_ID_LENGTH = 10
_TRIES = 5
_ENDED = (ApprovalState.EXPIRED, *OPEN)
"""How a question is stored whose time is up: what nobody tried to answer or spend is open."""
_CANNOT_RUN = (ApprovalState.DONE, *REFUSED, *OPEN)
_STORED_AS = {ApprovalState.EXPIRED: _ENDED, ApprovalState.UNKNOWN: (ApprovalState.SPENT,)}


class SqliteApprovals:
    """An ApprovalStore in a file, for any number of processes and threads."""

    def __init__(
        self,
        path: str | Path | None = None,
        lifetime: float = 3600.0,
        clock: Clock = utc_now,
        *,
        grant_lifetime: float = 8 * 3600.0,
        wait: float | None = None,
    ) -> None:
        """Name the file, `approvals.db` in the state directory by default; it is made when used.

        `lifetime` is how long a question can be answered and its approval be spent, and
        `grant_lifetime` how long a grant for the rest of a run stands, both in seconds. `wait`
        is how long to wait for other writers, in seconds (5).
        """
        self._lifetime = timedelta(seconds=lifetime)
        self._grant_lifetime = timedelta(seconds=grant_lifetime)
        self._clock = clock
        place = state_directory() / "approvals.db" if path is None else path
        self._database = Database(place, SCHEMA, version=VERSION, durable=True, wait=wait)

    @property
    def path(self) -> str | Path:
        """The file."""
        return self._database.path

    def exists(self) -> bool:
        """Whether there is a file yet; reading makes one."""
        return self._database.exists()

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        self._database.close()

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
        """Keep a new question under a fresh random id."""
        now = self._clock()
        call = ToolCall(
            call_id=prepared.call.call_id, name=prepared.call.name, arguments=prepared.arguments
        )
        asked = {
            "call": call.model_dump(mode="json"),
            "digest": prepared.digest,
            "policy_version": policy_version,
            "rule_id": decision.rule_id,
            "reason": decision.reason,
            "cell": decision.cell,
            "limits": decision.limits,
            "created_at": now,
            "expires_at": now + self._lifetime,
            **{"run": run, "key": key, "workspace": workspace, "prefix": prefix},
        }
        with self._database.writing() as connection:
            for _ in range(_TRIES):
                request = ApprovalRequest.model_validate(asked | {"approval_id": _fresh_id()})
                if insert(connection, "approvals", approval_columns(request)):
                    return request
        raise ToolcellError("the system's random numbers repeat; no approval was made")

    def get(self, approval_id: str) -> Approval:
        """Return a question and where it stands."""
        with self._database.reading() as connection:
            return self._read(connection, approval_id)

    def answer(self, response: ApprovalResponse) -> Approval:
        """Answer a question that is pending; returns where it stands afterwards.

        A no also takes back a yes that nothing has run on, with the grant that came with it.
        """
        state = ApprovalState.APPROVED if response.approved else ApprovalState.DENIED
        with self._database.writing() as connection:
            said = {"by": response.by, "note": response.note, "answered_at": moment(self._clock())}
            moved, approval = self._move(connection, response.approval_id, state, **said)
            if moved and response.approved and response.remember != "once":
                grant = grant_of(approval, response, _fresh_id(), self._grant_lifetime)
                if not insert(connection, "grants", grant_columns(grant)):
                    raise ToolcellError("the system's random numbers repeat; answer again")
            if moved and not response.approved:
                self._revoke_with(connection, response.approval_id)
            return approval

    def spend(self, approval_id: str) -> Spending:
        """Use an approved question up, in the name of this process."""
        with self._database.writing() as connection:
            spent = {"spender": this_process(), "spent_at": moment(self._clock())}
            return Spending(*self._move(connection, approval_id, ApprovalState.SPENT, **spent))

    def settle(self, approval_id: str, outcome: str) -> None:
        """Note the status of the call that an approval was spent on."""
        with self._database.writing() as connection:
            told = {"outcome": outcome, "settled_at": moment(self._clock())}
            moved, approval = self._move(connection, approval_id, ApprovalState.DONE, **told)
        if not moved:
            raise ToolcellError(
                f"approval {approval_id} is {approval.state}, so no call's outcome belongs to it"
            )

    def conclude(self, approval_id: str, outcome: str) -> bool:
        """Note the status of a call that will not run; True for the first who does."""
        with self._database.writing() as connection:
            approval = self._read(connection, approval_id)
            if approval.state not in REFUSED or approval.settled_at is not None:
                return False
            connection.execute(
                "UPDATE approvals SET state = ?, outcome = ?, settled_at = ? WHERE id = ?",
                (approval.state, outcome, moment(self._clock()), approval_id),
            )
            return True

    def cancel(self, approval_id: str) -> bool:
        """Take a question back that is pending or approved; False where it is too late."""
        with self._database.writing() as connection:
            moved, _ = self._move(connection, approval_id, ApprovalState.CANCELLED)
            if moved:
                self._revoke_with(connection, approval_id)
            return moved

    def pending(self) -> list[ApprovalRequest]:
        """Return the questions that can still be answered, oldest first."""
        now = self._clock()
        query = "SELECT * FROM approvals WHERE state = ? AND expires_at > ? ORDER BY number"
        found = self._read_all(query, (ApprovalState.PENDING, moment(now)), now)
        return [each.request for each in found]

    def approvals(
        self, state: ApprovalState | None = None, run: str | None = None
    ) -> list[Approval]:
        """Return all questions of a state and a run, oldest first."""
        query, values = "SELECT * FROM approvals WHERE true", list[str]()
        if state is not None:
            stored = _STORED_AS.get(state, (state,))
            query += f" AND state IN ({marks(stored)})"
            values += stored
        if run is not None:
            query += " AND run = ?"
            values.append(run)
        found = self._read_all(query + " ORDER BY number", values, self._clock())
        return [each for each in found if state in (None, each.state)]

    def approved(self, digest: str, policy_version: str, workspace: str) -> ApprovalRequest | None:
        """Return the oldest approval that can be spent on exactly this call, if there is one."""
        now = self._clock()
        query = (
            "SELECT * FROM approvals WHERE digest = ? AND policy_version = ? AND workspace = ? "
            "AND state = ? AND expires_at > ? ORDER BY number LIMIT 1"
        )
        bound = (digest, policy_version, workspace, ApprovalState.APPROVED, moment(now))
        found = self._read_all(query, bound, now)
        return found[0].request if found else None

    def refusal(self, digest: str, policy_version: str, workspace: str) -> Approval | None:
        """Return the oldest denial of exactly this call that nobody has been told of."""
        query = (
            "SELECT * FROM approvals WHERE digest = ? AND policy_version = ? AND workspace = ? "
            "AND state = ? AND settled_at IS NULL AND expires_at > ? ORDER BY number LIMIT 1"
        )
        now = self._clock()
        bound = (digest, policy_version, workspace, ApprovalState.DENIED, moment(now))
        found = self._read_all(query, bound, now)
        return found[0] if found else None

    def grants(self, run: str | None = None) -> list[RunGrant]:
        """Return the grants that stand, of one run or of all, oldest first."""
        now = self._clock()
        query = "SELECT * FROM grants WHERE expires_at > ? AND revoked_at IS NULL"
        values = [moment(now)]
        if run is not None:
            query += " AND run = ?"
            values.append(run)
        with self._database.reading() as connection:
            rows = rows_of(connection, query + " ORDER BY number", values)
        return [read_grant(self.path, row) for row in rows]

    def revoke(self, grant_id: str) -> bool:
        """End a grant now; False where it had ended before."""
        now = self._clock()
        with self._database.writing() as connection:
            rows = rows_of(connection, "SELECT * FROM grants WHERE id = ?", [grant_id])
            if not rows:
                raise UnknownApprovalError(f"no grant {grant_id!r} is known in {self.path}")
            if not read_grant(self.path, rows[0]).stands(now):
                return False
            connection.execute(
                "UPDATE grants SET revoked_at = ? WHERE id = ?", (moment(now), grant_id)
            )
            return True

    def named(self, start: str, kind: Literal["approvals", "grants"] = "approvals") -> list[str]:
        """Return the ids of approvals, or of grants, that begin so; oldest first."""
        query = f"SELECT id FROM {kind} WHERE substr(id, 1, ?) = ? ORDER BY number"  # noqa: S608  # one of two words
        with self._database.reading() as connection:
            return [row["id"] for row in rows_of(connection, query, (len(start), start))]

    def prune(self, before: datetime) -> int:
        """Delete what is settled or expired and could be answered before a moment only.

        Approvals that were spent and whose outcome is not known are kept. Returns how many went.
        """
        before = min(before, self._clock())  # what is open stays open
        query = f"DELETE FROM approvals WHERE expires_at <= ? AND state IN ({marks(_CANNOT_RUN)})"  # noqa: S608  # no input
        with self._database.writing() as connection:
            gone = connection.execute(query, (moment(before), *_CANNOT_RUN)).rowcount
            connection.execute("DELETE FROM grants WHERE expires_at <= ?", (moment(before),))
            return gone

    def _read(self, connection: sqlite3.Connection, approval_id: str) -> Approval:
        rows = rows_of(connection, "SELECT * FROM approvals WHERE id = ?", [approval_id])
        if not rows:
            raise UnknownApprovalError(self._unknown(approval_id))
        return read_approval(self.path, rows[0], self._clock())

    def _read_all(self, query: str, values: Sequence[str], now: datetime) -> list[Approval]:
        with self._database.reading() as connection:
            rows = rows_of(connection, query, values)
        return [read_approval(self.path, row, now) for row in rows]

    def _unknown(self, approval_id: str) -> str:
        return f"no approval {approval_id!r} is known in {self.path}"

    def _revoke_with(self, connection: sqlite3.Connection, approval_id: str) -> None:
        """End the grant that was given together with an approval."""
        connection.execute(
            "UPDATE grants SET revoked_at = ? WHERE approval = ? AND revoked_at IS NULL",
            (moment(self._clock()), approval_id),
        )

    def _move(
        self,
        connection: sqlite3.Connection,
        approval_id: str,
        state: ApprovalState,
        **columns: str,
    ) -> tuple[bool, Approval]:
        """Move an approval into a state if its own leads there; returns whether, and what stands.

        Whoever comes too late makes its end last: a clock set back does not open it again.
        """
        if self._read(connection, approval_id).state is ApprovalState.EXPIRED:
            state, columns = ApprovalState.EXPIRED, {}
        columns["state"] = state
        names = ", ".join(f"{name} = ?" for name in columns)
        moved = connection.execute(
            f"UPDATE approvals SET {names} WHERE id = ? "  # noqa: S608  # names of ours only
            f"AND state IN ({marks(BEFORE[state])}) RETURNING id",
            (*columns.values(), approval_id, *BEFORE[state]),
        ).fetchall()
        won = bool(moved) and state is not ApprovalState.EXPIRED
        return won, self._read(connection, approval_id)


def _fresh_id() -> str:
    return "".join(secrets.choice(_LETTERS) for _ in range(_ID_LENGTH))
