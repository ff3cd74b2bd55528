"""`toolcell call`: one tool call, its output, and if asked the account of it."""

import asyncio
import secrets
import sys

from toolcell.cli.asking import ask_or_wait
from toolcell.cli.exits import of_call
from toolcell.cli.files import print_files
from toolcell.cli.setup import Setup
from toolcell.errors import ToolcellError
from toolcell.model import ApprovalRequest, Category, ToolCall, ToolResult
from toolcell.visible import visible, visible_line


def fresh_id(kind: str) -> str:
    """Make an id that the events have no other call by: kind-1a2b3c4d."""
    return f"{kind}-{secrets.token_hex(4)}"


def make_call(
    setup: Setup,
    tool: str,
    arguments: str,
    call_id: str | None,
    *,
    as_json: bool,
    report: bool,
    wait: bool,
) -> int:
    """Make the call and print what came of it; returns the exit code."""
    if call_id == "":
        raise ToolcellError("--id cannot be empty")
    call = ToolCall(call_id=call_id or fresh_id("call"), name=tool, arguments=arguments)
    outcome = asyncio.run(_call(setup, call, wait=wait))
    if as_json:
        print(outcome.model_dump_json(indent=2))
    elif report:
        from toolcell.cli.report import print_report

        print_report(setup, call, outcome)
    elif isinstance(outcome, ApprovalRequest):
        print(
            f"toolcell: this call needs approval: {visible_line(outcome.reason)}\n"
            f"toolcell: it was not run. Look at it and allow it once, then make the call again:\n"
            f"    toolcell approvals show {outcome.approval_id}\n"
            f"    toolcell approvals approve {outcome.approval_id}",
            file=sys.stderr,
        )
    else:
        _print_result(outcome)
    return of_call(outcome)


async def _call(setup: Setup, call: ToolCall, *, wait: bool) -> ToolResult | ApprovalRequest:
    async with setup.controller(spare_cells=0) as controller:
        outcome = await controller.handle(call)
        if isinstance(outcome, ApprovalRequest):
            return await ask_or_wait(controller, outcome, wait=wait)
        return outcome


def _print_result(result: ToolResult) -> None:
    for text, stream in (
        (result.output, sys.stdout),
        (result.metadata.stdout, sys.stderr),
        (result.metadata.stderr, sys.stderr),
    ):
        if text:
            print(text, end="" if text.endswith("\n") else "\n", file=stream)
    _print_where_all_is(result)
    if result.waiting:
        print(f"toolcell: {visible(result.waiting.told())}", file=sys.stderr)
    print_files(result)
    if result.error:
        message = visible(result.error.message)
        print(f"toolcell: {result.error.category}: {message}", file=sys.stderr)
        hint = result.error.hint
        if result.error.category is Category.POLICY_DENIED:  # its hint is for a model
            hint = _way_out(result)
        if hint:
            print(f"toolcell: {visible(hint)}", file=sys.stderr)


def _print_where_all_is(result: ToolResult) -> None:
    facts = result.metadata
    cuts = (result.truncation, facts.stdout_truncation, facts.stderr_truncation)
    for what, cut in zip(("the output", "what it printed", "standard error"), cuts, strict=True):
        if cut is not None and cut.handle:
            line = f"toolcell: all of {what}: toolcell output show {cut.handle}"
            print(line, file=sys.stderr)


def _way_out(result: ToolResult) -> str:
    """What a person can do about a denial."""
    if result.metadata.rule_id == "default":
        return f"--allow {result.tool_name} allows it for once, an entry in the policy for good"
    return f"toolcell policy explain {result.tool_name} '...' shows the rule, and where it stands"
