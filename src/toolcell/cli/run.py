"""`toolcell run`: one command in a cell, output live, exit code passed through."""

import asyncio
import shlex
import signal
import sys

from toolcell.cells.supervisor import Stream
from toolcell.cli.exits import of_command
from toolcell.cli.setup import Setup
from toolcell.model import ApprovalRequest, ToolCall, ToolResult
from toolcell.runtime import RunOptions


def run_command(setup: Setup, command: list[str], *, stdin: bool, as_json: bool) -> int:
    """Run the command as a call of the `shell` tool; returns the exit code."""
    options = RunOptions(
        stdin=sys.stdin.read() if stdin else None, tap=None if as_json else _pass_through
    )
    try:
        outcome = asyncio.run(_run(setup, command, options))
    except BrokenPipeError:
        # As a shell says of a command whose reader has had enough.
        return 128 + signal.SIGPIPE
    if as_json:
        print(outcome.model_dump_json())
    elif isinstance(outcome, ApprovalRequest):
        print(f"toolcell: this command needs approval: {outcome.reason}", file=sys.stderr)
    elif outcome.error and outcome.return_code is None:
        print(f"toolcell: {outcome.error.message}", file=sys.stderr)
        if outcome.error.hint:
            print(f"toolcell: {outcome.error.hint}", file=sys.stderr)
    return of_command(outcome)


async def _run(
    setup: Setup, command: list[str], options: RunOptions
) -> ToolResult | ApprovalRequest:
    # exec: the command replaces the shell, so that signals and codes are its own.
    line = f"exec {shlex.join(command)}"
    async with setup.controller(spare_cells=0) as controller:
        return await controller.handle(
            ToolCall(call_id="run", name="shell", arguments={"command": line}), options
        )


def _pass_through(stream: Stream, data: bytes) -> None:
    target = sys.stdout.buffer if stream == "stdout" else sys.stderr.buffer
    target.write(data)
    target.flush()
