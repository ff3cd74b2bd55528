"""The journal: how the controller writes events. Redacted first, to each sink in turn.

Before a call runs, an event that cannot be written is an EventLost, and the call does not run.
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from toolcell.approvals import Clock
from toolcell.arguments import strict_json
from toolcell.events import Event, EventKind, EventSink, no_events
from toolcell.model import PreparedToolCall, ToolCall, ToolResult, canonical_json
from toolcell.redaction import Redactor

_ARGUMENTS = 4096


class EventLost(Exception):  # noqa: N818  # caught by the controller, where it becomes a result
    """An event could not be written before the call ran, so it does not run."""


@dataclass(slots=True)
class Journal:
    """Writes the events of one run; `redactor` is that of the policy in force."""

    sinks: tuple[EventSink, ...]
    clock: Clock
    run: str
    redactor: Redactor = field(default_factory=Redactor)

    @classmethod
    def to(cls, sinks: EventSink | Iterable[EventSink], clock: Clock, run: str) -> "Journal":
        """Write to one sink, or to several."""
        several = (sinks,) if callable(sinks) else tuple(sinks)
        return cls(tuple(sink for sink in several if sink is not no_events), clock, run)

    def write(
        self,
        kind: EventKind,
        key: str,
        call: ToolCall,
        about: PreparedToolCall | ToolResult | None = None,
        **data: Any,
    ) -> None:
        """Write one event, to every sink that takes it; raises EventLost if one does not."""
        if not self.sinks:  # the seven of a call take 0.13 ms to make
            return
        event = Event(
            at=self.clock(),
            kind=kind,
            run=self.run,
            key=key,
            call_id=self.redactor.text(call.call_id),
            tool_name=self.redactor.text(call.name),
            data=self.redactor.value(data),
            about=about,
        )
        lost: OSError | None = None
        for sink in self.sinks:
            try:
                sink(event)
            except OSError as error:
                lost = lost or error
        if lost is not None:
            raise EventLost(str(lost)) from lost


def shown_arguments(arguments: dict[str, Any] | str) -> Any:
    """Return arguments for an event: an object where they are one, the start of long ones."""
    if isinstance(arguments, str) and len(arguments) <= _ARGUMENTS:
        with suppress(ValueError):
            arguments = strict_json(arguments)
    try:
        text = arguments if isinstance(arguments, str) else canonical_json(arguments)
        text.encode()
    except (ValueError, RecursionError) as error:
        return {"unreadable": f"they are no JSON: {type(error).__name__}"}
    if len(text) <= _ARGUMENTS:
        return arguments
    return {"start": text[:_ARGUMENTS], "characters": len(text)}
