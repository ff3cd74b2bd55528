"""Who spends an approval: a process, told from every other one that has had its number.

A number (PID) is given again, a number together with the moment of its start is not, until
the machine starts anew; hence the machine's boot id. Numbers are those of a PID namespace, so
that is part of it too. All of it is read from /proc, see proc(5).
"""

import os
from pathlib import Path

_STATE, _THREADS, _START = 0, 17, 19
"""Fields of /proc/PID/stat after the name: 3, 20 and 22 in the words of proc(5)."""
_PARTS = 4


def this_process() -> str:
    """Name the calling process; empty where /proc does not tell."""
    return _name(os.getpid())


def lives(name: str) -> bool:
    """Whether the process of that name is here and runs.

    One of another PID namespace cannot be seen, and counts as gone.
    """
    parts = name.split(" ")
    return len(parts) == _PARTS and parts[2].isdecimal() and _name(int(parts[2])) == name


def _name(pid: int) -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        namespace = Path("/proc/self/ns/pid").readlink()
        # The name in it may hold anything, parentheses too.
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return ""
    if fields[_STATE] in (b"Z", b"X") and int(fields[_THREADS]) <= 1:
        return ""
    return f"{boot} {namespace} {pid} {int(fields[_START])}"
