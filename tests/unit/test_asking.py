"""Claims of the controller about people: grants for a run, repeated calls, waiting, the breaker."""

import asyncio
import shutil
from datetime import UTC, datetime, timedelta

import pytest

from toolcell.approvals import PendingApprovals, SqliteApprovals
from toolcell.controller import ToolController
from toolcell.declare import tool
from toolcell.errors import StoreError, ToolcellError
from toolcell.events import EventKind
from toolcell.model import (
    ApprovalRequest,
    ApprovalResponse,
    ApprovalState,
    Category,
    ToolCall,
    ToolResult,
)
from toolcell.policy import ToolPolicy
from toolcell.registry import ToolRegistry, define

ASK = ToolPolicy(
    allow=["sh"],
    rules=[
        {
            "id": "git",
            "tool": "sh",
            "command": ["git", ["push", "fetch"]],
            "decision": "ask",
            "reason": "it talks to a remote",
        },
        {
            "id": "rm",
            "tool": "sh",
            "command": "rm",
            "decision": "deny",
            "reason": "it deletes",
        },
    ],
)


class Bench:
    """A controller with an inline stand-in for a shell, which remembers the lines it ran."""

    def __init__(self, policy=ASK, store=None, workspace=None, **options):
        self.ran, self.events = [], []
        self.now = datetime(2030, 1, 1, tzinfo=UTC)
        self.store = store or PendingApprovals(60, self.clock)

        def sh(line: str) -> str:
            """Run a line, or say so."""
            self.ran.append(line)
            return "ran"

        mine = define(tool(isolation="inline", shell_line="line")(sh))
        self.controller = ToolController(
            ToolRegistry([mine]),
            policy,
            workspace,
            approvals=self.store,
            events=[self.events.append],
            clock=self.clock,
            spare_cells=0,
            **options,
        )

    def clock(self):
        return self.now

    async def propose(self, line):
        call = ToolCall(call_id="1", name="sh", arguments={"line": line})
        return await self.controller.handle(call)

    async def ask(self, line) -> ApprovalRequest:
        request = await self.propose(line)
        assert isinstance(request, ApprovalRequest), request
        return request

    async def run(self, line) -> ToolResult:
        result = await self.propose(line)
        assert isinstance(result, ToolResult), result
        return result

    async def answer(self, request, *, approved=True, **rest):
        response = ApprovalResponse(
            approval_id=request.approval_id, approved=approved, by="Ada", **rest
        )
        return await self.controller.resolve(response)

    def kinds(self):
        return [event.kind.value for event in self.events]


async def test_a_grant_for_exactly_this_call_covers_it_again_and_nothing_else():
    bench = Bench()
    result = await bench.answer(await bench.ask("git push"), remember="call")
    assert result.success
    assert (await bench.run("git push")).success
    granted = [event for event in bench.events if event.kind is EventKind.GRANTED]
    assert [event.data["by"] for event in granted] == ["approval", "run grant"]
    await bench.ask("git push origin")


async def test_a_grant_for_a_prefix_covers_plain_commands_that_begin_so():
    bench = Bench()
    request = await bench.ask("git push origin a")
    assert request.prefix == ("git", "push")
    await bench.answer(request, remember="prefix")
    for line in ("git push", "git push origin b", "ls && git push"):
        assert (await bench.run(line)).success, line
    for line in ("git fetch", "git push; git fetch", "git -C x push", "git push $X", "$G push"):
        await bench.ask(line)
    denied = await bench.run("git push; rm x")
    assert denied.error.category is Category.POLICY_DENIED, "a grant never loosens a deny"


async def test_a_grant_ends_with_its_time_when_revoked_and_with_the_policy():
    bench = Bench()
    await bench.answer(await bench.ask("git push"), remember="prefix")
    assert (await bench.run("git push")).success
    (grant,) = bench.store.grants(bench.controller.run)
    assert bench.store.revoke(grant.grant_id)
    await bench.answer(await bench.ask("git push"), remember="prefix")
    bench.controller.policy = ASK.changed(limits={"wall": 5})
    await bench.answer(await bench.ask("git push"), remember="prefix")
    assert (await bench.run("git push")).success
    bench.now += timedelta(days=2)
    await bench.ask("git push")


async def test_a_grant_is_for_one_run_in_one_workspace(tmp_path):
    bench = Bench(run="mine")
    await bench.answer(await bench.ask("git push"), remember="prefix")
    assert (await Bench(store=bench.store, run="mine").run("git push")).success, "the control"
    await Bench(store=bench.store, run="other").ask("git push")
    (tmp_path / "w").mkdir()
    await Bench(store=bench.store, run="mine", workspace=tmp_path / "w").ask("git push")


async def test_a_call_that_is_repeated_after_its_approval_runs_once(tmp_path):
    path = tmp_path / "approvals.db"
    bench = Bench(store=SqliteApprovals(path))
    request = await bench.ask("git push")
    elsewhere = SqliteApprovals(path)
    elsewhere.answer(ApprovalResponse(approval_id=request.approval_id, approved=True, by="Bo"))
    result = await bench.run("git push")
    assert (result.success, result.metadata.approval_id) == (True, request.approval_id)
    assert elsewhere.get(request.approval_id).state is ApprovalState.DONE
    await bench.ask("git push")
    assert bench.ran == ["git push"]


async def test_one_waits_for_an_answer_that_is_given_elsewhere(tmp_path):
    path = tmp_path / "approvals.db"
    bench = Bench(store=SqliteApprovals(path))
    first, second = await bench.ask("git push a"), await bench.ask("git push b")
    waiting = [asyncio.create_task(bench.controller.wait(each)) for each in (first, second)]
    elsewhere = SqliteApprovals(path)
    for request, yes in ((second, True), (first, False)):  # in any order
        elsewhere.answer(
            ApprovalResponse(approval_id=request.approval_id, approved=yes, by="Bo", note="no, a")
        )
    denied, ran = await asyncio.gather(*waiting)
    assert ran.success
    assert "no, a" in denied.for_llm()
    assert bench.ran == ["git push b"]
    assert bench.kinds().count("finished") == 2


async def test_a_question_outlives_its_controller(tmp_path):
    path = tmp_path / "approvals.db"
    request = await Bench(store=SqliteApprovals(path)).ask("git push")
    later = Bench(store=SqliteApprovals(path))
    result = await later.answer(request)
    assert result.success
    assert {event.key for event in later.events} == {request.key}
    assert later.ran == ["git push"]


async def test_the_end_of_a_question_that_leads_to_no_run_is_told_once(tmp_path):
    store = SqliteApprovals(tmp_path / "approvals.db")
    benches = [Bench(store=store), Bench(store=store)]
    request = await benches[0].ask("git push")
    results = [await bench.answer(request, approved=False) for bench in benches]
    assert [result.error.category for result in results] == [Category.APPROVAL_DENIED] * 2
    ended = [kind for bench in benches for kind in bench.kinds() if kind == "finished"]
    assert len(ended) == 1


async def test_a_no_that_comes_after_a_yes_and_before_the_run_counts():
    bench = Bench()
    request = await bench.ask("git push")
    bench.store.answer(
        ApprovalResponse(approval_id=request.approval_id, approved=True, by="somebody")
    )
    result = await bench.answer(request, approved=False, note="wait")
    assert result.error.category is Category.APPROVAL_DENIED
    assert bench.ran == []
    assert not (await bench.answer(request)).success


async def test_a_workspace_that_is_gone_keeps_the_approval_for_when_it_is_back(tmp_path):
    place = tmp_path / "workspace"
    place.mkdir()
    mine = ToolPolicy(ask={"shell": "it runs programs"})
    store = PendingApprovals(60)
    controller = ToolController(ToolRegistry.builtin(), mine, place, approvals=store, spare_cells=0)
    call = ToolCall(call_id="1", name="shell", arguments={"command": "true"})
    request = await controller.handle(call)
    shutil.rmtree(place)
    yes = ApprovalResponse(approval_id=request.approval_id, approved=True, by="Ada")
    result = await controller.resolve(yes)
    assert result.error.category is Category.CELL_SETUP
    assert "is not a directory" in result.error.message
    assert store.get(request.approval_id).state is ApprovalState.APPROVED


async def test_an_approval_in_another_workspace_does_not_count(tmp_path):
    store = SqliteApprovals(tmp_path / "approvals.db")
    places = [tmp_path / "a", tmp_path / "b"]
    for place in places:
        place.mkdir()
    request = await Bench(store=store, workspace=places[0]).ask("git push")
    other = Bench(store=store, workspace=places[1])
    result = await other.answer(request)
    assert result.error.category is Category.APPROVAL_MISMATCH
    assert other.ran == []


async def test_a_model_that_repeats_a_refused_call_is_told_and_then_stopped():
    bench = Bench(ASK.changed(breaker={"warn": 2, "end": 4}))
    results = [await bench.run("rm x") for _ in range(4)]
    told = ["has now been refused" in result.error.hint for result in results]
    assert told == [False, True, True, True]
    assert "refused 2 times" in results[1].for_llm()
    assert bench.controller.stopped == "sh was refused 4 times with the same arguments"
    other = await bench.run("ls")
    assert other.error.category is Category.POLICY_DENIED
    assert "this run has ended" in other.for_llm()
    assert bench.ran == []
    assert bench.kinds().count("stopped") == 1
    assert bench.kinds().count("finished") == 5


async def test_other_refusals_and_other_results_do_not_count():
    bench = Bench(ASK.changed(breaker={"warn": 2, "end": 2}))
    await bench.run("rm x")
    for number in range(5):
        await bench.run(f"rm {number}")
        assert (await bench.run("ls")).success
    assert not bench.controller.stopped
    never = Bench(ASK.changed(breaker={"warn": 0, "end": 0}))
    results = [await never.run("rm x") for _ in range(30)]
    assert len({result.error.hint for result in results}) == 1
    assert not never.controller.stopped


async def test_denials_by_people_count_too():
    bench = Bench(ASK.changed(breaker={"warn": 0, "end": 2}))
    for _ in range(2):
        await bench.answer(await bench.ask("git push"), approved=False)
    assert bench.controller.stopped


@pytest.mark.parametrize("method", ["grants", "approved", "create"])
async def test_a_store_that_cannot_be_used_refuses_the_call_in_words(monkeypatch, method):
    bench = Bench()

    def broken(*args, **kwargs):
        raise StoreError("approvals.db cannot be written: the disk is full; free some space")

    monkeypatch.setattr(bench.store, method, broken)
    result = await bench.run("git push")
    assert result.error.category is Category.CELL_SETUP
    assert "the disk is full" in result.error.message
    assert bench.ran == []


async def test_every_event_of_a_call_has_its_key_and_two_calls_have_two():
    bench = Bench()
    for _ in range(2):
        await bench.run("ls")
    keys = [event.key for event in bench.events]
    assert len(set(keys)) == 2
    assert {event.run for event in bench.events} == {bench.controller.run}


def _other_tools(how):
    """No tool, one that takes another argument, or one that takes one more."""

    def renamed(command: str) -> str:
        raise AssertionError("it ran")

    def wider(line: str, shout: bool = False) -> str:
        raise AssertionError("it ran")

    if how == "gone":
        return ToolRegistry()
    if how == "invalid":
        return ToolRegistry([define(tool(name="sh", isolation="inline")(renamed))])
    declared = tool(name="sh", isolation="inline", shell_line="line")
    return ToolRegistry([define(declared(wider))])


@pytest.mark.parametrize("way", ["resolve", "wait", "again"])
@pytest.mark.parametrize(
    ("change", "category"),
    [
        ("gone", Category.UNKNOWN_TOOL),
        ("invalid", Category.INVALID_ARGUMENTS),
        ("schema", Category.APPROVAL_MISMATCH),
        ("deny", Category.POLICY_DENIED),
        ("ask otherwise", Category.APPROVAL_MISMATCH),
        ("nothing", None),
    ],
)
async def test_whatever_changed_after_the_answer_wins_on_every_way_to_the_run(
    change, category, way
):
    bench = Bench()
    request = await bench.ask("git push")
    yes = ApprovalResponse(approval_id=request.approval_id, approved=True, by="Ada")
    if way != "resolve":
        bench.store.answer(yes)
    if change in ("gone", "invalid", "schema"):
        bench.controller.runtime.registry = _other_tools(change)
    if change == "deny":
        bench.controller.policy = ASK.changed(deny={"s*": "not any more"})
    if change == "ask otherwise":
        bench.controller.policy = ASK.changed(limits={"wall": 9})
    if way == "resolve":
        outcome = await bench.controller.resolve(yes)
    elif way == "wait":
        outcome = await bench.controller.wait(request)
    else:
        outcome = await bench.propose("git push")
    if way == "again" and category is Category.APPROVAL_MISMATCH:
        assert isinstance(outcome, ApprovalRequest), "another call, or policy: another question"
    else:
        assert (outcome.error.category if outcome.error else None) is category
    assert bench.ran == ([] if category else ["git push"])


async def test_a_policy_that_allows_by_now_runs_the_call_in_its_own_cell(tmp_path):
    (tmp_path / "w").mkdir()
    narrow = {"id": "n", "tool": "*", "limits": {"wall": 3}, "cell": {"workspace": "ro"}}
    bench = Bench(workspace=tmp_path / "w")
    granted = []

    async def execute(prepared, grant, *rest):
        granted.append(grant)
        return await ran(prepared, grant, *rest)

    ran, bench.controller.runtime.execute = bench.controller.runtime.execute, execute
    request = await bench.ask("git push")
    bench.controller.policy = ToolPolicy(allow=["sh"], rules=[narrow])
    assert (await bench.answer(request)).success
    assert (granted[0].limits.wall, granted[0].settings.workspace) == (3, "ro")


async def test_a_denial_that_nobody_waited_for_is_told_once_to_the_same_call():
    bench = Bench()
    request = await bench.ask("git push")
    no = ApprovalResponse(approval_id=request.approval_id, approved=False, by="Bo", note="not now")
    bench.store.answer(no)
    await bench.ask("git push other")
    denied = await bench.run("git push")
    assert denied.error.category is Category.APPROVAL_DENIED
    assert "Bo did not approve this call: not now" in denied.for_llm()
    await bench.ask("git push")
    finished = [event.key for event in bench.events if event.kind is EventKind.FINISHED]
    assert len(set(finished)) == len(finished) == 2, "the end of both calls"


async def test_a_prefix_is_offered_where_a_whole_tool_is_asked_about():
    bench = Bench(ToolPolicy(ask={"sh": "it runs programs"}))
    request = await bench.ask("git push origin x")
    assert request.prefix == ("git", "push")
    await bench.answer(request, remember="prefix")
    assert (await bench.run("git push again")).success
    for line in ("git push; ls", "git push > x", "ls", "git push $X"):
        await bench.ask(line)


async def test_a_run_without_grants_offers_none():
    bench = Bench(run_grants=False)
    request = await bench.ask("git push")
    assert request.run == ""
    with pytest.raises(ToolcellError, match="belongs to no run"):
        await bench.answer(request, remember="call")
