"""Sweep: end everything below this process, where no PID namespace does it.

A child whose parent ends goes to the nearest subreaper above it (prctl(2)), so what a cell
starts stays below its init, however often it forks away.

Where Landlock keeps the signals of init to its own domain (Linux 6.12), and everything that
a cell starts is in there, kill(-1) reaches just these processes, and all of them at once:
the kernel holds the list of processes meanwhile. Elsewhere, what is found is stopped first,
because a stopped process cannot fork, and then killed; both again until nothing is left. A
process is then signalled by a pidfd, and only after its parent was read again: a PID that was
found may have ended and be another's by then.
"""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

_STOPS = 20
_PAUSE = 0.001
_LOOKS = 5
_LISTED = Path("/proc/thread-self/children").exists()  # CONFIG_PROC_CHILDREN


def end_descendants(*, alone: bool = False) -> dict[int, int]:
    """Kill all descendants and wait for them; returns the wait statuses by PID.

    `alone` says that a signal to all that this process may signal reaches nobody else.
    """
    statuses: dict[int, int] = {}
    while reap(statuses):
        if alone:
            with suppress(ProcessLookupError):  # nobody is left but zombies
                os.kill(-1, signal.SIGKILL)
        else:
            _stop_all()
            for pid in descendants():
                send(pid, signal.SIGKILL)
        time.sleep(_PAUSE)  # the killed take a moment to end
    return statuses


def wait_for_ends(seconds: float) -> None:
    """Give those below the time to end by themselves."""
    until = time.monotonic() + seconds
    while reap({}) and time.monotonic() < until:
        time.sleep(_PAUSE)


def reaches_outside() -> bool:
    """Whether a signal to all would reach others too, tried on the one nearest."""
    try:
        os.kill(os.getppid(), 0)
    except PermissionError:
        return False
    return True


def reap(statuses: dict[int, int]) -> bool:
    """Take the statuses of children that have ended; False where no child is left."""
    try:
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return True
            statuses[pid] = status
    except ChildProcessError:
        return False


def send(pid: int, number: int) -> None:
    """Signal a process if it is still one of this process's descendants."""
    with suppress(ProcessLookupError):
        pidfd = os.pidfd_open(pid)
        try:
            if _is_below(pid, os.getpid()):
                signal.pidfd_send_signal(pidfd, number)
        finally:
            os.close(pidfd)


def descendants() -> list[int]:
    """The PIDs below this process, zombies included, as far as they stand still."""
    found: list[int] = []
    ahead = [os.getpid()]
    while ahead:
        children = _children(ahead.pop())
        found += children
        ahead += children
    return found


def tasks() -> int:
    """How many processes and threads are below this process."""
    return sum(len(threads(pid)) or 1 for pid in descendants())


def threads(pid: int) -> list[str]:
    """The threads of a process; none where it has ended."""
    try:
        return os.listdir(f"/proc/{pid}/task")  # noqa: PTH208  # much quicker
    except OSError:
        return []


def everything() -> list[int]:
    """The PIDs of all processes that this one's /proc shows."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208  # quicker


def _stop_all() -> None:
    known: set[int] = set()
    for _ in range(_STOPS):
        found = set(descendants())
        if found <= known:
            return
        for pid in found:
            send(pid, signal.SIGSTOP)
        known |= found


def _children(pid: int) -> list[int]:
    if not _LISTED:
        return [child for child in everything() if _parent(child) == pid]
    found: set[int] = set()
    for _ in range(_LOOKS):
        whole = True
        for thread in threads(pid):
            try:
                text = Path(f"/proc/{pid}/task/{thread}/children").read_text()
                found.update(map(int, text.split()))
            except OSError:  # it ended, and its children are another thread's
                whole = False
        if whole:
            break
    return list(found)


def _is_below(pid: int, ancestor: int) -> bool:
    while pid > 1:
        pid = _parent(pid)
        if pid == ancestor:
            return True
    return False


def _parent(pid: int) -> int:
    """The parent's PID (proc_pid_stat(5)), 0 where the process is gone."""
    try:
        # The name in parentheses may hold anything, parentheses too.
        return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
    except OSError:
        return 0
