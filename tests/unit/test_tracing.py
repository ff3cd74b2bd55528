"""Claims of `toolcell.tracing`: one span a call, named as documented, silent about content."""

import asyncio
import logging
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

import toolcell
from toolcell import tracing as module
from toolcell.events import Event, EventKind
from toolcell.model import STATUS_OF, Category
from toolcell.registry import define
from toolcell.tracing import Tracing

from .samples import greet, prepared, result

START = datetime(2030, 1, 1, tzinfo=UTC)
SECRET = "s3cr3t words"
TOOL = define(greet)
BORDERS = ("received", "prepared", "decided", "granted", "started", "ended", "finished")
ASKED = ("received", "prepared", "decided", "asked")
ANSWERED = ("answered", "prepared", "decided", "granted", "started", "ended", "finished")
DATA = {
    "received": {"arguments": {"name": SECRET}},
    "prepared": {"digest": "sha256:0"},
    "decided": {"action": "allow", "rule_id": "r1", "reason": SECRET, "policy": "sha256:p"},
    "asked": {"approval_id": "apr_1", "expires_at": "2030-01-02T00:00:00Z"},
    "answered": {
        "approval_id": "apr_1",
        "approved": True,
        "by": SECRET,
        "note": SECRET,
        "state": "spent",
    },
    "granted": {"by": "policy", "rule_id": "r1"},
    "started": {"attempt": 1, "rung": "full", "attested": True},
    "ended": {"attempt": 1, "seconds": 1.0, "exit": 0, "killed": None, "stdout_bytes": 5},
    "finished": {"status": "succeeded", "attempts": 1, "enforced": ["filesystem", "network"]},
}


class Stand:
    """A Tracing that sends to memory, and a clock that goes on by one second a border."""

    def __init__(self, *processors, **options):
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.provider = TracerProvider(shutdown_on_exit=False)
        for processor in (*processors, SimpleSpanProcessor(self.exporter)):
            self.provider.add_span_processor(processor)
        self.meters = MeterProvider([self.reader], shutdown_on_exit=False)
        self.tracing = Tracing(self.provider, self.meters, **options)
        self.now = START

    def tell(self, kind, key="k1", name="greet", about=None, **data):
        """Tell of one border, as a controller does; the data are usual but for the changes."""
        if about is None and kind == "prepared":
            about = prepared(TOOL, name=SECRET)
        self.tracing(
            Event(
                at=self.now,
                kind=EventKind(kind),
                run="run_1",
                key=key,
                call_id=f"call-{key}",
                tool_name=name,
                data=DATA.get(kind, {}) | data,
                about=about,
            )
        )
        self.now += timedelta(seconds=1)

    def walk(self, *kinds, **changes):
        for kind in kinds:
            self.tell(kind, **changes)

    def fail(self, category, message="words", **changes):
        data = {"status": STATUS_OF[category], "category": category, "message": message}
        self.tell("finished", **data, **changes)

    @property
    def spans(self):
        return sorted(self.exporter.get_finished_spans(), key=lambda span: span.start_time)

    @property
    def calls(self):
        return [span for span in self.spans if span.name.startswith("execute_tool")]

    @property
    def call(self):
        (span,) = self.calls
        return span

    @property
    def stages(self):
        return [span for span in self.spans if not span.name.startswith("execute_tool")]

    @property
    def everything(self):
        """All that was sent, as one text."""
        return "".join(span.to_json() for span in self.spans) + str(self.points())

    def points(self, name="gen_ai.execute_tool.duration"):
        read = self.reader.get_metrics_data()
        scopes = [
            scope for res in (read.resource_metrics if read else ()) for scope in res.scope_metrics
        ]
        return [
            point
            for scope in scopes
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]


@pytest.fixture
def stand():
    return Stand()


def seconds(nanoseconds):
    return (nanoseconds - module.nanoseconds(START)) / 1e9


def test_a_call_is_one_span_with_documented_attributes(stand):
    stand.walk(*BORDERS)
    assert stand.call.name == "execute_tool greet"
    assert stand.call.kind is trace.SpanKind.INTERNAL
    assert dict(stand.call.attributes) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "greet",
        "gen_ai.tool.call.id": "call-k1",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.description": "Greet somebody.",
        "langfuse.observation.type": "tool",
        "langsmith.span.kind": "tool",
        "toolcell.run.id": "run_1",
        "toolcell.call.key": "k1",
        "toolcell.call.digest": "sha256:0",
        "toolcell.decision": "allow",
        "toolcell.rule.id": "r1",
        "toolcell.policy.version": "sha256:p",
        "toolcell.grant.by": "policy",
        "toolcell.cell.rung": "full",
        "toolcell.cell.attested": True,
        "toolcell.cell.enforced": ("filesystem", "network"),
        "toolcell.status": "succeeded",
        "toolcell.attempts": 1,
    }
    assert stand.call.instrumentation_scope.name == "toolcell"
    assert stand.call.instrumentation_scope.version == toolcell.__version__


def test_spans_have_the_times_of_the_events(stand):
    stand.walk(*BORDERS)
    times = {span.name: (seconds(span.start_time), seconds(span.end_time)) for span in stand.spans}
    assert times == {
        "execute_tool greet": (0, 6),
        "toolcell.decide": (1, 2),
        "toolcell.cell": (3, 4),
        "toolcell.run": (4, 5),
    }


def test_times_are_exact_to_the_microsecond(stand):
    stand.now = datetime(2030, 1, 1, 0, 0, 0, 123457, tzinfo=UTC)
    stand.walk(*BORDERS)
    assert stand.call.start_time == 1893456000_123457_000


def test_stages_are_children_of_their_call(stand):
    stand.walk(*BORDERS)
    assert {stage.parent.span_id for stage in stand.stages} == {stand.call.context.span_id}
    assert {stage.context.trace_id for stage in stand.stages} == {stand.call.context.trace_id}
    (run,) = [stage for stage in stand.stages if stage.name == "toolcell.run"]
    assert dict(run.attributes) == {
        "toolcell.attempt": 1,
        "toolcell.exit": 0,
        "toolcell.stdout.bytes": 5,
    }


def test_a_call_that_succeeded_is_no_error(stand):
    stand.walk(*BORDERS)
    assert stand.call.status.status_code is StatusCode.UNSET
    assert stand.call.events == ()
    assert not {"error.type", "langfuse.observation.level"} & set(stand.call.attributes)


def test_a_tool_that_goes_on_elsewhere_is_no_error(stand):
    stand.walk(*BORDERS[:-1])
    stand.tell("finished", status="waiting")
    assert stand.call.status.status_code is StatusCode.UNSET
    assert "error.type" not in stand.call.attributes
    assert stand.call.attributes["toolcell.status"] == "waiting"


@pytest.mark.parametrize("category", Category)
def test_a_call_that_did_not_succeed_has_its_category_as_its_error_type(category):
    stand = Stand(content=True)
    stand.walk(*BORDERS[:-1])
    stand.fail(category, "what went wrong")
    found = stand.call.attributes
    refused = STATUS_OF[category] in ("rejected", "cancelled")
    assert found["error.type"] == str(category)
    assert type(found["error.type"]) is str  # not an enum, which an exporter may not know
    assert found["toolcell.status"] == str(STATUS_OF[category])
    assert found["langfuse.observation.level"] == ("WARNING" if refused else "ERROR")
    assert found["langfuse.observation.status_message"] == "what went wrong"
    assert stand.call.status.status_code is StatusCode.ERROR
    assert stand.call.status.description == "what went wrong"
    (event,) = stand.call.events
    assert event.name == "exception"
    assert event.timestamp == stand.call.end_time
    assert dict(event.attributes) == {
        "exception.type": str(category),
        "exception.message": "what went wrong",
    }


def test_an_end_without_a_category_is_still_an_error_if_it_is_no_success(stand):
    stand.tell("received")
    stand.tell("finished", status="failed")
    assert stand.call.attributes["error.type"] == "_OTHER"


def test_a_denied_call_has_no_stage_of_running(stand):
    stand.walk(*BORDERS[:2])
    stand.tell("decided", action="deny")
    stand.fail(Category.POLICY_DENIED)
    assert [stage.name for stage in stand.stages] == ["toolcell.decide"]
    assert stand.call.attributes["toolcell.decision"] == "deny"
    assert stand.call.attributes["error.type"] == "policy_denied"


def test_a_call_that_never_got_a_cell_failed_in_that_stage(stand):
    stand.walk("received", "prepared", "decided", "granted")
    stand.fail(Category.CELL_SETUP)
    assert [(stage.name, stage.status.status_code) for stage in stand.stages] == [
        ("toolcell.decide", StatusCode.UNSET),
        ("toolcell.cell", StatusCode.ERROR),
    ]


def test_a_cancelled_call_ends_the_stage_that_it_was_in(stand):
    stand.walk("received", "prepared", "decided", "granted", "started")
    stand.tell("finished", status="cancelled", category="cancelled")
    run = stand.stages[-1]
    assert (run.name, run.status.status_code) == ("toolcell.run", StatusCode.ERROR)
    assert run.end_time == stand.call.end_time
    assert stand.call.attributes["error.type"] == "cancelled"


def test_each_attempt_is_a_stage_and_the_call_one_span(stand):
    stand.walk("received", "prepared", "decided", "granted", "started")
    stand.tell("ended", exit=-9, killed="memory")
    stand.tell("started", attempt=2)
    stand.tell("ended", attempt=2)
    stand.tell("finished", attempts=2)
    runs = [stage for stage in stand.stages if stage.name == "toolcell.run"]
    assert [run.attributes["toolcell.attempt"] for run in runs] == [1, 2]
    assert [run.status.status_code for run in runs] == [StatusCode.ERROR, StatusCode.UNSET]
    assert runs[0].attributes["toolcell.killed"] == "memory"
    assert stand.call.attributes["toolcell.attempts"] == 2
    assert not {"toolcell.killed", "toolcell.exit"} & set(stand.call.attributes)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        ({"exit": 0, "killed": None}, StatusCode.UNSET),
        ({"exit": 0, "killed": ""}, StatusCode.UNSET),
        ({"exit": 3}, StatusCode.ERROR),
        ({"exit": None, "killed": "wall"}, StatusCode.ERROR),
    ],
)
def test_an_attempt_failed_if_it_was_killed_or_exited_with_a_code(stand, data, code):
    stand.walk(*BORDERS[:5])
    stand.tell("ended", **data)
    stand.tell("finished")
    assert stand.stages[-1].status.status_code is code


# Approvals


def test_a_call_that_waits_for_a_person_is_one_span_from_its_arrival_to_its_end(stand):
    stand.walk(*ASKED)
    assert stand.spans[1:] == [], "nothing but the decision has ended"
    stand.now += timedelta(hours=1)
    stand.walk(*ANSWERED)
    assert [stage.name for stage in stand.stages] == [
        *("toolcell.decide", "toolcell.approval", "toolcell.decide"),
        *("toolcell.cell", "toolcell.run"),
    ]
    approval = stand.stages[1]
    assert approval.end_time - approval.start_time == 3601 * 10**9
    assert dict(approval.attributes) == {
        "toolcell.approval.id": "apr_1",
        "toolcell.approval.approved": True,
        "toolcell.approval.state": "spent",
    }
    assert stand.call.attributes["toolcell.approval.id"] == "apr_1"
    assert "toolcell.resumed" not in stand.call.attributes


def test_the_wait_for_a_person_is_linked_to_where_the_answer_came_from(stand):
    stand.walk(*ASKED)
    with stand.provider.get_tracer("host").start_as_current_span("a button") as button:
        stand.walk(*ANSWERED)
    (approval,) = [stage for stage in stand.stages if stage.name == "toolcell.approval"]
    assert [link.context for link in approval.links] == [button.get_span_context()]
    assert [span.name for span in stand.spans if span.links] == ["toolcell.approval"]
    assert stand.call.parent is None, "it stays in the trace that it began in"


def test_a_no_ends_the_call(stand):
    stand.walk(*ASKED)
    stand.tell("answered", approved=False, state="denied")
    stand.fail(Category.APPROVAL_DENIED)
    assert stand.call.attributes["toolcell.approval.approved"] is False
    assert stand.call.attributes["error.type"] == "approval_denied"


def test_an_answer_in_another_process_begins_a_span_at_the_answer(stand):
    with stand.provider.get_tracer("host").start_as_current_span("host") as parent:
        stand.walk(*ANSWERED)
    assert seconds(stand.call.start_time) == 0
    assert seconds(stand.call.end_time) == len(ANSWERED) - 1
    assert stand.call.parent.span_id == parent.get_span_context().span_id
    found = stand.call.attributes
    assert found["toolcell.resumed"] is True
    assert found["toolcell.call.key"] == "k1"
    assert found["toolcell.approval.id"] == "apr_1"
    assert found["gen_ai.tool.description"] == "Greet somebody."


def test_an_answer_that_comes_too_late_makes_no_span(stand):
    stand.walk(*ASKED, *ANSWERED)
    stand.tell("answered", state="already_spent")
    stand.tracing.close()
    assert len(stand.calls) == 1


def test_an_answer_that_comes_too_late_does_not_cut_the_run_short(stand):
    stand.walk(*ASKED, *ANSWERED[:5])
    stand.tell("answered", state="already_spent")
    stand.walk("ended", "finished")
    run = stand.stages[-1]
    assert run.name == "toolcell.run"
    assert run.end_time - run.start_time == 2 * 10**9
    assert stand.call.attributes["toolcell.approval.state"] == "spent"


def test_a_call_that_is_never_answered_is_sent_when_tracing_is_closed(stand):
    stand.walk(*ASKED)
    assert stand.calls == []
    stand.tracing.close()
    assert stand.call.attributes["toolcell.unfinished"] is True
    assert stand.call.status.status_code is StatusCode.UNSET
    assert stand.stages[-1].name == "toolcell.approval"
    assert stand.stages[-1].attributes["toolcell.unfinished"] is True
    assert stand.points() == [], "it did not run, and nothing is known of how long it takes"


def test_a_call_that_is_answered_after_all_goes_on_in_a_span_of_its_own(stand):
    stand.walk(*ASKED)
    stand.tracing.close()
    stand.walk(*ANSWERED)
    first, second = stand.calls
    assert first.attributes["toolcell.unfinished"] is True
    assert second.attributes["toolcell.resumed"] is True
    assert first.attributes["toolcell.call.key"] == second.attributes["toolcell.call.key"]


def test_calls_that_are_never_answered_do_not_pile_up(stand, monkeypatch):
    monkeypatch.setattr(module, "_MOST_OPEN", 3)
    for number in range(5):
        stand.walk(*ASKED, key=f"k{number}")
    assert [call.attributes["toolcell.call.key"] for call in stand.calls] == ["k0", "k1"]
    assert all(call.attributes["toolcell.unfinished"] for call in stand.calls)
    assert not [span for span in stand.spans if span.links]
    stand.tracing.close()
    assert len(stand.calls) == 5, "the control: the newest were kept open"


def test_late_answers_do_not_pile_up(stand, monkeypatch):
    monkeypatch.setattr(module, "_MOST_OPEN", 3)
    for number in range(5):
        stand.tell("answered", key=f"k{number}")
    assert len(stand.tracing._answers._values) == 3
    assert stand.spans == []


def test_a_key_that_is_received_again_ends_the_call_before_it(stand):
    stand.tell("received")
    stand.walk(*BORDERS)
    assert [call.attributes.get("toolcell.unfinished") for call in stand.calls] == [True, None]


def test_what_is_no_call_is_not_traced(stand):
    stand.tell("stopped", reason="too many denials")
    stand.tell("pruned", rows=3)
    stand.tracing.close()
    assert stand.spans == []


# Content


def full_walk(stand):
    """A call that was asked, answered, ran and failed, with the secret wherever content may be."""
    stand.walk(*ASKED, *ANSWERED[:-1])
    error = {"category": "tool_error", "message": SECRET}
    about = result(status="failed", success=False, output=SECRET, error=error)
    stand.fail(Category.TOOL_ERROR, SECRET, about=about)
    stand.walk(*BORDERS[:-1], key="k2")
    stand.tell("finished", key="k2", about=result(output=SECRET))


@pytest.mark.parametrize("options", [{}, {"content": False}])
def test_no_content_leaves_unless_it_is_opted_into(options):
    stand = Stand(**options)
    full_walk(stand)
    assert len(stand.calls) == 2
    assert SECRET not in stand.everything


def test_on_opt_in_content_leaves_under_documented_names():
    stand = Stand(content=True)
    full_walk(stand)
    failed, succeeded = stand.calls
    arguments = '{"name": "s3cr3t words"}'
    for call in (failed, succeeded):
        assert call.attributes["gen_ai.tool.call.arguments"] == arguments
        assert call.attributes["langfuse.observation.input"] == arguments
        assert call.attributes["input.value"] == arguments
        assert call.attributes["toolcell.decision.reason"] == SECRET
    assert succeeded.attributes["gen_ai.tool.call.result"] == SECRET
    assert succeeded.attributes["langfuse.observation.output"] == SECRET
    assert succeeded.attributes["output.value"] == SECRET
    assert failed.attributes["toolcell.approval.by"] == SECRET
    assert failed.attributes["toolcell.approval.note"] == SECRET
    assert failed.status.description == SECRET
    # The convention wants a result of calls that succeeded only; what the model read is output.
    assert "gen_ai.tool.call.result" not in failed.attributes
    assert failed.attributes["output.value"].startswith(f"{SECRET}\n[failed: tool_error,")
    assert failed.attributes["langfuse.observation.output"] == failed.attributes["output.value"]


def test_arguments_are_those_of_the_event_which_are_redacted():
    stand = Stand(content=True)
    stand.tell("received", arguments={"name": "[redacted]"})
    stand.tell("prepared", about=prepared(TOOL, name="not redacted"))
    stand.walk(*BORDERS[2:])
    assert "not redacted" not in stand.everything
    assert stand.call.attributes["gen_ai.tool.call.arguments"] == '{"name": "[redacted]"}'


def test_a_structured_value_is_sent_as_json():
    stand = Stand(content=True)
    stand.walk(*BORDERS[:-1])
    stand.tell("finished", about=result(output="1 word", structured={"wörter": [1, None]}))
    assert stand.call.attributes["gen_ai.tool.call.result"] == '{"wörter": [1, null]}'


def test_arguments_that_were_too_long_for_the_event_are_not_sent():
    stand = Stand(content=True)
    stand.tracing(Event(at=START, kind=EventKind.RECEIVED, key="k", call_id="c", tool_name="greet"))
    stand.tracing.close()
    assert "gen_ai.tool.call.arguments" not in stand.call.attributes


def test_long_content_is_cut_and_says_how_long_it_was():
    stand = Stand(content=True)
    stand.tell("received", arguments="x" * 100_000)
    stand.walk(*BORDERS[1:])
    sent = stand.call.attributes["gen_ai.tool.call.arguments"]
    assert len(sent) < 17_000
    assert sent.endswith("... (100,000 characters)")


def test_the_end_of_a_call_that_waited_is_a_span_that_leads_to_the_calls(stand):
    stand.walk(*BORDERS[:-1])
    stand.tell("finished", status="waiting")
    settled = {"status": "failed", "category": "tool_error", "message": SECRET, "by": "c1/poll-1"}
    stand.tell("settled", **settled)
    (span,) = [span for span in stand.spans if span.name == "toolcell.settle"]
    assert [link.context for link in span.links] == [stand.call.context]
    assert span.attributes["toolcell.status"] == "failed"
    assert span.attributes["error.type"] == "tool_error"
    assert SECRET not in stand.everything
    stand.tell("settled", key="of another process", **settled)
    assert len(stand.calls) == 1, "it opens no call"


@pytest.mark.parametrize("category", Category)
def test_words_that_may_quote_a_call_are_content(category):
    own = {
        *(
            "unknown_tool",
            "overloaded",
            "budget_spent",
            "cell_setup",
            "worker_lost",
            "approval_expired",
        ),
        *("approval_spent", "approval_mismatch", "wall", "cpu", "memory", "processes"),
        *("output_limit", "exit_code", "signal", "cancelled"),
    }
    stand = Stand()
    stand.walk(*BORDERS[:-1])
    stand.fail(category, SECRET)
    assert stand.call.status.description == (SECRET if category in own else str(category))


@pytest.mark.parametrize(
    ("value", "sends"),
    [
        (None, False),
        ("", False),
        ("false", False),
        ("NO_CONTENT", False),
        ("EVENT_ONLY", False),
        ("true", True),
        ("True", True),
        ("SPAN_ONLY", True),
        ("span_and_event", True),
    ],
)
def test_the_environment_opts_in_as_it_does_for_other_instrumentation(monkeypatch, value, sends):
    name = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
    monkeypatch.delenv(name, raising=False)
    if value is not None:
        monkeypatch.setenv(name, value)
    stand, told = Stand(), Stand(content=not sends)
    full_walk(stand)
    full_walk(told)
    assert (SECRET in stand.everything) is sends
    assert (SECRET in told.everything) is not sends, "what the host says comes first"


def test_an_unknown_value_in_the_environment_sends_nothing_and_is_told(monkeypatch, caplog):
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "yes")
    stand = Stand()
    full_walk(stand)
    assert SECRET not in stand.everything
    assert "'yes', which is not one of" in caplog.text


# Hostile values


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=200))
def test_whatever_a_model_writes_can_be_exported(text):
    stand = Stand(content=True)
    # A model's names are checked to be text; what its arguments hold is not.
    stand.tell("received", arguments={"a": text, text: [text]})
    stand.tell("finished", signal=text, enforced=[text], about=result(structured={"a": text}))
    for value in stand.call.attributes.values():
        for item in value if isinstance(value, tuple) else [value]:
            str(item).encode()


@given(st.text(max_size=100).map(lambda text: f"{text} "))
def test_a_name_that_no_tool_can_have_stays_out_of_names_and_metrics(name):
    stand = Stand()
    stand.tell("received", name=name)
    stand.tell("finished", name=name, status="cancelled", category="cancelled")
    assert stand.call.name == "execute_tool"
    assert len(stand.call.attributes["gen_ai.tool.name"]) < 100
    assert stand.points()[0].attributes["gen_ai.tool.name"] == "_OTHER"


def test_names_that_a_model_made_up_are_one_series_of_the_metric(stand):
    for number in range(20):
        stand.tell("received", key=f"k{number}", name=f"made_up_{number}")
        stand.fail(Category.UNKNOWN_TOOL, key=f"k{number}", name=f"made_up_{number}")
    (point,) = stand.points()
    assert point.count == 20
    assert [call.name for call in stand.calls][:2] == [
        "execute_tool made_up_0",
        "execute_tool made_up_1",
    ]


def test_long_ids_are_cut(stand):
    stand.tracing(
        Event(at=START, kind="received", key="k", call_id="c" * 10_000, tool_name="t" * 10_000)
    )
    stand.tracing.close()
    assert len(stand.call.attributes["gen_ai.tool.call.id"]) < 1100
    assert len(stand.call.attributes["gen_ai.tool.name"]) < 100


def test_a_clock_that_is_set_back_makes_no_span_that_ends_before_it_began(stand):
    for kind in BORDERS:
        stand.tell(kind)
        stand.now -= timedelta(seconds=10)
    assert all(span.end_time >= span.start_time for span in stand.spans)
    assert stand.points()[0].sum == 0


# Metrics


@pytest.mark.parametrize(
    "name", ["gen_ai.execute_tool.duration", "gen_ai.client.operation.duration"]
)
def test_the_duration_is_measured_as_the_convention_says(stand, name):
    stand.walk(*BORDERS)
    stand.walk(*BORDERS[:-1], key="k2")
    stand.fail(Category.WALL, key="k2")
    succeeded, timed_out = sorted(stand.points(name), key=lambda point: len(point.attributes))
    assert dict(succeeded.attributes) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "greet",
        "gen_ai.tool.type": "function",
        "toolcell.decision": "allow",
    }
    assert dict(timed_out.attributes) == dict(succeeded.attributes) | {"error.type": "wall"}
    span = stand.calls[0]
    assert succeeded.sum == seconds(span.end_time) - seconds(span.start_time) == 6
    assert succeeded.explicit_bounds == (
        *(0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64),
        *(1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92),
    )


def test_durations_are_in_seconds(stand):
    stand.walk(*BORDERS)
    (scope,) = stand.reader.get_metrics_data().resource_metrics[0].scope_metrics
    assert {(metric.name, metric.unit) for metric in scope.metrics} == {
        ("gen_ai.execute_tool.duration", "s"),
        ("gen_ai.client.operation.duration", "s"),
    }
    assert scope.scope.name == "toolcell"


def test_calls_that_waited_for_a_person_can_be_told_from_others(stand):
    stand.walk(*BORDERS)
    stand.walk("received", "prepared", key="k2")
    stand.tell("decided", key="k2", action="ask")
    stand.tell("asked", key="k2")
    stand.tell("answered", key="k2", approved=False)
    stand.fail(Category.APPROVAL_DENIED, key="k2")
    decisions = {point.attributes["toolcell.decision"] for point in stand.points()}
    assert decisions == {"allow", "ask"}


# Parents


def test_a_call_is_a_child_of_the_span_that_is_current(stand):
    with stand.provider.get_tracer("host").start_as_current_span("turn") as turn:
        stand.walk(*BORDERS)
    assert stand.call.parent.span_id == turn.get_span_context().span_id
    stand.exporter.clear()
    stand.walk(*BORDERS, key="k2")
    assert stand.call.parent is None, "the control: outside of a span it is a root"


async def test_two_calls_at_once_have_each_their_own_parent(stand):
    tracer = stand.provider.get_tracer("host")
    parents = {}

    async def turn(key):
        with tracer.start_as_current_span(f"turn {key}") as span:
            parents[key] = span.get_span_context().span_id
            for kind in BORDERS:
                stand.tell(kind, key=key)
                await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        for key in ("k1", "k2", "k3"):
            group.create_task(turn(key))
    found = {call.attributes["toolcell.call.key"]: call.parent.span_id for call in stand.calls}
    assert found == parents


@given(st.integers(1, 5), st.randoms(use_true_random=False))
def test_calls_told_in_any_mixture_stay_apart(calls, chance):
    stand = Stand()
    stories = {
        f"k{n}": list(chance.choice([BORDERS, (*ASKED, *ANSWERED), ANSWERED])) for n in range(calls)
    }
    lengths = {key: len(story) for key, story in stories.items()}
    while stories:
        key = chance.choice(sorted(stories))
        stand.tell(stories[key].pop(0), key=key)
        if not stories[key]:
            del stories[key]
    assert sorted(call.attributes["toolcell.call.key"] for call in stand.calls) == sorted(lengths)
    expected = {len(BORDERS): 3, len(ASKED) + len(ANSWERED): 5, len(ANSWERED): 3}
    for call in stand.calls:
        own = [stage for stage in stand.stages if stage.parent.span_id == call.context.span_id]
        assert len(own) == expected[lengths[call.attributes["toolcell.call.key"]]]
        assert {stage.context.trace_id for stage in own} == {call.context.trace_id}
    assert stand.tracing._open._values == {}


def test_threads_may_share_it(stand):
    def calls(thread):
        for number in range(50):
            stand.walk(*BORDERS, key=f"{thread}-{number}")

    threads = [threading.Thread(target=calls, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({call.attributes["toolcell.call.key"] for call in stand.calls}) == 200
    assert len(stand.calls) == 200
    assert sum(point.count for point in stand.points()) == 200


# Faults of telemetry


class Broken(SpanProcessor):
    """Raises where it is told to, for spans whose name begins so."""

    def __init__(self, *where, name=""):
        self.where = where
        self.name = name
        self.raised = 0

    def on_start(self, span, parent_context=None):
        self._maybe("on_start", span)

    def on_end(self, span):
        self._maybe("on_end", span)

    def _maybe(self, where, span):
        if where in self.where and span.name.startswith(self.name):
            self.raised += 1
            raise RuntimeError("the telemetry is broken")


@pytest.mark.parametrize("where", [("on_start",), ("on_end",), ("on_start", "on_end")])
def test_a_broken_span_processor_does_not_reach_the_call(where, caplog):
    broken = Broken(*where)
    stand = Stand(broken)
    for number in range(3):
        stand.walk(*ASKED, *ANSWERED, key=f"k{number}")
    assert broken.raised >= 3
    assert stand.tracing._open._values == {}, "no call is kept because its end failed"
    assert sum(point.count for point in stand.points()) == 3, "what still works goes on"
    (record,) = [r for r in caplog.records if r.name == "toolcell.tracing"]
    assert record.levelno == logging.WARNING
    assert "could not be traced" in record.message
    with pytest.raises(RuntimeError):  # the control
        stand.provider.get_tracer("host").start_span("host").end()


def test_stages_of_a_call_that_has_no_span_are_not_sent_without_it():
    stand = Stand(Broken("on_start", name="execute_tool"))
    stand.walk(*BORDERS)
    assert stand.spans == []
    stand = Stand(Broken("on_start", name="toolcell.run"))
    stand.walk(*BORDERS)
    assert [span.name for span in stand.spans] == [
        *("execute_tool greet", "toolcell.decide", "toolcell.cell")
    ], "the control: what has a span is sent"


def test_an_exporter_that_raises_does_not_reach_the_call_or_other_exporters(caplog):
    class Raises(SpanExporter):
        def export(self, spans):
            raise OSError("no route to the collector")

    stand = Stand(SimpleSpanProcessor(Raises()))
    stand.walk(*BORDERS)
    assert stand.call.name == "execute_tool greet"
    assert "Exception while exporting" in caplog.text  # by the SDK


def test_what_cannot_be_written_as_json_is_left_out_and_the_rest_is_sent(caplog):
    stand = Stand(content=True)
    circle = []
    circle.append(circle)
    stand.tell("received", arguments=circle)
    stand.walk(*BORDERS[1:])
    assert stand.call.attributes["toolcell.status"] == "succeeded"
    assert "could not be traced" in caplog.text


def test_without_an_sdk_nothing_is_sent_and_nothing_fails(caplog):
    tracing = Tracing(trace.NoOpTracerProvider())
    for kind in (*ASKED, *ANSWERED):
        tracing(Event(at=START, kind=kind, key="k", call_id="c", tool_name="t", data=DATA[kind]))
    tracing.close()
    assert caplog.records == []


# The extra


def python(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )


def test_without_the_extra_tracing_says_what_to_install():
    make = "from toolcell.tracing import Tracing; Tracing(); print('made')"
    missing = python(f"import sys; sys.modules['opentelemetry'] = None\n{make}")
    assert missing.returncode == 1
    assert missing.stderr.splitlines()[-1] == (
        "ImportError: Tracing needs the OpenTelemetry API, which is not installed; "
        "pip install 'toolcell[otel]'"
    )
    assert python(make).stdout == "made\n", "the control"


def test_toolcell_runs_without_the_extra():
    done = python(
        "import sys; sys.modules['opentelemetry'] = None\n"
        "import toolcell.cli.app\n"
        "from toolcell import *\n"
        "print(ToolController.__name__)"
    )
    assert done.stdout == "ToolController\n", done.stderr


def test_nothing_else_imports_opentelemetry():
    root = Path(toolcell.__file__).parent
    using = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if "opentelemetry" in path.read_text()
    }
    assert using == {"tracing/__init__.py"}
