"""Arguments that narrow the limits of one call: kept for it, in a cell like all others."""

import dataclasses
from typing import Any

import pytest

from toolcell.cells.capabilities import capabilities

pytestmark = pytest.mark.isolation

_MIB = 1024**2
_HOLDS = "held = bytearray(120 << 20)\nimport time\ntime.sleep(%s)"
_TOOLS = """
import os, resource, subprocess, threading
from toolcell import tool

@tool(limit_arguments={"seconds": "cpu"})
def burn(seconds: float | None = None, turns: int = 30) -> str:
    before = resource.getrlimit(resource.RLIMIT_CPU)
    for _ in range(turns):
        sum(range(2_000_000))
    return str(before)

@tool(limit_arguments={"tasks": "processes"})
def start(tasks: int | None = None) -> int:
    running = [subprocess.Popen(["sleep", "5"]) for _ in range(8)]
    if tasks:
        running[-1].wait()
    return len(running)
"""


def _pools(run: Any) -> int:
    return len(run.controller.runtime.supply._pools._pools)


@pytest.mark.any_user
async def test_twelve_amounts_of_memory_are_had_from_one_launcher(run: Any) -> None:
    for number in range(12):
        memory = (64 + number) * _MIB
        told = await run("shell", command="ulimit -Sd; ulimit -Hd", memory=memory)
        assert told.output.split() == [str(2 * memory // 1024)] * 2
    wide = await run.sh("ulimit -Sd; ulimit -Hd")
    assert wide.output.split() == [str(2 * 1024 * _MIB // 1024)] * 2, "the control"
    assert _pools(run) == 1


@pytest.mark.parametrize("counted_by", ["kernel", "watch"])
async def test_a_call_that_asked_for_less_memory_is_held_to_it_and_the_next_is_not(
    runner: Any, counted_by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if counted_by == "watch":
        without = dataclasses.replace(capabilities(), groups=None)
        for module in ("supply", "cells.pool"):
            monkeypatch.setattr(f"toolcell.{module}.capabilities", lambda: without)
    elif capabilities().groups is None:
        pytest.skip("no memory cgroup can be made here")
    run = runner()
    for _ in range(2):
        over = await run("python", code=_HOLDS % 20, memory=80 * _MIB)
        assert over.error.category == "memory", over.for_llm()
        assert f"{80 * _MIB:,}" in over.error.message
        assert (await run.py(_HOLDS % 0.3)).success, "the control"
    assert _pools(run) == 1


@pytest.mark.parametrize("rung", ["full", "landlock"])
async def test_processor_time_and_processes_are_narrowed_for_one_call(
    runner: Any, module: Any, rung: str
) -> None:
    tools = module(_TOOLS)
    run = runner(tools.burn, tools.start, cell={"isolation": rung})
    over = await run("burn", seconds=1, turns=1000)
    assert over.error.category == "cpu", over.for_llm()
    assert "1 s of CPU" in over.error.message
    assert (await run("burn", turns=1)).output == "(60, 61)", "the control"
    assert (await run("burn", turns=1, seconds=7)).output == "(7, 8)"
    assert (await run("start")).output == "8", "the control"
    crowd = await run("start", tasks=4)
    assert crowd.error.category == "processes", crowd.for_llm()
    assert _pools(run) == 1
