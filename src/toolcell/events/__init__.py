"""Events: their record, the log that keeps them, and what can be read out of it."""

from toolcell.events.log import EventLog
from toolcell.events.reading import EventReader
from toolcell.events.record import Event, EventKind, EventSink, no_events
from toolcell.events.verification import Finding, Verification, verify

__all__ = [
    "Event",
    "EventKind",
    "EventLog",
    "EventReader",
    "EventSink",
    "Finding",
    "Verification",
    "no_events",
    "verify",
]
