"""`toolcell batch`: many calls, one result a line, in input order or as they finish."""

import asyncio
import os
import re
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from pydantic import ValidationError

from toolcell.arguments import strict_json
from toolcell.cli.asking import ask_or_wait
from toolcell.cli.exits import FAILED, SUCCEEDED
from toolcell.cli.progress import progress
from toolcell.cli.prompt import can_ask
from toolcell.cli.setup import Setup
from toolcell.controller import ToolController
from toolcell.errors import StoreError, ToolcellError
from toolcell.model import (
    ApprovalRequest,
    ApprovalResponse,
    Category,
    ErrorInfo,
    ToolCall,
    ToolResult,
)
from toolcell.normalizer import Origin, refused
from toolcell.rejections import unrecorded

_HELD = 1000
_ONE_LINE = re.compile(r": line \d+ column (\d+) \(char \d+\)")

Emit = Callable[[ToolResult], None]


def run_batch(
    setup: Setup,
    path: Path,
    concurrency: int | None,
    *,
    as_finished: bool,
    table: bool,
    wait: bool,
) -> int:
    """Run the calls of a JSONL file, or of standard input for "-"; returns the exit code."""
    kept: list[ToolResult] = []
    failed = 0
    with _opened(path) as lines, progress(path) as step:

        def emit(result: ToolResult) -> None:
            nonlocal failed
            failed += result.error is not None
            if table:
                kept.append(result)
            else:
                print(result.model_dump_json(), flush=True)
            step()

        order = _Order(emit, in_order=not as_finished)
        if path != Path("-"):
            setup = replace(setup, protected=(path,))  # a tool must not write the next calls
        gone = False
        try:
            asyncio.run(_run(setup, lines, concurrency or os.cpu_count() or 1, order, wait=wait))
        except* BrokenPipeError:
            gone = True  # raised below: from here it would come out in a group (before 3.11.4)
        finally:
            if table:
                from toolcell.cli.table import print_table

                print_table(kept)
    if gone:
        raise BrokenPipeError
    return FAILED if failed else SUCCEEDED


class _Order:
    """Lets results out: at once, or each when all before it are out; says when one is."""

    def __init__(self, emit: Emit, *, in_order: bool) -> None:
        self._emit = emit
        self._in_order = in_order
        self._next = 0
        self._held: dict[int, ToolResult] = {}
        self.released: Callable[[], None] = lambda: None

    def take(self, index: int, result: ToolResult) -> None:
        self._held[index] = result
        if not self._in_order:
            self._next = index
        while self._next in self._held:
            self._emit(self._held.pop(self._next))
            self._next += 1
            self.released()


async def _run(
    setup: Setup, lines: IO[str], concurrency: int, order: _Order, *, wait: bool
) -> None:
    # A line is read when a slot is free, so that no queue grows with a long file; and when
    # few results are held back for one that is slow.
    slots = asyncio.Semaphore(concurrency)
    window = asyncio.Semaphore(concurrency + _HELD)
    order.released = window.release

    async def one(controller: ToolController, index: int, number: int, line: str) -> None:
        try:
            order.take(index, await _handle(controller, number, line, wait=wait))
        finally:
            slots.release()

    index = number = 0
    async with (
        setup.controller(
            max_running=concurrency, spare_cells=concurrency, run_grants=True
        ) as controller,
        asyncio.TaskGroup() as tasks,
    ):
        while True:
            await slots.acquire()
            line = await _read_line(lines)
            number += 1
            if not line:
                break
            if not line.strip():
                slots.release()
                continue
            await window.acquire()
            tasks.create_task(one(controller, index, number, line))
            index += 1


async def _read_line(lines: IO[str]) -> str:
    """Read a line in a thread: a slow producer must not hold up the calls that run.

    A daemon, so that one who never writes again cannot keep the program from ending.
    """
    loop = asyncio.get_running_loop()
    read: asyncio.Future[str] = loop.create_future()

    def settle(line: str) -> None:
        if not read.done():
            read.set_result(line)

    def body() -> None:
        line = lines.readline()
        with suppress(RuntimeError):  # the loop has ended in the meantime
            loop.call_soon_threadsafe(settle, line)

    threading.Thread(target=body, daemon=True).start()
    return await read


async def _handle(controller: ToolController, number: int, line: str, *, wait: bool) -> ToolResult:
    try:
        call = _parse(line.rstrip("\r\n"), number)
    except ValueError as error:
        return _bad_line(number, line, str(error))
    outcome = await controller.handle(call)
    if not isinstance(outcome, ApprovalRequest):
        return outcome
    try:
        return await _answered(controller, outcome, wait=wait)
    except StoreError as error:  # this call's answer cannot be kept; the others go on
        return refused(Origin(call), unrecorded(error))


async def _answered(
    controller: ToolController, request: ApprovalRequest, *, wait: bool
) -> ToolResult:
    outcome = await ask_or_wait(controller, request, wait=wait)
    if isinstance(outcome, ApprovalRequest):
        there = (
            "the question was left open"
            if can_ask()
            else "nobody is there to be asked (batch --wait waits)"
        )
        return await controller.resolve(
            ApprovalResponse(
                approval_id=outcome.approval_id,
                approved=False,
                by="the batch",
                note=f"{there}, and {outcome.reason}",
            )
        )
    return outcome


def _parse(line: str, number: int) -> ToolCall:
    """Read one line; its id defaults to the line's number. Raises ValueError in words."""
    try:
        document = strict_json(line)
    except ValueError as error:  # of one line, its place is a column
        raise ValueError(_ONE_LINE.sub(r" at column \1", str(error))) from None
    if not isinstance(document, dict):
        raise ValueError('expected an object such as {"call_id": "1", "name": "echo", ...}')
    try:
        return ToolCall.model_validate({"call_id": f"line-{number}"} | document)
    except ValidationError as error:
        raise ValueError("; ".join(map(_problem, error.errors()))) from None


def _problem(item: Any) -> str:
    key = ".".join(str(part) for part in item["loc"])
    if item["type"] == "extra_forbidden":
        return f"unknown key `{key}`; a call has `call_id`, `name` and `arguments`"
    return f"`{key}`: {item['msg'].lower()}"


def _bad_line(number: int, line: str, problem: str) -> ToolResult:
    error = ErrorInfo(
        category=Category.INVALID_ARGUMENTS,
        message=f"line {number} is not a call: {problem}",
        hint='a line is {"call_id": "...", "name": "...", "arguments": {...}}',
    )
    return refused(Origin(ToolCall(call_id=_id_in(line) or f"line-{number}", name="?")), error)


def _id_in(line: str) -> str | None:
    """The id of a line that is JSON, whatever else is wrong with it."""
    try:
        call_id = strict_json(line).get("call_id")
    except (ValueError, AttributeError):
        return None
    return call_id if isinstance(call_id, str) else None


def _opened(path: Path) -> AbstractContextManager[IO[str]]:
    if str(path) == "-":
        return nullcontext(sys.stdin)
    try:
        # Bytes that are not UTF-8 make their own line bad, not the run.
        return path.open(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise ToolcellError(f"the calls cannot be read: {path}: {error.strerror}") from None
