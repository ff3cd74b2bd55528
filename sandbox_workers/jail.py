"""The jail: the column of steps that turns a fork of init into a worker that may run code.

The order matters. Descriptors go first, so that nothing inherited is open when anything
else happens. The user namespace comes before the limits, because the count of processes
is kept per user namespace (Linux 5.14). Rights go after the steps that need them;
Landlock and the system call filter need no_new_privs instead. The filter is last: it
refuses what the steps before it do.
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

_OBJECTS = {
    "max_user_namespaces": "0",
    "max_inotify_instances": "32",
    "max_inotify_watches": "8192",
    "max_fanotify_groups": "0",
    "max_fanotify_marks": "0",
}

_last_capability = 0
_object_limits: list[tuple[str, str]] = []
_filter = b""


def prepare(plan: dict[str, Any]) -> None:
    """Work out once, in the launcher, what every jail needs of this kernel and plan."""
    global _last_capability, _object_limits, _filter
    _last_capability = int(_read("/proc/sys/kernel/cap_last_cap"))
    limits = [(f"/proc/sys/user/{name}", value) for name, value in _OBJECTS.items()]
    _object_limits = [(path, value) for path, value in limits if os.path.exists(path)]  # noqa: PTH110
    _filter = bytes.fromhex(plan["seccomp"])


def enter(plan: dict[str, Any], keep: list[int]) -> None:
    """Lock this process down for good; raises OSError, after which it must not go on."""
    close_all_but(keep)
    os.setsid()
    own_user_namespace()
    limit_kernel_objects()
    no_new_privileges()
    drop_capabilities()
    set_limits(plan["limits"])
    restrict_files(plan["landlock"])
    filter_system_calls(_filter)


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


def limit_kernel_objects() -> None:
    """Bound what is counted per user namespace, and up to the host's user (Linux 4.9).

    No further user namespaces; a cell's watches must not use up those of the host.
    """
    for path, value in _object_limits:
        _write(path, value)


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
    # Not 0: a core_pattern that is a pipe is only kept from starting by 1 (core(5)).
    resource.setrlimit(resource.RLIMIT_CORE, (1, 1))
    resource.setrlimit(resource.RLIMIT_SIGPENDING, (1024, 1024))
    # Message queues are memory that no other limit of the cell counts.
    resource.setrlimit(resource.RLIMIT_MSGQUEUE, (0, 0))


def restrict_files(rules: dict[str, Any] | None) -> None:
    """Enforce the Landlock ruleset of the plan, where this kernel has Landlock."""
    if rules is None:
        return
    ruleset = libc.landlock_ruleset(rules["files"], rules["tcp"], rules["scopes"])
    for path, rights in rules["rules"]:
        libc.landlock_allow(ruleset, path, rights)
    libc.landlock_restrict(ruleset)
    os.close(ruleset)


def filter_system_calls(program: bytes) -> None:
    """Install the plan's seccomp filter."""
    libc.install_filter(program)


def _read(path: str) -> str:
    with open(path) as file:  # noqa: PTH123  # hot path: pathlib costs as much as the call
        return file.read()


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
