"""The cell's init: PID 1 of the call's own PID namespace.

It makes what each call has for itself (mounts, IPC, host name, network), forks the
worker, gives up its rights, and reaps. When the worker ends it says how on the status
pipe and ends too; the kernel then kills whatever is left in the namespace before anyone
can see init's own end, so a readable pidfd means an empty cell.

Init keeps the launcher's user namespace while the worker enters one below it: the worker
cannot trace it, and of the signals it sends only SIGTERM has an effect, where the policy
gives tools a grace: init passes it on.

Everything that can be is prepared in the launcher, before the fork (see `libc`).
"""

import os
import resource
import signal
import socket
import struct
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from sandbox_workers import jail, libc, wire, worker
from sandbox_workers.libc import Call

_SIOCSIFFLAGS = 0x8914  # netdevice(7)
_IFF_UP = 1
_SIG_DFL, _SIG_IGN = 0, 1

_INODES = 65536
_TERMINALS = "newinstance,ptmxmode=0666,max=128"
# What the host was started with, and keys: nothing that a tool needs.
_MASKED = ("/proc/cmdline", "/proc/config.gz", "/proc/keys", "/proc/key-users")
_SCRATCH = ("/tmp", "/dev/shm")  # noqa: S108  # mount points of the cell, no file of ours


class Steps:
    """What the inits and workers of one plan do, prepared once in the launcher."""

    def __init__(self, plan: dict[str, Any], theirs: list[int], ours: list[int]) -> None:
        """Prepare for pipe ends of these numbers: request, reply, stdout, stderr, status."""
        *self.worker_ends, self.status = theirs
        self.reply = theirs[1]
        free = _Free([0, 1, 2, *theirs])
        self.private = [
            *(libc.close(fd) for fd in ours),
            # The launcher ignores it, so that the kernel reaps its children; init waits.
            libc.signal(signal.SIGCHLD, _SIG_DFL),
            *_own_namespaces(plan, free),
            *_own_mounts(plan, free),
        ]
        self.rights = [
            *(libc.close(fd) for fd in self.worker_ends if fd != self.reply),
            # The interpreter's own handler would let SIGINT from inside end the cell.
            libc.signal(signal.SIGINT, _SIG_IGN),
            libc.prctl(libc.PR_SET_DUMPABLE, 0),
            libc.prctl(libc.PR_SET_NO_NEW_PRIVS, 1),
            libc.clear_capabilities(),
        ]
        self.graceful = plan["limits"]["graceful"]
        self.jail = jail.prepare(plan, *self.worker_ends)


class _Free:
    """Tells which descriptor an open returns: the lowest that is free."""

    def __init__(self, used: list[int]) -> None:
        self._used = set(used)

    def take(self) -> int:
        number = next(n for n in range(len(self._used) + 1) if n not in self._used)
        self._used.add(number)
        return number

    def release(self, number: int) -> None:
        self._used.remove(number)


def main(plan: dict[str, Any], steps: Steps) -> NoReturn:
    """Run one cell."""
    try:
        libc.do(*steps.private)
        pid = os.fork()
        if pid == 0:
            try:
                worker.main(plan, steps.jail)
            finally:
                os._exit(1)  # as above: never back into init's code
        libc.do(*steps.rights)
    except OSError as error:
        failed = {"type": "failed", "stage": "init", "message": str(error)}
        os.write(steps.reply, wire.frame(failed))
        os._exit(1)
    os.close(steps.reply)
    if steps.graceful:
        signal.signal(signal.SIGTERM, _pass_on)
    line = _reap(pid)
    with suppress(BrokenPipeError):  # a cell that was made ready and given up
        os.write(steps.status, line)
    os._exit(0)


def _pass_on(number: int, _frame: Any) -> None:
    with suppress(ProcessLookupError):  # nobody is left
        os.kill(-1, number)


def _reap(worker_pid: int) -> bytes:
    """Collect children until the worker itself ends; returns the line of the status pipe.

    Exit code (negative: signal), CPU microseconds and peak resident bytes of all.
    """
    while True:
        pid, status, _ = os.wait4(-1, 0)
        if pid == worker_pid:
            break
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    code = os.waitstatus_to_exitcode(status)
    cpu = int((usage.ru_utime + usage.ru_stime) * 1e6)
    return b"%d %d %d\n" % (code, cpu, usage.ru_maxrss * 1024)


def _own_namespaces(plan: dict[str, Any], free: _Free) -> list[Call]:
    flags = libc.CLONE_NEWNS | libc.CLONE_NEWIPC | libc.CLONE_NEWUTS
    own_network = plan["network"] == "none"
    if own_network:
        flags |= libc.CLONE_NEWNET
    return [
        libc.unshare(flags),
        libc.sethostname("cell"),
        *(_loopback_up(free) if own_network else []),
    ]


def _loopback_up(free: _Free) -> list[Call]:
    fd = free.take()
    free.release(fd)
    return [
        libc.socket(socket.AF_INET, socket.SOCK_DGRAM).returns(fd),
        libc.ioctl(fd, _SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", _IFF_UP)),
        libc.close(fd),
    ]


def _own_mounts(plan: dict[str, Any], free: _Free) -> list[Call]:
    flags = libc.MS_NOSUID | libc.MS_NODEV
    # Inodes are memory that `size` does not count.
    options = f"size={plan['limits']['scratch']},nr_inodes={_INODES},mode=1777"
    masked = [path for path in _MASKED if Path(path).exists()]
    keep, show = _covered_mounts(plan, free)
    return [
        *keep,
        libc.mount("proc", "/proc", "proc", flags | libc.MS_NOEXEC),
        *(libc.mount("tmpfs", place, "tmpfs", flags, options) for place in _SCRATCH),
        libc.mount("devpts", "/dev/pts", "devpts", libc.MS_NOSUID, _TERMINALS),
        *(libc.mount("/dev/null", path, "", libc.MS_BIND) for path in masked),
        *show,
    ]


def _covered_mounts(plan: dict[str, Any], free: _Free) -> tuple[list[Call], list[Call]]:
    """What is lent below /tmp or /dev/shm: kept before these are covered, shown again after."""
    below = tuple(f"{place}/" for place in _SCRATCH)
    targets = [mount["target"] for mount in plan["mounts"] if mount["target"].startswith(below)]
    targets.sort(key=lambda target: target.count("/"))
    keep: list[Call] = []
    show: list[Call] = []
    made: set[str] = set()
    for target in targets:
        place, tree = free.take(), free.take()
        keep += [
            libc.open_path(target).returns(place),
            libc.open_tree(place, target).returns(tree),
            libc.close(place),
        ]
        free.release(place)
        if not any(target.startswith(f"{other}/") for other in targets):
            show += _mount_point(target, made)
        show += [libc.move_mount(tree, target), libc.close(tree)]
    return keep, show


def _mount_point(target: str, made: set[str]) -> list[Call]:
    """Make a directory or a file to mount on, and what is above it in the scratch space."""
    calls = []
    for parent in reversed(Path(target).parents):
        if len(parent.parts) > 2 and str(parent) not in (*_SCRATCH, *made):
            made.add(str(parent))
            calls.append(libc.mkdir(str(parent), 0o755))
    is_directory = Path(target).is_dir()
    return [*calls, libc.mkdir(target, 0o755) if is_directory else libc.mknod(target, 0o644)]
