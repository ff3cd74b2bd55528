"""The memory limit counts the whole tree, and what belongs to no process."""

import dataclasses
import os
from typing import Any

import pytest

from toolcell.cells.capabilities import capabilities

pytestmark = pytest.mark.isolation

_MIB = 1024**2

_CHILDREN = """
import os, time
for _ in range(4):
    if os.fork() == 0:
        held = bytearray(60 << 20)
        time.sleep(20)
        os._exit(0)
for _ in range(4):
    os.wait()
"""
_SHARED = """
import mmap
held = mmap.mmap(-1, 256 << 20)
for offset in range(0, 256 << 20, 4096):
    held[offset] = 1
"""
_SCRATCH = "f = open('/tmp/held', 'wb')\nfor _ in range(200): f.write(bytes(1 << 20))"
_SHM = _SCRATCH.replace("/tmp", "/dev/shm")
_MEMFD = """
import os
fd = os.memfd_create("held")
for _ in range(200):
    os.write(fd, bytes(1 << 20))
"""
_HELD = "\nimport time\ntime.sleep(20)"


def needs_groups() -> None:
    if capabilities().groups is None:
        pytest.skip("no memory cgroup can be made here: this is counted only in one")


@pytest.fixture(params=["kernel", "watch"])
def counted_by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Who counts memory: the kernel, where groups can be made, or a watch from outside."""
    if request.param == "kernel":
        needs_groups()
    else:
        without = dataclasses.replace(capabilities(), groups=None)
        for module in ("supply", "cells.pool"):
            monkeypatch.setattr(f"toolcell.{module}.capabilities", lambda: without)
    return str(request.param)


@pytest.mark.attack
@pytest.mark.parametrize("code", [_CHILDREN, _SHARED], ids=["children", "shared mapping"])
async def test_memory_of_all_processes_is_counted_together(
    runner: Any, code: str, counted_by: str
) -> None:
    result = await runner(limits={"memory": 96 * _MIB}).py(code)
    assert result.error.category == "memory", result.for_llm()
    control = await runner(limits={"memory": 1024 * _MIB, "wall": 1}).py(code)
    assert control.error is None or control.error.category == "wall", "the control"


@pytest.mark.attack
@pytest.mark.parametrize("code", [_SCRATCH, _SHM, _MEMFD], ids=["scratch", "shm", "memfd"])
async def test_files_in_memory_are_counted(runner: Any, code: str, counted_by: str) -> None:
    limits = {"memory": 96 * _MIB, "scratch": 512 * _MIB}
    result = await runner(limits=limits).py(code + _HELD)
    assert result.error.category == "memory", result.for_llm()
    control = await runner(limits=limits | {"memory": 1024 * _MIB, "wall": 1}).py(code + _HELD)
    assert control.error.category == "wall", "the control"


async def test_the_peak_of_a_whole_tree_is_told_where_the_kernel_counts(runner: Any) -> None:
    needs_groups()
    limits = {"memory": 96 * _MIB, "scratch": 512 * _MIB}
    result = await runner(limits=limits).py(_SCRATCH)
    assert 90 * _MIB <= result.metadata.peak_memory <= 97 * _MIB


@pytest.mark.attack
async def test_what_one_call_used_does_not_count_for_the_next(runner: Any) -> None:
    needs_groups()
    run = runner(limits={"memory": 96 * _MIB, "scratch": 512 * _MIB})
    for _ in range(3):
        assert (await run.py(_SCRATCH)).error.category == "memory"
        assert (await run.py(_SCRATCH.replace("200", "50"))).success


async def test_no_group_outlives_its_controller(runner: Any, workspace: Any) -> None:
    needs_groups()
    place = capabilities().groups.parent  # type: ignore[union-attr]  # there is one
    run = runner()
    own = f"toolcell-{os.getpid()}-*"  # other controllers come and go
    before = set(place.glob(own))
    assert (await run.sh("true")).success
    assert set(place.glob(own)) > before
    await run.controller.close()
    assert not set(place.glob(own)) - before
