"""However a tool's processes hide, move, stop or multiply, none is left when a result is there.

Each payload is run on the host as well, where what it starts lives on: the control.
"""

import asyncio
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from toolcell import ToolCall
from toolcell.cells.cell import Cell
from toolcell.cells.supervisor import Supervisor

from .conftest import Mark, beats, marked, nothing_beats

pytestmark = [pytest.mark.isolation, pytest.mark.attack]

HIDES = {
    "a daemon that closed everything": """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.chdir("/")
        os.closerange(0, 256)
        libc.prctl(1, 0, 0, 0, 0)
        hold()
    os._exit(0)
""",
    "a child that holds both streams": "if os.fork() == 0: hold()\n",
    "a sibling of the worker": "if clone(0x8000 | signal.SIGCHLD) == 0: hold()\n",
    "a sibling whose parent is gone": """
if os.fork() == 0:
    if clone(0x8000 | signal.SIGCHLD) == 0:
        os.setsid()
        hold()
    os._exit(0)
""",
    "a child that ends without a signal": "if clone(0x800000) == 0: os.setsid(); hold()\n",
    "a parent that waits in vfork": """
if os.fork() == 0:
    if clone(0x4000 | signal.SIGCHLD) == 0:
        hold()
    os._exit(0)
""",
    "a family with a reaper of its own": """
if os.fork() == 0:
    libc.prctl(36, 1, 0, 0, 0)
    os.setsid()
    for _ in range(5):
        if os.fork() == 0:
            if os.fork() == 0:
                os.setsid()
                hold()
            os._exit(0)
    hold()
""",
    "one deaf to every signal": """
if os.fork() == 0:
    for number in set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
    os.setsid()
    hold()
""",
    "one that is stopped": """
if os.fork() == 0:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    os.kill(os.getpid(), signal.SIGSTOP)
    hold()
""",
    "siblings that stop and continue each other": """
leader = os.fork()
if leader == 0:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # an orphaned group with a stopped one gets it
    os.setpgid(0, 0)
    stopped = os.fork()
    keeper = stopped and os.fork()
    while time.monotonic() < end:
        if stopped and keeper:
            os.kill(stopped, signal.SIGSTOP)
        else:
            os.killpg(0, signal.SIGCONT)
        time.sleep(0.001)
    os._exit(0)
""",
    "threads whose first has ended": """
import threading
if os.fork() == 0:
    threading.Thread(target=hold).start()
    libc.syscall(NR["exit"], 0)
""",
    "a name that looks like a dead process": """
if os.fork() == 0:
    libc.prctl(15, b"a) Z 1 1 (b", 0, 0, 0)
    hold()
""",
    "a name that is no text": """
if os.fork() == 0:
    libc.prctl(15, b"\\xff\\n) \\xfe", 0, 0, 0)
    hold()
""",
    "one that cannot be dumped": "if os.fork() == 0: libc.prctl(4, 0, 0, 0, 0); hold()\n",
    "a collector of dead children": """
if os.fork() == 0:
    for _ in range(20):
        if os.fork() == 0:
            os._exit(0)
    hold()
""",
    "a long line of sessions": """
top = os.getpid()
for _ in range(20):
    if os.fork():
        break
    os.setsid()
if os.getpid() != top:
    hold()
""",
}
_LIFE_OUTSIDE = 3
_LIFE_INSIDE = 60

_STARTED = "\nprint('started', flush=True)\n"
_STAYS = "\nhold()\n"


async def _lives_on_outside(code: str, mark: Mark, until: Any) -> None:
    """The control: what a payload starts is there after it has ended, and is found."""
    program = marked(code, mark, _LIFE_OUTSIDE) + _STARTED
    command = [sys.executable, "-c", program]
    # A file, because a pipe would be held by what lives on.
    done = subprocess.run(command, stdout=subprocess.DEVNULL, timeout=20)
    assert done.returncode == 0
    await until(mark.pids, "the control: it lives on without a cell")
    mark.kill()


@pytest.mark.parametrize("kind", HIDES)
async def test_a_success_leaves_no(walled: Any, mark: Mark, until: Any, kind: str) -> None:
    await _lives_on_outside(HIDES[kind], mark, until)
    run = walled()
    result = await run.py(marked(HIDES[kind], mark, _LIFE_INSIDE) + _STARTED)
    assert mark.pids() == []
    assert result.success, result.for_llm()
    assert result.output == "started\n"
    assert result.metadata.survivors_checked


@pytest.mark.parametrize("kind", HIDES)
async def test_the_deadline_leaves_no(walled: Any, mark: Mark, until: Any, kind: str) -> None:
    run = walled(limits={"wall": 0.5})
    program = marked(HIDES[kind], mark, _LIFE_INSIDE) + _STARTED + _STAYS
    task = asyncio.create_task(run.py(program))
    await until(lambda: len(mark.pids()) > 1, "the control: it and the worker are found")
    result = await task
    assert mark.pids() == []
    assert result.status == "timed_out", result.for_llm()
    assert result.output == "started\n"
    assert result.metadata.survivors_checked


async def test_the_control_a_storm_of_forks_goes_on_without_a_cell(
    storm: Any, workspace: Path, mark: Mark, until: Any
) -> None:
    words = storm("run,leave").split()
    subprocess.run(words, cwd=workspace, stdout=subprocess.DEVNULL, check=True)
    before = beats(workspace)
    await until(lambda: beats(workspace) > before + 100, "it goes on")
    (workspace / "stop").touch()
    await until(lambda: not mark.pids(), "it can be ended")


@pytest.mark.parametrize("kind", ["run", "grow"])
async def test_a_storm_of_forks_is_caught_when_its_call_succeeds(
    walled: Any, storm: Any, workspace: Path, mark: Mark, kind: str
) -> None:
    run = walled(limits={"processes": 64})
    for _ in range(3):
        result = await run.sh(storm(f"{kind},leave"))
        nothing_beats(workspace, mark)
        # Where no kernel keeps the count, it may have been ended for its number first.
        assert result.success or result.error.category == "processes", result.for_llm()
        assert result.metadata.survivors_checked
    assert (await run.sh("echo next")).output == "next\n"


@pytest.mark.parametrize("kind", ["run", "grow"])
async def test_a_storm_of_forks_is_caught_at_the_deadline(
    walled: Any, storm: Any, workspace: Path, mark: Mark, until: Any, kind: str
) -> None:
    run = walled(limits={"wall": 0.5, "processes": 64})
    for turn in range(3):
        before = beats(workspace)
        task = asyncio.create_task(run.sh(storm(kind)))
        await until(lambda before=before: beats(workspace) > before + 40, "the control: it forks")
        result = await task
        nothing_beats(workspace, mark)
        assert result.error.category in ("wall", "processes"), (turn, result.for_llm())
        assert result.metadata.survivors_checked
    assert (await run.sh("echo next")).output == "next\n"


@pytest.mark.parametrize("kind", ["run", "grow"])
async def test_a_storm_of_forks_is_caught_when_it_is_cancelled(
    walled: Any, storm: Any, workspace: Path, mark: Mark, until: Any, kind: str
) -> None:
    run = walled(limits={"processes": 64})
    chance = random.Random(7)
    for number in range(5):
        before, more = beats(workspace), chance.randrange(1, 200)
        call = ToolCall(call_id=str(number), name="shell", arguments={"command": storm(kind)})
        task = asyncio.create_task(run.controller.handle(call))
        await until(lambda goal=before + more: beats(workspace) > goal, "the control: it forks")
        cancelled = run.controller.cancel(str(number))
        result = await task
        nothing_beats(workspace, mark)
        # Where no kernel keeps the count, it may have been ended for its number first.
        assert (result.status == "cancelled" and cancelled) or (
            result.error.category == "processes"
        ), result.for_llm()
        assert result.metadata.survivors_checked
    assert (await run.sh("echo next")).output == "next\n"


async def test_cancelling_while_the_walls_are_built_leaves_nothing(
    walled: Any, workspace: Path, until: Any
) -> None:
    chance = random.Random(11)
    before = psutil.Process().children(recursive=True)
    ended = []
    for number in range(14):
        run = walled()
        call = ToolCall(
            call_id="1", name="shell", arguments={"command": f"setsid sleep 60 & touch on{number}"}
        )
        task = asyncio.create_task(run.controller.handle(call))
        if number < 2:  # the control: not cancelled, it runs
            assert (await task).success
        await asyncio.sleep(chance.uniform(0, 0.25))
        if number % 2:
            task.cancel()
        else:
            run.controller.cancel("1")
        ended += await asyncio.gather(task, return_exceptions=True)
        await run.controller.close()
        assert psutil.Process().children(recursive=True) == before
    assert sum((workspace / f"on{number}").exists() for number in range(14)) < 14, "some were early"
    kinds = {type(each) if isinstance(each, BaseException) else each.status for each in ended}
    assert kinds <= {asyncio.CancelledError, "cancelled", "succeeded"}


async def test_no_process_is_killed_by_its_number(
    walled: Any, workspace: Path, monkeypatch: pytest.MonkeyPatch, until: Any
) -> None:
    sent: list[tuple[int, int]] = []
    real = os.kill

    def record(pid: int, number: int) -> None:
        if number:  # 0 asks, and kills nobody
            sent.append((pid, number))
        real(pid, number)

    monkeypatch.setattr(os, "kill", record)
    run = walled(limits={"wall": 0.3, "grace": 0.2})
    assert (await run.sh("trap '' TERM; setsid sleep 60 & sleep 60")).status == "timed_out"
    task = asyncio.create_task(run.sh("touch on; sleep 60"))
    await until((workspace / "on").exists, "the command runs")
    assert run.controller.cancel(run.last_id)
    assert (await task).status == "cancelled"
    await run.controller.close()
    assert sent == []
    with subprocess.Popen(["sleep", "60"]) as control:
        psutil.Process(control.pid).kill()
    assert sent == [(control.pid, signal.SIGKILL)], "the control: a kill by number is seen"


def _bystander(pid: int) -> "subprocess.Popen[bytes] | None":
    """A process that has been given this PID again; None where another was quicker."""
    for _ in range(50):
        Path("/proc/sys/kernel/ns_last_pid").write_text(str(pid - 1))
        process = subprocess.Popen(["sleep", "60"])
        if process.pid == pid:
            return process
        process.kill()
        process.wait()
    return None


async def test_a_process_that_was_given_the_pid_of_a_dead_cell_is_not_hit(
    walled: Any, until: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can choose the next PID (CAP_CHECKPOINT_RESTORE, ns_last_pid)")
    seen: list[Cell] = []
    begin = Supervisor._begin
    monkeypatch.setattr(Supervisor, "_release", lambda _: None)  # the cell stays in our hands
    monkeypatch.setattr(
        Supervisor, "_begin", lambda self, wall: (seen.append(self._cell), begin(self, wall))
    )
    run = walled(spare_cells=0)
    assert (await run.sh("true")).success
    before = psutil.Process().children(recursive=True)
    task = asyncio.create_task(run.sh("sleep 0.2"))
    await until(lambda: len(seen) > 2, "the second call runs, after a probe and the first")
    pids = [seen[-1].pid(), *(each.pid for each in _new(before))]
    assert (await task).success
    await until(lambda: not any(map(psutil.pid_exists, pids)), "the cell's PIDs are free")
    others = [other for pid in dict.fromkeys(pids) if (other := _bystander(pid))]
    assert others, "no PID was free to be given again"
    seen[-1].terminate()
    seen[-1].kill()
    await run.controller.close()
    assert [other.poll() for other in others] == [None] * len(others)
    for other in others:  # the control: by its number it would have been hit
        os.kill(other.pid, signal.SIGKILL)
        assert other.wait() == -signal.SIGKILL


def _new(before: list[psutil.Process]) -> list[psutil.Process]:
    return [each for each in psutil.Process().children(recursive=True) if each not in before]


_SIGNALS = {
    "kill": "os.kill(target, number)",
    "tkill": "libc.syscall(NR['tkill'], target, number)",
    "tgkill": "libc.syscall(NR['tgkill'], target, target, number)",
    "a queued signal": """
        info = struct.pack("iiiiiiQ", number, 0, -1, 0, os.getpid(), os.getuid(), 0) + bytes(96)
        libc.syscall(NR["rt_sigqueueinfo"], target, number, info)""",
    "a pidfd": "signal.pidfd_send_signal(os.pidfd_open(target), number)",
    "a whole group": "os.kill(-1 if target == 1 else -os.getpgid(target), number)",
    "a pipe's owner": """
        read, write = os.pipe()
        fcntl.fcntl(read, fcntl.F_SETOWN, target)
        fcntl.fcntl(read, 10, int(number))  # F_SETSIG
        fcntl.fcntl(read, fcntl.F_SETFL, os.O_ASYNC)
        os.write(write, b"x")""",
}
_SEND = """
import fcntl, struct
target = os.getppid()
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGTSTP, signal.SIGSTOP, signal.SIGKILL):
    if number not in (signal.SIGSTOP, signal.SIGKILL):
        signal.signal(number, signal.SIG_IGN)  # the sender may be of the same group
    try:
        {how}
    except OSError:
        pass
print("tried", flush=True)
hold()
"""
_PARENT = """
os.setpgid(0, 0)
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGTSTP):
    signal.signal(number, signal.SIG_IGN)
if os.fork():
    hold()
os.setpgid(0, 0)  # else it would stop itself with its parent's group
"""
_CHILD = "if os.fork() == 0:\n    os.setsid()\n    hold()\n"


@pytest.mark.parametrize("how", _SIGNALS)
async def test_init_can_be_neither_stopped_nor_ended_from_inside(
    walled: Any, mark: Mark, until: Any, how: str
) -> None:
    send = _SEND.replace("{how}", _SIGNALS[how])
    program = marked(_PARENT + send, mark, _LIFE_OUTSIDE)
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.DEVNULL) as host:
        try:
            await until(lambda: host.poll() is not None, "the control: a parent on the host ends")
        finally:
            mark.kill()
    assert host.returncode == -signal.SIGKILL
    run = walled(limits={"wall": 0.7})
    task = asyncio.create_task(run.py(marked(_CHILD + send, mark, _LIFE_INSIDE)))
    await until(mark.pids, "it is found while it runs")
    result = await task
    assert mark.pids() == []
    assert result.status == "timed_out", result.for_llm()
    assert result.output == "tried\n"
    assert result.metadata.survivors_checked
    assert (await run.sh("echo next")).output == "next\n"
