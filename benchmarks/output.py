"""What a flood of output costs: through a call, beside a bare pipe, in one run.

    python -m benchmarks.output [--size 1GiB] [--rounds N]

Each way reads the same program's output to its end, in turns, in a process of its own that has
made one small call before. `growth` is how much more memory that process had at its peak than
before the flood. Through a call the output is counted, both ends of it are kept in memory, and its
beginning is redacted and kept in the store, up to the cap.
"""

import argparse
import asyncio
import json
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from toolcell import Limits, ToolCall, ToolController, ToolPolicy, ToolRegistry, ToolResult
from toolcell.model.base import parse_size
from toolcell.outputs import OutputStore, no_outputs

_CHUNK = 1024**2
_LINES = {
    "log lines": "yes '2030-01-01 12:00:00 INFO compiled module 17 of 400 in src/tools/run.py'",
    "short lines": "yes",
    "zero bytes": "cat /dev/zero",
}


def main() -> None:
    """Measure and print a Markdown table, in MB/s."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", default="1GiB", help="how much output, such as 256MiB")
    parser.add_argument("--rounds", type=int, default=3, help="floods of each kind and way")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    size = parse_size(options.size)
    if options.one:
        way, _, command = options.one.partition(":")
        print(json.dumps(_WAYS[way](command, size)))
        return
    print(f"Linux {platform.release()}, Python {platform.python_version()}, {options.size}\n")
    print("| output | way | MB/s | of a bare pipe | growth |\n|---|---|---:|---:|---:|")
    for name, line in _LINES.items():
        _print(name, f"{line} | head -c {size}", options.size, options.rounds)


def _print(name: str, command: str, size: str, rounds: int) -> None:
    found: dict[str, list[dict[str, float]]] = {way: [] for way in _WAYS}
    for _ in range(rounds):
        for way, measured in found.items():
            measured.append(_in_its_own_process(way, command, size))
    speed = {way: statistics.median(m["speed"] for m in ms) for way, ms in found.items()}
    for way, measured in found.items():
        growth = max(m["growth"] for m in measured)
        ratio = speed[way] / speed["a bare pipe"]
        print(f"| {name} | {way} | {speed[way]:.0f} | {ratio:.2f} | {growth:.1f} MiB |")


def _in_its_own_process(way: str, command: str, size: str) -> dict[str, float]:
    line = [sys.executable, "-m", "benchmarks.output", "--size", size, "--one", f"{way}:{command}"]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    measured: dict[str, float] = json.loads(done.stdout)
    return measured


def _bare(command: str, size: int) -> dict[str, float]:
    def flood() -> int:
        total = 0
        with subprocess.Popen(["bash", "-c", command], stdout=subprocess.PIPE) as process:
            if process.stdout is None:
                raise AssertionError("a pipe was asked for")
            while data := process.stdout.read(_CHUNK):
                total += len(data)
        return total

    subprocess.run(["bash", "-c", "true"], check=True)
    return _measured(flood, size)


def _through_a_call(command: str, size: int, *, kept: bool = True) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as directory:
        workspace = Path(directory) / "workspace"
        workspace.mkdir()
        store = OutputStore(Path(directory) / "outputs") if kept else no_outputs
        policy = ToolPolicy(allow=["shell"], limits=Limits(wall=600.0, cpu=600.0))
        with asyncio.Runner() as runner:

            async def begin() -> ToolController:
                return ToolController(ToolRegistry.builtin(), policy, workspace, outputs=store)

            controller = runner.run(begin())

            def call(line: str) -> ToolResult:
                proposed = ToolCall(call_id="1", name="shell", arguments={"command": line})
                outcome = runner.run(controller.handle(proposed))
                if not isinstance(outcome, ToolResult) or outcome.error:
                    raise SystemExit(f"the call did not succeed: {outcome}")
                return outcome

            def flood() -> int:
                cut = call(command).truncation
                return cut.total_bytes if cut else 0

            call("seq 1 20000; seq 1 20000 >&2")
            measured = _measured(flood, size)
            runner.run(controller.close())
    return measured


def _measured(flood: Callable[[], int], size: int) -> dict[str, float]:
    before, began = _peak(), time.perf_counter()
    total = flood()
    seconds = time.perf_counter() - began
    if total != size:
        raise SystemExit(f"{total} bytes came, of {size}")
    return {"speed": size / seconds / 1e6, "growth": (_peak() - before) / 1024}


def _peak() -> int:
    """The most memory that this process had so far, in KiB."""
    # Not ru_maxrss, which execve takes over from the parent.
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


_WAYS: dict[str, Callable[[str, int], dict[str, float]]] = {
    "a bare pipe": _bare,
    "a call": _through_a_call,
    "a call that keeps nothing": lambda command, size: _through_a_call(command, size, kept=False),
}


if __name__ == "__main__":
    main()
