"""The account of one call: what happened at each border, in words, and how long each stage took."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from toolcell.events.record import Event, EventKind

PREPARE = "prepare"
DECIDE = "decide"
PERSON = "waiting for a person"
CELL = "waiting for a cell"
RUN = "running"
FINISH = "finishing"
SETTLE = "waiting to be settled"
STAGES = (PREPARE, DECIDE, PERSON, CELL, RUN, FINISH)
"""What a call spends its time on, in the order in which it does."""

NO_END = "no end was recorded: it still runs, or its controller ended"
NO_ANSWER = "no end was recorded: it waits for an answer, or nobody will give one any more"

_AFTER = {
    EventKind.RECEIVED: PREPARE,
    EventKind.PREPARED: DECIDE,
    EventKind.DECIDED: DECIDE,
    EventKind.ASKED: PERSON,
    EventKind.ANSWERED: DECIDE,
    EventKind.GRANTED: CELL,
    EventKind.STARTED: RUN,
    EventKind.ENDED: FINISH,
}
_SHORT = 200
_UNANSWERED = {
    "expired": "nobody answered in time",
    "cancelled": "the question was taken back",
    "pending": "nobody has answered yet",
}


@dataclass(frozen=True, slots=True)
class Step:
    """One event of a call: seconds since the first, and the stage that it ends, and its seconds."""

    event: Event
    offset: float
    stage: str
    took: float


def stage(before: EventKind, after: EventKind) -> str:
    """Return what a call does between two of its borders; empty after its end."""
    if before is EventKind.ENDED and after is EventKind.STARTED:
        return CELL  # another attempt
    if before is EventKind.DECIDED and after is EventKind.FINISHED:
        return FINISH
    if after is EventKind.SETTLED:
        return SETTLE
    return _AFTER.get(before, "")


def steps(events: Iterable[Event]) -> list[Step]:
    """Return the events of one call as steps; clocks that went back count as no time."""
    found: list[Step] = []
    for event in events:
        if not found:
            found.append(Step(event, 0.0, "", 0.0))
            continue
        before = found[-1].event
        found.append(
            Step(
                event,
                _seconds(found[0].event.at, event.at),
                stage(before.kind, event.kind),
                _seconds(before.at, event.at),
            )
        )
    return found


def outcome(events: Iterable[Event]) -> str:
    """Return how a call ended, in words."""
    last: Event | None = None
    ended = ""
    for event in events:
        last = event
        if event.kind is EventKind.FINISHED and not ended:
            ended = _finished(event.data)
        elif event.kind is EventKind.SETTLED:
            return _settled(event.data)
    if ended:
        return ended
    return NO_ANSWER if last and last.kind is EventKind.ASKED else NO_END


def words(event: Event) -> str:
    """Return what happened at a border, as one text for a person; it holds data of the event."""
    tell = _WORDS.get(event.kind)
    return tell(event.data) if tell else ""


def call_of(event: Event) -> tuple[str, ...] | None:
    """Return what tells the event's call from others; None where it is not of a call."""
    if event.kind in (EventKind.STOPPED, EventKind.PRUNED):
        return None
    return (event.key,) if event.key else (event.run, event.call_id)


def _seconds(begin: datetime, end: datetime) -> float:
    return max(0.0, (end - begin).total_seconds())


def _join(*parts: str) -> str:
    return ", ".join(part for part in parts if part)


def _named(data: dict[str, Any], name: str, label: str, unit: str = "") -> str:
    value = data.get(name)
    return "" if value in (None, "") else f"{label} {value}{unit}"


def _received(data: dict[str, Any]) -> str:
    arguments = data.get("arguments")
    text = "" if arguments is None else json.dumps(arguments, ensure_ascii=False, default=str)
    return text if len(text) <= _SHORT else f"{text[:_SHORT]}... ({len(text)} characters)"


def _prepared(data: dict[str, Any]) -> str:
    return _join("arguments are valid", _named(data, "digest", "digest"))


def _decided(data: dict[str, Any]) -> str:
    rule, reason = _named(data, "rule_id", "by rule"), data.get("reason")
    return f"{data.get('action', '?')} {rule}".rstrip() + (f": {reason}" if reason else "")


def _asked(data: dict[str, Any]) -> str:
    return _join(
        f"put to a person as {data.get('approval_id', '?')}",
        _named(data, "expires_at", "open until"),
    )


def _answered(data: dict[str, Any]) -> str:
    state = data.get("state")
    if unanswered := _UNANSWERED.get(str(state)):
        return unanswered
    verdict = "approved" if data.get("approved") else "not approved"
    note = f": {data['note']}" if data.get("note") else ""
    late = f" (the approval is {state})" if state not in (None, "", "approved", "denied") else ""
    return f"{verdict} {_named(data, 'by', 'by')}".rstrip() + note + late


def _granted(data: dict[str, Any]) -> str:
    by = data.get("by", "?")
    return _join(
        f"may run once, by {by}",
        _named(data, "rule_id", "rule"),
        _named(data, "approval_id", "approval"),
        _named(data, "grant_id", "run grant"),
    )


def _started(data: dict[str, Any]) -> str:
    rung = data.get("rung")
    attempt = data.get("attempt")
    again = f"attempt {attempt}" if attempt not in (None, 1) else ""
    attested = "its walls were found standing" if data.get("attested") else ""
    return _join("runs" + (f" on the {rung} rung" if rung else ""), again, attested)


def _ended(data: dict[str, Any]) -> str:
    return _join(
        _named(data, "exit", "exit") or "ended",
        _named(data, "killed", "killed:"),
        _named(data, "stdout_bytes", "stdout", " bytes"),
        _named(data, "stderr_bytes", "stderr", " bytes"),
        _named(data, "cpu_seconds", "CPU", " s"),
        _named(data, "peak_memory", "memory", " bytes"),
    )


def _finished(data: dict[str, Any]) -> str:
    category, message = data.get("category"), data.get("message")
    return _join(
        str(data.get("status", "?")) + (f": {category}" if category else ""),
        str(message) if message else "",
        _named(data, "return_code", "exit code"),
        _named(data, "signal", "signal"),
        _named(data, "attempts", "attempts") if data.get("attempts") not in (None, 1) else "",
        _named(data, "output_bytes", "output", " bytes"),
    )


def _settled(data: dict[str, Any]) -> str:
    return _join(_finished(data), _named(data, "by", "settled by"))


def _stopped(data: dict[str, Any]) -> str:
    return _join("the run takes no more calls", str(data.get("reason") or ""))


def _pruned(data: dict[str, Any]) -> str:
    rows, through = data.get("rows", "?"), data.get("through", "?")
    return _join(f"{rows} events removed, up to {through}", str(data.get("reason") or ""))


_WORDS: dict[EventKind, Callable[[dict[str, Any]], str]] = {
    EventKind.RECEIVED: _received,
    EventKind.PREPARED: _prepared,
    EventKind.DECIDED: _decided,
    EventKind.ASKED: _asked,
    EventKind.ANSWERED: _answered,
    EventKind.GRANTED: _granted,
    EventKind.STARTED: _started,
    EventKind.ENDED: _ended,
    EventKind.FINISHED: _finished,
    EventKind.SETTLED: _settled,
    EventKind.STOPPED: _stopped,
    EventKind.PRUNED: _pruned,
}
