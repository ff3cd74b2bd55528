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
from pathlib import Path
from typing import Any, NoReturn

from sandbox_workers import jail, libc, wire, worker

_SIOCSIFFLAGS = 0x8914  # netdevice(7)
_IFF_UP = 1


def prepare(plan: dict[str, Any]) -> None:
    """Do once in the launcher what every cell would do again."""
    # Places under a per-cell tmpfs have to be mounted anew in each cell.
    covered = ("/tmp/", "/dev/shm/")  # noqa: S108  # mount points of the cell, not files
    plan["covered"] = [m["target"] for m in plan["mounts"] if m["target"].startswith(covered)]
    jail.prepare()
    worker.prepare()


def main(plan: dict[str, Any], descriptors: list[int]) -> NoReturn:
    """Run one cell on its pipe ends: request, reply, stdout, stderr, status."""
    reply, status = descriptors[1], descriptors[4]
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
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
    signal.signal(signal.SIGTERM, lambda *_: os.kill(-1, signal.SIGTERM))
    os.write(status, wire.frame(_reap(pid)))
    os._exit(0)


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
    covered = [(path, libc.open_tree(path)) for path in plan["covered"]]
    flags = libc.MS_NOSUID | libc.MS_NODEV
    libc.mount("proc", "/proc", "proc", flags | libc.MS_NOEXEC)
    size = f"size={plan['limits']['scratch']}"
    libc.mount("tmpfs", "/tmp", "tmpfs", flags, f"{size},mode=1777")  # noqa: S108  # the cell's own
    libc.mount("tmpfs", "/dev/shm", "tmpfs", flags, f"{size},mode=1777")  # noqa: S108
    libc.mount("devpts", "/dev/pts", "devpts", libc.MS_NOSUID, "newinstance,ptmxmode=0666")
    for path, tree in covered:
        is_directory = os.path.isdir(f"/proc/self/fd/{tree}")  # noqa: PTH112  # hot path
        parent = path if is_directory else os.path.dirname(path)  # noqa: PTH120
        os.makedirs(parent, exist_ok=True)  # noqa: PTH103
        if not is_directory:
            Path(path).touch()
        libc.move_mount(tree, path)
        os.close(tree)


def _loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        fcntl.ioctl(sock, _SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", _IFF_UP))


def _give_up_rights() -> None:
    libc.prctl(libc.PR_SET_DUMPABLE, 0)
    libc.prctl(libc.PR_SET_NO_NEW_PRIVS, 1)
    jail.drop_capabilities()


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
