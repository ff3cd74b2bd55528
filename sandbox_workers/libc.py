"""System calls, prepared before they are made; declared once, without policy.

Each function prepares one call, and `do` makes it. Between the two lies a fork: what the
launcher has prepared, a cell only has to make, without the Python that prepared it. That
matters because after a fork every object touched is a page copied; a cell that prepared
its own calls took a thousand page faults, about a third of its processor time.

A call that fails raises `SystemCallError` with its name, the path where there is one,
and errno. Numbers from 424 up are the same on every architecture (the unified table,
Linux 5.1); older ones are not.
"""

import ctypes
import errno
import os
import platform
import stat
from collections.abc import Callable
from typing import Any, NamedTuple

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
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_RAISE = 2
PR_CAP_AMBIENT_CLEAR_ALL = 4
SECCOMP_MODE_FILTER = 2

# sigprocmask(2)
SIG_BLOCK = 0
SIG_SETMASK = 2

_NR_OPEN_TREE = 428
_NR_MOVE_MOUNT = 429
_NR_CLOSE_RANGE = 436
_NR_OPENAT2 = 437
_NR_MOUNT_SETATTR = 442
_NR_LANDLOCK_CREATE_RULESET = 444
_NR_LANDLOCK_ADD_RULE = 445
_NR_LANDLOCK_RESTRICT_SELF = 446
_OLDER = {
    "x86_64": {"pivot_root": 155, "keyctl": 250, "seccomp": 317},
    "aarch64": {"pivot_root": 41, "keyctl": 219, "seccomp": 277},
}

LANDLOCK_ACCESS_FS_REFER = 1 << 13  # ABI 2, Linux 5.19
LANDLOCK_SCOPE_SIGNAL = 1 << 1  # ABI 6, Linux 6.12

_RESOLVE_NO_SYMLINKS = 4
_LANDLOCK_RULE_PATH_BENEATH = 1
_LANDLOCK_CREATE_RULESET_VERSION = 1
_KEYCTL_JOIN_SESSION_KEYRING = 1
_SECCOMP_SET_MODE_FILTER = 1
_SECCOMP_FILTER_FLAG_NEW_LISTENER = 8
_SOL_SOCKET, _SCM_RIGHTS = 1, 1

CAP_SETPCAP = 8
_CAPABILITY_VERSION_3 = 0x20080522


class SystemCallError(OSError):
    """One system call failed: `call` names it, errno and filename say how and where."""

    def __init__(self, call: str, number: int, path: str | None = None) -> None:
        super().__init__(number, os.strerror(number), path)
        self.call = call

    def __str__(self) -> str:
        where = f" on {self.filename}" if self.filename else ""
        return f"{self.call}{where} failed: {self.strerror} (errno {self.errno})"


class Call(NamedTuple):
    """One prepared call; `kept` are the buffers that its arguments point into.

    `expected` is the result that later calls rely on, such as the number of the
    descriptor that an open returns.
    """

    function: Callable[..., int]
    arguments: tuple[Any, ...]
    name: str
    path: str | None = None
    expected: int | None = None
    kept: tuple[Any, ...] = ()

    def returns(self, expected: int) -> "Call":
        """The same call, of which any other result is a failure."""
        return self._replace(expected=expected)


def do(*calls: Call) -> int:
    """Make calls in order; returns the last result, raises SystemCallError at the first failure."""
    result = 0
    for function, arguments, name, path, expected, _ in calls:
        result = function(*arguments)
        if result < 0:
            raise SystemCallError(name, ctypes.get_errno(), path)
        if expected is not None and result != expected:
            raise SystemCallError(name, errno.EBADF, path)
    return result


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


class _Rlimit(ctypes.Structure):
    _fields_ = (("soft", ctypes.c_uint64), ("hard", ctypes.c_uint64))


class _SockFprog(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


class _SignalSet(ctypes.Structure):
    _fields_ = (("bits", ctypes.c_uint64 * 16),)  # as wide as the library's, of which 64 are used


class _IoVector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


class _OneDescriptor(ctypes.Structure):
    """A control message that carries one descriptor (cmsg(3))."""

    _fields_ = (
        ("length", ctypes.c_size_t),
        ("level", ctypes.c_int),
        ("kind", ctypes.c_int),
        ("descriptor", ctypes.c_int),
        ("padding", ctypes.c_int),
    )


class _Message(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_void_p),
        ("name_length", ctypes.c_uint),
        ("vectors", ctypes.c_void_p),
        ("vector_count", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_length", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    )


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


_open = _declare("open", _str, _int)
_write = _declare("write", _int, _ptr, ctypes.c_size_t, restype=_long)
_close = _declare("close", _int)
_dup3 = _declare("dup3", _int, _int, _int)
_mkdir = _declare("mkdir", _str, _int)
_mknod = _declare("mknod", _str, _int, _ulong)
_setsid = _declare("setsid")
_signal = _declare("signal", _int, _long, restype=_long)
_sigprocmask = _declare("sigprocmask", _int, _ptr, _ptr)
_signalfd = _declare("signalfd", _int, _ptr, _int)
_setrlimit = _declare("setrlimit", _int, _ptr)
_unshare = _declare("unshare", _int)
_setns = _declare("setns", _int, _int)
_mount = _declare("mount", _str, _str, _str, _ulong, _str)
_umount2 = _declare("umount2", _str, _int)
_sethostname = _declare("sethostname", _str, ctypes.c_size_t)
_socket = _declare("socket", _int, _int, _int)
_socketpair = _declare("socketpair", _int, _int, _int, _ptr)
_sendmsg = _declare("sendmsg", _int, _ptr, _int, restype=_long)
_ioctl = _declare("ioctl", _int, _ulong, _ptr)
_prctl = _declare("prctl", _int, _ulong, _ulong, _ulong, _ulong)
_capget = _declare("capget", _ptr, _ptr)
_capset = _declare("capset", _ptr, _ptr)
# One declaration for every raw call: six register-wide arguments.
_syscall = _declare("syscall", _long, _ulong, _ulong, _ulong, _ulong, _ulong, restype=_long)


def _older(name: str) -> int:
    numbers = _OLDER.get(platform.machine())
    if numbers is None:
        raise OSError(f"toolcell does not know the architecture {platform.machine()}")
    return numbers[name]


def _raw(number: int, name: str, *arguments: Any, path: str | None = None) -> Call:
    """Prepare a call by its number; bytes and structures become the addresses of their copies."""
    kept: list[Any] = []
    registers: list[int] = []
    for argument in arguments:
        if isinstance(argument, int):
            registers.append(argument & 0xFFFFFFFFFFFFFFFF)
            continue
        buffer = ctypes.create_string_buffer(argument) if isinstance(argument, bytes) else argument
        kept.append(buffer)
        registers.append(ctypes.addressof(buffer))
    registers += [0] * (5 - len(registers))
    return Call(_syscall, (number, *registers), name, path, kept=tuple(kept))


def open_file(path: str, flags: int) -> Call:
    """open(2), close-on-exec."""
    return Call(_open, (path.encode(), flags | os.O_CLOEXEC), "open", path)


def write(fd: int, data: bytes, path: str | None = None) -> Call:
    """write(2); writing less is a failure."""
    buffer = ctypes.create_string_buffer(data, len(data))
    arguments = (fd, ctypes.addressof(buffer), len(data))
    return Call(_write, arguments, "write", path, len(data), (buffer,))


def close(fd: int) -> Call:
    """close(2)."""
    return Call(_close, (fd,), "close")


def close_from(fd: int) -> Call:
    """close_range(2) from `fd` up (Linux 5.9)."""
    return _raw(_NR_CLOSE_RANGE, "close_range", fd, 0xFFFFFFFF)


def dup(fd: int, to: int, *, inherited: bool) -> Call:
    """dup3(2); `inherited` across execve or not."""
    return Call(_dup3, (fd, to, 0 if inherited else os.O_CLOEXEC), "dup3")


def mkdir(path: str, mode: int) -> Call:
    """mkdir(2)."""
    return Call(_mkdir, (path.encode(), mode), "mkdir", path)


def mknod(path: str, mode: int) -> Call:
    """mknod(2) of a regular file."""
    return Call(_mknod, (path.encode(), stat.S_IFREG | mode, 0), "mknod", path)


def setsid() -> Call:
    """setsid(2)."""
    return Call(_setsid, (), "setsid")


def signal(number: int, disposition: int) -> Call:
    """signal(2) with 0 (default) or 1 (ignore), behind the back of the interpreter's own table."""
    return Call(_signal, (number, disposition), "signal")


def signal_mask(how: int, *numbers: int) -> Call:
    """sigprocmask(2)."""
    signals = _signal_set(numbers)
    arguments = (how, ctypes.addressof(signals), None)
    return Call(_sigprocmask, arguments, "sigprocmask", kept=(signals,))


def signal_descriptor(*numbers: int) -> Call:
    """signalfd(2), close-on-exec and non-blocking; gives the descriptor."""
    signals = _signal_set(numbers)
    arguments = (-1, ctypes.addressof(signals), os.O_CLOEXEC | os.O_NONBLOCK)
    return Call(_signalfd, arguments, "signalfd", kept=(signals,))


def _signal_set(numbers: tuple[int, ...]) -> _SignalSet:
    signals = _SignalSet()
    for number in numbers:
        signals.bits[0] |= 1 << (number - 1)
    return signals


def setrlimit(resource: int, soft: int, hard: int) -> Call:
    """setrlimit(2)."""
    limit = _Rlimit(soft, hard)
    return Call(_setrlimit, (resource, ctypes.addressof(limit)), "setrlimit", kept=(limit,))


def unshare(flags: int) -> Call:
    """unshare(2)."""
    return Call(_unshare, (flags,), "unshare")


def setns(fd: int, nstype: int) -> Call:
    """setns(2); a pidfd is taken since Linux 5.8."""
    return Call(_setns, (fd, nstype), "setns")


def mount(source: str, target: str, kind: str, flags: int, data: str = "") -> Call:
    """mount(2)."""
    texts = (source.encode(), target.encode(), kind.encode())
    return Call(_mount, (*texts, flags, data.encode()), f"mount {kind or source}", target)


def umount(target: str, flags: int) -> Call:
    """umount2(2)."""
    return Call(_umount2, (target.encode(), flags), "umount", target)


def sethostname(name: str) -> Call:
    """sethostname(2)."""
    return Call(_sethostname, (name.encode(), len(name.encode())), "sethostname")


def socket(family: int, kind: int) -> Call:
    """socket(2)."""
    return Call(_socket, (family, kind, 0), "socket")


def socket_pair(family: int, kind: int) -> Call:
    """socketpair(2), close-on-exec; the two take the lowest descriptors that are free."""
    pair = (ctypes.c_int * 2)()
    arguments = (family, kind | os.O_CLOEXEC, 0, ctypes.addressof(pair))
    return Call(_socketpair, arguments, "socketpair", kept=(pair,))


def send_descriptor(fd: int, sent: int) -> Call:
    """sendmsg(2) of one byte and one descriptor."""
    byte = ctypes.create_string_buffer(b"+", 1)
    vector = _IoVector(ctypes.addressof(byte), 1)
    length = ctypes.sizeof(_OneDescriptor)
    control = _OneDescriptor(length - 4, _SOL_SOCKET, _SCM_RIGHTS, sent, 0)
    addresses = (ctypes.addressof(vector), 1, ctypes.addressof(control), length)
    message = _Message(None, 0, *addresses, 0)
    arguments = (fd, ctypes.addressof(message), 0)
    return Call(_sendmsg, arguments, "sendmsg", kept=(byte, vector, control, message))


def ioctl(fd: int, request: int, data: bytes) -> Call:
    """ioctl(2) with a structure."""
    buffer = ctypes.create_string_buffer(data, len(data))
    return Call(_ioctl, (fd, request, ctypes.addressof(buffer)), "ioctl", kept=(buffer,))


def prctl(option: int, value: int = 0, value2: int = 0) -> Call:
    """prctl(2)."""
    return Call(_prctl, (option, value, value2, 0, 0), f"prctl {option}")


def drop_from_bounding_set(capability: int) -> Call:
    """prctl(PR_CAPBSET_DROP)."""
    return prctl(PR_CAPBSET_DROP, capability)


def clear_capabilities() -> Call:
    """capset(2): empty the effective, permitted and inheritable sets."""
    header, data = _CapHeader(_CAPABILITY_VERSION_3, 0), (_CapData * 2)()
    addresses = (ctypes.addressof(header), ctypes.addressof(data))
    return Call(_capset, addresses, "capset", kept=(header, data))


def has_capability(number: int) -> bool:
    """Whether a capability is in the effective set of this process."""
    header, data = _CapHeader(_CAPABILITY_VERSION_3, 0), (_CapData * 2)()
    do(Call(_capget, (ctypes.addressof(header), ctypes.addressof(data)), "capget"))
    return bool(data[number // 32].effective >> (number % 32) & 1)


def ambient_capabilities() -> list[Call]:
    """Make every permitted capability inheritable and ambient, so that execve keeps it."""
    header, data = _CapHeader(_CAPABILITY_VERSION_3, 0), (_CapData * 2)()
    addresses = (ctypes.addressof(header), ctypes.addressof(data))
    do(Call(_capget, addresses, "capget"))
    for part in data:
        part.inheritable = part.permitted
    permitted = [n for n in range(64) if data[n // 32].permitted >> (n % 32) & 1]
    return [
        Call(_capset, addresses, "capset", kept=(header, data)),
        *(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, number) for number in permitted),
    ]


def join_session_keyring() -> None:
    """Leave the session keyring for a new, empty one (keyctl(2)).

    Where keyctl is missing or forbidden, no keyring can be reached either.
    """
    try:
        do(_raw(_older("keyctl"), "keyctl", _KEYCTL_JOIN_SESSION_KEYRING))
    except SystemCallError as error:
        if error.errno not in (errno.ENOSYS, errno.EPERM):
            raise


def open_path(path: str) -> Call:
    """Open a place without following a symbolic link anywhere on the way (openat2, Linux 5.6)."""
    how = _OpenHow(os.O_PATH | os.O_CLOEXEC, 0, _RESOLVE_NO_SYMLINKS)
    size = ctypes.sizeof(how)
    return _raw(_NR_OPENAT2, "openat2", AT_FDCWD, path.encode(), how, size, path=path)


def has_openat2() -> bool:
    """Whether the kernel has openat2, and what surrounds this process allows it."""
    try:
        os.close(do(open_path("/")))
    except SystemCallError:
        return False
    return True


def open_place(path: str) -> Call:
    """Open a place that is not itself a symbolic link; what `open_path` is without openat2."""
    return open_file(path, os.O_PATH | os.O_NOFOLLOW)


def open_tree(fd: int, path: str = "") -> Call:
    """Copy the mounts at and below an open place into a detached tree; gives its descriptor."""
    flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_EMPTY_PATH
    return _raw(_NR_OPEN_TREE, "open_tree", fd, b"", flags, path=path)


def mount_setattr(fd: int, attributes: int, userns: int = 0) -> Call:
    """Set attributes on the whole tree behind `fd`; `userns` goes with MOUNT_ATTR_IDMAP."""
    attr = _MountAttr(attributes, 0, 0, userns)
    flags = AT_EMPTY_PATH | AT_RECURSIVE
    return _raw(_NR_MOUNT_SETATTR, "mount_setattr", fd, b"", flags, attr, ctypes.sizeof(attr))


def move_mount(fd: int, target: str) -> Call:
    """Attach the detached tree behind `fd` at `target`."""
    place = (AT_FDCWD, target.encode(), MOVE_MOUNT_F_EMPTY_PATH)
    return _raw(_NR_MOVE_MOUNT, "move_mount", fd, b"", *place, path=target)


def pivot_root(new_root: str, put_old: str) -> Call:
    """pivot_root(2)."""
    places = (new_root.encode(), put_old.encode())
    return _raw(_older("pivot_root"), "pivot_root", *places, path=new_root)


def landlock_abi() -> int:
    """Return the kernel's Landlock ABI, or 0 where it has none or it is switched off."""
    version = (0, 0, _LANDLOCK_CREATE_RULESET_VERSION)
    try:
        return do(_raw(_NR_LANDLOCK_CREATE_RULESET, "landlock_create_ruleset", *version))
    except SystemCallError:
        return 0


def landlock_ruleset(files: int, tcp: int, scopes: int) -> Call:
    """landlock_create_ruleset(2); gives the ruleset's descriptor."""
    # An older kernel takes the longer structure as long as what it does not know is zero.
    attr = _LandlockRuleset(files, tcp, scopes)
    size = ctypes.sizeof(attr)
    return _raw(_NR_LANDLOCK_CREATE_RULESET, "landlock_create_ruleset", attr, size)


def landlock_rule(ruleset: int, place: int, rights: int, path: str) -> Call:
    """landlock_add_rule(2): allow `rights` at and below an open place."""
    attr = _LandlockPathBeneath(rights, place)
    rule = (ruleset, _LANDLOCK_RULE_PATH_BENEATH, attr)
    return _raw(_NR_LANDLOCK_ADD_RULE, "landlock_add_rule", *rule, path=path)


def landlock_restrict(ruleset: int) -> Call:
    """landlock_restrict_self(2): enforce a ruleset on this thread and all it starts."""
    return _raw(_NR_LANDLOCK_RESTRICT_SELF, "landlock_restrict_self", ruleset)


def install_filter(program: bytes) -> Call:
    """seccomp(2): install a BPF program, an array of struct sock_filter, for good."""
    buffer = ctypes.create_string_buffer(program, len(program))
    fprog = _SockFprog(len(program) // 8, ctypes.addressof(buffer))
    call = prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(fprog))
    return call._replace(kept=(buffer, fprog))


def install_told_filter(program: bytes) -> Call:
    """The same, and give a descriptor that tells of refused calls (Linux 5.0).

    EBUSY where this process is under a filter that has such a descriptor already, as in
    some containers.
    """
    buffer = ctypes.create_string_buffer(program, len(program))
    fprog = _SockFprog(len(program) // 8, ctypes.addressof(buffer))
    how = (_SECCOMP_SET_MODE_FILTER, _SECCOMP_FILTER_FLAG_NEW_LISTENER, fprog)
    call = _raw(_older("seccomp"), "seccomp", *how)
    return call._replace(kept=(buffer, fprog))
