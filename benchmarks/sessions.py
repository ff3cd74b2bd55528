"""What a call in a session costs, and a fork of one, beside a bare subprocess in one run.

    python -m benchmarks.sessions [--rounds N]

The sessions are warm: made, and used before. All contestants take turns in one loop; ratios to
the bare subprocess are what to compare. Forks are of a session that holds a list of a million
numbers; what their memory is, is what the copies have of their own.
"""

import argparse
import asyncio
import os
import platform
import statistics
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable

import psutil

from toolcell import SessionBounds, ToolCall, ToolController, ToolRegistry, ToolResult

_FORKS = (1, 4, 16)
_HELD = "x = list(range(1_000_000))"


def main() -> None:
    """Measure and print two Markdown tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200, help="measurements of each contestant")
    rounds = parser.parse_args().rounds
    print(
        f"Linux {platform.release()}, {os.cpu_count()} processors, Python "
        f"{platform.python_version()}, {rounds} rounds\n"
    )
    asyncio.run(_measure(rounds))


async def _measure(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as workspace:
        bounds = SessionBounds(branches=64)
        registry = ToolRegistry.builtin()
        async with ToolController(registry, workspace=workspace, session_bounds=bounds) as each:
            times = await _calls(_contestants(each), rounds)
            base = statistics.median(times["subprocess.run true"])
            print("| contestant | p50 ms | p95 ms | ratio of p50 |\n|---|---:|---:|---:|")
            for name, values in times.items():
                p50, p95 = statistics.median(values), statistics.quantiles(values, n=20)[-1]
                print(f"| {name} | {p50 * 1e3:.2f} | {p95 * 1e3:.2f} | {p50 / base:.2f} |")
            print("\n| copies | ms | MiB of their own, all together |\n|---:|---:|---:|")
            for copies in _FORKS:
                took, grown = await _fork(each, copies)
                print(f"| {copies} | {took:.1f} | {grown / 2**20:.1f} |")


def _contestants(controller: ToolController) -> dict[str, Callable[[], Awaitable[None]]]:
    async def bare() -> None:
        subprocess.run(["true"], check=True)  # noqa: ASYNC221  # what is measured

    def call(tool: str, **arguments: str) -> Callable[[], Awaitable[None]]:
        async def run() -> None:
            outcome = await controller.handle(
                ToolCall(call_id="bench", name=tool, arguments=arguments)
            )
            if not isinstance(outcome, ToolResult) or not outcome.success:
                raise SystemExit(f"{tool} failed: {outcome}")

        return run

    return {
        "subprocess.run true": bare,
        "a call in a Python session, `1`": call("python_session", code="1"),
        "a call in a shell session, `:`": call("shell_session", command=":"),
        "a call in a shell session, `/bin/true`": call("shell_session", command="/bin/true"),
    }


async def _calls(
    contestants: dict[str, Callable[[], Awaitable[None]]], rounds: int
) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(rounds + 3):
        for name, run in contestants.items():
            began = time.perf_counter()
            await run()
            if number >= 3:  # the first rounds make the sessions, and warm caches up
                times[name].append(time.perf_counter() - began)
    return times


async def _fork(controller: ToolController, copies: int) -> tuple[float, int]:
    """Milliseconds of one fork, and the memory that no process but a copy has."""
    held = ToolCall(call_id="held", name="python_session", arguments={"code": _HELD})
    await controller.handle(held)
    before = {process.pid for process in psutil.Process().children(recursive=True)}
    forked = await controller.sessions.fork("main", copies)
    after = psutil.Process().children(recursive=True)
    own = sum(each.memory_full_info().uss for each in after if each.pid not in before)
    for name in forked.names:
        await controller.sessions.end(name)
    return forked.milliseconds, own


if __name__ == "__main__":
    main()
