"""Approvals take the paths of a plain model of them, whatever is done in whatever order."""

from datetime import UTC, datetime, timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule

from toolcell.approvals import PendingApprovals
from toolcell.errors import ToolcellError
from toolcell.model import ApprovalResponse
from toolcell.registry import define

from .samples import ASK, greet, prepared

_LIFETIME = 10
_CALL = prepared(define(greet), name="Ada")
_GOES_ON = ("pending", "approved")


class ApprovalsAsTheyShouldBe(RuleBasedStateMachine):
    """A state, an end and the one who answered, for each id; and how often each was let go."""

    asked = Bundle("asked")

    def __init__(self):
        super().__init__()
        self.now = datetime(2030, 1, 1, tzinfo=UTC)
        self.store = PendingApprovals(_LIFETIME, lambda: self.now)
        self.store.prune = lambda before: 0  # what is forgotten is the matter of another test
        self.states, self.ends, self.who, self.runs = {}, {}, {}, {}
        self.over = set()

    def state(self, one):
        if self.states[one] in _GOES_ON and self.now >= self.ends[one]:
            return "expired"
        return self.states[one]

    def move(self, one, state, *before):
        """Do in the model what was tried; returns whether it works."""
        self.states[one] = self.state(one)  # whoever looks too late makes it last
        works = self.states[one] in before
        if works:
            self.states[one] = state
        return works

    @rule(target=asked)
    def ask(self):
        one = self.store.create(_CALL, ASK, "p").approval_id
        self.states[one], self.who[one], self.runs[one] = "pending", "", 0
        self.ends[one] = self.now + timedelta(seconds=_LIFETIME)
        return multiple(one)

    @rule(seconds=st.integers(-5, 11))
    def time_passes(self, seconds):
        self.now += timedelta(seconds=seconds)

    @rule(one=asked, approved=st.booleans(), by=st.sampled_from(["anna", "bo"]))
    def answer(self, one, approved, by):
        stands = self.store.answer(ApprovalResponse(approval_id=one, approved=approved, by=by))
        allowed = ("pending",) if approved else _GOES_ON
        if self.move(one, "approved" if approved else "denied", *allowed):
            self.who[one] = by
        assert (stands.state, stands.by) == (self.state(one), self.who[one])

    @rule(one=asked)
    def spend(self, one):
        spending = self.store.spend(one)
        works = self.move(one, "spent", "approved")
        assert (spending.won, spending.state) == (works, self.state(one))
        self.runs[one] += spending.won

    @rule(one=asked, outcome=st.sampled_from(["succeeded", "failed"]))
    def settle(self, one, outcome):
        try:
            self.store.settle(one, outcome)
        except ToolcellError:
            assert not self.move(one, "done", "spent")
        else:
            assert self.move(one, "done", "spent")
            assert self.store.get(one).outcome == outcome

    @rule(one=asked)
    def conclude(self, one):
        works = self.state(one) in ("denied", "cancelled", "expired") and one not in self.over
        assert self.store.conclude(one, "rejected") == works
        if works:
            self.states[one] = self.state(one)
            self.over.add(one)

    @rule(one=asked)
    def cancel(self, one):
        assert self.store.cancel(one) == self.move(one, "cancelled", *_GOES_ON)

    @invariant()
    def all_stand_where_they_should(self):
        found = {each.request.approval_id: each.state for each in self.store.approvals()}
        assert found == {one: self.state(one) for one in self.states}
        waiting = [request.approval_id for request in self.store.pending()]
        assert waiting == [one for one in self.states if self.state(one) == "pending"]

    @invariant()
    def the_oldest_that_may_run_is_found(self):
        found = self.store.approved(_CALL.digest, "p", "")
        ready = [one for one in self.states if self.state(one) == "approved"]
        assert (found.approval_id if found else None) == next(iter(ready), None)

    @invariant()
    def none_is_let_go_twice(self):
        assert all(count <= 1 for count in self.runs.values())


ApprovalsAsTheyShouldBe.TestCase.settings = settings(max_examples=60, stateful_step_count=40)
test_states = ApprovalsAsTheyShouldBe.TestCase
