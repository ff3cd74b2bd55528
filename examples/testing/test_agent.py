"""How an agent is tested without cells, models or waiting: its tools and the time are played.

    python -m pytest examples/testing

The policy, the questions to a person, the budget and the results are toolcell's own.
"""

from toolcell import ApprovalRequest, Budget, ToolCall, ToolError, ToolPolicy
from toolcell.testing import FakeController, Hangs, Waits, scripted

HANDLE = {"type": "object", "properties": {"handle": {"type": "string"}}}


def release(controller, version):
    """The agent under test: it runs the tests, then asks for a release, and waits for it.

    It takes a `BlockingController`, and does not know which one.
    """
    tests = controller.handle(ToolCall(call_id="1", name="run_tests"))
    if not tests.success:
        return f"not released: {tests.error.category}"
    call = ToolCall(call_id="2", name="release", arguments={"version": version})
    released = controller.handle(call)
    if isinstance(released, ApprovalRequest):
        return f"waits for a person: {released.reason}"
    while released.waiting:
        released = controller.poll(released)
    return f"not released: {released.error.category}" if released.error else released.output


def test_it_releases_what_passes_its_tests():
    tools = [
        scripted("run_tests", {"passed": 12}),
        scripted("release", Waits("r-7"), poll="release_status"),
        scripted("release_status", Waits("r-7"), "1.0 is out", schema=HANDLE),
    ]
    with FakeController(tools) as controller:
        assert release(controller, "1.0") == "1.0 is out"
    controller.calls.assert_order("run_tests", "release", "release_status")
    controller.calls.assert_called("release", version="1.0")


def test_it_releases_nothing_that_fails():
    with FakeController({"run_tests": ToolError("2 of 12 failed"), "release": "out"}) as controller:
        assert release(controller, "1.0") == "not released: tool_error"
    controller.calls.assert_not_called("release")


def test_it_gives_up_tests_that_hang_and_no_time_passes_meanwhile():
    with FakeController({"run_tests": Hangs(), "release": "out"}) as controller:
        assert release(controller, "1.0") == "not released: wall"
    assert controller.clock.monotonic() == 30, "the policy's limit, by the clock of the test"


def test_a_person_is_asked_before_a_release():
    policy = ToolPolicy(allow=["run_tests"], ask={"release": "it cannot be taken back"})
    with FakeController({"run_tests": {}, "release": "out"}, policy) as controller:
        assert release(controller, "1.0") == "waits for a person: it cannot be taken back"


def test_it_stays_within_its_budget():
    tools = {"run_tests": {}, "release": "out"}
    with FakeController(tools, budget=Budget(calls=1)) as controller:
        assert release(controller, "1.0") == "not released: budget_spent"
    assert controller.calls.of("release")[0].result.status == "rejected"
