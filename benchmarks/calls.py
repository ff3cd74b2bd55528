"""What one call costs, beside a bare subprocess and other wrappers, measured in one run.

    python -m benchmarks.calls [--rounds N]

All contestants take turns in one loop, so that whatever else the machine does is shared
fairly; ratios to the bare subprocess are what to compare, not milliseconds of different
days. `ready` calls find a cell waiting, as a call after a pause does; `back to back`
ones come as fast as results do, and pay for the making of cells too. `landlock` is the
rung without namespaces. `a cell made` is what a pool pays ahead of a call.
"""

import argparse
import asyncio
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

from toolcell import ToolCall, ToolController, ToolRegistry, ToolResult, load_policy
from toolcell.cells.process import Launcher

Contestant = Callable[[], Awaitable[None]]

_BWRAP = (
    "bwrap --unshare-all --die-with-parent --ro-bind /usr /usr --symlink usr/bin /bin "
    "--symlink usr/lib /lib --symlink usr/lib64 /lib64 --proc /proc --dev /dev --tmpfs /tmp true"
)
_SETTLE = 0.02


def main() -> None:
    """Measure and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200, help="measurements of each contestant")
    rounds = parser.parse_args().rounds
    print(
        f"Linux {platform.release()}, {os.cpu_count()} processors, Python "
        f"{platform.python_version()}, {'root' if os.geteuid() == 0 else 'ordinary user'}, "
        f"{rounds} rounds\n"
    )
    times = asyncio.run(_measure(rounds))
    base = statistics.median(times["subprocess.run true"])
    print("| contestant | p50 ms | p95 ms | ratio of p50 |\n|---|---:|---:|---:|")
    for name, values in times.items():
        p50 = statistics.median(values)
        p95 = statistics.quantiles(values, n=20)[-1]
        print(f"| {name} | {p50 * 1e3:.2f} | {p95 * 1e3:.2f} | {p50 / base:.2f} |")


async def _measure(rounds: int) -> dict[str, list[float]]:
    async with AsyncExitStack() as stack:
        workspace = stack.enter_context(tempfile.TemporaryDirectory())
        controllers = {}
        for rung in ("full", "landlock"):
            policy = load_policy("default").changed(cell={"isolation": rung})
            controller = ToolController(ToolRegistry.builtin(), policy, workspace)
            controllers[rung] = await stack.enter_async_context(controller)
        full = controllers["full"]
        plan = full.runtime.plan(full.policy.cell, full.policy.limits, "full")
        launcher = await Launcher.start(plan)
        stack.push_async_callback(launcher.close)
        contestants = _contestants(controllers, launcher)
        times: dict[str, list[float]] = {name: [] for name in contestants}
        for number in range(rounds + 3):
            for name, run in contestants.items():
                if not name.endswith("back to back"):
                    # Lets the pool fill, and gives every contestant the same quiet start.
                    await asyncio.sleep(_SETTLE)
                began = time.perf_counter()
                await run()
                if number >= 3:  # the first rounds warm caches up
                    times[name].append(time.perf_counter() - began)
        return times


def _contestants(
    controllers: dict[str, ToolController], launcher: Launcher
) -> dict[str, Contestant]:
    contestants: dict[str, Contestant] = {
        "subprocess.run true": _subprocess(["true"]),
        "python -I -S -c pass": _subprocess([sys.executable, "-I", "-S", "-c", "pass"]),
    }
    if shutil.which("bwrap"):
        contestants["bwrap, all namespaces, true"] = _subprocess(_BWRAP.split())
    for rung, controller in controllers.items():
        name = "toolcell" if rung == "full" else f"toolcell, {rung},"
        echo = _call(controller, "echo", text="x")
        shell = _call(controller, "shell", command="true")
        contestants |= {
            f"{name} echo (Python), ready": echo,
            f"{name} shell true, ready": shell,
            f"{name} echo (Python), back to back": echo,
            f"{name} shell true, back to back": shell,
        }

    async def make() -> None:
        (await launcher.make()).close()

    return contestants | {"toolcell, a cell made": make}


def _subprocess(command: list[str]) -> Contestant:
    async def run() -> None:
        subprocess.run(command, check=True)  # noqa: ASYNC221  # the blocking call is what is measured

    return run


def _call(controller: ToolController, tool: str, **arguments: str) -> Contestant:
    call = ToolCall(call_id="bench", name=tool, arguments=arguments)

    async def run() -> None:
        outcome = await controller.handle(call)
        if not (isinstance(outcome, ToolResult) and outcome.success):
            raise RuntimeError(f"the call did not succeed: {outcome}")

    return run


if __name__ == "__main__":
    main()
