"""System calls on mounts, and on the places that are mounted; see `libc`."""

import ctypes
import os

from sandbox_workers import libc
from sandbox_workers.libc import Call

# mount(2), umount2(2)
MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_REMOUNT = 32
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18
MNT_DETACH = 2

# open_tree(2), move_mount(2): Linux 5.2; mount_setattr(2): Linux 5.12
AT_FDCWD = -100
AT_EMPTY_PATH = 0x1000
AT_RECURSIVE = 0x8000
OPEN_TREE_CLONE = 1
OPEN_TREE_CLOEXEC = os.O_CLOEXEC
MOVE_MOUNT_F_EMPTY_PATH = 0x00000004
MOUNT_ATTR_RDONLY = 0x00000001
MOUNT_ATTR_NOSUID = 0x00000002
MOUNT_ATTR_NODEV = 0x00000004
MOUNT_ATTR_IDMAP = 0x00100000

_NR_OPEN_TREE = 428
_NR_MOVE_MOUNT = 429
_NR_OPENAT2 = 437
_NR_MOUNT_SETATTR = 442

_RESOLVE_NO_SYMLINKS = 4


class _MountAttr(ctypes.Structure):
    _fields_ = (
        ("attr_set", ctypes.c_uint64),
        ("attr_clr", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("userns_fd", ctypes.c_uint64),
    )


class _OpenHow(ctypes.Structure):
    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    )


_str = ctypes.c_char_p
_mount = libc.declare("mount", _str, _str, _str, ctypes.c_ulong, _str)
_umount2 = libc.declare("umount2", _str, ctypes.c_int)


def mount(source: str, target: str, kind: str, flags: int, data: str = "") -> Call:
    """mount(2)."""
    texts = (source.encode(), target.encode(), kind.encode())
    return Call(_mount, (*texts, flags, data.encode()), f"mount {kind or source}", target)


def umount(target: str, flags: int) -> Call:
    """umount2(2)."""
    return Call(_umount2, (target.encode(), flags), "umount", target)


def open_path(path: str) -> Call:
    """Open a place without following a symbolic link anywhere on the way (openat2, Linux 5.6)."""
    how = _OpenHow(os.O_PATH | os.O_CLOEXEC, 0, _RESOLVE_NO_SYMLINKS)
    size = ctypes.sizeof(how)
    return libc.raw(_NR_OPENAT2, "openat2", AT_FDCWD, path.encode(), how, size, path=path)


def has_openat2() -> bool:
    """Whether the kernel has openat2, and what surrounds this process allows it."""
    try:
        os.close(libc.do(open_path("/")))
    except libc.SystemCallError:
        return False
    return True


def open_place(path: str) -> Call:
    """Open a place that is not itself a symbolic link; what `open_path` is without openat2."""
    return libc.open_file(path, os.O_PATH | os.O_NOFOLLOW)


def open_tree(fd: int, path: str = "") -> Call:
    """Copy the mounts at and below an open place into a detached tree; gives its descriptor."""
    flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_EMPTY_PATH
    return libc.raw(_NR_OPEN_TREE, "open_tree", fd, b"", flags, path=path)


def mount_setattr(fd: int, attributes: int, userns: int = 0) -> Call:
    """Set attributes on the whole tree behind `fd`; `userns` goes with MOUNT_ATTR_IDMAP."""
    attr = _MountAttr(attributes, 0, 0, userns)
    flags = AT_EMPTY_PATH | AT_RECURSIVE
    return libc.raw(_NR_MOUNT_SETATTR, "mount_setattr", fd, b"", flags, attr, ctypes.sizeof(attr))


def move_mount(fd: int, target: str) -> Call:
    """Attach the detached tree behind `fd` at `target`."""
    place = (AT_FDCWD, target.encode(), MOVE_MOUNT_F_EMPTY_PATH)
    return libc.raw(_NR_MOVE_MOUNT, "move_mount", fd, b"", *place, path=target)


def pivot_root(new_root: str, put_old: str) -> Call:
    """pivot_root(2)."""
    places = (new_root.encode(), put_old.encode())
    return libc.raw(libc.older("pivot_root"), "pivot_root", *places, path=new_root)
