"""What a tool of one's own says of its life, out of a cell: it waits, it may be tried again."""

from pathlib import Path
from typing import Any

import pytest

from toolcell import Event

pytestmark = [pytest.mark.isolation, pytest.mark.any_user]

_TOOLS = """
from pathlib import Path
from toolcell import ToolError, Waiting, tool

@tool(poll="check")
def order(note: str = "") -> Waiting:
    print("taken")
    return Waiting("queued", handle="job-17", note=note)

@tool
def check(handle: str) -> str:
    return f"{handle} is done"

@tool(idempotent=True, retries=3)
def fetch(fails: int, passes: bool = True) -> int:
    tries = Path("tries")
    before = int(tries.read_text()) if tries.exists() else 0
    tries.write_text(str(before + 1))
    if before < fails:
        raise ToolError("busy", retryable=passes)
    return before + 1

@tool
def odd() -> Waiting:
    waiting = Waiting("queued", handle="x")
    object.__setattr__(waiting, "state", "lost")
    return waiting

@tool(limit_arguments={"seconds": "wall", "most": "output"})
def work(seconds: float | None = None, most: int | None = None) -> None:
    while True:
        print("x" * 999)
        if not most:
            import time
            time.sleep(30)
"""


@pytest.fixture
def tools(module: Any) -> list[Any]:
    made = module(_TOOLS)
    return [made.order, made.check, made.fetch, made.odd, made.work]


async def test_a_tool_waits_and_a_poll_settles_it(runner: Any, tools: list[Any]) -> None:
    events: list[Event] = []
    run = runner(*tools, events=events.append)
    result = await run("order", note="two before it")
    assert (result.status, result.waiting.handle, result.output) == ("waiting", "job-17", "taken\n")
    assert "two before it" in result.for_llm()
    done = await run.controller.poll(result)
    assert (done.output, done.call_id) == ("job-17 is done", result.call_id)
    assert [each.call_id for each in events if each.kind == "settled"] == [result.call_id]


async def test_a_waiting_answer_that_cannot_be_one_is_a_bad_reply(
    runner: Any, tools: list[Any]
) -> None:
    assert (await runner(*tools)("odd")).error.category == "bad_reply"


async def test_a_tool_that_says_so_is_tried_again_in_a_new_cell(
    runner: Any, tools: list[Any], workspace: Path
) -> None:
    run = runner(*tools)
    result = await run("fetch", fails=2)
    assert (result.structured, result.metadata.attempts) == (3, 3)
    (workspace / "tries").unlink()
    for_good = await run("fetch", fails=2, passes=False)
    assert (for_good.status, for_good.metadata.attempts) == ("failed", 1)


async def test_arguments_narrow_the_limits_of_their_call(runner: Any, tools: list[Any]) -> None:
    run = runner(*tools, limits={"wall": 20, "output": 100_000})
    late = await run("work", seconds=0.2)
    assert late.status == "timed_out"
    assert "0.2 s (its argument `seconds` asked for this limit)" in late.error.message
    much = await run("work", most=2000)
    assert "limit of 2,000 bytes (its argument `most` asked" in much.error.message
    wide = await run("work", most=10**9)
    assert "limit of 100,000 bytes (the policy gives no more; `most`" in wide.error.message
    assert (await run("work", seconds=-1)).error.category == "invalid_arguments"
