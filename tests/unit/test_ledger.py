"""Claims of budgets: what a run may use is kept, told, and taken from no call that did not run."""

import asyncio

import pytest

from toolcell import Budget, ToolError, ToolPolicy
from toolcell.cli.exits import DENIED, of_call, of_command
from toolcell.errors import PolicyError
from toolcell.model import ApprovalRequest
from toolcell.policy import load_policy
from toolcell.policy.file import parse_policy
from toolcell.policy.layers import tighten
from toolcell.testing import Answers, AsyncFakeController, FakeClock, Floods, Hangs, NoCell

ASK = ToolPolicy(ask={"echo": "a person looks"})


def controller(steps, **options):
    return AsyncFakeController({"echo": steps}, **options)


async def test_past_its_calls_a_run_rejects_before_anything_happens():
    made = controller(["a", "b"], budget=Budget(calls=2))
    assert [(await made.call("echo")).output for _ in "ab"] == ["a", "b"]
    result = await made.call("echo")
    assert (result.status, result.error.category) == ("rejected", "budget_spent")
    assert "budget of 2 calls is spent" in result.error.message
    assert result.error.hint.startswith("2 of 2 calls were spent")
    assert not result.error.retryable
    assert made.spent.calls == 2


async def test_calls_at_the_same_moment_cannot_all_be_the_last_one():
    made = controller(Answers("x", seconds=1), budget=Budget(calls=3))
    results = await asyncio.gather(*(made.call("echo") for _ in range(10)))
    assert sum(result.success for result in results) == 3


async def test_a_call_that_never_ran_costs_nothing():
    made = controller([NoCell("no room"), "a"], budget=Budget(calls=1))
    assert (await made.call("echo")).error.category == "cell_setup"
    assert made.spent.calls == 0
    assert (await made.call("echo")).output == "a"


async def test_what_the_policy_denies_costs_nothing():
    made = controller("a", policy=ToolPolicy(deny=["echo"]), budget=Budget(calls=1))
    for _ in range(2):
        assert (await made.call("echo")).error.category == "policy_denied"
    assert made.spent.calls == 0


async def test_a_call_may_run_for_what_is_left_and_says_whose_limit_it_met():
    made = controller([Answers("a", seconds=8), Hangs()], budget=Budget(seconds=10))
    assert (await made.call("echo")).output == "a"
    result = await made.call("echo")
    assert (result.status, made.spent.seconds) == ("timed_out", 10)
    assert "time limit of 2 s (what was left of the run's budget of 10 s)" in result.error.message
    assert (await made.call("echo")).error.category == "budget_spent"


async def test_of_all_who_name_a_time_the_smallest_is_in_force():
    made = controller([Hangs(), Hangs()], budget=Budget(seconds=100))
    result = await made.call("echo")
    assert result.error.message.endswith("time limit of 30 s"), "the policy's"


async def test_a_call_may_write_what_is_left():
    made = controller([Floods(900), Floods(900)], budget=Budget(output_bytes=1500))
    assert (await made.call("echo")).success
    result = await made.call("echo")
    assert result.error.category == "output_limit"
    assert "what was left of the run's budget of 1,500 bytes" in result.error.message
    assert (await made.call("echo")).error.category == "budget_spent"


async def test_the_time_of_what_runs_now_is_spent_as_it_passes():
    clock = FakeClock()
    made = controller(Answers("x", seconds=5), budget=Budget(seconds=60), clock=clock)
    running = asyncio.create_task(made.call("echo"))
    while not clock.waiting:
        await asyncio.sleep(0)
    clock.advance(3)
    assert made.spent.seconds == 3
    clock.advance(2)
    await running
    assert made.spent.seconds == 5


async def test_tries_are_spent_as_they_are_made():
    busy = ToolError("busy", retryable=True)
    from toolcell.testing import Raises, scripted

    slow = Raises(busy, seconds=2)
    tool = scripted("echo", slow, Answers("a", seconds=1), idempotent=True, retries=1)
    made = AsyncFakeController([tool], budget=Budget(seconds=60))
    assert (await made.call("echo")).output == "a"
    assert (made.spent.calls, made.spent.seconds) == (1, 3)


async def test_nobody_is_asked_for_what_cannot_run():
    made = controller("a", policy=ASK, budget=Budget(calls=0))
    assert (await made.call("echo")).error.category == "budget_spent"
    assert made.approvals.pending() == []


async def test_an_approval_outlives_a_budget_that_was_spent_meanwhile():
    policy = ToolPolicy(ask={"echo": "why"}, allow=["other"])
    made = AsyncFakeController({"echo": "a", "other": "b"}, policy, budget=Budget(calls=1))
    request = await made.call("echo")
    assert isinstance(request, ApprovalRequest)
    await made.call("other")
    assert (await made.approve(request)).error.category == "budget_spent"
    assert made.approvals.get(request.approval_id).state == "approved"


def test_of_two_budgets_the_smaller_of_each_bound_is_in_force():
    policy = ToolPolicy(allow=["echo"], budget={"calls": 5, "seconds": 60})
    made = controller("a", policy=policy, budget=Budget(calls=9, output_bytes=100))
    assert made.budget == Budget(calls=5, seconds=60, output_bytes=100)
    made.policy = ToolPolicy(allow=["echo"])
    assert made.budget == Budget(calls=9, output_bytes=100)


def test_a_policys_budget_is_strict_and_names_its_line():
    text = 'version = 1\n[budget]\ncalls = 100\nseconds = "10m"\noutput_bytes = "1MiB"\n'
    assert parse_policy(text, "p.toml").budget == Budget(
        calls=100, seconds=600.0, output_bytes=1024**2
    )
    for line in ('calls = "5"', "calls = -1", "seconds = true", 'output_bytes = "much"', "hours=1"):
        with pytest.raises(PolicyError, match=r"p\.toml:3:"):
            parse_policy(f"version = 1\n[budget]\n{line}\n", "p.toml")


def test_a_layer_only_tightens_a_budget():
    layer = ToolPolicy(budget={"calls": 50, "seconds": 5})
    policy = ToolPolicy(budget={"calls": 10, "seconds": 60})
    assert tighten(policy, layer).budget == Budget(calls=10, seconds=5)
    assert tighten(load_policy("default"), layer).budget == Budget(calls=50, seconds=5)


async def test_a_spent_budget_exits_like_a_denial():
    result = await controller("a", budget=Budget(calls=0)).call("echo")
    assert (of_call(result), of_command(result)) == (DENIED, DENIED)
