"""Events: one at each border of a call's path, refusals included; what they hold.

The controller is the only writer, and redacts before it writes.
"""

from enum import StrEnum
from typing import Any, Literal, Protocol

from pydantic import AwareDatetime, Field

from toolcell.model import PreparedToolCall, ToolResult
from toolcell.model.base import SCHEMA_VERSION, Frozen


class EventKind(StrEnum):
    """The borders that a call crosses, and what happens to a run or to the log itself."""

    RECEIVED = "received"
    PREPARED = "prepared"
    DECIDED = "decided"
    ASKED = "asked"
    ANSWERED = "answered"
    GRANTED = "granted"
    STARTED = "started"
    ENDED = "ended"
    FINISHED = "finished"
    SETTLED = "settled"
    STOPPED = "stopped"
    PRUNED = "pruned"


class Event(Frozen):
    """One border crossed by one call; every call has exactly one FINISHED.

    One that finished waiting has one SETTLED after it, once a later call brought its end.

    `key` tells this call from others, because providers repeat their ids; `run` is the
    controller that the call was proposed to. An approval that is answered after a restart goes
    on under the key that it was asked under. `about` is the prepared call (PREPARED) or the
    result (FINISHED), for sinks in this process; it is not stored. `data` holds, redacted:

    received  arguments (as far as they are short)
    prepared  digest
    decided   action, rule_id, reason, policy (its version)
    asked     approval_id, expires_at
    answered  approval_id, approved, by, note, state
    granted   by (policy, approval or run grant), rule_id, approval_id, grant_id
    started   attempt, rung, attested
    ended     attempt, seconds, exit, killed, stdout_bytes, stderr_bytes, answer_bytes,
              cpu_seconds, peak_memory
    finished  status, category, message, return_code, signal, latency_ms, attempts, output_bytes,
              handles (of what is kept of its output), enforced
    settled   by (the id of the call that brought it), status, category, message, output_bytes
    stopped   reason (the run takes no more calls)
    pruned    rows, through, reason (written by the log)
    """

    v: Literal[1] = SCHEMA_VERSION
    at: AwareDatetime
    kind: EventKind
    run: str = ""
    key: str = ""
    call_id: str
    tool_name: str
    data: dict[str, Any] = Field(default_factory=dict)
    about: PreparedToolCall | ToolResult | None = Field(default=None, exclude=True, repr=False)


class EventSink(Protocol):
    """Where events go. An OSError that it raises before a call runs keeps it from running."""

    def __call__(self, event: Event) -> None:
        """Keep one event."""
        ...


def no_events(event: Event) -> None:
    """Keep nothing."""
