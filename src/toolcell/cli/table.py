"""The table of a batch: one row a call, made to be read by a person."""

import json
import os

import psutil
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from toolcell.cli.files import in_a_cell
from toolcell.model import Category, Status, ToolResult
from toolcell.visible import visible_line

STYLES = {
    Status.SUCCEEDED: "green",
    Status.FAILED: "red",
    Status.REJECTED: "yellow",
    Status.TIMED_OUT: "magenta",
    Status.CANCELLED: "magenta",
    Status.WAITING: "cyan",
}
_WHY = 160
_WIDTH_OF_A_FILE = 120


def print_table(results: list[ToolResult]) -> None:
    """Print the results and what is left of their processes, which is nothing."""
    console = console_for_tables()
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("call", "decision", "status"):
        table.add_column(heading, no_wrap=True)
    table.add_column("why", ratio=1, overflow="fold")
    table.add_column("time", justify="right", no_wrap=True)
    for result in results:
        style = STYLES[result.status]
        table.add_row(
            escape(visible_line(result.call_id)),
            _decision(result),
            f"[{style}]{result.status}[/{style}]",
            escape(_why(result) + in_a_cell(result)),
            _time(result.latency_ms),
        )
    console.print(table)
    console.print(_remains(results))


def console_for_tables() -> Console:
    """A console on stdout; a file or a pipe gets more columns than rich's 80."""
    console = Console(highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console = Console(highlight=False, width=_WIDTH_OF_A_FILE)
    return console


def _decision(result: ToolResult) -> str:
    """What the policy decided; nothing where a call never came so far."""
    return result.metadata.decision or "-"


def _why(result: ToolResult) -> str:
    """One line that tells this call from the others."""
    if result.error is None:
        return _outcome(result)
    if result.error.category is Category.EXIT_CODE:
        said = (result.metadata.stderr or result.output).strip().splitlines()
        return _clip(f"exit code {result.return_code}: {said[-1] if said else 'printed nothing'}")
    return _clip(f"{result.error.category}: {result.error.message}")


def _outcome(result: ToolResult) -> str:
    if result.structured is not None:
        return _clip(json.dumps(result.structured, ensure_ascii=False))
    lines = result.output.strip().splitlines() or ["(no output)"]
    rest = len(lines) - 1
    more = f" (and {rest} more line{'' if rest == 1 else 's'})" if rest else ""
    return _clip(lines[0], _WHY - len(more)) + more


def _clip(text: str, width: int = _WHY) -> str:
    text = visible_line(" ".join(text.split()))
    return text if len(text) <= width else text[: width - 3] + "..."


def _time(milliseconds: float) -> str:
    return f"{milliseconds:.1f} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.1f} s"


def _remains(results: list[ToolResult]) -> str:
    ran = [result for result in results if result.metadata.ended_by]
    seen = sum(result.metadata.survivors_checked for result in ran)
    left = psutil.Process(os.getpid()).children(recursive=True)
    style = "green" if seen == len(ran) and not left else "bold red"
    return (
        f"[{style}]{len(results)} calls, {len(ran)} of them in a cell. Process trees seen to end: "
        f"{seen} of {len(ran)}. Processes left: {len(left)}.[/{style}]"
    )
