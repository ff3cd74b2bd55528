"""Claims of `toolcell.inline`: trusted host code, an honest deadline, exceptions as results."""

import asyncio
import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum

import pytest
from pydantic import SecretStr

from toolcell.declare import ToolError
from toolcell.inline import run_inline
from toolcell.model import Category

from .samples import inline, prepared, schema_tool


async def run(function, wall=5.0, **arguments):
    return await run_inline(prepared(inline(function), **arguments), wall)


def add(a: int, b: int = 2) -> int:
    return a + b


async def add_later(a: int, b: int = 2) -> int:
    await asyncio.sleep(0)
    return a + b


@pytest.mark.parametrize("function", [add, add_later])
async def test_a_function_is_called_with_its_defaults(function):
    assert await run(function, a=1) == (3, None)


class Shade(Enum):
    RED = "red"


@dataclass
class Corner:
    x: int


async def test_the_function_gets_objects_and_its_value_becomes_json():
    seen = []

    def take(corner: Corner, shade: Shade) -> dict[str, object]:
        seen.extend([corner, shade])
        return {"corner": corner, "shade": shade, "pair": (1, 2)}

    value, error = await run(take, corner={"x": 1}, shade="red")
    assert seen == [Corner(1), Shade.RED]
    assert (value, error) == ({"corner": {"x": 1}, "shade": "red", "pair": [1, 2]}, None)


async def test_a_secret_reaches_the_function():
    def log_in(password: SecretStr) -> bool:
        return password.get_secret_value() == "hunter2"

    assert await run(log_in, password="hunter2") == (True, None)


async def test_a_function_that_blocks_does_not_hold_up_the_controller():
    release = threading.Event()

    def block() -> str:
        release.wait(10)
        return "done"

    blocked = asyncio.create_task(run(block))
    assert await run(add, a=1) == (3, None)
    release.set()
    assert await blocked == ("done", None)


async def test_the_deadline_answers_and_says_that_the_code_may_still_run():
    release, ended = threading.Event(), threading.Event()

    def block() -> None:
        release.wait(10)
        ended.set()

    value, error = await run(block, wall=0.05)
    assert (value, error.category) == (None, Category.WALL)
    assert "cannot be killed and may still be running" in error.message
    assert not ended.is_set()
    release.set()
    assert ended.wait(5)


async def test_a_coroutine_is_cancelled_at_its_deadline():
    cancelled = []

    async def forever() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    _, error = await run(forever, wall=0.05)
    assert error.category is Category.WALL
    await asyncio.sleep(0)
    assert cancelled


@pytest.mark.timeout(10)
async def test_a_coroutine_that_ignores_its_cancellation_is_answered_at_its_deadline():
    release, ended = asyncio.Event(), asyncio.Event()

    async def stubborn() -> None:
        with suppress(asyncio.CancelledError):
            await release.wait()
        await release.wait()
        ended.set()

    _, error = await run(stubborn, wall=0.05)
    assert error.category is Category.WALL
    assert not ended.is_set()
    release.set()
    await ended.wait()


class RefusalError(Exception):
    """A tool's own word of refusal, with no hint."""

    is_tool_error = True
    hint = None


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize(
    ("raised", "category", "message"),
    [
        (ValueError("bad"), Category.EXCEPTION, "ValueError: bad"),
        (KeyError(), Category.EXCEPTION, "KeyError"),
        (StopIteration("x"), Category.EXCEPTION, "StopIteration"),
        (SystemExit(3), Category.EXCEPTION, "SystemExit: 3"),
        (asyncio.CancelledError(), Category.EXCEPTION, "CancelledError"),
        (TimeoutError("no answer"), Category.EXCEPTION, "TimeoutError: no answer"),
        (FileNotFoundError(os.fsdecode(b"caf\xe9")), Category.EXCEPTION, r"caf\udce9"),
        (ToolError("not today", hint="tomorrow"), Category.TOOL_ERROR, "not today"),
        (ToolError(""), Category.TOOL_ERROR, "the tool said no"),
        (RefusalError("no"), Category.TOOL_ERROR, "no"),
    ],
    ids=repr,
)
async def test_whatever_is_raised_is_a_result(kind, raised, category, message):
    def fail() -> None:
        raise raised

    async def fail_later() -> None:
        raise raised

    value, error = await run(fail if kind == "sync" else fail_later)
    assert (value, error.category) == (None, category)
    assert message in error.message
    assert error.hint == (getattr(raised, "hint", None) or "")


@pytest.mark.parametrize(
    "value",
    [object(), {"name": "\ud800"}, [float("nan")], b"\xff"],
    ids=["object", "lone surrogate", "NaN", "bytes"],
)
async def test_a_value_that_json_cannot_carry_is_a_bad_reply(value):
    def odd() -> object:
        return value

    given, error = await run(odd)
    assert (given, error.category) == (None, Category.BAD_REPLY)


async def test_an_endless_message_is_cut():
    def fail() -> None:
        raise ValueError("x" * 1_000_000)

    _, error = await run(fail)
    assert len(error.message) < 10_000


async def test_a_definition_without_a_function_is_misuse():
    definition = schema_tool({}).model_copy(update={"isolation": "inline"})
    with pytest.raises(TypeError, match="has no function"):
        await run_inline(prepared(definition), 1.0)


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


async def test_an_exception_that_cannot_be_shown_is_a_result():
    def fail() -> None:
        raise UnspeakableError

    _, error = await run(fail)
    assert error.message == "UnspeakableError: a UnspeakableError that cannot be shown"


async def test_an_answer_whose_own_code_raises_is_a_bad_reply():
    def count() -> Iterator[int]:
        yield 1
        raise RuntimeError("halfway")

    _, error = await run(count)
    assert error.category is Category.BAD_REPLY
