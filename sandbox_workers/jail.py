"""The jail: the column of steps that turns a fork of init into a worker that may run code.

The steps are prepared once, in the launcher, and made in each cell. Their order matters.
Descriptors go first, so that nothing inherited is open when anything else happens. The
user namespace comes before the limits, because the count of processes is kept per user
namespace (Linux 5.14). Rights go after the steps that need them; Landlock and the system
call filter need no_new_privs instead. The filter is last: it refuses what the steps
before it do. After it, the worker only hands over the descriptor that tells what the filter
refused, because whoever holds it can let a refused call pass; and takes its own limit on
descriptors, which would count against that message what all tools of the user have in flight.

On the rung without namespaces the steps that need one are left out, and on the rung without
walls all but the descriptors and the limits.
"""

import os
import resource
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

from sandbox_workers import confine, libc, mounting, sweep
from sandbox_workers.libc import Call

REQUEST, REPLY = 3, 4
"""Where the worker finds its two private pipes; all else above standard error is closed."""

_TELL = 5
_FREE = 6  # the lowest descriptor that is free then, and so the one that an open returns

_LIMITS = {
    "cpu": resource.RLIMIT_CPU,
    "memory": resource.RLIMIT_DATA,  # not RLIMIT_AS, which Node, Go, Java and numpy outgrow
    "processes": resource.RLIMIT_NPROC,
    "file_size": resource.RLIMIT_FSIZE,
}
_ROOM = 4096  # for what the user starts besides, as long as the launcher lives

_OBJECTS = {
    "max_user_namespaces": 0,
    "max_inotify_instances": 32,
    "max_inotify_watches": 8192,
    "max_fanotify_groups": 0,
    "max_fanotify_marks": 0,
}


def prepare(plan: dict[str, Any], ends: list[int], tell: int | None) -> list[Call]:
    """Return the steps for a worker with pipe ends of these numbers.

    `ends` are those of request, reply, stdout and stderr. `tell` is the socket for the
    descriptor that tells of refused calls, None where none can.
    """
    namespaces, walls = plan["rung"] == "full", plan["rung"] != "none"
    return [
        *place_descriptors(ends, tell),
        libc.signal_mask(libc.SIG_SETMASK),
        libc.setsid(),
        *([] if namespaces else [die_with_init()]),
        *([*own_user_namespace(), *limit_kernel_objects()] if namespaces else []),
        *([no_new_privileges(), *drop_capabilities()] if walls else []),
        *set_limits(plan["limits"], namespaces=namespaces),
        *be_ended_first(),
        *restrict_files(plan["landlock"]),
        *filter_system_calls(plan, told=tell is not None),
        limit_open_files(plan["limits"]),
    ]


def place_descriptors(ends: list[int], tell: int | None) -> list[Call]:
    """Bring the pipe ends to their places and close everything else.

    Each stands above the places that are filled before its turn.
    """
    request, reply, stdout, stderr = ends
    return [
        libc.dup(stdout, 1, inherited=True),
        libc.dup(stderr, 2, inherited=True),
        libc.dup(request, REQUEST, inherited=False),
        libc.dup(reply, REPLY, inherited=False),
        # Something is there either way, so that what is opened from here on has one number.
        libc.dup(0 if tell is None else tell, _TELL, inherited=False),
        libc.close_from(_FREE),
    ]


def die_with_init() -> Call:
    """Have the kernel kill the worker when init ends; a tool may take this back."""
    return libc.prctl(libc.PR_SET_PDEATHSIG, signal.SIGKILL)


def own_user_namespace() -> list[Call]:
    """Enter a user namespace that owns nothing: not this cell's mounts, PIDs or network.

    Should a right ever come back, it is worth nothing here. Limits on processes are
    counted in it, apart from every other process of the same user.
    """
    uid, gid = os.getuid(), os.getgid()
    return [
        libc.unshare(libc.CLONE_NEWUSER),
        *_write("/proc/self/setgroups", "deny"),
        *_write("/proc/self/uid_map", f"{uid} {uid} 1"),
        *_write("/proc/self/gid_map", f"{gid} {gid} 1"),
    ]


def limit_kernel_objects() -> list[Call]:
    """Bound what is counted per user namespace, and up to the host's user (Linux 4.9).

    No further user namespaces; a cell's watches must not use up those of the host.
    """
    files = [(Path("/proc/sys/user", name), value) for name, value in _OBJECTS.items()]
    known = [(path, value) for path, value in files if path.exists()]
    return [call for path, value in known for call in _write(str(path), str(value))]


def no_new_privileges() -> Call:
    """Make execve unable to grant anything (Linux 3.5); cannot be undone."""
    return libc.prctl(libc.PR_SET_NO_NEW_PRIVS, 1)


def drop_capabilities() -> list[Call]:
    """Empty all five capability sets; the bounding set where this process may."""
    last = int(Path("/proc/sys/kernel/cap_last_cap").read_text())
    may_drop = confine.has_capability(confine.CAP_SETPCAP)
    return [
        *(confine.drop_from_bounding_set(number) for number in range(last + 1) if may_drop),
        libc.prctl(libc.PR_CAP_AMBIENT, libc.PR_CAP_AMBIENT_CLEAR_ALL),
        confine.clear_capabilities(),
    ]


def set_limits(limits: dict[str, int], *, namespaces: bool) -> list[Call]:
    """Set resource limits, soft and hard alike, in the units of setrlimit(2).

    Processes are counted in the cell's own user namespace where it has one, otherwise for all
    of the user, and for root not at all: then the limit only keeps a bomb from growing without
    end, and it is init that counts.
    """
    if not namespaces:
        limits = limits | {"processes": tasks_of(os.getuid()) + _ROOM + limits["processes"]}
    # SIGXCPU at the soft limit says why; SIGKILL at the hard one ends those who catch it.
    grace = {"cpu": 1}
    bounds = [(kind, limits[name], grace.get(name, 0)) for name, kind in _LIMITS.items()]
    return [
        *(libc.setrlimit(kind, value, value + more) for kind, value, more in bounds),
        # Not 0: a core_pattern that is a pipe is only kept from starting by 1 (core(5)).
        libc.setrlimit(resource.RLIMIT_CORE, 1, 1),
        libc.setrlimit(resource.RLIMIT_SIGPENDING, 1024, 1024),
        # Message queues are memory that no other limit of the cell counts.
        libc.setrlimit(resource.RLIMIT_MSGQUEUE, 0, 0),
    ]


def lower_limits(made_with: dict[str, int], limits: dict[str, int]) -> None:
    """Lower limits of this process for good, each by as much as it is less than it was made with.

    By the difference, because what the kernel was given may be more, as `set_limits` says.
    """
    for name, value in limits.items():
        less = made_with[name] - value
        soft, hard = resource.getrlimit(_LIMITS[name])
        resource.setrlimit(_LIMITS[name], (soft - less, hard - less))


def tasks_of(uid: int) -> int:
    """How many processes and threads a user has on this host."""
    total = 0
    for pid in sweep.everything():
        with suppress(OSError):  # it ended
            if Path(f"/proc/{pid}").stat().st_uid == uid:
                total += len(sweep.threads(pid))
    return total


def limit_open_files(limits: dict[str, int]) -> Call:
    """Set the limit on open descriptors."""
    return libc.setrlimit(resource.RLIMIT_NOFILE, limits["open_files"], limits["open_files"])


def be_ended_first() -> list[Call]:
    """Have the kernel end the tool before init where memory runs out, so that init can tell."""
    own = "/proc/self/oom_score_adj"
    return _write(own, "1000") if os.access(own, os.W_OK) else []


def restrict_files(rules: dict[str, Any] | None) -> list[Call]:
    """Enforce the Landlock ruleset of the plan, where this kernel has Landlock."""
    if rules is None:
        return []
    ruleset, place = _FREE, _FREE + 1
    opened = mounting.open_path if mounting.has_openat2() else mounting.open_place
    calls = [
        confine.landlock_ruleset(rules["files"], rules["tcp"], rules["scopes"]).returns(ruleset)
    ]
    for path, rights in rules["rules"]:
        calls += [
            # The plan's paths are resolved; what leads through a link by now was changed since.
            opened(path).returns(place),
            confine.landlock_rule(ruleset, place, rights, path),
            libc.close(place),
        ]
    return [*calls, confine.landlock_restrict(ruleset), libc.close(ruleset)]


def filter_system_calls(plan: dict[str, Any], *, told: bool) -> list[Call]:
    """Install the plan's seccomp filter, and give away the descriptor that tells."""
    if plan["seccomp"] is None:
        return [libc.close(_TELL)]
    if not told:
        return [confine.install_filter(bytes.fromhex(plan["seccomp_silent"])), libc.close(_TELL)]
    return [
        confine.install_told_filter(bytes.fromhex(plan["seccomp"])).returns(_FREE),
        libc.send_descriptor(_TELL, _FREE),
        libc.close(_FREE),
        libc.close(_TELL),
    ]


def _write(path: str, text: str) -> list[Call]:
    return [
        libc.open_file(path, os.O_WRONLY).returns(_FREE),
        libc.write(_FREE, text.encode(), path),
        libc.close(_FREE),
    ]
