"""`toolcell doctor`: the findings as a table or as JSON, and an exit code for scripts."""

import asyncio
import json
import platform
from dataclasses import asdict

from toolcell.cli.exits import FAILED, SUCCEEDED
from toolcell.cli.setup import Setup
from toolcell.doctor import Examination, examine

_STYLES = {"held": "green", "broken": "bold red", "not enforced": "yellow"}


def show(setup: Setup, *, as_json: bool) -> int:
    """Examine this machine and print the findings; returns the exit code."""
    policy = setup.effective_policy()
    found = asyncio.run(examine(policy, setup.usable_workspace()))
    held = all(finding.state == "held" for finding in found.findings if finding.required)
    good = held and found.usable
    if as_json:
        document = {
            "kernel": platform.release(),
            "architecture": platform.machine(),
            "policy": policy.name,
            "rung": found.rung,
            "ready": good,
            "guarantees": [asdict(finding) for finding in found.findings],
            "weaker": found.weaker,
            "advice": [{"what": what, "fix": fix} for what, fix in found.advice],
        }
        print(json.dumps(document, indent=2))
    else:
        _print(found, policy.name, held=held)
    return SUCCEEDED if good else FAILED


def _print(found: Examination, policy: str, *, held: bool) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.markup import escape
    from rich.table import Table

    from toolcell.cli.table import console_for_tables

    console = console_for_tables()
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("guarantee", "state", "needed", "by, and what was tried from inside a cell"):
        table.add_column(heading, overflow="fold")
    for finding in found.findings:
        style = _STYLES[finding.state]
        table.add_row(
            finding.guarantee,
            f"[{style}]{finding.state}[/{style}]",
            "required" if finding.required else "",
            f"{escape(finding.mechanism)}\n[dim]{escape(finding.tried)}[/dim]",
        )
    rung = f", the {found.rung} rung" if found.rung else ""
    console.print(f"Linux {platform.release()} on {platform.machine()}{rung}")
    console.print(table)
    if found.weaker:
        console.print(f"What the {found.rung} rung leaves open:")
    for line in found.weaker:
        console.print(f"  - {escape(line)}")
    # One cause may stand behind all of them: say it once.
    causes = [(finding.detail, finding.fix) for finding in found.findings if finding.detail]
    for detail, fix in dict.fromkeys([*causes, *found.advice]):
        console.print(escape(detail) + (f"\n  fix: {escape(fix)}" if fix else ""))
    verdict = "can" if held else "cannot"
    console.print(f"This machine {verdict} enforce what the {policy} policy requires.")
