"""Claims of waiting tools: a result that keeps its handle, polls through the whole path, one end.

Inline tools and scripted ones stand in for cells; `tests/integration/test_own_tools.py` has the
frame that a worker sends.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox_workers import wire
from toolcell import ToolError, ToolPolicy, Waiting, tool
from toolcell.cells.conversation import Conversation, State
from toolcell.errors import RegistrationError, ToolcellError
from toolcell.events import EventKind
from toolcell.events.statistics import statistics
from toolcell.events.timeline import outcome
from toolcell.model import ApprovalRequest, ToolCall
from toolcell.normalizer import Origin
from toolcell.preparing import check_tools, prepare
from toolcell.registry import ToolRegistry, define
from toolcell.testing import AsyncFakeController, Hangs, Waits, scripted

from .samples import greet, inline, prepared

HANDLE = {"type": "object", "properties": {"handle": {"type": "string"}}, "required": ["handle"]}


def stand(*answers, policy=None, polled="j1", **options):
    """A tool that waits, and the one that is asked for it."""
    events = []
    tools = [
        scripted("job", *[Waits(polled) for _ in range(3)], poll="check"),
        scripted("check", *answers, schema=HANDLE),
    ]
    allow = policy or ToolPolicy(allow=["job", "check"])
    made = AsyncFakeController(tools, allow, events=events.append, **options)
    return made, events


def settled(events):
    return [event for event in events if event.kind is EventKind.SETTLED]


async def test_a_result_that_waits_is_no_success_and_no_error_and_says_how_to_go_on():
    controller, _ = stand()
    result = await controller.call("job")
    assert (result.status, result.success, result.error) == ("waiting", False, None)
    assert result.waiting.model_dump() == {
        **{"state": "queued", "handle": "j1", "note": "", "poll": "check"},
    }
    assert 'call check with {"handle": "j1"}' in result.for_llm()


@pytest.mark.parametrize(
    ("answer", "status"), [("built", "succeeded"), (ToolError("it broke"), "failed")]
)
async def test_a_poll_answers_for_the_first_call_and_settles_it_once(answer, status):
    controller, events = stand(Waits("j1"), answer, answer)
    first = await controller.call("job")
    still = await controller.poll(first)
    assert (still.status, still.call_id, still.tool_name) == ("waiting", "call-1", "job")
    assert settled(events) == []
    done = await controller.poll(still)
    assert (done.status, done.call_id, done.tool_name) == (status, "call-1", "job")
    [end] = settled(events)
    assert (end.call_id, end.data["status"]) == ("call-1", status)
    assert end.key == events[0].key
    await controller.poll(still)
    assert len(settled(events)) == 1, "a call has one end"


async def test_a_poll_is_a_call_of_its_own_that_the_policy_decides():
    controller, events = stand("built")
    first = await controller.call("job")
    await controller.poll(first)
    polled = [each.call_id for each in events if each.kind is EventKind.DECIDED]
    assert polled == ["call-1", "call-1/poll-1"]
    assert settled(events)[0].data["by"] == "call-1/poll-1"


async def test_a_poll_that_the_policy_denies_settles_nothing():
    controller, events = stand("built", policy=ToolPolicy(allow=["job"]))
    result = await controller.poll(await controller.call("job"))
    assert (result.status, result.call_id) == ("rejected", "call-1")
    assert settled(events) == []


async def test_a_poll_that_is_asked_about_settles_when_it_has_run():
    policy = ToolPolicy(allow=["job"], ask={"check": "a person looks"})
    controller, events = stand("built", policy=policy)
    request = await controller.poll(await controller.call("job"))
    assert isinstance(request, ApprovalRequest)
    assert settled(events) == []
    await controller.approve(request)
    assert len(settled(events)) == 1


async def test_a_poll_that_ran_out_of_time_leaves_the_call_waiting():
    controller, events = stand(Hangs(), "built")
    first = await controller.call("job")
    assert (await controller.poll(first)).status == "timed_out"
    assert settled(events) == []
    assert (await controller.poll(first)).output == "built"
    assert len(settled(events)) == 1


async def test_a_model_that_asks_itself_settles_the_call_too():
    controller, events = stand("built", "of nobody")
    await controller.call("job")
    assert (await controller.call("check", handle="another")).output == "built"
    assert settled(events) == [], "a handle that nobody waits under is an ordinary argument"
    await controller.call("check", handle="j1")
    assert [event.call_id for event in settled(events)] == ["call-1"]


async def test_a_call_that_is_given_another_handle_goes_on_under_that():
    controller, events = stand(Waits("j2"), "built")
    first = await controller.call("job")
    still = await controller.poll(first)
    assert still.waiting.handle == "j2"
    assert (await controller.poll(still)).output == "built"
    assert [event.call_id for event in settled(events)] == ["call-1"]


async def test_all_that_wait_under_one_handle_are_settled_together():
    controller, events = stand("built")
    await controller.call("job")
    await controller.poll(await controller.call("job"))
    assert [event.call_id for event in settled(events)] == ["call-1", "call-2"]


async def test_a_full_disk_at_the_end_is_told_by_the_poll():
    def full(event):
        if event.kind is EventKind.SETTLED:
            raise OSError(28, "No space left on device")

    tools = [
        scripted("job", Waits("j"), poll="check"),
        scripted("check", "built", schema=HANDLE),
    ]
    controller = AsyncFakeController(tools, events=full)
    result = await controller.poll(await controller.call("job"))
    assert (result.output, "No space left" in result.metadata.event_lost) == ("built", True)


async def test_what_does_not_wait_cannot_be_polled():
    controller, _ = stand("built")
    result = await controller.call("check", handle="x")
    with pytest.raises(ToolcellError, match="it is succeeded"):
        await controller.poll(result)


async def test_an_inline_tool_waits_the_same_way():
    @tool(isolation="inline", poll="look")
    def order() -> Waiting:
        return Waiting("accepted", handle="o-1", note="tomorrow")

    def look(handle: str) -> str:
        return f"{handle} is here"

    controller = AsyncFakeController(registry=ToolRegistry([define(order), inline(look)]))
    from toolcell import ToolController  # the real one: inline code runs in it

    real = ToolController(controller.runtime.registry, ToolPolicy(allow=["order", "look"]))
    first = await real.handle(ToolCall(call_id="1", name="order"))
    assert (first.status, first.waiting.note) == ("waiting", "tomorrow")
    assert (await real.poll(first)).output == "o-1 is here"


@pytest.mark.parametrize("change", [{"state": "lost"}, {"handle": ""}, {"handle": "x" * 513}])
def test_a_tool_cannot_wait_without_a_state_and_a_handle(change):
    with pytest.raises(ValueError, match=r"waits accepted|a handle is text"):
        Waiting(**({"state": "queued", "handle": "j"} | change))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({}, None),
        ({"state": "done"}, "whose state cannot be one"),
        ({"handle": ""}, "whose handle cannot be one"),
        ({"handle": "x" * 513}, "whose handle cannot be one"),
        ({"note": "x" * 4001}, "whose note cannot be one"),
        ({"note": 1}, "wrong fields"),
        ({"more": 1}, "wrong fields"),
    ],
)
def test_a_worker_that_claims_to_wait_in_another_way_breaks_the_conversation(change, problem):
    conversation = Conversation()
    conversation.feed(wire.frame({"type": "ready"}))
    conversation.ask(prepared(define(greet), name="Ada"), None)
    said = {"type": "waiting", "state": "queued", "handle": "j", "note": ""} | change
    conversation.feed(wire.frame(said))
    assert conversation.state is (State.BROKEN if problem else State.ANSWERED)
    assert problem is None or problem in conversation.problem


@given(kind=st.sampled_from(["exception", "memory", "disk", "bad_reply", "tool_error"]))
def test_only_a_tools_own_refusal_may_say_that_it_passes(kind):
    conversation = Conversation()
    conversation.feed(wire.frame({"type": "ready"}))
    conversation.ask(prepared(define(greet), name="Ada"), None)
    said = {"type": "error", "kind": kind, "name": "N", "message": "", "hint": ""}
    conversation.feed(wire.frame(said | {"retryable": True}))
    assert (conversation.state is State.ANSWERED) is (kind == "tool_error")


@pytest.mark.parametrize(
    ("poll", "problem"), [("nobody", "not a tool here"), ("greet", "take a `handle`")]
)
def test_a_tool_that_nobody_can_be_asked_for_is_refused_at_once(poll, problem):
    job = define(greet).model_copy(update={"poll": poll})
    with pytest.raises(RegistrationError, match=problem):
        check_tools(ToolRegistry([job]))
    late = ToolRegistry()
    check_tools(late)  # as a runtime does when it is made
    late.register(job)
    call = ToolCall(call_id="1", name=job.name, arguments={"name": "Ada"})
    assert problem in prepare(late, Origin(call)).error.message


async def test_the_account_of_a_call_that_waited_ends_with_its_end():
    controller, events = stand(ToolError("it broke"))
    first = await controller.call("job")
    mine = [event for event in events if event.call_id == "call-1"]
    assert outcome(mine).startswith("waiting, exit code 0")
    assert statistics(events).waiting == 1
    await controller.poll(first)
    mine = [event for event in events if event.call_id == "call-1"]
    assert outcome(mine).startswith("failed: tool_error, it broke")
    found = statistics(events)
    assert (found.waiting, found.calls, {each.tool: each.failed for each in found.tools}) == (
        *(0, 2),
        {"job": 1, "check": 1},
    )
