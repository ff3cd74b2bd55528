"""Events to write, one log to write them to, and hands that edit a log."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta

from toolcell.events import Event, EventKind

BEGIN = datetime(2030, 1, 1, 12, tzinfo=UTC)


def event(number=0, kind=EventKind.RECEIVED, /, *, seconds=None, **given):
    """One event; its time is a second for each number, or what `seconds` says."""
    at = BEGIN + timedelta(seconds=number if seconds is None else seconds)
    given = {"run": "run_1", "key": f"key_{number}", "call_id": f"c{number}"} | given
    return Event(**{"at": at, "kind": kind, "tool_name": "echo"} | given)


def a_call(number=0, *, begin=0.0, status="succeeded", tool="shell", **finished):
    """The events of one call that was asked about and run; it takes 11.5 seconds."""
    told = [
        (0.0, EventKind.RECEIVED, {"arguments": {"command": "git push"}}),
        (0.1, EventKind.PREPARED, {"digest": "d1"}),
        (0.2, EventKind.DECIDED, {"action": "ask", "rule_id": "push", "reason": "a remote"}),
        (0.3, EventKind.ASKED, {"approval_id": "apr_1", "expires_at": "13:00"}),
        (10.3, EventKind.ANSWERED, {"approved": True, "by": "ada", "state": "approved"}),
        (10.4, EventKind.GRANTED, {"by": "approval", "approval_id": "apr_1"}),
        (10.5, EventKind.STARTED, {"attempt": 1, "rung": "full", "attested": True}),
        (11.4, EventKind.ENDED, {"attempt": 1, "exit": 0, "stdout_bytes": 3}),
        (11.5, EventKind.FINISHED, {"status": status, **finished}),
    ]
    names = {"call_id": f"c{number}", "key": f"key_{number}", "tool_name": tool}
    return [
        event(0, kind, seconds=begin + offset, data=data, **names) for offset, kind, data in told
    ]


def edit(path, *statements):
    """Do to a log what a hand with sqlite3 can: drop its guards, then run the statements."""
    with closing(sqlite3.connect(path)) as connection:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        for (name,) in names.fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            text, *values = (statement,) if isinstance(statement, str) else statement
            connection.execute(text, values)
        connection.commit()


def query(path, text):
    """Read a log with a hand."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(text).fetchall()
