"""Tracing: a call as an OpenTelemetry span, its stages as child spans, its time as a metric.

`Tracing` is an event sink, for the extra `otel`. A call's span opens at RECEIVED, below the span
that is current there, and ends at FINISHED, so a call that waits for a person stays open
meanwhile. Stages do not overlap: each border ends the stage before it and may begin the next. A
stage's span is made when the stage ends, and all times are those of the events. A fault of
telemetry is logged and never reaches the call.
"""

import logging
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import toolcell
from toolcell.events import Event, EventKind
from toolcell.model import Status
from toolcell.tracing.attributes import (
    attempt_failed,
    attributes_of,
    error_type,
    error_words,
    identity,
    level,
    measured,
    nanoseconds,
    span_name,
)

try:
    from opentelemetry import metrics, trace

    _INSTALLED = True
except ImportError:  # an extra: this module can be imported without it, Tracing not be made
    _INSTALLED = False

if TYPE_CHECKING:
    from opentelemetry.context import Context

__all__ = ["Tracing"]

_LOG = logging.getLogger(__name__)
_OPT_IN = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_SENDS = {"true", "span_only", "span_and_event"}
_SENDS_NOT = {"", "false", "no_content", "event_only"}
_MOST_OPEN = 20_000  # calls; those that are never answered must not be kept for ever

_STAGES = {
    EventKind.PREPARED: "toolcell.decide",
    EventKind.ASKED: "toolcell.approval",
    EventKind.GRANTED: "toolcell.cell",
    EventKind.STARTED: "toolcell.run",
}
"""The stage that begins at a border; whichever was open ends there."""

_DURATIONS = ("gen_ai.execute_tool.duration", "gen_ai.client.operation.duration")
_BOUNDARIES = [round(0.01 * 2**step, 2) for step in range(14)]

T = TypeVar("T")


class Tracing:
    """An event sink that traces calls and measures how long they take.

    async with ToolController(registry, events=[log, Tracing()]) as controller:
        ...
    """

    def __init__(
        self,
        tracer_provider: "trace.TracerProvider | None" = None,
        meter_provider: "metrics.MeterProvider | None" = None,
        *,
        content: bool | None = None,
    ) -> None:
        """Trace to these providers, or to those that are set for the whole process.

        `content` also sends arguments, output, reasons and notes, redacted; where it is None,
        the environment variable OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT decides ("true",
        "span_only" and "span_and_event" send them). Raises ImportError without the extra.
        """
        if not _INSTALLED:
            raise ImportError(
                "Tracing needs the OpenTelemetry API, which is not installed; "
                "pip install 'toolcell[otel]'"
            )
        scope = ("toolcell", toolcell.__version__)
        self._tracer = trace.get_tracer(*scope, tracer_provider=tracer_provider)
        meter = metrics.get_meter(*scope, meter_provider=meter_provider)
        self._durations = [
            meter.create_histogram(
                name,
                unit="s",
                description="Duration of a tool call, a wait for a person included.",
                explicit_bucket_boundaries_advisory=_BOUNDARIES,
            )
            for name in _DURATIONS
        ]
        self._content = _opted_in() if content is None else content
        self._open: _Newest[_Call] = _Newest()
        self._answers: _Newest[Event] = _Newest()
        self._waiting: _Newest[trace.SpanContext] = _Newest()
        self._complained = False

    def __call__(self, event: Event) -> None:
        """Take one event; never raises."""
        with self._harmless():
            if event.kind not in (EventKind.STOPPED, EventKind.PRUNED):
                self._take(event)

    def close(self) -> None:
        """End the spans of calls that have no end yet, such as those that wait for a person.

        Only spans that ended are exported: call it before the provider is shut down. A call
        that goes on afterwards does so in a span of its own.
        """
        for call in self._open.clear():
            self._abandon(call, datetime.now(UTC))

    @contextmanager
    def _harmless(self) -> Iterator[None]:
        try:
            yield
        except Exception:  # noqa: BLE001  # whatever a span processor raises, the call goes on
            if not self._complained:
                self._complained = True
                _LOG.warning("a call could not be traced; this is said once", exc_info=True)

    def _take(self, event: Event) -> None:
        key = event.key or event.call_id
        if event.kind is EventKind.SETTLED:
            self._settle(event, self._waiting.pop(key))
            return
        last = event.kind is EventKind.FINISHED
        call = self._open.pop(key) if last else self._open.get(key)
        if call is None and event.kind is EventKind.ANSWERED:
            # Not a span yet: it may be a late answer to a call that has had its span.
            self._answers.put(key, event)
            return
        if call is None or event.kind is EventKind.RECEIVED:
            call = self._begin(event, self._answers.pop(key))
            if not last:
                self._keep(key, call, event.at)
        if last:
            self._finish(call, event)
        elif event.kind is not EventKind.ANSWERED or call.stage == "toolcell.approval":
            self._cross(call, event)

    def _begin(self, event: Event, answer: Event | None) -> "_Call":
        """Open a call's span; at its answer, where another process asked."""
        attributes = identity(event)
        if answer:
            attributes |= attributes_of(answer, content=self._content)
        if event.kind is not EventKind.RECEIVED:
            attributes["toolcell.resumed"] = True
        at = answer.at if answer else event.at
        span: trace.Span = trace.INVALID_SPAN
        with self._harmless():
            span = self._tracer.start_span(
                span_name(event), attributes=attributes, start_time=nanoseconds(at)
            )
        return _Call(span, trace.set_span_in_context(span), began=at, since=at)

    def _keep(self, key: str, call: "_Call", now: datetime) -> None:
        for crowded_out in self._open.put(key, call):
            self._abandon(crowded_out, now)

    def _cross(self, call: "_Call", event: Event) -> None:
        attributes = attributes_of(event, content=self._content)
        with self._harmless():
            failed, links = attempt_failed(event), _answered_in(event)
            self._end_stage(call, event.at, attributes, failed=failed, links=links)
        call.stage, call.since = _STAGES.get(event.kind, ""), event.at
        call.decision = attributes.get("toolcell.decision", call.decision)
        if event.kind is not EventKind.ENDED:  # what it tells is true of one attempt only
            call.span.set_attributes(attributes)

    def _end_stage(
        self,
        call: "_Call",
        at: datetime,
        attributes: dict[str, Any],
        *,
        failed: bool = False,
        links: "Sequence[trace.Link]" = (),
    ) -> None:
        if not call.stage or not call.span.get_span_context().is_valid:
            return
        span = self._tracer.start_span(
            call.stage,
            context=call.inside,
            attributes=attributes,
            links=links,
            start_time=nanoseconds(call.since),
        )
        if failed:
            span.set_status(trace.StatusCode.ERROR)
        span.end(nanoseconds(max(at, call.since)))

    def _finish(self, call: "_Call", event: Event) -> None:
        error = error_type(event)
        end = max(event.at, call.began)
        if event.data.get("status") == Status.WAITING:
            self._waiting.put(event.key or event.call_id, call.span.get_span_context())
        with self._harmless():
            self._end_stage(call, event.at, {}, failed=bool(error))
        with self._harmless():
            call.span.set_attributes(attributes_of(event, content=self._content))
        with self._harmless():
            self._tell_error(call, event, error)
        with self._harmless():
            call.span.end(nanoseconds(end))
        with self._harmless():
            told = measured(event, error, call.decision)
            for duration in self._durations:
                duration.record((end - call.began).total_seconds(), told, context=call.inside)

    def _settle(self, event: Event, waited: "trace.SpanContext | None") -> None:
        """The end of a call that waited, as a span of its own: that of the call has ended."""
        error = error_type(event)
        with self._harmless():
            span = self._tracer.start_span(
                "toolcell.settle",
                attributes=identity(event) | attributes_of(event, content=self._content),
                links=[trace.Link(waited)] if waited and waited.is_valid else [],
                start_time=nanoseconds(event.at),
            )
            if error:
                span.set_attribute("error.type", error)
                message = error_words(event, error, content=self._content)
                span.set_status(trace.StatusCode.ERROR, message)
            span.end(nanoseconds(event.at))

    def _tell_error(self, call: "_Call", event: Event, error: str) -> None:
        if not error:
            return
        message = error_words(event, error, content=self._content)
        call.span.set_attributes(
            {
                "error.type": error,
                "langfuse.observation.level": level(event),
                "langfuse.observation.status_message": message,
            }
        )
        call.span.set_status(trace.StatusCode.ERROR, message)
        exception = {"exception.type": error, "exception.message": message}
        call.span.add_event("exception", exception, nanoseconds(event.at))

    def _abandon(self, call: "_Call", now: datetime) -> None:
        """End the span of a call whose end was not seen here."""
        unfinished = {"toolcell.unfinished": True}
        with self._harmless():
            self._end_stage(call, now, unfinished)
        with self._harmless():
            call.span.set_attributes(unfinished)
            call.span.end(nanoseconds(max(now, call.began)))


@dataclass(slots=True)
class _Call:
    """A call whose span is open, and the stage that it is in."""

    span: "trace.Span"
    inside: "Context"
    began: datetime
    since: datetime
    stage: str = ""
    decision: str = ""


class _Newest(Generic[T]):
    """The newest so many values by key; several threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[str, T] = {}

    def get(self, key: str) -> T | None:
        with self._lock:
            return self._values.get(key)

    def pop(self, key: str) -> T | None:
        with self._lock:
            return self._values.pop(key, None)

    def put(self, key: str, value: T) -> list[T]:
        """Keep a value; returns those that had to make room, one of the same key too."""
        with self._lock:
            gone = [self._values.pop(key)] if key in self._values else []
            self._values[key] = value
            while len(self._values) > _MOST_OPEN:
                gone.append(self._values.pop(next(iter(self._values))))
        return gone

    def clear(self) -> list[T]:
        with self._lock:
            values = list(self._values.values())
            self._values.clear()
        return values


def _answered_in(event: Event) -> "list[trace.Link]":
    """The span that a person's answer came in, which is often of another trace than the call's."""
    here = trace.get_current_span().get_span_context()
    return [trace.Link(here)] if event.kind is EventKind.ANSWERED and here.is_valid else []


def _opted_in() -> bool:
    value = os.environ.get(_OPT_IN, "").strip().lower()
    if value not in _SENDS | _SENDS_NOT:
        _LOG.warning(
            "%s is %r, which is not one of %s; no content is traced",
            _OPT_IN,
            value,
            ", ".join(sorted(_SENDS | _SENDS_NOT - {""})),
        )
    return value in _SENDS
