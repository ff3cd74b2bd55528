"""`toolcell run`: one command in a cell, output live, exit code passed through."""

import asyncio
import os
import shlex
import signal
import sys

from toolcell.cells.captures import Stream
from toolcell.cli.asking import ask_or_wait
from toolcell.cli.call import fresh_id
from toolcell.cli.exits import of_command
from toolcell.cli.files import print_files
from toolcell.cli.setup import Setup
from toolcell.grants import RunOptions
from toolcell.model import ApprovalRequest, Category, ToolCall, ToolResult
from toolcell.visible import visible, visible_line


def run_command(setup: Setup, command: list[str], *, stdin: bool, as_json: bool) -> int:
    """Run the command as a call of the `shell` tool; returns the exit code."""
    options = RunOptions(
        stdin=sys.stdin.buffer.read() if stdin else None, tap=None if as_json else _pass_through
    )
    try:
        outcome = asyncio.run(_run(setup, command, options))
    except BrokenPipeError:
        # As a shell says of a command whose reader has had enough.
        return 128 + signal.SIGPIPE
    if as_json:
        print(outcome.model_dump_json())
    elif isinstance(outcome, ApprovalRequest):
        print(
            f"toolcell: this command needs approval: {visible_line(outcome.reason)}\n"
            "toolcell: it was not run. Allow it once, then run it again:\n"
            f"    toolcell approvals approve {outcome.approval_id}",
            file=sys.stderr,
        )
    else:
        print_files(outcome)
        if outcome.error and outcome.error.category is not Category.EXIT_CODE:
            print(f"toolcell: {visible(outcome.error.message)}", file=sys.stderr)
            if outcome.error.hint:
                print(f"toolcell: {visible(outcome.error.hint)}", file=sys.stderr)
    return of_command(outcome)


async def _run(
    setup: Setup, command: list[str], options: RunOptions
) -> ToolResult | ApprovalRequest:
    # exec: the command replaces the shell, so that signals and codes are its own.
    line = f"exec -- {shlex.join(command)}"
    async with setup.controller(spare_cells=0) as controller:
        call = ToolCall(call_id=fresh_id("run"), name="shell", arguments={"command": line})
        outcome = await controller.handle(call, options)
        if isinstance(outcome, ApprovalRequest):
            return await ask_or_wait(controller, outcome, options, wait=False)
        return outcome


async def _pass_through(stream: Stream, data: bytes) -> None:
    # In a thread: a reader that is slow must not hold up the deadline.
    await asyncio.to_thread(_write, 1 if stream == "stdout" else 2, memoryview(data))


def _write(fd: int, data: memoryview) -> None:
    while data:
        data = data[os.write(fd, data) :]
