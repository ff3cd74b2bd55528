"""What the fault tests share: the rungs, and processes that are found whatever they do.

A process takes a mark as its limit of file locks, a number that Linux has not looked at
since 2.4: it passes to every child and every program, through namespaces and other users,
and anyone may read it (/proc/PID/limits).
"""

import asyncio
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from toolcell.cells.capabilities import capabilities
from toolcell.cells.syscalls import numbers

LOCKS = 10
"""RLIMIT_LOCKS, which Python's `resource` does not name."""

_MACHINE = os.uname().machine


@pytest.fixture(params=["full", "landlock"])
def rung(request: pytest.FixtureRequest) -> str:
    """Each rung that makes the promise of a test."""
    return str(request.param)


@pytest.fixture
def walled(runner: Callable[..., Any], rung: str) -> Callable[..., Any]:
    """The factory of runners, whose cells are on one rung."""

    def make(*tools: Any, cell: dict[str, Any] | None = None, **options: Any) -> Any:
        return runner(*tools, cell={"isolation": rung} | (cell or {}), **options)

    return make


class Mark:
    """A number that processes carry from here on, and the processes that do."""

    def __init__(self) -> None:
        self.number = secrets.randbelow(1 << 40) + (1 << 40)
        self.shell = f"ulimit -x {self.number}; "
        self.python = f"import resource; resource.setrlimit({LOCKS}, ({self.number},) * 2)\n"

    def pids(self) -> list[int]:
        """The processes that carry it and live, also those whose first thread has ended."""
        found = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
        return [pid for pid in found if self._carries(pid) and _lives(pid)]

    def _carries(self, pid: int) -> bool:
        for line in _read(f"/proc/{pid}/limits").splitlines():
            if line.startswith("Max file locks"):
                return line.split()[3] == str(self.number)
        return False

    def kill(self) -> None:
        """Leave none of them on this machine, whatever the test found."""
        end = time.monotonic() + 10
        ours: set[int] = set()
        while (pids := self.pids()) and time.monotonic() < end:
            ours |= set(pids)
            for number in (signal.SIGSTOP, signal.SIGKILL):
                for pid in pids:
                    try:
                        os.kill(pid, number)
                    except ProcessLookupError:
                        continue
        assert not self.pids()
        for pid in ours:  # a control's sibling is a child of this process, and waits for it
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)


def _read(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")  # a name may be no text
    except OSError:  # it ended since the directory was listed
        return ""


def _lives(pid: int) -> bool:
    fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return bool(fields) and (fields[0] not in "ZX" or int(fields[17]) > 1)


@pytest.fixture
def mark() -> Iterator[Mark]:
    """A mark of the test's own; what still carries it at the end is killed."""
    made = Mark()
    yield made
    made.kill()


PRELUDE = f"""
import ctypes, os, resource, signal, sys, time
resource.setrlimit({LOCKS}, (MARK, MARK))
libc = ctypes.CDLL(None, use_errno=True)
NR = {numbers(_MACHINE)!r}
end = time.monotonic() + LIFE
def hold():
    while time.monotonic() < end:
        time.sleep(0.05)
    os._exit(0)
def clone(flags):
    return libc.syscall(NR["clone"], flags, 0, 0, 0, 0)
"""
"""Makes a Python program carry MARK and end after LIFE seconds by itself."""


def marked(code: str, mark: Mark, life: float) -> str:
    """A program of `PRELUDE` and `code`."""
    prelude = PRELUDE.replace("MARK", str(mark.number)).replace("LIFE", str(life))
    return prelude + code


@pytest.fixture
def compiled(workspace: Path) -> Callable[[str], str]:
    """Compile C to a static program in the workspace, where there is a compiler."""

    def build(source: str) -> str:
        program = workspace / "program"
        command = ["cc", "-O1", "-static", "-w", "-x", "c", "-", "-o", str(program)]
        try:
            done = subprocess.run(command, input=source, text=True, capture_output=True)
        except FileNotFoundError:
            pytest.skip("this host has no C compiler")
        if done.returncode and "cannot find" in done.stderr:
            pytest.skip("this host has no static C library")
        assert done.returncode == 0, done.stderr
        program.chmod(0o755)
        return f"./{program.name}"

    return build


@pytest.fixture
def grouped() -> None:
    """Skip where memory that belongs to no process is not counted."""
    if capabilities().groups is None:
        pytest.skip("no memory cgroup can be made here: this is counted only in one")


async def host_program(code: str) -> str:
    """Run Python outside of any cell, without holding up the loop; returns what it prints."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdout=subprocess.PIPE
    )
    return (await process.communicate())[0].decode()


STORM = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
int main(int count, char **words) {
    unsigned long mark = strtoul(words[1], 0, 10);
    struct rlimit limit = {mark, mark};
    int runs = strstr(words[2], "run") != 0, grows = strstr(words[2], "grow") != 0;
    int *made = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int beat = open("beat", O_WRONLY | O_APPEND | O_CREAT, 0666);
    setrlimit(10, &limit);
    signal(SIGCHLD, SIG_IGN);
    write(1, "started\n", 8);
    if (fork() > 0) {
        if (strstr(words[2], "leave")) return 0;
        while (access("stop", F_OK)) usleep(1000);
        return 0;
    }
    if (beat == 1) return 1;
    for (int line = 0; line < 8; line++) if (fork() == 0) break;
    close(0); close(1); close(2);
    while (access("stop", F_OK)) {
        write(beat, "x", 1);
        if (grows && __sync_fetch_and_add(made, 1) > 2000) sleep(1);
        pid_t pid = grows && *made > 2000 ? -1 : fork();
        if (pid == 0) setsid();
        else if (pid > 0 && runs) _exit(0);
        else if (!grows) usleep(100);
        kill(0, SIGCONT);
    }
    return 0;
}
"""
"""Words: the mark, and `run` (each process ends when it has made its child) or `grow` (all stay
and go on forking, up to 2000), with `leave` (the first ends at once). Each process leaves a
byte in the file `beat`; all end when there is a file `stop`."""


@pytest.fixture
def storm(compiled: Any, workspace: Path, mark: Mark) -> Iterator[Callable[..., str]]:
    """Return the command of a storm; what a cell has let out of it ends with the test."""
    program = compiled(STORM)
    yield lambda kind: f"{program} {mark.number} {kind}"
    (workspace / "stop").touch()
    end = time.monotonic() + 20
    while mark.pids() and time.monotonic() < end:
        time.sleep(0.05)


def beats(workspace: Path) -> int:
    try:
        return (workspace / "beat").stat().st_size
    except FileNotFoundError:
        return 0


def nothing_beats(workspace: Path, mark: Mark) -> None:
    """A process that lives for less than a look at /proc takes is found by what it writes."""
    before = beats(workspace)
    assert not [pids for pids in (mark.pids() for _ in range(10)) if pids]
    assert beats(workspace) == before
