"""System calls, prepared before they are made; declared once, without policy.

Those on mounts are in `mounting`, those on what a process may do in `confine`.

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

_NR_CLOSE_RANGE = 436
_OLDER = {
    "x86_64": {"pivot_root": 155, "keyctl": 250, "seccomp": 317},
    "aarch64": {"pivot_root": 41, "keyctl": 219, "seccomp": 277},
}

_SOL_SOCKET, _SCM_RIGHTS = 1, 1


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


class _Rlimit(ctypes.Structure):
    _fields_ = (("soft", ctypes.c_uint64), ("hard", ctypes.c_uint64))


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


_libc = ctypes.CDLL(None, use_errno=True)
_long, _int, _str, _ptr = ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p
_ulong = ctypes.c_ulong


def declare(name: str, *argtypes: Any, restype: Any = _int) -> Callable[..., int]:
    """Declare a function of the C library."""
    function = getattr(_libc, name)
    function.argtypes = argtypes
    function.restype = restype
    return function  # type: ignore[no-any-return]  # ctypes function pointers are untyped


_open = declare("open", _str, _int)
_write = declare("write", _int, _ptr, ctypes.c_size_t, restype=_long)
_close = declare("close", _int)
_dup3 = declare("dup3", _int, _int, _int)
_mkdir = declare("mkdir", _str, _int)
_mknod = declare("mknod", _str, _int, _ulong)
_setsid = declare("setsid")
_signal = declare("signal", _int, _long, restype=_long)
_sigprocmask = declare("sigprocmask", _int, _ptr, _ptr)
_signalfd = declare("signalfd", _int, _ptr, _int)
_setrlimit = declare("setrlimit", _int, _ptr)
_unshare = declare("unshare", _int)
_setns = declare("setns", _int, _int)
_sethostname = declare("sethostname", _str, ctypes.c_size_t)
_socket = declare("socket", _int, _int, _int)
_socketpair = declare("socketpair", _int, _int, _int, _ptr)
_sendmsg = declare("sendmsg", _int, _ptr, _int, restype=_long)
_ioctl = declare("ioctl", _int, _ulong, _ptr)
_prctl = declare("prctl", _int, _ulong, _ulong, _ulong, _ulong)
# One declaration for every raw call: six register-wide arguments.
_syscall = declare("syscall", _long, _ulong, _ulong, _ulong, _ulong, _ulong, restype=_long)


def older(name: str) -> int:
    """The number of a call that has another on each architecture."""
    numbers = _OLDER.get(platform.machine())
    if numbers is None:
        raise OSError(f"toolcell does not know the architecture {platform.machine()}")
    return numbers[name]


def raw(number: int, name: str, *arguments: Any, path: str | None = None) -> Call:
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
    return raw(_NR_CLOSE_RANGE, "close_range", fd, 0xFFFFFFFF)


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
