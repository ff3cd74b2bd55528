"""Claims of `toolcell.approvals`: asked once, answered once, forgotten never, expired on time."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from toolcell.approvals import PendingApprovals
from toolcell.errors import ToolcellError, UnknownApprovalError
from toolcell.registry import define

from .samples import ASK, greet, prepared


class Clock:
    """A clock that is moved by hand."""

    def __init__(self):
        self.now = datetime(2030, 1, 1, tzinfo=UTC)

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def store(clock):
    return PendingApprovals(lifetime=60, clock=clock)


def ask(store, name="Ada"):
    return store.create(prepared(define(greet), name=name), ASK, "policy-1")


def test_a_question_holds_the_canonical_call_and_what_it_is_bound_to(store, clock):
    request = ask(store)
    assert request.call.arguments == {"name": "Ada", "times": 1}
    assert request.call.call_id == "c1"
    assert request.digest == prepared(define(greet), name="Ada").digest
    assert (request.policy_version, request.reason) == ("policy-1", ASK.reason)
    assert request.expires_at - request.created_at == timedelta(seconds=60)
    assert store.get(request.approval_id) == request


def test_of_32_competing_threads_one_spends_an_approval(store):
    request = ask(store)
    start = threading.Barrier(32)

    def spend(_):
        start.wait()
        return store.spend(request.approval_id)

    with ThreadPoolExecutor(32) as threads:
        outcomes = Counter(threads.map(spend, range(32)))
    assert outcomes == {"spent": 1, "already_spent": 31}


def test_an_approval_expires_when_its_time_is_up_and_not_before(store, clock):
    early, late = ask(store), ask(store)
    clock.now = early.expires_at - timedelta(microseconds=1)
    assert store.spend(early.approval_id) == "spent"
    clock.now = late.expires_at
    assert store.spend(late.approval_id) == "expired"


def test_an_answer_that_came_too_late_uses_the_approval_up(store, clock):
    request = ask(store)
    clock.now = request.expires_at
    store.spend(request.approval_id)
    clock.now = request.created_at
    assert store.spend(request.approval_id) == "already_spent"


def test_the_same_call_asked_twice_is_two_questions(store):
    first, second = ask(store), ask(store)
    assert first.approval_id != second.approval_id
    assert store.spend(first.approval_id) == "spent"
    assert store.spend(second.approval_id) == "spent"


def test_an_approval_keeps_its_question_whatever_comes_after_it(store):
    first = ask(store)
    store.spend(first.approval_id)
    for number in range(100):
        ask(store, name=f"another {number}")
    assert store.get(first.approval_id) == first
    assert store.spend(first.approval_id) == "already_spent"


def test_an_approval_is_never_overwritten(store, monkeypatch):
    monkeypatch.setattr("secrets.token_urlsafe", lambda size: "same")
    first = ask(store)
    with pytest.raises(ToolcellError, match="random numbers repeat"):
        ask(store, name="Bo")
    assert store.get(first.approval_id) == first


def test_pending_lists_what_can_still_be_answered_oldest_first(store, clock):
    old = ask(store)
    clock.now += timedelta(seconds=30)
    spent, first, second = ask(store), ask(store, "Bo"), ask(store, "Cy")
    store.spend(spent.approval_id)
    assert store.pending() == [old, first, second]
    clock.now = old.expires_at
    assert store.pending() == [first, second]


@pytest.mark.parametrize("method", ["get", "spend"])
def test_an_unknown_id_is_an_error_of_the_caller(store, method):
    with pytest.raises(UnknownApprovalError, match="no approval 'apr_x' is known here"):
        getattr(store, method)("apr_x")


def test_ids_cannot_be_guessed_from_one_another(store):
    ids = {ask(store).approval_id for _ in range(50)}
    assert len(ids) == 50
    assert all(len(one) >= 20 for one in ids)
