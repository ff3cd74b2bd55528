"""The tree of one call, measured from outside: its processes, their time and their memory.

Only the tree is read: /proc tells the children of each thread (proc_tid_children(5)). What
ends between two looks is missed; the kernel's own limits hold meanwhile.
"""

import os
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

_LISTED = Path("/proc/thread-self/children").exists()  # CONFIG_PROC_CHILDREN
_LOOKS = 5
_SCRATCH = ("tmp", "dev/shm")  # the cell's own, below its root


@dataclass(frozen=True, slots=True)
class Look:
    """What a tree was at one moment: processes with their threads, and CPU seconds so far.

    `seconds` are those of the living, and of what ended below them and was waited for.
    `own` are those of each living process alone, by PID and start: what ends and is never
    waited for is in nobody's account, and only a look before tells of it.
    """

    tasks: int
    seconds: float
    own: dict[tuple[int, float], float]


def look(init: int, processes: list[psutil.Process]) -> Look:
    """Count what an init has below it."""
    own: dict[tuple[int, float], float] = {}
    seconds = 0.0
    for process in processes:
        with suppress(psutil.Error):
            times = process.cpu_times()
            alone = times.user + times.system
            own[process.pid, process.create_time()] = alone
            seconds += alone + times.children_user + times.children_system
    with suppress(psutil.Error):
        # Init's own too: it is the tool that gives it work.
        seconds += sum(psutil.Process(init).cpu_times()[:4])
    return Look(sum(_threads(process.pid) for process in processes), seconds, own)


def _threads(pid: int) -> int:
    # Not by the name in /proc/PID/status, which a program can choose to look like a count.
    try:
        return sum(1 for _ in Path(f"/proc/{pid}/task").iterdir())
    except OSError:  # it ended
        return 0


def uses_more_than(
    limit: int, init: int, processes: list[psutil.Process], *, own_files: bool
) -> bool:
    """Whether what an init has below it holds more than `limit` bytes of memory together.

    Resident sizes count a shared page once for each process, and are quick to read;
    only where their sum is over the limit are the proportional sizes worth asking for.
    Files in memory count too: those of scratch space, where the cell has file systems of
    its own, and memory files that some process has open.
    """
    files = _scratch_bytes(init) if own_files else 0
    files += _memory_file_bytes(processes)
    return (
        sum(_of(process, _resident) for process in processes) + files > limit
        and sum(_of(process, _proportional) for process in processes) + files > limit
    )


def descendants(pid: int) -> list[psutil.Process]:
    """The living processes below one."""
    found: list[psutil.Process] = []
    ahead = [pid]
    while ahead:
        for child in children(ahead.pop()):
            ahead.append(child)
            with suppress(psutil.NoSuchProcess):
                found.append(psutil.Process(child))
    return found


def children(pid: int) -> list[int]:
    """The PIDs of a process's children; none where it has ended."""
    if not _LISTED:
        try:
            return [child.pid for child in psutil.Process(pid).children()]
        except psutil.Error:
            return []
    found: set[int] = set()
    for _ in range(_LOOKS):
        whole = True
        try:
            threads = list(Path(f"/proc/{pid}/task").iterdir())
        except (FileNotFoundError, ProcessLookupError):
            break
        for thread in threads:
            try:
                found.update(map(int, (thread / "children").read_text().split()))
            except (FileNotFoundError, ProcessLookupError):  # its children are another's
                whole = False
        if whole:
            break
    return list(found)


def _of(process: psutil.Process, measure: Callable[[psutil.Process], int]) -> int:
    try:
        return measure(process)
    except psutil.Error:
        return 0


def _resident(process: psutil.Process) -> int:
    return int(process.memory_info().rss)


def _proportional(process: psutil.Process) -> int:
    try:
        return int(process.memory_full_info().pss)
    except psutil.AccessDenied:  # a program that made itself undumpable hides it
        return _resident(process)


def _scratch_bytes(init: int) -> int:
    total = 0
    for place in _SCRATCH:
        with suppress(OSError):  # a cell that has ended just now
            found = os.statvfs(f"/proc/{init}/root/{place}")
            total += (found.f_blocks - found.f_bfree) * found.f_frsize
    return total


def _memory_file_bytes(processes: Iterable[psutil.Process]) -> int:
    """What memory files hold that are open; one that is mapped as well counts as resident too."""
    sizes: dict[tuple[int, int], int] = {}
    for process in processes:
        with suppress(OSError):
            for entry in os.scandir(f"/proc/{process.pid}/fd"):
                with suppress(OSError):
                    if str(Path(entry.path).readlink()).startswith("/memfd:"):
                        found = entry.stat()
                        if stat.S_ISREG(found.st_mode):
                            sizes[found.st_dev, found.st_ino] = found.st_blocks * 512
    return sum(sizes.values())
