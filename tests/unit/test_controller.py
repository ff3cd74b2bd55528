"""Claims of `toolcell.controller`: two ways into execution, and an event at each border.

Inline tools stand in for cells here: the path is the same, and nothing but it is tested.
"""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from toolcell.controller import ToolController
from toolcell.declare import tool
from toolcell.errors import PolicyError, UnknownApprovalError
from toolcell.model import ApprovalRequest, ApprovalResponse, Category, ToolCall
from toolcell.policy import ToolPolicy
from toolcell.registry import ToolRegistry, define

ALLOW, ASK, DENY = (ToolPolicy(**{name: {"note": "why"}}) for name in ("allow", "ask", "deny"))
CALL = ToolCall(call_id="toolu_é/1", name="note", arguments='{"text": "hi"}')


class Bench:
    """A controller whose tool remembers its calls, and what was written of them."""

    def __init__(self, policy):
        self.ran, self.events = [], []
        self.now = datetime(2030, 1, 1, tzinfo=UTC)
        self.full_disk_at = None
        registry = ToolRegistry([self.tool()])
        self.controller = ToolController(
            registry, policy, events=self.keep, clock=lambda: self.now, spare_cells=0
        )

    def tool(self, changed=False):
        def note(text: str) -> str:
            self.ran.append(text)
            return f"noted {text}"

        def wider(text: str, loud: bool = False) -> str:
            return note(text)

        return define(tool(name="note", isolation="inline")(wider if changed else note))

    def keep(self, event):
        if event.kind == self.full_disk_at:
            raise OSError(28, "No space left on device")
        self.events.append(event)

    @property
    def borders(self):
        return [event.kind.value for event in self.events]

    async def ask(self) -> ApprovalRequest:
        request = await self.controller.handle(CALL)
        assert isinstance(request, ApprovalRequest)
        return request

    async def answer(self, request, approved=True, **rest):
        response = ApprovalResponse(
            approval_id=request.approval_id, approved=approved, by="Ada", **rest
        )
        return await self.controller.resolve(response)


async def test_an_allowed_call_runs_and_its_id_comes_back_unchanged():
    bench = Bench(ALLOW)
    result = await bench.controller.handle(CALL)
    assert (result.success, result.output, result.call_id) == (True, "noted hi", CALL.call_id)
    assert bench.borders == [
        *["received", "prepared", "decided", "granted"],
        *["started", "ended", "finished"],
    ]
    assert result.metadata.rule_id == "allow:note"


@pytest.mark.parametrize(
    ("change", "policy", "category", "borders"),
    [
        ({"name": "nothing"}, ALLOW, "unknown_tool", ["received", "finished"]),
        ({"arguments": "{"}, ALLOW, "invalid_arguments", ["received", "finished"]),
        ({}, DENY, "policy_denied", ["received", "prepared", "decided", "finished"]),
        ({}, ToolPolicy(), "policy_denied", ["received", "prepared", "decided", "finished"]),
    ],
)
async def test_a_refusal_is_a_result_with_its_events(change, policy, category, borders):
    bench = Bench(policy)
    result = await bench.controller.handle(CALL.model_copy(update=change))
    assert (result.status, result.error.category) == ("rejected", category)
    assert bench.borders == borders
    assert bench.ran == []


async def test_an_approval_runs_the_call_once():
    bench = Bench(ASK)
    request = await bench.ask()
    assert bench.ran == []
    result = await bench.answer(request)
    assert (result.success, result.metadata.approval_id) == (True, request.approval_id)
    again = await bench.answer(request)
    assert again.error.category is Category.APPROVAL_SPENT
    assert bench.ran == ["hi"]
    assert bench.borders.count("finished") == 1


async def test_of_many_answers_at_once_one_runs_the_call():
    bench = Bench(ASK)
    request = await bench.ask()
    results = await asyncio.gather(*(bench.answer(request) for _ in range(20)))
    assert sum(result.success for result in results) == 1
    assert bench.ran == ["hi"]


async def test_a_no_reaches_the_model_with_its_note():
    bench = Bench(ASK)
    result = await bench.answer(await bench.ask(), approved=False, note="not on a Friday")
    assert result.error.category is Category.APPROVAL_DENIED
    assert "not on a Friday" in result.for_llm()
    assert bench.ran == []


async def test_silence_is_not_consent():
    bench = Bench(ASK)
    request = await bench.ask()
    bench.now = request.expires_at + timedelta(seconds=1)
    result = await bench.answer(request)
    assert result.error.category is Category.APPROVAL_EXPIRED
    assert bench.ran == []


@pytest.mark.parametrize(
    ("policy", "category"),
    [
        (DENY, Category.POLICY_DENIED),
        (ToolPolicy(), Category.POLICY_DENIED),
        (ToolPolicy(ask={"note": "another why"}), Category.APPROVAL_MISMATCH),
        (ALLOW, None),
    ],
)
async def test_a_policy_that_changed_meanwhile_wins(policy, category):
    bench = Bench(ASK)
    request = await bench.ask()
    bench.controller.policy = policy
    result = await bench.answer(request)
    assert (result.error.category if result.error else None) is category
    assert bench.ran == ([] if category else ["hi"])


async def test_a_tool_that_changed_meanwhile_is_not_what_was_approved():
    bench = Bench(ASK)
    request = await bench.ask()
    bench.controller.runtime.registry = ToolRegistry([bench.tool(changed=True)])
    result = await bench.answer(request)
    assert result.error.category is Category.APPROVAL_MISMATCH
    assert bench.ran == []


async def test_a_tool_that_is_gone_meanwhile_is_unknown():
    bench = Bench(ASK)
    request = await bench.ask()
    bench.controller.runtime.registry = ToolRegistry()
    assert (await bench.answer(request)).error.category is Category.UNKNOWN_TOOL


async def test_an_answer_to_a_question_never_asked_is_misuse():
    with pytest.raises(UnknownApprovalError):
        await Bench(ASK).controller.resolve(
            ApprovalResponse(approval_id="apr_x", approved=True, by="Ada")
        )


@pytest.mark.parametrize("border", ["received", "prepared", "decided", "granted"])
async def test_a_call_whose_event_cannot_be_kept_does_not_run(border):
    bench = Bench(ALLOW)
    bench.full_disk_at = border
    result = await bench.controller.handle(CALL)
    assert (result.success, bench.ran) == (False, [])
    assert "could not be recorded" in result.error.message


async def test_a_call_that_ran_keeps_its_result_when_its_end_cannot_be_recorded():
    bench = Bench(ALLOW)
    bench.full_disk_at = "finished"
    result = await bench.controller.handle(CALL)
    assert result.success
    assert "could not be recorded" in result.metadata.event_lost


async def test_a_question_whose_event_cannot_be_kept_is_not_pending():
    bench = Bench(ASK)
    bench.full_disk_at = "asked"
    result = await bench.controller.handle(CALL)
    assert "could not be recorded" in result.error.message
    assert bench.controller.approvals.pending() == []
    bench.full_disk_at = None
    request = await bench.ask()
    assert bench.controller.approvals.pending() == [request], "the control"
    assert bench.ran == []


@pytest.mark.parametrize("full_disk_at", ["finished", None])
async def test_a_cancelled_handle_is_cancelled_whatever_the_event_log_does(full_disk_at):
    started = asyncio.Event()

    async def note(text: str) -> None:
        started.set()
        await asyncio.Event().wait()

    bench = Bench(ALLOW)
    bench.full_disk_at = full_disk_at
    tools = [define(tool(name="note", isolation="inline")(note))]
    bench.controller.runtime.registry = ToolRegistry(tools)
    running = asyncio.create_task(bench.controller.handle(CALL))
    await started.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert bench.borders[4:] == ["started"] + ([] if full_disk_at else ["finished"])


async def test_output_is_not_in_the_events_and_a_secret_is_redacted_in_its_arguments(monkeypatch):
    monkeypatch.setenv("PASSWORD", "hunter2hunter2")
    said = ToolCall(call_id="1", name="note", arguments={"text": "hunter2hunter2"})

    async def written(**redact):
        bench = Bench(ToolPolicy(allow=["note"], redact=redact))
        result = await bench.controller.handle(said)
        assert bench.ran == ["hunter2hunter2"], "what runs is what was asked for"
        return result, "".join(event.model_dump_json() for event in bench.events)

    result, events = await written(env=["PASSWORD"])
    assert "hunter2" not in events + result.model_dump_json()
    assert "[redacted: PASSWORD]" in events
    assert result.output == "noted [redacted: PASSWORD]"
    result, events = await written()
    assert events.count("hunter2hunter2") == 1, "the control: in the arguments, not the output"


def test_a_policy_that_does_not_fit_the_tools_is_refused_at_once():
    with pytest.raises(PolicyError, match="'shel', which is not a tool here"):
        ToolController(ToolRegistry.builtin(), ToolPolicy(deny=["shel"]))


async def test_cancelling_what_does_not_run_says_so():
    assert Bench(ALLOW).controller.cancel("nobody") is False


async def test_cancelling_an_inline_call_says_so_and_ends_the_wait_for_it():
    started = asyncio.Event()

    async def hold() -> None:
        started.set()
        await asyncio.Event().wait()

    registry = ToolRegistry([define(tool(isolation="inline")(hold))])
    controller = ToolController(registry, ToolPolicy(allow=["hold"]), spare_cells=0)
    running = asyncio.create_task(controller.handle(ToolCall(call_id="1", name="hold")))
    await started.wait()
    assert controller.cancel("1") is True
    result = await running
    assert (result.status, result.error.category) == ("cancelled", Category.CANCELLED)
    assert "may still be running" in result.error.message
