"""How events are shown to a person: lines, the timeline of a call, tables, a verdict.

What events hold is data: all of it is made visible before it is printed.
"""

import json
import shutil
import sys
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from toolcell.cli.table import console_for_tables
from toolcell.events import Event, Verification
from toolcell.events.chain import Row
from toolcell.events.statistics import Spread, Statistics
from toolcell.events.timeline import Step, outcome, steps, words
from toolcell.visible import visible_line

_BAR = 12


def line_of(row: Row, event: Event) -> str:
    """One event as a line; on a terminal it is cut at the terminal's width."""
    at = event.at.astimezone().isoformat(" ", "milliseconds")
    what = f"{event.tool_name} {event.call_id}".strip()
    line = visible_line(f"{row.sequence:>6} {at} {event.kind:<8} {what}  {words(event)}".rstrip())
    if not sys.stdout.isatty():
        return line
    width = shutil.get_terminal_size().columns
    return line if len(line) <= width else f"{line[: width - 3]}..."


def document_of_call(found: list[tuple[Row, Event]]) -> dict[str, Any]:
    """One call as JSON: its events with their places in the chain, and its stages."""
    events = [event for _, event in found]
    first = events[0]
    return {
        "v": 1,
        "call_id": first.call_id,
        "tool_name": first.tool_name,
        "run": first.run,
        "key": first.key,
        "outcome": outcome(events),
        "steps": [
            {
                "offset_ms": round(step.offset * 1000, 3),
                "stage": step.stage,
                "took_ms": round(step.took * 1000, 3),
                "what": words(step.event),
                "event": json.loads(row.line),
            }
            for (row, _), step in zip(found, steps(events), strict=True)
        ],
    }


def print_call(events: list[Event]) -> None:
    """The timeline of one call."""
    console, first, found = console_for_tables(), events[0], steps(events)
    names = [("call", first.call_id), ("tool", first.tool_name), ("run", first.run)]
    names.append(("key", first.key))
    at = first.at.astimezone().isoformat(" ", "milliseconds")
    title = "   ".join(f"{label} {visible_line(name)}" for label, name in names if name)
    _print(console, title)
    _print(console, f"from {at}")
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("offset", justify="right", no_wrap=True)
    table.add_column("took", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True, width=_BAR)
    table.add_column("in", no_wrap=True)
    table.add_column("event", no_wrap=True)
    table.add_column("what happened", ratio=1, overflow="fold")
    block = "█" if "utf" in console.encoding.lower() else "#"
    for step in found:
        table.add_row(
            f"+{_time(step.offset)}",
            _time(step.took) if step.stage else "",
            _bar(step, found[-1].offset, block),
            step.stage,
            step.event.kind,
            escape(visible_line(words(step.event))),
        )
    console.print(table)
    _print(console, f"{visible_line(outcome(events))}   (in all {_time(found[-1].offset)})")


def print_verification(found: Verification) -> None:
    """The verdict, and what it means."""
    console = console_for_tables()
    place = visible_line(found.path)
    before = f", after {found.pruned} that were pruned" if found.pruned else ""
    span = f" ({found.first} to {found.last})" if found.events else ""
    count = "1 event" if found.events == 1 else f"{found.events} events"
    if not found.intact:
        _print(console, f"NOT INTACT: {place}, {count}{span}{before}")
        for finding in found.findings:
            _print(console, f"  - {visible_line(finding.what)}")
        _print(console, "Keep a copy of the log and its key before anything else is done to them.")
        return
    _print(console, f"Intact: {place}, {count}{span}{before}")
    if not found.events:
        return
    _print(
        console,
        "Proved: since it was written, no event was changed, removed, added or moved by anybody "
        "without the key of this log; those that were pruned fitted the chain when they went.",
    )
    if found.noted:
        _print(console, _NOTED[found.noted])
    _print(
        console,
        "Not proved: that log and key are not an older copy of both, that who can read the key "
        "did not rewrite them, and that what was recorded is true. Against an older copy, write "
        "this down elsewhere, and give it to --noted later:",
    )
    print(f"{found.last}:{found.hash}")


def print_statistics(found: Statistics) -> None:
    """Three tables: tools, categories, stages."""
    console = console_for_tables()
    waiting = f", {found.waiting} wait to be settled" if found.waiting else ""
    _print(console, f"{found.calls} calls ended{waiting}, {found.unfinished} without an end")
    if found.tools:
        table = _table("tool, slowest first", "calls", "failed", "p50", "p95", "longest")
        for tool in found.tools:
            failed = f"{tool.failed / tool.calls:.0%}"
            table.add_row(
                escape(visible_line(tool.tool)), str(tool.calls), failed, *_spread(tool.time)
            )
        console.print(table)
    if found.categories:
        table = _table("why not", "calls", "of all")
        for category in found.categories:
            name = escape(visible_line(category.category))
            table.add_row(name, str(category.calls), f"{category.rate:.1%}")
        console.print(table)
    if found.stages:
        table = _table("stage", "calls", "p50", "p95", "longest", "in all")
        for stage in found.stages:
            total = _time(stage.time.total_ms / 1000)
            table.add_row(stage.stage, str(stage.time.count), *_spread(stage.time), total)
        console.print(table)


_NOTED = {
    "found": "Proved: the event that was noted is there.",
    "pruned": "Not proved: the event that was noted has been pruned since; note a later one.",
}


def _table(first: str, *headings: str) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(first, overflow="fold")
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _spread(spread: Spread | None) -> tuple[str, str, str]:
    if spread is None:
        return "", "", ""
    return _time(spread.p50_ms / 1000), _time(spread.p95_ms / 1000), _time(spread.max_ms / 1000)


def _bar(step: Step, total: float, block: str) -> str:
    """A stage's share of the whole call."""
    return block * round(_BAR * step.took / total) if total else ""


def _time(seconds: float) -> str:
    if seconds < 10:
        return f"{seconds * 1000:.1f} ms"
    if seconds < 600:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _print(console: Console, text: str) -> None:
    console.print(text, markup=False, soft_wrap=True)
