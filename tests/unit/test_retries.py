"""Claims of `toolcell.retries`: what is tried again, after which pauses, and how it ends."""

import asyncio

import pytest

from toolcell.controller import ToolController
from toolcell.declare import ToolError, tool
from toolcell.events import EventKind
from toolcell.grants import RunOptions
from toolcell.model import Category, ToolCall
from toolcell.policy import ToolPolicy
from toolcell.registry import ToolRegistry, define


class Hands:
    """A clock whose pauses take no time and are written down; one can be held."""

    def __init__(self):
        self.now, self.slept, self.chance = 100.0, [], 1.0
        self.held = None

    def monotonic(self):
        return self.now

    async def sleep(self, seconds):
        self.slept.append(seconds)
        if self.held:
            self.held.set()
            await asyncio.Event().wait()
        self.now += seconds

    async def elapse(self, seconds):
        await asyncio.Event().wait()

    def jitter(self):
        return self.chance


class Stand:
    """A controller of one tool that fails as often as it is told to."""

    def __init__(self, errors, *, retries=3, takes=0.0):
        self.errors, self.tries, self.hands = list(errors), 0, Hands()
        self.events = []

        @tool(isolation="inline", idempotent=True, retries=retries)
        def fetch() -> str:
            self.tries += 1
            self.hands.now += takes
            if self.errors and (error := self.errors.pop(0)):
                raise error
            return "fetched"

        self.controller = ToolController(
            ToolRegistry([define(fetch)]),
            ToolPolicy(allow=["fetch"]),
            events=self.events.append,
            timing=self.hands,
        )

    def call(self, **options):
        call = ToolCall(call_id="1", name="fetch")
        return self.controller.handle(call, RunOptions(**options))

    def borders(self, kind):
        return [event.data["attempt"] for event in self.events if event.kind is kind]


def passing():
    return ToolError("the service is busy", retryable=True)


async def test_what_may_pass_is_tried_again_and_each_try_is_in_the_events():
    stand = Stand([passing(), passing()])
    result = await stand.call()
    assert (result.output, result.metadata.attempts) == ("fetched", 3)
    assert stand.hands.slept == [0.05, 0.1]
    assert stand.borders(EventKind.STARTED) == stand.borders(EventKind.ENDED) == [1, 2, 3]


async def test_the_last_failure_says_how_often_it_was_tried():
    stand = Stand([passing()] * 9)
    result = await stand.call()
    assert (result.error.category, result.error.retryable) == (Category.TOOL_ERROR, True)
    assert result.metadata.attempts == stand.tries == 4
    assert "tried 4 times" in result.for_llm()


@pytest.mark.parametrize("chance", [0.0, 0.5])
async def test_a_pause_has_some_chance_in_it(chance):
    stand = Stand([passing()])
    stand.hands.chance = chance
    await stand.call()
    assert stand.hands.slept == [0.05 * (0.5 + chance / 2)]


@pytest.mark.parametrize(
    "why",
    [
        {"errors": [ToolError("no")]},
        {"errors": [ValueError("a defect")]},
        {"errors": [passing()], "retries": 0},
    ],
    ids=["it will not pass", "an exception", "no retries"],
)
async def test_nothing_else_is_tried_again(why):
    stand = Stand(**why)
    assert (await stand.call()).status == "failed"
    assert (stand.tries, stand.hands.slept) == (1, [])


async def test_no_try_begins_after_the_deadline_over_all():
    stand = Stand([passing()] * 9, takes=0.5)
    result = await stand.call(deadline=1.0)
    assert (stand.tries, result.error.category) == (2, Category.TOOL_ERROR)


async def test_cancelled_in_a_pause_it_ends_at_once_with_what_the_last_try_left():
    stand = Stand([passing()] * 9)
    stand.hands.held = asyncio.Event()
    running = asyncio.create_task(stand.call())
    await stand.hands.held.wait()
    assert stand.controller.cancel("1")
    result = await running
    assert (result.status, result.error.category) == ("cancelled", Category.CANCELLED)
    assert "after attempt 1" in result.error.message
    assert (result.metadata.attempts, stand.tries) == (1, 1)
    ends = [event for event in stand.events if event.kind is EventKind.FINISHED]
    assert [event.data["status"] for event in ends] == ["cancelled"]
