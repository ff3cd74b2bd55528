"""Approvals and events: what a person approved is what runs, once, and every border is written."""

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from toolcell import (
    Action,
    ApprovalRequest,
    ApprovalResponse,
    Event,
    PendingApprovals,
    ToolCall,
    ToolController,
    ToolPolicy,
    ToolRegistry,
    ToolResult,
    UnknownApprovalError,
)

pytestmark = [pytest.mark.isolation, pytest.mark.any_user]

_ASKS = ToolPolicy(name="asks", ask={"write_file": "it changes files"}, allow=["echo", "shell"])


class Log:
    """An event sink in memory."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def __call__(self, event: Event) -> None:
        self.events.append(event)

    def kinds(self, call_id: str = "1") -> list[str]:
        return [str(event.kind) for event in self.events if event.call_id == call_id]


@pytest.fixture
def log() -> Log:
    """Keep what the controller emits."""
    return Log()


@pytest.fixture
def asking(runner: Any, log: Log) -> ToolController:
    """A controller whose policy asks before files are written."""
    return runner(policy=_ASKS, events=log).controller


async def _ask(controller: ToolController, call_id: str = "1", **arguments: Any) -> ApprovalRequest:
    arguments = {"path": "file", "content": "approved"} | arguments
    call = ToolCall(call_id=call_id, name="write_file", arguments=arguments)
    request = await controller.handle(call)
    assert isinstance(request, ApprovalRequest)
    return request


def _yes(request: ApprovalRequest, **changes: Any) -> ApprovalResponse:
    answer = {"approval_id": request.approval_id, "approved": True, "by": "anna"} | changes
    return ApprovalResponse(**answer)


def _category(result: ToolResult) -> str | None:
    return result.error and str(result.error.category)


async def test_nothing_runs_until_a_person_approves(asking: Any, workspace: Path) -> None:
    request = await _ask(asking)
    assert request.reason == "it changes files"
    assert request.call.arguments == {"path": "file", "content": "approved", "parents": False}
    assert not (workspace / "file").exists()
    result = await asking.resolve(_yes(request))
    assert result.success, result.for_llm()
    assert (workspace / "file").read_text() == "approved"
    assert result.metadata.approval_id == request.approval_id
    assert result.call_id == "1"


async def test_what_was_approved_is_what_runs(asking: Any, workspace: Path) -> None:
    arguments = {"path": "file", "content": "approved"}
    call = ToolCall(call_id="1", name="write_file", arguments=arguments)
    request = await asking.handle(call)
    arguments["content"] = call.arguments["content"] = "changed meanwhile"  # type: ignore[index]
    result = await asking.resolve(_yes(request))
    # Either it runs as it was shown, or it does not run.
    assert not result.success or (workspace / "file").read_text() == "approved"


async def test_a_no_reaches_the_model_with_its_note(asking: Any, workspace: Path) -> None:
    request = await _ask(asking)
    result = await asking.resolve(_yes(request, approved=False, note="write to /tmp instead"))
    assert _category(result) == "approval_denied"
    assert "write to /tmp instead" in result.for_llm()
    assert not (workspace / "file").exists()


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("second", [True, False])
async def test_an_approval_is_good_for_one_answer(
    asking: Any, log: Log, workspace: Path, first: bool, second: bool
) -> None:
    request = await _ask(asking)
    await asking.resolve(_yes(request, approved=first))
    (workspace / "file").write_text("untouched")
    again = await asking.resolve(_yes(request, approved=second))
    assert _category(again) == ("approval_spent" if first else "approval_denied")
    assert (workspace / "file").read_text() == "untouched"
    assert log.kinds().count("finished") == 1


async def test_of_two_answers_at_once_one_wins(asking: Any) -> None:
    request = await _ask(asking)
    results = await asyncio.gather(*(asking.resolve(_yes(request)) for _ in range(5)))
    assert sorted(map(str, map(_category, results))) == ["None"] + ["approval_spent"] * 4 or (
        Counter(map(_category, results)) == Counter({None: 1, "approval_spent": 4})
    )


async def test_an_expired_question_cannot_be_answered(runner: Any, workspace: Path) -> None:
    now = [datetime(2024, 1, 1, tzinfo=UTC)]
    store = PendingApprovals(lifetime=60, clock=lambda: now[0])
    controller = runner(policy=_ASKS, approvals=store).controller
    request = await _ask(controller)
    now[0] += timedelta(seconds=60)
    assert store.pending() == []
    for _ in range(2):
        assert _category(await controller.resolve(_yes(request))) == "approval_expired"
    assert not (workspace / "file").exists()


async def test_a_tool_replaced_meanwhile_does_not_run(runner: Any, module: Any) -> None:
    one, other = (
        module("def act() -> int:\n    return 1\n"),
        module("def act() -> int:\n    return 2\n"),
    )
    controller = runner(one.act, policy=ToolPolicy(ask=["act"])).controller
    request = await controller.handle(ToolCall(call_id="1", name="act"))
    controller.runtime.registry = ToolRegistry([other.act])
    assert _category(await controller.resolve(_yes(request))) == "approval_mismatch"


async def test_a_tool_removed_meanwhile_does_not_run(asking: Any) -> None:
    request = await _ask(asking)
    asking.runtime.registry = ToolRegistry()
    assert _category(await asking.resolve(_yes(request))) == "unknown_tool"


@pytest.mark.parametrize(
    ("policy", "category"),
    [
        (ToolPolicy(deny=["write_file"]), "policy_denied"),
        (ToolPolicy(), "policy_denied"),
        (ToolPolicy(ask={"write_file": "another reason"}), "approval_mismatch"),
        (ToolPolicy(allow=["write_file"]), None),
    ],
)
async def test_the_policy_of_the_moment_decides_again(
    asking: Any, policy: ToolPolicy, category: str | None
) -> None:
    request = await _ask(asking)
    asking.policy = policy
    assert _category(await asking.resolve(_yes(request))) == category


async def test_questions_answered_in_another_order_are_not_swapped(
    asking: Any, workspace: Path
) -> None:
    requests = [await _ask(asking, f"id-{n}", path=f"file-{n}", content=str(n)) for n in range(3)]
    assert [r.approval_id for r in asking.approvals.pending()] == [r.approval_id for r in requests]
    for request in reversed(requests):
        result = await asking.resolve(_yes(request))
        assert result.call_id == request.call.call_id
    assert [(workspace / f"file-{n}").read_text() for n in range(3)] == ["0", "1", "2"]


async def test_an_unknown_approval_is_misuse(asking: Any) -> None:
    with pytest.raises(UnknownApprovalError, match="made-up"):
        await asking.resolve(ApprovalResponse(approval_id="made-up", approved=True, by="anna"))


_RAN = "received prepared decided granted started ended finished"
_PATHS = {
    "allowed": ("echo", {"text": "x"}, _RAN),
    "failed": ("shell", {"command": "exit 1"}, _RAN),
    "denied": ("python", {"code": ""}, "received prepared decided finished"),
    "invalid": ("echo", {"text": 1}, "received finished"),
    "unknown": ("nothing", {}, "received finished"),
    "asked": ("write_file", {"path": "a", "content": ""}, "received prepared decided asked"),
}


@pytest.mark.parametrize("path", _PATHS)
async def test_one_event_is_written_at_each_border(asking: Any, log: Log, path: str) -> None:
    name, arguments, kinds = _PATHS[path]
    await asking.handle(ToolCall(call_id="1", name=name, arguments=arguments))
    assert log.kinds() == kinds.split()


async def test_an_answered_call_ends_once(asking: Any, log: Log) -> None:
    await asking.resolve(_yes(await _ask(asking, "yes")))
    await asking.resolve(_yes(await _ask(asking, "no"), approved=False))
    asked = ["received", "prepared", "decided", "asked", "answered"]
    ran = ["granted", "started", "ended", "finished"]
    assert log.kinds("yes") == [*asked, "prepared", "decided", *ran]
    assert log.kinds("no") == [*asked, "finished"]


async def test_a_cancelled_task_ends_once(
    runner: Any, log: Log, workspace: Path, until: Any
) -> None:
    controller = runner(policy=_ASKS, events=log).controller
    command = {"command": "touch on; sleep 20"}
    call = ToolCall(call_id="1", name="shell", arguments=command)
    task = asyncio.create_task(controller.handle(call))
    await until((workspace / "on").exists, "it runs")
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert log.kinds() == ["received", "prepared", "decided", "granted", "started", "finished"]


@pytest.mark.parametrize("full_at", ["received", "prepared", "decided", "granted", "started"])
async def test_a_call_that_cannot_be_recorded_does_not_run(
    runner: Any, workspace: Path, full_at: str
) -> None:
    def sink(event: Event) -> None:
        if event.kind == full_at:
            raise OSError(28, "No space left on device")

    result = await runner(events=sink).sh("touch ran")
    assert _category(result) == "cell_setup"
    assert "No space left" in result.for_llm()
    assert not (workspace / "ran").exists()
    assert (await runner().sh("touch ran")).success, "the control"


async def test_a_call_that_ran_keeps_its_result_when_its_end_cannot_be_recorded(
    runner: Any, workspace: Path
) -> None:
    def sink(event: Event) -> None:
        if event.kind == "finished":
            raise OSError(28, "No space left on device")

    result = await runner(events=sink).sh("touch ran")
    assert result.success
    assert "No space left" in result.metadata.event_lost
    assert (workspace / "ran").exists()


async def test_no_event_holds_output_and_what_is_long_only_in_its_beginning(
    asking: Any, log: Log
) -> None:
    await asking.handle(ToolCall(call_id="1", name="shell", arguments={"command": "echo $((6*7))"}))
    await asking.handle(ToolCall(call_id="2", name="echo", arguments={"text": "a" * 9000 + "end"}))
    written = "".join(event.model_dump_json() for event in log.events)
    assert "42" not in "".join(str(event.data.get("output", "")) for event in log.events)
    assert "end" not in written.replace('"ended"', "").replace("append", "")
    assert "echo $((6*7))" in written
    assert Action.ALLOW in [event.data.get("action") for event in log.events]
