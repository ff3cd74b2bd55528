"""System calls that the standard library does not offer, declared once, without policy.

Each function makes one call and raises `SystemCallError` with the call's name, the
path where there is one, and errno. Numbers from 424 up are the same on every
architecture (the unified table, Linux 5.1); older ones are not.
"""

import ctypes
import errno
import os
import platform
from collections.abc import Callable
from typing import Any

# clone(2), unshare(2), setns(2)
CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

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

# prctl(2)
PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_SECCOMP = 22
PR_CAPBSET_DROP = 24
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_RAISE = 2
PR_CAP_AMBIENT_CLEAR_ALL = 4
SECCOMP_MODE_FILTER = 2

_NR_OPEN_TREE = 428
_NR_MOVE_MOUNT = 429
_NR_OPENAT2 = 437
_NR_MOUNT_SETATTR = 442
_NR_LANDLOCK_CREATE_RULESET = 444
_NR_LANDLOCK_ADD_RULE = 445
_NR_LANDLOCK_RESTRICT_SELF = 446
_OLDER = {
    "x86_64": {"pivot_root": 155, "keyctl": 250},
    "aarch64": {"pivot_root": 41, "keyctl": 219},
}

_RESOLVE_NO_SYMLINKS = 4
_LANDLOCK_RULE_PATH_BENEATH = 1
_LANDLOCK_CREATE_RULESET_VERSION = 1
_KEYCTL_JOIN_SESSION_KEYRING = 1

_CAPABILITY_VERSION_3 = 0x20080522
_HERE = AT_FDCWD & 0xFFFFFFFFFFFFFFFF


class SystemCallError(OSError):
    """One system call failed: `call` names it, errno and filename say how and where."""

    def __init__(self, call: str, number: int, path: str | None = None) -> None:
        super().__init__(number, os.strerror(number), path)
        self.call = call

    def __str__(self) -> str:
        where = f" on {self.filename}" if self.filename else ""
        return f"{self.call}{where} failed: {self.strerror} (errno {self.errno})"


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


class _LandlockRuleset(ctypes.Structure):
    _fields_ = (
        ("handled_access_fs", ctypes.c_uint64),
        ("handled_access_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


class _LandlockPathBeneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"  # named from Python 3.14 on, where packing would otherwise warn
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


class _SockFprog(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


class _CapHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _CapData(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


_libc = ctypes.CDLL(None, use_errno=True)
_long, _int, _str, _ptr = ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p
_ulong = ctypes.c_ulong


def _declare(name: str, *argtypes: Any, restype: Any = _int) -> Callable[..., int]:
    function = getattr(_libc, name)
    function.argtypes = argtypes
    function.restype = restype
    return function  # type: ignore[no-any-return]  # ctypes function pointers are untyped


_unshare = _declare("unshare", _int)
_setns = _declare("setns", _int, _int)
_mount = _declare("mount", _str, _str, _str, _ulong, _str)
_umount2 = _declare("umount2", _str, _int)
_sethostname = _declare("sethostname", _str, ctypes.c_size_t)
_prctl = _declare("prctl", _int, _ulong, _ulong, _ulong, _ulong)
_capget = _declare("capget", _ptr, _ptr)
_capset = _declare("capset", _ptr, _ptr)
# One declaration for every raw call: six register-wide arguments.
_syscall = _declare("syscall", _long, _ulong, _ulong, _ulong, _ulong, _ulong, restype=_long)


def _check(result: int, call: str, path: str | None = None) -> int:
    if result < 0:
        raise SystemCallError(call, ctypes.get_errno(), path)
    return result


def _older(name: str) -> int:
    numbers = _OLDER.get(platform.machine())
    if numbers is None:
        raise OSError(f"toolcell does not know the architecture {platform.machine()}")
    return numbers[name]


def _address(text: bytes) -> tuple[Any, int]:
    buffer = ctypes.create_string_buffer(text)
    return buffer, ctypes.addressof(buffer)


def unshare(flags: int) -> None:
    """unshare(2)."""
    _check(_unshare(flags), "unshare")


def setns(fd: int, nstype: int) -> None:
    """setns(2); a pidfd is taken since Linux 5.8."""
    _check(_setns(fd, nstype), "setns")


def mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    """mount(2)."""
    result = _mount(source.encode(), target.encode(), kind.encode(), flags, data.encode())
    _check(result, f"mount {kind or source}", target)


def umount(target: str, flags: int) -> None:
    """umount2(2)."""
    _check(_umount2(target.encode(), flags), "umount", target)


def sethostname(name: str) -> None:
    """sethostname(2)."""
    encoded = name.encode()
    _check(_sethostname(encoded, len(encoded)), "sethostname")


def prctl(option: int, value: int = 0) -> None:
    """prctl(2) with one argument."""
    _check(_prctl(option, value, 0, 0, 0), f"prctl {option}")


def drop_capabilities(last: int) -> None:
    """Empty the bounding, ambient, effective, permitted and inheritable sets, 0 to `last`."""
    for capability in range(last + 1):
        _check(_prctl(PR_CAPBSET_DROP, capability, 0, 0, 0), "prctl PR_CAPBSET_DROP")
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    header = _CapHeader(_CAPABILITY_VERSION_3, 0)
    data = (_CapData * 2)()
    _check(_capset(ctypes.addressof(header), ctypes.addressof(data)), "capset")


def make_capabilities_ambient() -> None:
    """Make every permitted capability inheritable and ambient, so that execve keeps it."""
    header = _CapHeader(_CAPABILITY_VERSION_3, 0)
    data = (_CapData * 2)()
    _check(_capget(ctypes.addressof(header), ctypes.addressof(data)), "capget")
    for part in data:
        part.inheritable = part.permitted
    _check(_capset(ctypes.addressof(header), ctypes.addressof(data)), "capset")
    for capability in range(64):
        if data[capability // 32].permitted >> (capability % 32) & 1:
            result = _prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0)
            _check(result, "prctl PR_CAP_AMBIENT")


def give_up_capabilities() -> None:
    """Empty the effective, permitted and inheritable sets; enough for what will not exec."""
    header = _CapHeader(_CAPABILITY_VERSION_3, 0)
    data = (_CapData * 2)()
    _check(_capset(ctypes.addressof(header), ctypes.addressof(data)), "capset")


def join_session_keyring() -> None:
    """Leave the session keyring for a new, empty one (keyctl(2)).

    Where keyctl is missing or forbidden, no keyring can be reached either.
    """
    result = _syscall(_older("keyctl"), _KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0)
    if result < 0 and ctypes.get_errno() not in (errno.ENOSYS, errno.EPERM):
        _check(result, "keyctl KEYCTL_JOIN_SESSION_KEYRING")


def open_path(path: str) -> int:
    """Open a place without following a symbolic link anywhere on the way (openat2, Linux 5.6)."""
    _buffer, address = _address(path.encode())
    how = _OpenHow(os.O_PATH | os.O_CLOEXEC, 0, _RESOLVE_NO_SYMLINKS)
    size = ctypes.sizeof(how)
    result = _syscall(_NR_OPENAT2, _HERE, address, ctypes.addressof(how), size, 0)
    return _check(result, "openat2", path)


def open_tree(fd: int, path: str = "") -> int:
    """Copy the mounts at and below an open place into a detached tree; returns its descriptor."""
    _buffer, address = _address(b"")
    flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_EMPTY_PATH
    return _check(_syscall(_NR_OPEN_TREE, fd, address, flags, 0, 0), "open_tree", path)


def landlock_abi() -> int:
    """Return the kernel's Landlock ABI, or 0 where it has none or it is switched off."""
    result = _syscall(_NR_LANDLOCK_CREATE_RULESET, 0, 0, _LANDLOCK_CREATE_RULESET_VERSION, 0, 0)
    return max(result, 0)


def landlock_ruleset(files: int, tcp: int, scopes: int) -> int:
    """landlock_create_ruleset(2); returns the ruleset's descriptor."""
    attr = _LandlockRuleset(files, tcp, scopes)
    # An older kernel takes the longer structure as long as what it does not know is zero.
    size = ctypes.sizeof(attr)
    result = _syscall(_NR_LANDLOCK_CREATE_RULESET, ctypes.addressof(attr), size, 0, 0, 0)
    return _check(result, "landlock_create_ruleset")


def landlock_allow(ruleset: int, path: str, rights: int) -> None:
    """landlock_add_rule(2): allow `rights` at and below a path."""
    fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        attr = _LandlockPathBeneath(rights, fd)
        kind, address = _LANDLOCK_RULE_PATH_BENEATH, ctypes.addressof(attr)
        result = _syscall(_NR_LANDLOCK_ADD_RULE, ruleset, kind, address, 0, 0)
        _check(result, "landlock_add_rule", path)
    finally:
        os.close(fd)


def landlock_restrict(ruleset: int) -> None:
    """landlock_restrict_self(2): enforce a ruleset on this thread and all it starts."""
    _check(_syscall(_NR_LANDLOCK_RESTRICT_SELF, ruleset, 0, 0, 0, 0), "landlock_restrict_self")


def install_filter(program: bytes) -> None:
    """seccomp(2): install a BPF program, an array of struct sock_filter, for good."""
    _buffer, address = _address(program)
    fprog = _SockFprog(len(program) // 8, address)
    result = _prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(fprog), 0, 0)
    _check(result, "prctl PR_SET_SECCOMP")


def mount_setattr(fd: int, attributes: int, userns: int = 0) -> None:
    """Set attributes on the whole tree behind `fd`; `userns` goes with MOUNT_ATTR_IDMAP."""
    _buffer, address = _address(b"")
    attr = _MountAttr(attributes, 0, 0, userns)
    flags = AT_EMPTY_PATH | AT_RECURSIVE
    size = ctypes.sizeof(attr)
    result = _syscall(_NR_MOUNT_SETATTR, fd, address, flags, ctypes.addressof(attr), size)
    _check(result, "mount_setattr")


def move_mount(fd: int, target: str) -> None:
    """Attach the detached tree behind `fd` at `target`."""
    _empty, empty = _address(b"")
    _buffer, address = _address(target.encode())
    result = _syscall(_NR_MOVE_MOUNT, fd, empty, _HERE, address, MOVE_MOUNT_F_EMPTY_PATH)
    _check(result, "move_mount", target)


def pivot_root(new_root: str, put_old: str) -> None:
    """pivot_root(2)."""
    _new, new = _address(new_root.encode())
    _old, old = _address(put_old.encode())
    _check(_syscall(_older("pivot_root"), new, old, 0, 0, 0), "pivot_root", new_root)
