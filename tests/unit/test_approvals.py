"""Claims of `toolcell.approvals`: asked once, answered once, good for one run, forgotten never.

Each is made of approvals in memory and in a file; what only a file can do is at the end.
"""

import asyncio
import os
import stat
import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from toolcell.approvals import PendingApprovals, SqliteApprovals, answered
from toolcell.errors import ToolcellError, UnknownApprovalError
from toolcell.model import ApprovalResponse, ApprovalState
from toolcell.registry import define

from .samples import ASK, greet, prepared

PENDING, APPROVED, DENIED, CANCELLED, EXPIRED, SPENT, DONE = map(
    ApprovalState, ["pending", "approved", "denied", "cancelled", "expired", "spent", "done"]
)


class Clock:
    """A clock that is moved by hand."""

    def __init__(self):
        self.now = datetime(2030, 1, 1, tzinfo=UTC)

    def __call__(self):
        return self.now

    def move(self, seconds):
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture(params=["memory", "file"])
def store(request, tmp_path, clock):
    if request.param == "memory":
        return PendingApprovals(lifetime=60, clock=clock)
    return SqliteApprovals(tmp_path / "approvals.db", lifetime=60, clock=clock)


def ask(store, name="Ada", **rest):
    return store.create(prepared(define(greet), name=name), ASK, "policy-1", **rest)


def say(store, request, approved=True, **rest):
    answer = {"approval_id": request.approval_id, "approved": approved, "by": "anna"} | rest
    return store.answer(ApprovalResponse(**answer))


def state(store, request):
    return store.get(request.approval_id).state


def test_a_question_holds_the_canonical_call_and_what_it_is_bound_to(store):
    request = ask(store, run="r", key="k", workspace="/w", prefix=("git", "push"))
    assert request.call.arguments == {"name": "Ada", "times": 1}
    assert request.call.call_id == "c1"
    assert request.digest == prepared(define(greet), name="Ada").digest
    assert (request.policy_version, request.reason) == ("policy-1", ASK.reason)
    assert (request.rule_id, request.run, request.key) == (ASK.rule_id, "r", "k")
    assert (request.workspace, request.prefix) == ("/w", ("git", "push"))
    assert request.expires_at - request.created_at == timedelta(seconds=60)
    assert store.get(request.approval_id).request == request


@pytest.mark.parametrize(
    "arguments",
    [
        {"text": "\x00\x1b\u202e\udc80 é日", "n": [0.1, 1e300, -0.0, 10**400, None, True]},
        {"deep": {"": [[[{"a" * 9000: "\\u0000"}]]]}},
    ],
)
def test_what_is_stored_is_exactly_what_was_asked(store, arguments):
    call = prepared(define(greet), name="Ada").model_copy(update={"arguments": arguments})
    request = store.create(call, ASK, "p")
    assert store.get(request.approval_id).request.call.arguments == arguments


def test_a_question_does_not_change_with_the_values_it_was_made_of(store):
    call = prepared(define(greet), name="Ada")
    request = store.create(call, ASK, "p")
    call.arguments["name"] = "Mallory"
    assert request.call.arguments["name"] == "Ada"
    request.call.arguments["name"] = "Mallory"
    assert store.get(request.approval_id).request.call.arguments["name"] == "Ada"


def test_a_yes_is_spent_once_and_settled_with_an_outcome(store, clock):
    request = ask(store)
    asked = clock.now
    clock.move(1)
    answer = say(store, request, note="fine")
    assert (answer.state, answer.by, answer.note) == (APPROVED, "anna", "fine")
    clock.move(1)
    spending = store.spend(request.approval_id)
    assert (spending.won, spending.state) == (True, SPENT)
    again = store.spend(request.approval_id)
    assert (again.won, again.state) == (False, SPENT)
    clock.move(1)
    store.settle(request.approval_id, "succeeded")
    done = store.get(request.approval_id)
    assert (done.state, done.outcome) == (DONE, "succeeded")
    moments = [done.answered_at, done.spent_at, done.settled_at]
    assert moments == [asked + timedelta(seconds=n) for n in (1, 2, 3)]
    assert store.spend(request.approval_id) == (False, done)


@pytest.mark.parametrize("end", ["unanswered", "denied", "cancelled", "cancelled after a yes"])
def test_what_nobody_approved_cannot_be_spent(store, end):
    request = ask(store)
    if end == "denied":
        say(store, request, approved=False)
    if end == "cancelled after a yes":
        say(store, request)
    if end.startswith("cancelled"):
        assert store.cancel(request.approval_id)
    spending = store.spend(request.approval_id)
    assert not spending.won
    assert spending.state == {"unanswered": PENDING, "denied": DENIED}.get(end, CANCELLED)


@pytest.mark.parametrize(("first", "second"), [(True, True), (False, True), (False, False)])
def test_the_first_answer_wins_and_the_second_is_told_of_it(store, first, second):
    request = ask(store)
    mine = say(store, request, approved=first, note="first")
    late = say(store, request, approved=second, by="bo", note="second")
    assert late == mine == store.get(request.approval_id)
    assert (late.by, late.note) == ("anna", "first")
    assert late.state == (APPROVED if first else DENIED)


def test_a_no_takes_back_a_yes_that_nothing_has_run_on_and_its_grant(store):
    request, other = ask(store, run="r"), ask(store, run="r")
    for each in (request, other):
        say(store, each, remember="call")
    late = say(store, request, approved=False, by="bo", note="wait")
    assert (late.state, late.by, late.note) == (DENIED, "bo", "wait")
    assert [grant.approval_id for grant in store.grants("r")] == [other.approval_id]
    assert store.cancel(other.approval_id)
    assert store.grants("r") == []
    assert not store.spend(request.approval_id).won


def test_an_answer_after_the_run_changes_nothing(store):
    request = ask(store)
    say(store, request)
    store.spend(request.approval_id)
    assert say(store, request, approved=False, by="bo").state == SPENT
    store.settle(request.approval_id, "failed")
    late = say(store, request, approved=False, by="bo")
    assert (late.state, late.by, late.outcome) == (DONE, "anna", "failed")


def test_cancelling_comes_too_late_once_it_is_spent(store):
    request = ask(store)
    say(store, request)
    store.spend(request.approval_id)
    assert not store.cancel(request.approval_id)
    assert state(store, request) == SPENT
    other = ask(store)
    assert store.cancel(other.approval_id)
    assert not store.cancel(other.approval_id)


@pytest.mark.parametrize("reached", ["pending", "approved", "done"])
def test_an_outcome_belongs_to_a_call_that_was_let_go(store, reached):
    request = ask(store)
    if reached != "pending":
        say(store, request)
    if reached == "done":
        store.spend(request.approval_id)
        store.settle(request.approval_id, "succeeded")
    before = store.get(request.approval_id)
    with pytest.raises(ToolcellError, match=f"is {reached}, so no call's outcome"):
        store.settle(request.approval_id, "failed")
    assert store.get(request.approval_id) == before


@pytest.mark.parametrize("end", [DENIED, CANCELLED, EXPIRED])
def test_one_of_all_who_hear_that_a_call_will_not_run_ends_it(store, clock, end):
    request = ask(store)
    if end == DENIED:
        say(store, request, approved=False)
    if end == CANCELLED:
        store.cancel(request.approval_id)
    if end == EXPIRED:
        clock.move(60)
    assert [store.conclude(request.approval_id, "rejected") for _ in range(3)] == [1, 0, 0]
    clock.move(-30)
    found = store.get(request.approval_id)
    assert (found.state, found.outcome) == (end, "rejected")
    assert found.settled_at == clock.now + timedelta(seconds=30)


@pytest.mark.parametrize("end", [PENDING, APPROVED, SPENT, DONE])
def test_a_call_that_may_run_or_has_is_not_ended_so(store, end):
    request = ask(store)
    if end != PENDING:
        say(store, request)
    if end in (SPENT, DONE):
        store.spend(request.approval_id)
    if end == DONE:
        store.settle(request.approval_id, "succeeded")
    before = store.get(request.approval_id)
    assert not store.conclude(request.approval_id, "rejected")
    assert store.get(request.approval_id) == before


def test_a_question_expires_when_its_time_is_up_and_not_before(store, clock):
    early, late = ask(store), ask(store)
    clock.now = early.expires_at - timedelta(microseconds=1)
    assert say(store, early).state == APPROVED
    assert store.spend(early.approval_id).won
    clock.now = late.expires_at
    assert state(store, late) == EXPIRED
    assert say(store, late).state == EXPIRED


def test_a_yes_expires_as_well(store, clock):
    early, late = ask(store), ask(store)
    say(store, early)
    say(store, late)
    clock.now = late.expires_at - timedelta(microseconds=1)
    assert store.spend(early.approval_id).won
    clock.now = late.expires_at
    assert store.spend(late.approval_id) == (False, store.get(late.approval_id))
    assert state(store, late) == EXPIRED
    assert not store.cancel(late.approval_id)


@pytest.mark.parametrize("late", ["answer", "spend", "cancel"])
def test_what_came_too_late_stays_so_if_the_clock_is_set_back(store, clock, late):
    request = ask(store)
    if late == "spend":
        say(store, request)
    clock.move(60)
    if late == "answer":
        say(store, request)
    else:
        getattr(store, late)(request.approval_id)
    clock.move(-30)
    assert state(store, request) == EXPIRED
    assert say(store, request).state == EXPIRED
    assert not store.spend(request.approval_id).won


@pytest.mark.parametrize("end", [DENIED, CANCELLED, SPENT, DONE])
def test_what_has_ended_does_not_expire(store, clock, end):
    request = ask(store)
    if end == CANCELLED:
        store.cancel(request.approval_id)
    else:
        say(store, request, approved=end != DENIED)
    if end in (SPENT, DONE):
        store.spend(request.approval_id)
    clock.move(10**6)
    assert state(store, request) == (SPENT if end == DONE else end)
    if end == DONE:  # its call ran for longer than it could have been answered
        store.settle(request.approval_id, "succeeded")
        assert state(store, request) == DONE


def test_questions_are_answered_in_any_order_and_not_swapped(store):
    requests = [ask(store, name) for name in ("Ada", "Bo", "Cy", "Di")]
    for request, approved in zip(reversed(requests), [True, False, True, False], strict=True):
        say(store, request, approved=approved, note=request.call.arguments["name"])
    for request, end in zip(requests, [DENIED, APPROVED, DENIED, APPROVED], strict=True):
        found = store.get(request.approval_id)
        assert (found.request, found.state) == (request, end)
        assert found.note == request.call.arguments["name"]


def test_of_32_competing_threads_one_spends_an_approval(store):
    request = ask(store)
    say(store, request)
    start = threading.Barrier(32)

    def spend(_):
        start.wait()
        spending = store.spend(request.approval_id)
        return spending.won, spending.state

    with ThreadPoolExecutor(32) as threads:
        outcomes = Counter(threads.map(spend, range(32)))
    assert outcomes == {(True, SPENT): 1, (False, SPENT): 31}


def test_the_same_call_asked_twice_is_two_questions(store):
    first, second = ask(store), ask(store)
    assert first.approval_id != second.approval_id
    say(store, first)
    assert store.spend(first.approval_id).won
    assert state(store, second) == PENDING
    say(store, second)
    assert store.spend(second.approval_id).won


def test_an_approval_keeps_its_question_whatever_comes_after_it(store):
    first = ask(store)
    say(store, first)
    store.spend(first.approval_id)
    for number in range(100):
        ask(store, name=f"another {number}")
    assert store.get(first.approval_id).request == first
    assert not store.spend(first.approval_id).won


def test_an_approval_is_never_overwritten(store, monkeypatch):
    monkeypatch.setattr("secrets.choice", lambda letters: "0")
    first = ask(store)
    with pytest.raises(ToolcellError, match="random numbers repeat"):
        ask(store, name="Bo")
    assert store.pending() == [first]


def test_an_id_that_is_taken_is_not_given_again(store, monkeypatch):
    letters = iter("0" * 20 + "1" * 10)
    monkeypatch.setattr("secrets.choice", lambda _: next(letters))
    assert [ask(store).approval_id for _ in range(2)] == ["0" * 10, "1" * 10]


def test_pending_lists_what_can_still_be_answered_oldest_first(store, clock):
    old = ask(store)
    clock.move(30)
    answered, first, second = ask(store), ask(store, "Bo"), ask(store, "Cy")
    say(store, answered)
    assert store.pending() == [old, first, second]
    clock.now = old.expires_at
    assert store.pending() == [first, second]


def test_approvals_are_listed_by_state_and_run(store, clock):
    ends = {end: ask(store, run=f"run {end}") for end in (EXPIRED, APPROVED)}
    say(store, ends[APPROVED])
    clock.move(60)
    ends |= {end: ask(store) for end in (PENDING, DENIED, CANCELLED, SPENT, DONE)}
    for end in (SPENT, DONE, DENIED):
        say(store, ends[end], approved=end != DENIED)
    for end in (SPENT, DONE):
        store.spend(ends[end].approval_id)
    store.settle(ends[DONE].approval_id, "succeeded")
    store.cancel(ends[CANCELLED].approval_id)
    assert [each.request for each in store.approvals()] == list(ends.values())
    for end in (PENDING, DENIED, CANCELLED, SPENT, DONE):
        assert [each.request for each in store.approvals(end)] == [ends[end]]
    expired = [ends[EXPIRED], ends[APPROVED]]
    assert [each.request for each in store.approvals(EXPIRED)] == expired
    assert store.approvals(APPROVED) == store.approvals(ApprovalState.UNKNOWN) == []
    assert [each.request for each in store.approvals(run="run approved")] == [ends[APPROVED]]
    assert store.approvals(PENDING, "run approved") == []


def test_an_approved_call_is_found_by_all_that_it_is_bound_to(store, clock):
    waiting, first, second = [ask(store, workspace="/w") for _ in range(3)]
    bound = (first.digest, "policy-1", "/w")
    assert store.approved(*bound) is None
    say(store, second)
    say(store, first)
    assert store.approved(*bound) == first
    for n, other in enumerate(["sha256:other", "policy-2", "/other"]):
        assert store.approved(*bound[:n], other, *bound[n + 1 :]) is None
    store.spend(first.approval_id)
    assert store.approved(*bound) == second
    clock.now = second.expires_at
    assert store.approved(*bound) is None
    assert state(store, waiting) == EXPIRED


@pytest.mark.parametrize("method", ["get", "spend", "cancel"])
def test_an_unknown_id_is_an_error_of_the_caller(store, method):
    with pytest.raises(UnknownApprovalError, match="no approval 'apr_x' is known"):
        getattr(store, method)("apr_x")
    with pytest.raises(UnknownApprovalError):
        store.settle("apr_x", "succeeded")
    with pytest.raises(UnknownApprovalError):
        store.answer(ApprovalResponse(approval_id="apr_x", approved=True, by="anna"))


def test_ids_cannot_be_guessed_from_one_another_and_can_be_typed(store):
    ids = {ask(store).approval_id for _ in range(50)}
    assert len(ids) == 50
    assert all(len(one) == 10 and one.isalnum() and one == one.lower() for one in ids)
    assert len({one[:4] for one in ids}) > 45


def test_ids_are_found_by_how_they_begin(store):
    request = ask(store)
    assert store.named(request.approval_id[:6]) == [request.approval_id]
    other = ask(store)
    assert store.named("") == [request.approval_id, other.approval_id]
    assert store.named("%") == store.named("", "grants") == []


# Grants for the rest of a run.


@pytest.mark.parametrize("kind", ["call", "prefix"])
def test_a_yes_for_the_rest_of_the_run_makes_a_grant(store, clock, kind):
    request = ask(store, run="r", workspace="/w", prefix=("git", "push"))
    clock.move(5)
    say(store, request, remember=kind)
    (grant,) = store.grants("r")
    assert grant.approval_id == request.approval_id
    assert (grant.run, grant.tool_name, grant.workspace) == ("r", "greet", "/w")
    assert (grant.policy_version, grant.by, grant.created_at) == ("policy-1", "anna", clock.now)
    exact = kind == "call"
    assert grant.digest == (request.digest if exact else "")
    assert grant.prefix == (() if exact else ("git", "push"))
    assert state(store, request) == APPROVED


@pytest.mark.parametrize(
    ("named", "good"),
    [
        (("git", "push"), True),
        (("git", "push", "origin"), True),
        (("git",), False),
        (("git", "pull"), False),
        (("gi",), False),
        (("git", "push", ""), False),
    ],
)
def test_a_prefix_is_one_of_what_was_asked_about(store, named, good):
    request = ask(store, run="r", prefix=("git", "push"))
    if good:
        say(store, request, remember="prefix", prefix=named)
        assert store.grants("r")[0].prefix == named
        return
    with pytest.raises(ToolcellError, match="wider than the command that was asked about"):
        say(store, request, remember="prefix", prefix=named)
    assert (store.grants(), store.pending()) == ([], [request]), "nothing was answered"


@pytest.mark.parametrize(
    ("asked", "kind", "why"),
    [({}, "call", "belongs to no run"), ({"run": "r"}, "prefix", "no prefix can be granted")],
)
def test_a_grant_that_cannot_be_is_refused_with_the_answer(store, asked, kind, why):
    request = ask(store, **asked)
    with pytest.raises(ToolcellError, match=why):
        say(store, request, remember=kind, prefix=("git",))
    assert (store.grants(), store.pending()) == ([], [request])


def test_neither_a_no_nor_an_answer_that_is_late_makes_a_grant(store):
    first, second = ask(store, run="r"), ask(store, run="r")
    say(store, first, approved=False, remember="call")
    say(store, second)
    say(store, second, by="bo", remember="call")
    assert store.grants() == []


def test_a_grant_stands_until_it_expires_or_is_revoked(store, clock):
    for run in ("one", "one", "other"):
        say(store, ask(store, run=run), remember="call")
    revoked, kept, other = store.grants()
    assert store.grants("one") == [revoked, kept]
    assert store.revoke(revoked.grant_id)
    assert not store.revoke(revoked.grant_id)
    assert store.grants() == [kept, other]
    clock.now = kept.expires_at
    assert store.grants() == []
    assert not store.revoke(kept.grant_id)
    with pytest.raises(UnknownApprovalError, match="no grant 'g0'"):
        store.revoke("g0")


# Waiting and forgetting.


@pytest.mark.parametrize("approved", [True, False])
async def test_one_who_waits_gets_the_answer(store, approved):
    request = ask(store)
    looks = []
    get = store.get

    def look(approval_id):
        looks.append(approval_id)
        return get(approval_id)

    store.get = look
    waits = asyncio.create_task(answered(store, request.approval_id, at_first=0, at_most=0))
    while len(looks) < 3:
        await asyncio.sleep(0)
    assert not waits.done(), "the control"
    stands = say(store, request, approved=approved)
    assert await waits == stands


async def test_one_who_waits_learns_that_the_time_is_up(store, clock):
    request = ask(store)
    clock.now = request.expires_at
    assert (await answered(store, request.approval_id)).state == EXPIRED


def test_only_what_can_no_longer_run_is_forgotten_and_only_when_told(store, clock):
    ends = {end: ask(store) for end in (PENDING, DENIED, CANCELLED, SPENT, DONE)}
    for end in (SPENT, DONE, DENIED):
        say(store, ends[end], approved=end != DENIED)
    for end in (SPENT, DONE):
        store.spend(ends[end].approval_id)
    store.settle(ends[DONE].approval_id, "succeeded")
    store.cancel(ends[CANCELLED].approval_id)
    assert store.prune(clock.now + timedelta(days=1)) == 0
    clock.move(60)
    assert store.prune(clock.now - timedelta(microseconds=1)) == 0
    assert store.prune(clock.now) == 4
    assert [each.request for each in store.approvals()] == [ends[SPENT]]


def test_grants_are_pruned_when_they_have_expired(store, clock):
    say(store, ask(store, run="r"), remember="call")
    (grant,) = store.grants()
    store.revoke(grant.grant_id)
    clock.move(3600)
    store.prune(clock.now)
    assert store.named("", "grants") == [grant.grant_id]
    clock.now = grant.expires_at
    store.prune(clock.now)
    assert store.named("", "grants") == []


def test_memory_forgets_what_ended_a_lifetime_ago(clock):
    store = PendingApprovals(lifetime=60, clock=clock)
    old = ask(store)
    clock.move(119)
    ask(store)
    assert state(store, old) == EXPIRED, "a late answer is told why it is late"
    clock.move(1)
    ask(store)
    with pytest.raises(UnknownApprovalError, match="end with the process that asked"):
        store.get(old.approval_id)


# What only a file can do.


@pytest.fixture
def file(tmp_path):
    return tmp_path / "state" / "approvals.db"


def test_the_file_is_its_owners_alone(file):
    ask(SqliteApprovals(file))
    for path in file.parent.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_approvals_lie_in_the_state_directory(tmp_path, monkeypatch):
    monkeypatch.delenv("TOOLCELL_STATE_DIR", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    store = SqliteApprovals()
    assert store.path == tmp_path / "toolcell" / "approvals.db"
    assert not store.exists(), "nothing is made before it is needed"
    ask(store)
    assert store.exists()


def test_approvals_outlive_the_process_that_asked(file, clock):
    request = ask(SqliteApprovals(file, clock=clock), run="r")
    say(SqliteApprovals(file, clock=clock), request, remember="call")
    store = SqliteApprovals(file, clock=clock)
    assert state(store, request) == APPROVED
    assert store.grants("r")[0].digest == request.digest
    assert store.spend(request.approval_id).won
    assert not SqliteApprovals(file, clock=clock).spend(request.approval_id).won


def test_a_store_goes_on_after_it_was_closed(file):
    store = SqliteApprovals(file)
    request = ask(store)
    store.close()
    assert store.pending() == [request]


_SPEND = """
import sys
from toolcell.approvals import SqliteApprovals
assert SqliteApprovals(sys.argv[1]).spend(sys.argv[2]).won
print("spent", flush=True)
sys.stdin.read()
"""


def test_what_was_spent_by_a_process_that_is_gone_has_an_unknown_outcome(file):
    store = SqliteApprovals(file)
    request = ask(store)
    say(store, request)
    with subprocess.Popen(
        [sys.executable, "-c", _SPEND, file, request.approval_id],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:
        assert process.stdout.readline() == b"spent\n"
        assert state(store, request) == SPENT, "it runs now"
        process.kill()
    assert state(store, request) == ApprovalState.UNKNOWN
    assert store.approvals(SPENT) == []
    assert [each.request for each in store.approvals(ApprovalState.UNKNOWN)] == [request]
    spending = store.spend(request.approval_id)
    assert (spending.won, spending.state) == (False, ApprovalState.UNKNOWN)
    assert not store.cancel(request.approval_id)
