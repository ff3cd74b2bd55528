"""`toolcell call --report`: the account of one call, from the spec to what the model reads."""

import json

from rich.console import Console
from rich.markup import escape
from rich.rule import Rule

from toolcell.cli.setup import Setup
from toolcell.cli.table import STYLES
from toolcell.model import ApprovalRequest, Guarantee, ToolCall, ToolResult
from toolcell.policy import Decider
from toolcell.runtime import ToolRuntime
from toolcell.visible import visible


def shown(text: str) -> str:
    """Text of a call's for the console: what would not show is spelled, and no markup."""
    return escape(visible(text))


def print_report(setup: Setup, call: ToolCall, outcome: ToolResult | ApprovalRequest) -> None:
    """Print what was asked, decided, enforced and answered."""
    console = Console(highlight=False)
    _print_call(console, setup, call)
    _print_decision(console, setup, call)
    if isinstance(outcome, ApprovalRequest):
        console.print(Rule("waiting for approval", align="left"))
        console.print(shown(f"{outcome.reason}; not run. Digest {outcome.digest}"))
        return
    _print_enforcement(console, outcome)
    _print_result(console, outcome)
    console.print(Rule("what the model reads", align="left"))
    console.print(shown(outcome.for_llm()))


def _print_call(console: Console, setup: Setup, call: ToolCall) -> None:
    definition = setup.registry().resolve(call.name)
    console.print(Rule("call", align="left"))
    console.print(shown(f"{call.name}({call.arguments})  id {call.call_id}"))
    if definition:
        console.print(shown(definition.spec.description))
        schema = json.dumps(definition.spec.input_schema, ensure_ascii=False)
        console.print(f"[dim]takes {shown(schema)}[/dim]")


def _print_decision(console: Console, setup: Setup, call: ToolCall) -> None:
    policy = setup.effective_policy()
    prepared = ToolRuntime(setup.registry()).prepare(call)
    console.print(Rule("decision", align="left"))
    if isinstance(prepared, ToolResult):
        console.print("rejected before the policy was asked")
        return
    decision = Decider(policy, setup.usable_workspace()).decide(prepared)
    console.print(
        shown(
            f"{decision.action} by {decision.rule_id} of the {policy.name} policy: "
            f"{decision.reason}"
        )
    )


def _print_enforcement(console: Console, result: ToolResult) -> None:
    console.print(Rule("enforcement", align="left"))
    enforcement = result.enforcement
    if enforcement.rung is None:
        console.print("nothing ran")
        return
    console.print(f"the {enforcement.rung} rung")
    if enforcement.attested:
        console.print("[dim]tried from inside when the launcher started[/dim]")
    for guarantee in Guarantee:
        mechanism = enforcement.enforced.get(guarantee)
        required = "required" if guarantee in enforcement.required else ""
        state = f"[green]{mechanism}[/green]" if mechanism else "[yellow]not enforced[/yellow]"
        console.print(f"{guarantee:13} {required:9} {state}")


def _print_result(console: Console, result: ToolResult) -> None:
    style = STYLES[result.status]
    facts = [f"{result.latency_ms:.1f} ms", f"made by the {result.source}"]
    if result.return_code is not None:
        facts.append(f"exit code {result.return_code}")
    if result.signal:
        facts.append(f"signal {result.signal}")
    if result.metadata.cpu_seconds is not None:
        facts.append(f"{result.metadata.cpu_seconds * 1000:.1f} ms of CPU")
    if result.metadata.peak_memory is not None:
        facts.append(f"{result.metadata.peak_memory / 2**20:.0f} MiB at most")
    if result.metadata.ended_by:
        facts.append(result.metadata.ended_by)
    console.print(Rule("result", align="left"))
    console.print(f"[{style}]{result.status}[/{style}]  " + shown(", ".join(facts)))
    if result.error:
        console.print(shown(f"{result.error.category}: {result.error.message}"))
