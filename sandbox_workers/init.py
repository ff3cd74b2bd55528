"""The cell's init: PID 1 of the call's own PID namespace.

It makes what each call has for itself (mounts, IPC, host name, network), forks the
worker, gives up its rights, and reaps. When the worker ends it says how on the
status pipe and ends too; the kernel then kills whatever is left in the namespace
before anyone can see init's own end, so a readable pidfd means an empty cell.

Init keeps the launcher's user namespace while the worker enters one below it: the
worker cannot trace it, and cannot signal it but for SIGTERM, which init passes on.
"""

import fcntl
import os
import resource
import signal
import socket
import struct
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from sandbox_workers import jail, libc, wire, worker

_SIOCSIFFLAGS = 0x8914  # netdevice(7)
_IFF_UP = 1

_INODES = 65536
_TERMINALS = "newinstance,ptmxmode=0666,max=128"
# What the host was started with, and keys: nothing that a tool needs.
_MASKED = ("/proc/cmdline", "/proc/config.gz", "/proc/keys", "/proc/key-users")


def prepare(plan: dict[str, Any]) -> None:
    """Do once in the launcher what every cell would do again."""
    # Places under a per-cell tmpfs have to be mounted anew in each cell.
    covered = ("/tmp/", "/dev/shm/")  # noqa: S108  # mount points of the cell, not files
    plan["covered"] = [m["target"] for m in plan["mounts"] if m["target"].startswith(covered)]
    plan["covered"].sort(key=lambda path: path.count("/"))
    plan["masked"] = [path for path in _MASKED if os.path.exists(path)]  # noqa: PTH110
    jail.prepare(plan)
    worker.prepare()


def main(plan: dict[str, Any], descriptors: list[int]) -> NoReturn:
    """Run one cell on its pipe ends: request, reply, stdout, stderr, status."""
    reply, status = descriptors[1], descriptors[4]
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    # The interpreter's own handler would make SIGINT from inside end the cell.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        _make_private(plan)
        pid = os.fork()
        if pid == 0:
            os.close(status)
            worker.main(plan, descriptors[:4])
        _give_up_rights()
    except OSError as error:
        os.write(reply, wire.frame({"type": "failed", "stage": "init", "message": str(error)}))
        os._exit(1)
    for fd in descriptors[:4]:
        os.close(fd)
    signal.signal(signal.SIGTERM, _pass_on)
    os.write(status, wire.frame(_reap(pid)))
    os._exit(0)


def _pass_on(number: int, _frame: Any) -> None:
    with suppress(ProcessLookupError):  # nobody is left
        os.kill(-1, number)


def _make_private(plan: dict[str, Any]) -> None:
    flags = libc.CLONE_NEWNS | libc.CLONE_NEWIPC | libc.CLONE_NEWUTS
    if plan["network"] == "none":
        flags |= libc.CLONE_NEWNET
    libc.unshare(flags)
    libc.sethostname("cell")
    if plan["network"] == "none":
        _loopback_up()
    _mount_private(plan)


def _mount_private(plan: dict[str, Any]) -> None:
    covered = [(path, _tree(path)) for path in plan["covered"]]
    flags = libc.MS_NOSUID | libc.MS_NODEV
    libc.mount("proc", "/proc", "proc", flags | libc.MS_NOEXEC)
    # Inodes are memory that `size` does not count.
    options = f"size={plan['limits']['scratch']},nr_inodes={_INODES},mode=1777"
    libc.mount("tmpfs", "/tmp", "tmpfs", flags, options)  # noqa: S108  # the cell's own
    libc.mount("tmpfs", "/dev/shm", "tmpfs", flags, options)  # noqa: S108
    libc.mount("devpts", "/dev/pts", "devpts", libc.MS_NOSUID, _TERMINALS)
    for path in plan["masked"]:
        libc.mount("/dev/null", path, "", libc.MS_BIND)
    for path, tree in covered:
        is_directory = os.path.isdir(f"/proc/self/fd/{tree}")  # noqa: PTH112  # hot path
        parent = path if is_directory else os.path.dirname(path)  # noqa: PTH120
        os.makedirs(parent, exist_ok=True)  # noqa: PTH103
        if not (is_directory or os.path.lexists(path)):
            Path(path).touch()
        libc.move_mount(tree, path)
        os.close(tree)


def _tree(path: str) -> int:
    place = libc.open_path(path)
    try:
        return libc.open_tree(place, path)
    finally:
        os.close(place)


def _loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        fcntl.ioctl(sock, _SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", _IFF_UP))


def _give_up_rights() -> None:
    libc.prctl(libc.PR_SET_DUMPABLE, 0)
    libc.prctl(libc.PR_SET_NO_NEW_PRIVS, 1)
    libc.give_up_capabilities()


def _reap(worker_pid: int) -> dict[str, Any]:
    """Collect children until the worker itself ends; returns how, and what all of them used."""
    while True:
        pid, status, _ = os.wait4(-1, 0)
        if pid == worker_pid:
            break
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "exit": os.waitstatus_to_exitcode(status),
        "cpu": usage.ru_utime + usage.ru_stime,
        "memory": usage.ru_maxrss * 1024,
    }
