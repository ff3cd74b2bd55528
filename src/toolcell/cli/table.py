"""The table of a batch: one row a call, made to be read by a person."""

import os

import psutil
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from toolcell.model import Status, ToolResult

STYLES = {
    Status.SUCCEEDED: "green",
    Status.FAILED: "red",
    Status.REJECTED: "yellow",
    Status.TIMED_OUT: "magenta",
    Status.CANCELLED: "magenta",
    Status.WAITING: "cyan",
}
_WHY = 120


def print_table(results: list[ToolResult]) -> None:
    """Print the results and what is left of their processes, which is nothing."""
    console = Console(highlight=False)
    table = Table(box=SIMPLE_HEAD, pad_edge=False, expand=True)
    table.add_column("call", no_wrap=True)
    table.add_column("tool", no_wrap=True)
    table.add_column("decision", no_wrap=True)
    table.add_column("status", no_wrap=True)
    table.add_column("why", ratio=1, overflow="fold")
    table.add_column("time", justify="right", no_wrap=True)
    for result in results:
        style = STYLES[result.status]
        table.add_row(
            escape(result.call_id),
            escape(result.tool_name),
            decision_of(result),
            f"[{style}]{result.status}[/{style}]",
            escape(_why(result)),
            _time(result.latency_ms),
        )
    console.print(table)
    console.print(_remains(results))


def decision_of(result: ToolResult) -> str:
    """What the policy decided: allow, ask, deny, or nothing where a call never came so far."""
    rule = result.metadata.rule_id
    if rule is None:
        return "-"
    action = rule.partition(":")[0]
    if action == "default":
        return "deny (default)"
    return action


def _why(result: ToolResult) -> str:
    """One line: the first line of the output of a success, the category and cause of the rest."""
    if result.error:
        return _clip(f"{result.error.category}: {result.error.message}")
    lines = result.output.strip().splitlines() or ["(no output)"]
    more = f" (+{len(lines) - 1} lines)" if len(lines) > 1 else ""
    cut = f" ({result.truncation.omitted_bytes:,} bytes left out)" if result.truncation else ""
    return _clip(lines[0]) + more + cut


def _clip(text: str) -> str:
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return text if len(text) <= _WHY else text[: _WHY - 3] + "..."


def _time(milliseconds: float) -> str:
    return f"{milliseconds:.1f} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.1f} s"


def _remains(results: list[ToolResult]) -> str:
    ran = [result for result in results if result.metadata.ended_by]
    seen = sum(result.metadata.survivors_checked for result in ran)
    left = psutil.Process(os.getpid()).children(recursive=True)
    good = seen == len(ran) and not left
    text = (
        f"{len(results)} calls, {len(ran)} ran in a cell; the whole process tree was seen to end "
        f"{seen} of {len(ran)} times. Processes left: {len(left)}."
    )
    return f"[green]{text}[/green]" if good else f"[bold red]{text}[/bold red]"
