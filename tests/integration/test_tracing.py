"""Tracing through a controller: calls that really run, as spans below what the host traces."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode, Tracer

from toolcell import (
    ApprovalRequest,
    ApprovalResponse,
    BlockingController,
    ToolCall,
    ToolPolicy,
    ToolRegistry,
    ToolResult,
)
from toolcell.tracing import Tracing

pytestmark = [pytest.mark.isolation, pytest.mark.any_user]

_ASKS = ToolPolicy(name="asks", ask={"write_file": "it changes files"}, allow=["echo"])


class Traced:
    """Providers that keep what they are sent, and the spans of calls among it."""

    def __init__(self) -> None:
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.meters = MeterProvider([self.reader], shutdown_on_exit=False)

    def sink(self, **options: Any) -> Tracing:
        return Tracing(self.provider, self.meters, **options)

    @property
    def host(self) -> Tracer:
        return self.provider.get_tracer("host")

    @property
    def spans(self) -> list[ReadableSpan]:
        return sorted(self.exporter.get_finished_spans(), key=lambda span: span.start_time or 0)

    @property
    def calls(self) -> list[ReadableSpan]:
        return [span for span in self.spans if span.name.startswith("execute_tool")]

    @property
    def call(self) -> ReadableSpan:
        (span,) = self.calls
        return span

    @property
    def everything(self) -> str:
        return "".join(span.to_json() for span in self.spans)


@pytest.fixture
def traced() -> Iterator[Traced]:
    """Everything that is sent in a test."""
    made = Traced()
    yield made
    made.provider.shutdown()
    made.meters.shutdown()


def _attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def _parent(span: ReadableSpan) -> int | None:
    return span.parent and span.parent.span_id


async def test_a_call_in_a_cell_is_a_span_below_the_hosts(runner: Any, traced: Traced) -> None:
    run = runner(events=traced.sink())
    with traced.host.start_as_current_span("turn") as turn:
        result = await run("echo", text="hello")
    assert result.success, result.for_llm()
    assert traced.call.name == "execute_tool echo"
    assert _parent(traced.call) == turn.get_span_context().span_id
    found = _attributes(traced.call)
    assert found["gen_ai.operation.name"] == "execute_tool"
    assert found["gen_ai.tool.name"] == "echo"
    assert found["gen_ai.tool.call.id"] == result.call_id
    assert found["toolcell.decision"] == "allow"
    assert found["toolcell.status"] == "succeeded"
    assert traced.call.status.status_code is StatusCode.UNSET
    stages = {span.name for span in traced.spans if _parent(span) == traced.call.context.span_id}
    assert {"toolcell.decide", "toolcell.cell"} <= stages


@pytest.mark.parametrize(
    ("command", "category"),
    [("exit 3", "exit_code"), ("kill -9 $$", "signal"), ("sleep 60", "wall")],
)
async def test_a_call_that_failed_is_an_error_of_its_category(
    runner: Any, traced: Traced, command: str, category: str
) -> None:
    result = await runner(limits={"wall": 0.5}, events=traced.sink()).sh(command)
    assert result.error
    assert str(result.error.category) == category
    assert _attributes(traced.call)["error.type"] == category
    assert traced.call.status.status_code is StatusCode.ERROR


async def test_a_refused_call_is_traced_too(runner: Any, traced: Traced) -> None:
    controller = runner(policy=_ASKS, events=traced.sink()).controller
    await controller.handle(ToolCall(call_id="1", name="shell", arguments={"command": "true"}))
    await controller.handle(ToolCall(call_id="2", name="echo", arguments={"text": 1}))
    await controller.handle(ToolCall(call_id="3", name="nothing"))
    assert [_attributes(call)["error.type"] for call in traced.calls] == [
        *("policy_denied", "invalid_arguments", "unknown_tool")
    ]


async def test_a_call_that_was_asked_and_answered_is_one_span(
    runner: Any, traced: Traced, workspace: Path
) -> None:
    controller = runner(policy=_ASKS, events=traced.sink()).controller
    arguments = {"path": "file", "content": "what was approved"}
    with traced.host.start_as_current_span("turn") as turn:
        request = await controller.handle(
            ToolCall(call_id="1", name="write_file", arguments=arguments)
        )
    assert isinstance(request, ApprovalRequest)
    assert traced.calls == []
    answer = ApprovalResponse(approval_id=request.approval_id, approved=True, by="anna")
    result = await controller.resolve(answer)
    assert result.success, result.for_llm()
    assert (workspace / "file").read_text() == "what was approved"
    assert _parent(traced.call) == turn.get_span_context().span_id
    found = _attributes(traced.call)
    assert found["toolcell.approval.id"] == request.approval_id
    assert found["toolcell.decision"] == "ask"
    assert "toolcell.resumed" not in found
    assert [span.name for span in traced.spans].count("toolcell.approval") == 1
    assert "what was approved" not in traced.everything


async def test_calls_at_once_are_below_their_own_parents(runner: Any, traced: Traced) -> None:
    controller = runner(events=traced.sink()).controller
    parents = {}

    async def turn(number: int) -> None:
        with traced.host.start_as_current_span(f"turn {number}") as span:
            parents[f"call_{number}"] = span.get_span_context().span_id
            call = ToolCall(call_id=f"call_{number}", name="echo", arguments={"text": "x"})
            assert (await controller.handle(call)).success

    async with asyncio.TaskGroup() as group:
        for number in range(4):
            group.create_task(turn(number))
    assert {_attributes(c)["gen_ai.tool.call.id"]: _parent(c) for c in traced.calls} == parents


async def test_a_call_whose_task_is_cancelled_has_a_span_that_ends(
    runner: Any, traced: Traced, workspace: Path, until: Any
) -> None:
    run = runner(events=traced.sink())
    task = asyncio.create_task(run.sh("touch on; sleep 20"))
    await until((workspace / "on").exists, "it runs")
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert _attributes(traced.call)["error.type"] == "cancelled"
    assert all(span.end_time for span in traced.spans)


def test_the_blocking_face_keeps_the_callers_span(traced: Traced) -> None:
    policy = ToolPolicy(allow=["echo"], cell={"workspace": "none"})
    registry = ToolRegistry.builtin()
    with (
        BlockingController(registry, policy, events=traced.sink()) as controller,
        traced.host.start_as_current_span("turn") as turn,
    ):
        result = controller.handle(ToolCall(call_id="1", name="echo", arguments={"text": "x"}))
    assert isinstance(result, ToolResult)
    assert result.success, result.for_llm()
    assert _parent(traced.call) == turn.get_span_context().span_id


async def test_broken_telemetry_changes_no_result(runner: Any, traced: Traced) -> None:
    class Broken(SpanProcessor):
        def on_end(self, span: ReadableSpan) -> None:
            raise RuntimeError("the telemetry is broken")

    plain = await runner().sh("echo out; exit 3")
    traced.provider.add_span_processor(Broken())
    result = await runner(events=traced.sink()).sh("echo out; exit 3")
    assert (result.output, result.error) == (plain.output, plain.error)
    assert result.metadata.event_lost == ""


async def test_what_a_call_holds_is_sent_on_opt_in_only(runner: Any, traced: Traced) -> None:
    await runner(events=traced.sink())("echo", text="s3cr3t")
    assert "s3cr3t" not in traced.everything
    traced.exporter.clear()
    await runner(events=traced.sink(content=True))("echo", text="s3cr3t")
    found = _attributes(traced.call)
    assert found["gen_ai.tool.call.arguments"] == '{"text": "s3cr3t"}'
    assert found["langfuse.observation.input"] == '{"text": "s3cr3t"}'
    assert found["input.value"] == '{"text": "s3cr3t"}'
    assert found["gen_ai.tool.call.result"] == "s3cr3t"
    assert found["langfuse.observation.output"] == "s3cr3t"
    assert found["output.value"] == "s3cr3t"


async def test_the_metric_has_the_duration_of_the_span(runner: Any, traced: Traced) -> None:
    await runner(events=traced.sink())("echo", text="hello")
    read = traced.reader.get_metrics_data()
    assert read
    metrics = read.resource_metrics[0].scope_metrics[0].metrics
    points = {metric.name: next(iter(metric.data.data_points)) for metric in metrics}
    assert set(points) == {"gen_ai.execute_tool.duration", "gen_ai.client.operation.duration"}
    call = traced.call
    assert call.start_time
    assert call.end_time
    taken = (call.end_time - call.start_time) / 1e9
    assert all(point.sum == pytest.approx(taken) for point in points.values())
