"""What a call has for itself where it has namespaces: mounts, IPC, a host name, a network.

The steps are prepared in the launcher, with the numbers that their descriptors will have, and
made by each cell's init.
"""

import socket
import struct
from pathlib import Path
from typing import Any

from sandbox_workers import libc, mounting
from sandbox_workers.libc import Call

SCRATCH = ("/tmp", "/dev/shm")  # noqa: S108  # mount points of the cell, no file of ours
"""Where a cell has file systems of its own."""

_SIOCSIFFLAGS = 0x8914  # netdevice(7)
_IFF_UP = 1
_INODES = 65536
_TERMINALS = "newinstance,ptmxmode=0666,max=128"
# What the host was started with, and keys: nothing that a tool needs.
_MASKED = ("/proc/cmdline", "/proc/config.gz", "/proc/keys", "/proc/key-users")


class Free:
    """Tells which descriptor an open returns: the lowest that is free."""

    def __init__(self, used: list[int]) -> None:
        """Begin with these taken."""
        self._used = set(used)

    def take(self) -> int:
        """Say which comes next, and count it as taken."""
        number = next(n for n in range(len(self._used) + 1) if n not in self._used)
        self._used.add(number)
        return number

    def release(self, number: int) -> None:
        """Count one as closed."""
        self._used.remove(number)


def namespaces(plan: dict[str, Any], free: "Free") -> list[Call]:
    """Leave the namespaces that the cells of a plan share, for ones of this cell's own."""
    flags = libc.CLONE_NEWNS | libc.CLONE_NEWIPC | libc.CLONE_NEWUTS
    own_network = plan["network"] == "none"
    if own_network:
        flags |= libc.CLONE_NEWNET
    return [
        libc.unshare(flags),
        libc.sethostname("cell"),
        *(_loopback_up(free) if own_network else []),
    ]


def _loopback_up(free: "Free") -> list[Call]:
    fd = free.take()
    free.release(fd)
    return [
        libc.socket(socket.AF_INET, socket.SOCK_DGRAM).returns(fd),
        libc.ioctl(fd, _SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", _IFF_UP)),
        libc.close(fd),
    ]


def mounts(plan: dict[str, Any], free: "Free") -> list[Call]:
    """Mount what each cell has for itself; what is lent below it stays to be seen."""
    flags = mounting.MS_NOSUID | mounting.MS_NODEV
    # Inodes are memory that `size` does not count.
    options = f"size={plan['limits']['scratch']},nr_inodes={_INODES},mode=1777"
    masked = [path for path in _MASKED if Path(path).exists()]
    keep, show = _covered_mounts(plan, free)
    return [
        *keep,
        mounting.mount("proc", "/proc", "proc", flags | mounting.MS_NOEXEC),
        *(mounting.mount("tmpfs", place, "tmpfs", flags, options) for place in SCRATCH),
        mounting.mount("devpts", "/dev/pts", "devpts", mounting.MS_NOSUID, _TERMINALS),
        *(mounting.mount("/dev/null", path, "", mounting.MS_BIND) for path in masked),
        *show,
    ]


def _covered_mounts(plan: dict[str, Any], free: "Free") -> tuple[list[Call], list[Call]]:
    """What is lent below /tmp or /dev/shm: kept before these are covered, shown again after."""
    below = tuple(f"{place}/" for place in SCRATCH)
    targets = [mount["target"] for mount in plan["mounts"] if mount["target"].startswith(below)]
    targets.sort(key=lambda target: target.count("/"))
    keep: list[Call] = []
    show: list[Call] = []
    made: set[str] = set()
    trees: list[int] = []
    for target in targets:
        place, tree = free.take(), free.take()
        trees.append(tree)
        keep += [
            mounting.open_path(target).returns(place),
            mounting.open_tree(place, target).returns(tree),
            libc.close(place),
        ]
        free.release(place)
        if not any(target.startswith(f"{other}/") for other in targets):
            show += _mount_point(target, made)
        show += [mounting.move_mount(tree, target), libc.close(tree)]
    for tree in trees:  # free again once all of this is made
        free.release(tree)
    return keep, show


def _mount_point(target: str, made: set[str]) -> list[Call]:
    """Make a directory or a file to mount on, and what is above it in the scratch space."""
    calls = []
    for parent in reversed(Path(target).parents):
        if len(parent.parts) > 2 and str(parent) not in (*SCRATCH, *made):
            made.add(str(parent))
            calls.append(libc.mkdir(str(parent), 0o755))
    is_directory = Path(target).is_dir()
    return [*calls, libc.mkdir(target, 0o755) if is_directory else libc.mknod(target, 0o644)]
