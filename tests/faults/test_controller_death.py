"""SIGKILL to the controller, at any moment, leaves nothing that lives.

Controllers are forked from one process that has imported toolcell, and each carries a mark
of its own, which all that it starts inherits. They make cells, run calls, and leave daemons
behind until they are killed.
"""

import asyncio
import json
import os
import random
import secrets
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest

from toolcell.cells.capabilities import capabilities

from .conftest import LOCKS, Mark, beats, nothing_beats

pytestmark = [pytest.mark.isolation, pytest.mark.attack]

_DEATHS = 50
_LANES = 5
_PROMISED_SECONDS = 2.0

_NURSERY = f"""
import asyncio, json, os, resource, signal, sys, traceback
from toolcell import CellSettings, Limits, ToolCall, ToolController, ToolPolicy, ToolRegistry
def reap(*_):
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
signal.signal(signal.SIGCHLD, reap)
async def live(rung, place, work, once, **_):
    cell = CellSettings(isolation=rung)
    limits = Limits(wall=300, processes=64)
    policy = ToolPolicy(allow=["*"], cell=cell, limits=limits)
    async with ToolController(ToolRegistry.builtin(), policy, place) as controller:
        async def lane(command):
            while True:
                call = ToolCall(call_id="1", name="shell", arguments={{"command": command}})
                result = await controller.handle(call)
                if once:
                    assert result.success, result.for_llm()
                    return
        await asyncio.gather(*map(lane, work))
for line in iter(sys.stdin.readline, ""):
    order = json.loads(line)
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        resource.setrlimit({LOCKS}, (order["mark"],) * 2)
        try:
            asyncio.run(live(**order))
        except BaseException:
            traceback.print_exc()
        os._exit(0)
    print(pid, flush=True)
"""
_DAEMON = "setsid sleep 300 >/dev/null 2>&1 & mktemp daemon.XXXXXXXX >&2; "
_WORK = (
    "touch ran",
    _DAEMON + "echo left",
    "trap '' TERM HUP; mkdir -p $TMPDIR/deep/er; head -c 99999 /dev/zero > $TMPDIR/deep/file; "
    + _DAEMON
    + "sleep 300",
)


class _Death(NamedTuple):
    """A controller that was killed, how many processes had its mark then, and what it had run."""

    pid: int
    family: int
    daemons: int


class _Nursery:
    """Starts controllers whose temporary files lie in one place."""

    def __init__(self, rung: str, scratch: Path) -> None:
        self._rung = rung
        self._process = subprocess.Popen(
            [sys.executable, "-c", _NURSERY],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"TMPDIR": str(scratch)},
        )

    def start(self, mark: Mark, place: Path, *work: str, once: bool = False) -> int:
        """Start a controller that runs command lines in a workspace; returns its PID."""
        order = {"rung": self._rung, "mark": mark.number, "place": str(place)}
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(order | {"work": work, "once": once}) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        """End the process that they are forked from."""
        self._process.communicate()


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    place = tmp_path / "temporary"
    place.mkdir()
    place.chmod(0o1777)
    return place


@pytest.fixture
async def nursery(rung: str, scratch: Path) -> AsyncIterator[_Nursery]:
    made = _Nursery(rung, scratch)
    yield made
    made.close()


def _groups(pids: set[int]) -> list[Path]:
    """The memory groups that these controllers made."""
    place = capabilities().groups
    found = place.parent.glob("toolcell-*-*") if place else []
    return [path for path in found if int(path.name.split("-")[1]) in pids]


def _daemons(place: Path) -> int:
    return sum(1 for _ in place.glob("daemon.*"))


def _mounts() -> set[str]:
    return set(Path("/proc/self/mountinfo").read_text().splitlines())


@pytest.fixture
def chance() -> random.Random:
    """Moments at random; FAULTS_SEED gives those of a run that failed."""
    seed = int(os.environ.get("FAULTS_SEED") or secrets.randbelow(10**6))
    print(f"FAULTS_SEED={seed}")  # shown where the test fails
    return random.Random(seed)


async def _killed(pid: int, mark: Mark, place: Path, until: Any) -> _Death:
    """Kill a controller, and see that all it started is gone as soon as is promised."""
    family, daemons = len(mark.pids()), _daemons(place)
    os.kill(pid, signal.SIGKILL)
    await until(lambda: not mark.pids(), "nothing of it lives", _PROMISED_SECONDS)
    return _Death(pid, family, daemons)


async def test_a_controller_that_is_killed_at_any_moment_leaves_nothing_that_lives(
    nursery: _Nursery, tmp_path: Path, chance: random.Random, until: Any
) -> None:
    moments = [chance.uniform(0, 0.7) for _ in range(_DEATHS)]
    mounts = _mounts()

    async def death(number: int) -> _Death:
        mark = Mark()
        place = tmp_path / f"workspace{number}"
        place.mkdir()
        pid = nursery.start(mark, place, *_WORK)
        try:
            if number % 10 == 0:  # the control: some are killed when all is running
                await until(lambda: _daemons(place) > 2, "daemons were left", seconds=20)
            else:
                await asyncio.sleep(moments[number])
            return await _killed(pid, mark, place, until)
        finally:
            mark.kill()
            assert {path.name.split(".")[0] for path in place.iterdir()} <= {"daemon", "ran"}

    async def lane(first: int) -> list[_Death]:
        return [await death(number) for number in range(first, _DEATHS, _LANES)]

    lanes = await asyncio.gather(*map(lane, range(_LANES)))
    deaths = [each for done in lanes for each in done]
    assert len(deaths) == _DEATHS
    assert max(each.family for each in deaths) > 8, "the control: whole families were killed"
    assert any(each.daemons == 0 for each in deaths), "some had not run a call yet"
    assert not _mounts() - mounts
    for group in _groups({each.pid for each in deaths}):
        assert (group / "cgroup.procs").read_text() == ""


@pytest.mark.parametrize("kind", ["run", "grow"])
async def test_a_storm_of_forks_does_not_outlive_its_controller(
    nursery: _Nursery, workspace: Path, storm: Any, mark: Mark, until: Any, kind: str
) -> None:
    for _ in range(5):
        before = beats(workspace)
        pid = nursery.start(mark, workspace, storm(kind), "sleep 300")
        await until(
            lambda before=before: beats(workspace) > before + 200, "the control: it forks", 20
        )
        os.kill(pid, signal.SIGKILL)
        await until(lambda: not mark.pids(), "nothing of it lives", _PROMISED_SECONDS)
        nothing_beats(workspace, mark)


async def test_what_a_killed_controller_has_left_is_swept_by_the_next(
    nursery: _Nursery, rung: str, scratch: Path, tmp_path: Path, chance: random.Random, until: Any
) -> None:
    """Memory groups and directories may be left, until the next controller starts.

    The last one is killed with its keeper, which would have cleared its directory.
    """
    pids = set()
    for number in range(8):
        mark = Mark()
        place = tmp_path / f"workspace{number}"
        place.mkdir()
        pid = nursery.start(mark, place, *_WORK)
        await until(mark.pids, "it starts")
        await asyncio.sleep(chance.uniform(0, 0.25))
        pids.add((await _killed(pid, mark, place, until)).pid)
    mark = Mark()
    place = tmp_path / "together"
    place.mkdir()
    pids.add(nursery.start(mark, place, *_WORK))
    await until(lambda: _daemons(place) > 0, "cells are made")
    mark.kill()
    left = [*_groups(pids), *scratch.iterdir()]
    place = tmp_path / "next"
    place.mkdir()
    pid = nursery.start(mark, place, "touch ran", once=True)
    await until(lambda: not psutil.pid_exists(pid), "the next controller has ended", seconds=20)
    assert (place / "ran").exists(), "the control: it ran a call"
    if rung == "landlock" or capabilities().groups:
        assert left, "the control: there was something to sweep"
    assert _groups(pids | {pid}) == []
    assert [path.name for path in scratch.iterdir()] == []
