"""The jail: the column of steps that turns a fork of init into a worker that may run code.

The order matters. Descriptors go first, so that nothing inherited is open when
anything else happens. The user namespace comes before the limits, because the count
of processes is kept per user namespace (Linux 5.14). Rights go last of all but the
limits that only tighten: every step before needs one.
"""

import os
import resource
from typing import Any

from sandbox_workers import libc

_LIMITS = {
    "cpu": resource.RLIMIT_CPU,
    "memory": resource.RLIMIT_DATA,  # not RLIMIT_AS, which Node, Go, Java and numpy outgrow
    "processes": resource.RLIMIT_NPROC,
    "open_files": resource.RLIMIT_NOFILE,
    "file_size": resource.RLIMIT_FSIZE,
}

_last_capability = 0


def prepare() -> None:
    """Read once, in the launcher, what every jail needs to know of this kernel."""
    global _last_capability
    _last_capability = int(_read("/proc/sys/kernel/cap_last_cap"))


def enter(plan: dict[str, Any], keep: list[int]) -> None:
    """Lock this process down for good; raises OSError, after which it must not go on."""
    close_all_but(keep)
    os.setsid()
    own_user_namespace()
    no_further_namespaces()
    no_new_privileges()
    drop_capabilities()
    set_limits(plan["limits"])


def close_all_but(keep: list[int]) -> None:
    """Close every descriptor but those in `keep` and 0 to 2."""
    low = 3
    for fd in sorted(fd for fd in keep if fd >= low):
        os.closerange(low, fd)
        low = fd + 1
    os.closerange(low, resource.getrlimit(resource.RLIMIT_NOFILE)[1])


def own_user_namespace() -> None:
    """Enter a user namespace that owns nothing: not this cell's mounts, PIDs or network.

    Should a right ever come back, it is worth nothing here. Limits on processes are
    counted in it, apart from every other process of the same user.
    """
    uid, gid = os.getuid(), os.getgid()
    libc.unshare(libc.CLONE_NEWUSER)
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{uid} {uid} 1")
    _write("/proc/self/gid_map", f"{gid} {gid} 1")


def no_further_namespaces() -> None:
    """Set this user namespace's own count of further ones to none (Linux 4.9)."""
    _write("/proc/sys/user/max_user_namespaces", "0")


def no_new_privileges() -> None:
    """Make execve unable to grant anything (Linux 3.5); cannot be undone."""
    libc.prctl(libc.PR_SET_NO_NEW_PRIVS, 1)


def drop_capabilities() -> None:
    """Empty all five capability sets."""
    libc.drop_capabilities(_last_capability)


def set_limits(limits: dict[str, int]) -> None:
    """Set resource limits, soft and hard alike, in the units of setrlimit(2)."""
    for name, kind in _LIMITS.items():
        value = limits[name]
        # SIGXCPU at the soft limit says why; SIGKILL at the hard one ends those who catch it.
        hard = value + 1 if name == "cpu" else value
        resource.setrlimit(kind, (value, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Message queues are memory that no other limit of the cell counts.
    resource.setrlimit(resource.RLIMIT_MSGQUEUE, (0, 0))


def _read(path: str) -> str:
    with open(path) as file:  # noqa: PTH123  # hot path: pathlib costs as much as the call
        return file.read()


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
