"""Claims of the controller about the ends of calls: each has one, and it says what happened."""

import asyncio
import math
from datetime import timedelta

import pytest

from toolcell import breaker
from toolcell.approvals import PendingApprovals, Spending
from toolcell.controller import ToolController
from toolcell.declare import tool
from toolcell.errors import StoreError, ToolcellError, UnknownApprovalError, WorkspaceError
from toolcell.events import EventKind, EventLog
from toolcell.model import (
    ApprovalResponse,
    ApprovalState,
    Category,
    Enforcement,
    ErrorInfo,
    Report,
    ToolCall,
    ToolResult,
)
from toolcell.normalizer import Origin, refused
from toolcell.policy import ToolPolicy
from toolcell.policy.file import load_layer
from toolcell.policy.layers import tighten
from toolcell.registry import ToolRegistry, define

from .test_asking import ASK, Bench
from .test_controller import ALLOW, CALL
from .test_controller import Bench as Notes


def ends(bench):
    """How many ends each call has, by its key."""
    keys = {event.key for event in bench.events}
    finished = [event.key for event in bench.events if event.kind is EventKind.FINISHED]
    return [finished.count(key) for key in sorted(keys)]


async def test_who_does_not_win_the_spending_does_not_run():
    class Lost(PendingApprovals):
        def spend(self, approval_id):
            won = super().spend(approval_id)
            return Spending(False, won.approval)

    bench = Bench(store=Lost())
    result = await bench.answer(await bench.ask("git push"))
    assert result.error.category is Category.APPROVAL_SPENT
    assert bench.ran == []


def test_a_policy_that_lends_a_workspace_needs_one():
    with pytest.raises(WorkspaceError):
        ToolController(ToolRegistry.builtin(), ToolPolicy(allow=["echo"]))


async def test_the_file_of_a_layer_is_protected(tmp_path):
    path = tmp_path / "toolcell.toml"
    path.write_text("version = 1\n")
    bench = Bench(tighten(ASK, load_layer(path)))
    assert str(path) in bench.controller.runtime.supply.protected


async def test_a_call_whose_start_cannot_be_recorded_does_not_run():
    bench = Notes(ALLOW)
    bench.full_disk_at = "started"
    result = await bench.controller.handle(CALL)
    assert (bench.ran, result.success) == ([], False)


async def test_a_refusal_that_cannot_be_recorded_says_so():
    bench = Notes(ToolPolicy(deny={"note": "no"}))
    bench.full_disk_at = "finished"
    result = await bench.controller.handle(CALL)
    assert "could not be recorded" in result.error.message


async def test_a_grant_that_the_store_still_lists_has_to_stand():
    bench = Bench()
    await bench.answer(await bench.ask("git push"), remember="call")
    kept = bench.store.grants(bench.controller.run)
    bench.store.grants = lambda run=None: kept
    bench.now += timedelta(days=2)
    await bench.ask("git push")


async def test_a_grant_for_a_prefix_is_for_one_tool():
    bench = Bench()
    await bench.answer(await bench.ask("git push"), remember="prefix")
    (grant,) = bench.store.grants(bench.controller.run)
    bench.store.grants = lambda run=None: [grant.model_copy(update={"tool_name": "other"})]
    await bench.ask("git push")


async def test_an_approval_that_no_longer_covers_its_call_is_taken_back():
    bench = Bench()
    request = await bench.ask("git push")
    bench.controller.policy = ASK.changed(limits={"wall": 5})
    result = await bench.answer(request)
    assert result.error.category is Category.APPROVAL_MISMATCH
    stands = bench.store.get(request.approval_id)
    assert (stands.state, stands.outcome) == (ApprovalState.CANCELLED, "rejected")
    assert bench.kinds()[-1] == "finished"


async def test_a_no_is_told_as_one_in_the_events():
    bench = Bench()
    await bench.answer(await bench.ask("git push"), approved=False)
    (answered,) = [each for each in bench.events if each.kind == "answered"]
    assert answered.data["approved"] is False


async def test_the_outcome_of_a_spent_approval_is_the_call_s():
    bench = Bench()
    request = await bench.ask("git push")
    await bench.answer(request)
    assert bench.store.get(request.approval_id).outcome == "succeeded"


@pytest.mark.parametrize("through_a_link", [False, True])
def test_events_may_not_lie_in_the_workspace(tmp_path, through_a_link):
    inside, outside = tmp_path / "w", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    place = inside
    if through_a_link:
        place = inside / "link"
        place.symlink_to(outside)
    with pytest.raises(StoreError, match="lies in the workspace"):
        ToolController(ToolRegistry.builtin(), "default", inside, events=EventLog(place / "e.db"))


def test_the_breaker_forgets_the_call_that_was_refused_longest_ago():
    counts, error = breaker.RefusalCount(), ErrorInfo(category=Category.POLICY_DENIED, message="no")

    def add(name):
        call = ToolCall(call_id="1", name=name)
        return counts.add(call, refused(Origin(call), error))

    for number in range(breaker._REMEMBERED + 1):
        add(str(number))
    assert add(str(breaker._REMEMBERED)) == 2
    assert add("0") == 1


@pytest.mark.parametrize("method", ["grants", "approved", "create", "spend"])
async def test_a_call_whose_approval_cannot_be_kept_has_one_end(monkeypatch, method):
    bench = Bench()
    if method == "spend":
        request = await bench.ask("git push")
        bench.store.answer(
            ApprovalResponse(approval_id=request.approval_id, approved=True, by="Ada")
        )
        bench.events.clear()

    def broken(*args, **kwargs):
        raise StoreError("approvals.db cannot be written")

    monkeypatch.setattr(bench.store, method, broken)
    result = await bench.run("git push")
    assert result.error.category is Category.CELL_SETUP
    assert ends(bench) == [1]


async def test_a_call_that_is_cancelled_while_its_line_is_read_has_one_end(monkeypatch):
    bench = Bench()
    reading = asyncio.Event()

    async def read_ahead(prepared):
        reading.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(bench.controller._steps.decider, "read_ahead", read_ahead)
    task = asyncio.create_task(bench.propose("git push"))
    await reading.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert ends(bench) == [1]


@pytest.mark.parametrize("border", ["received", "prepared", "decided", "granted", "started"])
async def test_an_event_that_is_lost_once_does_not_take_the_end_with_it(border):
    bench = Notes(ALLOW)
    good = []
    bench.controller._steps.journal.sinks += (good.append,)
    bench.full_disk_at = border
    assert not (await bench.controller.handle(CALL)).success
    assert bench.ran == []
    for events in (bench.events, good):
        assert [event.kind for event in events].count(EventKind.FINISHED) == 1


async def test_a_call_made_again_that_runs_on_an_older_approval_ends_both():
    bench = Bench()
    request = await bench.ask("git push")
    bench.store.answer(ApprovalResponse(approval_id=request.approval_id, approved=True, by="Ada"))
    assert (await bench.run("git push")).success
    assert ends(bench) == [1, 1]
    late = await bench.controller.wait(request)
    assert late.error.category is Category.APPROVAL_SPENT
    assert ends(bench) == [1, 1]


async def test_an_approval_that_is_used_a_moment_before_leads_to_a_question(monkeypatch):
    bench = Bench()
    request = await bench.ask("git push")
    bench.store.answer(ApprovalResponse(approval_id=request.approval_id, approved=True, by="Ada"))
    found = bench.store.approved

    def raced(*args):
        given = found(*args)
        bench.store.spend(given.approval_id)
        return given

    monkeypatch.setattr(bench.store, "approved", raced)
    assert (await bench.ask("git push")).approval_id != request.approval_id
    assert bench.ran == []


async def test_an_approval_that_expires_before_it_is_spent_ends_its_call_once(monkeypatch):
    bench = Bench()
    request = await bench.ask("git push")
    spend = bench.store.spend

    def late(approval_id):
        bench.now += timedelta(days=1)
        return spend(approval_id)

    monkeypatch.setattr(bench.store, "spend", late)
    result = await bench.answer(request)
    assert result.error.category is Category.APPROVAL_EXPIRED
    assert (ends(bench), bench.ran) == ([1], [])


async def test_a_workspace_that_comes_back_lets_the_approved_call_run_and_end_once(tmp_path):
    place = tmp_path / "w"
    place.mkdir()
    store, events = PendingApprovals(60), []
    controller = ToolController(
        ToolRegistry.builtin(),
        ToolPolicy(ask={"shell": "why"}),
        place,
        approvals=store,
        events=events.append,
        spare_cells=0,
    )
    call = ToolCall(call_id="1", name="shell", arguments={"command": "true"})
    request = await controller.handle(call)
    place.rename(tmp_path / "away")
    yes = ApprovalResponse(approval_id=request.approval_id, approved=True, by="Ada")
    for _ in range(2):
        assert (await controller.resolve(yes)).error.category is Category.CELL_SETUP
    assert EventKind.FINISHED not in [event.kind for event in events]
    assert store.get(request.approval_id).state is ApprovalState.APPROVED


async def test_a_closed_controller_uses_no_approval_up():
    bench = Bench()
    request = await bench.ask("git push")
    await bench.controller.close()
    with pytest.raises(ToolcellError, match="closed"):
        await bench.answer(request)
    assert bench.store.get(request.approval_id).state is ApprovalState.APPROVED


async def test_a_run_that_was_stopped_runs_no_approved_call_either():
    bench = Bench(ASK.changed(breaker={"warn": 0, "end": 1}))
    request = await bench.ask("git push")
    await bench.run("rm x")
    result = await bench.answer(request)
    assert "this run has ended" in result.for_llm()
    assert bench.ran == []
    assert bench.store.get(request.approval_id).state is ApprovalState.CANCELLED


async def test_a_no_after_a_yes_ends_the_grant_that_came_with_it():
    bench = Bench()
    request = await bench.ask("git push")
    yes = ApprovalResponse(
        approval_id=request.approval_id, approved=True, by="somebody", remember="call"
    )
    bench.store.answer(yes)
    result = await bench.answer(request, approved=False, note="wait")
    assert "Ada did not approve this call: wait" in result.for_llm()
    await bench.ask("git push")


async def test_an_outcome_that_cannot_be_kept_does_not_take_the_result_with_it(monkeypatch):
    bench = Bench()
    request = await bench.ask("git push")

    def gone(approval_id, outcome):
        raise UnknownApprovalError("the file was moved away")

    monkeypatch.setattr(bench.store, "settle", gone)
    result = await bench.answer(request)
    assert result.success
    assert "the file was moved away" in result.metadata.event_lost


def flaky(text: str) -> str:
    """Stands for a tool whose worker is lost; no cell is made for it here."""
    return text


async def test_a_retry_that_cannot_be_recorded_leaves_the_result_of_the_first_try(monkeypatch):
    bench, tries = Notes(ALLOW), []
    noted = define(tool(name="note", idempotent=True, retries=3)(flaky))
    bench.controller.runtime.registry = ToolRegistry([noted])

    async def in_cell(attempt):
        bench.full_disk_at = "started" if tries else None
        attempt.tell_start(Enforcement())
        tries.append(attempt.number)
        return Report(), Enforcement()  # it ended, and nobody could tell how

    monkeypatch.setattr(bench.controller.runtime, "_in_cell", in_cell)
    result = await bench.controller.handle(CALL)
    assert (tries, result.source) == ([1], "cell")
    assert result.error.category is Category.WORKER_LOST
    assert "could not be recorded" in result.metadata.event_lost


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "arguments",
    [
        *[{"text": "\ud800"}, '{"text": "\ud800"}', {"text": math.nan}, {"text": nested(3000)}],
        *[{"text": 10**5000}, "\x00", "[" * 9000],
    ],
    ids=lambda value: type(value).__name__,
)
async def test_whatever_a_model_sends_ends_in_a_result_and_one_end(arguments):
    bench = Notes(ALLOW)
    call = CALL.model_copy(update={"arguments": arguments})
    result = await bench.controller.handle(call)
    assert isinstance(result, ToolResult)
    assert result.error.category is Category.INVALID_ARGUMENTS
    assert ends(bench) == [1]
    "".join(event.model_dump_json() for event in bench.events)


async def test_a_token_in_a_name_or_an_id_is_redacted_in_the_events():
    token = "gh" + "p_" + "a1B2c3D4e5" * 4
    bench = Notes(ALLOW)
    call = ToolCall(call_id=token, name=token, arguments={})
    assert not (await bench.controller.handle(call)).success
    written = "".join(event.model_dump_json() for event in bench.events)
    assert token not in written
    assert "[redacted: " in written


async def test_the_policy_that_is_set_while_a_line_is_read_decides(monkeypatch):
    bench = Bench()
    steps = bench.controller._steps
    read_ahead = steps.decider.read_ahead

    async def replaced(prepared):
        read = await read_ahead(prepared)
        bench.controller.policy = ToolPolicy(deny={"sh": "not any more"})
        return read

    monkeypatch.setattr(steps.decider, "read_ahead", replaced)
    result = await bench.run("ls")
    assert result.error.category is Category.POLICY_DENIED
    assert bench.ran == []
