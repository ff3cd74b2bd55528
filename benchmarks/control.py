"""What the control plane costs: deciding a call, and appending an event; no cell is made.

    python -m benchmarks.control [--rounds N]

The policy has 200 rules: prefixes of commands, paths, arguments. `plain` lines need no parser;
`parsed` ones are read by it once and remembered; `first time` is with the parser.
"""

import argparse
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from toolcell import ToolCall, ToolPolicy, ToolRegistry
from toolcell.events import Event, EventKind, EventLog
from toolcell.model import PreparedToolCall
from toolcell.policy import Decider
from toolcell.runtime import ToolRuntime


def main() -> None:
    """Measure and print a Markdown table, in microseconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5000, help="measurements of each")
    rounds = parser.parse_args().rounds
    print(f"Linux {platform.release()}, Python {platform.python_version()}, {rounds} rounds\n")
    print("| what | p50 µs | p95 µs |\n|---|---:|---:|")
    with tempfile.TemporaryDirectory() as directory:
        for name, once in _contestants(Path(directory)).items():
            times = _measure(once, 50 if "first time" in name else rounds)
            p95 = statistics.quantiles(times, n=20)[-1]
            print(f"| {name} | {statistics.median(times) * 1e6:.1f} | {p95 * 1e6:.1f} |")


def _measure(once: Callable[[int], object], rounds: int) -> list[float]:
    times = []
    for number in range(rounds):
        began = time.perf_counter()
        once(number)
        times.append(time.perf_counter() - began)
    return times


def _contestants(directory: Path) -> dict[str, Callable[[int], object]]:
    decider = Decider(_policy(), directory)
    plain = _call("shell", command="git push origin main")
    parsed = _call("shell", command="cd sub && git push origin 'main' | tee log")
    write = _call("write_file", path="src/module.py", content="x")
    log = EventLog(directory / "events.db")
    return {
        "decide, plain line, 200 rules": lambda _: decider.decide(plain),
        "decide, parsed line, 200 rules": lambda _: decider.decide(parsed),
        "decide, parsed line the first time": lambda number: decider.decide(
            _call("shell", command=f"echo '{number}' | git push")
        ),
        "decide, a path, 200 rules": lambda _: decider.decide(write),
        "append an event": lambda number: log(_event(number)),
    }


def _policy() -> ToolPolicy:
    commands: list[dict[str, Any]] = [
        {
            "id": f"command-{number}",
            "tool": "shell",
            "command": [f"program{number}" if number else "git", ["push", "fetch"]],
            "decision": "ask",
            "reason": "it talks to a remote",
        }
        for number in range(120)
    ]
    paths: list[dict[str, Any]] = [
        {
            "id": f"path-{number}",
            "tool": "write_file",
            "args": {"path": {"under": f"directory{number}"}},
            "decision": "deny",
            "reason": "it is not ours",
        }
        for number in range(40)
    ]
    others: list[dict[str, Any]] = [
        {
            "id": f"other-{number}",
            "tool": ["search_text", "list_files"],
            "args": {"limit": {"max": number + 1}},
            "decision": "allow",
        }
        for number in range(40)
    ]
    return ToolPolicy(allow=["shell", "write_file"], rules=[*commands, *paths, *others])


def _call(tool: str, **arguments: Any) -> PreparedToolCall:
    runtime = ToolRuntime(ToolRegistry.builtin())
    prepared = runtime.prepare(ToolCall(call_id="1", name=tool, arguments=arguments))
    if not isinstance(prepared, PreparedToolCall):
        raise SystemExit(f"the benchmark's own call is not valid: {prepared.for_llm()}")
    return prepared


def _event(number: int) -> Event:
    data = {
        "action": "allow",
        "rule_id": "git-status",
        "reason": "reading is harmless",
        "n": number,
    }
    return Event(
        at=datetime.now(UTC),
        kind=EventKind.DECIDED,
        run="run-1",
        key=f"{number:016x}",
        call_id=f"call_{number}",
        tool_name="shell",
        data=data,
    )


if __name__ == "__main__":
    main()
