"""System calls on what a process may do: capabilities, keyrings, Landlock, seccomp; see `libc`."""

import ctypes
import errno

from sandbox_workers import libc
from sandbox_workers.libc import Call

_NR_LANDLOCK_CREATE_RULESET = 444
_NR_LANDLOCK_ADD_RULE = 445
_NR_LANDLOCK_RESTRICT_SELF = 446

LANDLOCK_ACCESS_FS_REFER = 1 << 13  # ABI 2, Linux 5.19
LANDLOCK_SCOPE_SIGNAL = 1 << 1  # ABI 6, Linux 6.12

_LANDLOCK_RULE_PATH_BENEATH = 1
_LANDLOCK_CREATE_RULESET_VERSION = 1
_KEYCTL_JOIN_SESSION_KEYRING = 1
_SECCOMP_SET_MODE_FILTER = 1
_SECCOMP_FILTER_FLAG_NEW_LISTENER = 8

CAP_SETPCAP = 8
_CAPABILITY_VERSION_3 = 0x20080522


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


_capget = libc.declare("capget", ctypes.c_void_p, ctypes.c_void_p)
_capset = libc.declare("capset", ctypes.c_void_p, ctypes.c_void_p)


def drop_from_bounding_set(capability: int) -> Call:
    """libc.prctl(libc.PR_CAPBSET_DROP)."""
    return libc.prctl(libc.PR_CAPBSET_DROP, capability)


def clear_capabilities() -> Call:
    """capset(2): empty the effective, permitted and inheritable sets."""
    header, data = _CapHeader(_CAPABILITY_VERSION_3, 0), (_CapData * 2)()
    addresses = (ctypes.addressof(header), ctypes.addressof(data))
    return Call(_capset, addresses, "capset", kept=(header, data))


def has_capability(number: int) -> bool:
    """Whether a capability is in the effective set of this process."""
    header, data = _CapHeader(_CAPABILITY_VERSION_3, 0), (_CapData * 2)()
    libc.do(Call(_capget, (ctypes.addressof(header), ctypes.addressof(data)), "capget"))
    return bool(data[number // 32].effective >> (number % 32) & 1)


def ambient_capabilities() -> list[Call]:
    """Make every permitted capability inheritable and ambient, so that execve keeps it."""
    header, data = _CapHeader(_CAPABILITY_VERSION_3, 0), (_CapData * 2)()
    addresses = (ctypes.addressof(header), ctypes.addressof(data))
    libc.do(Call(_capget, addresses, "capget"))
    for part in data:
        part.inheritable = part.permitted
    permitted = [n for n in range(64) if data[n // 32].permitted >> (n % 32) & 1]
    return [
        Call(_capset, addresses, "capset", kept=(header, data)),
        *(
            libc.prctl(libc.PR_CAP_AMBIENT, libc.PR_CAP_AMBIENT_RAISE, number)
            for number in permitted
        ),
    ]


def join_session_keyring() -> None:
    """Leave the session keyring for a new, empty one (keyctl(2)).

    Where keyctl is missing or forbidden, no keyring can be reached either.
    """
    try:
        libc.do(libc.raw(libc.older("keyctl"), "keyctl", _KEYCTL_JOIN_SESSION_KEYRING))
    except libc.SystemCallError as error:
        if error.errno not in (errno.ENOSYS, errno.EPERM):
            raise


def landlock_abi() -> int:
    """Return the kernel's Landlock ABI, or 0 where it has none or it is switched off."""
    version = (0, 0, _LANDLOCK_CREATE_RULESET_VERSION)
    try:
        return libc.do(libc.raw(_NR_LANDLOCK_CREATE_RULESET, "landlock_create_ruleset", *version))
    except libc.SystemCallError:
        return 0


def landlock_ruleset(files: int, tcp: int, scopes: int) -> Call:
    """landlock_create_ruleset(2); gives the ruleset's descriptor."""
    # An older kernel takes the longer structure as long as what it does not know is zero.
    attr = _LandlockRuleset(files, tcp, scopes)
    size = ctypes.sizeof(attr)
    return libc.raw(_NR_LANDLOCK_CREATE_RULESET, "landlock_create_ruleset", attr, size)


def landlock_rule(ruleset: int, place: int, rights: int, path: str) -> Call:
    """landlock_add_rule(2): allow `rights` at and below an open place."""
    attr = _LandlockPathBeneath(rights, place)
    rule = (ruleset, _LANDLOCK_RULE_PATH_BENEATH, attr)
    return libc.raw(_NR_LANDLOCK_ADD_RULE, "landlock_add_rule", *rule, path=path)


def landlock_restrict(ruleset: int) -> Call:
    """landlock_restrict_self(2): enforce a ruleset on this thread and all it starts."""
    return libc.raw(_NR_LANDLOCK_RESTRICT_SELF, "landlock_restrict_self", ruleset)


def install_filter(program: bytes) -> Call:
    """seccomp(2): install a BPF program, an array of struct sock_filter, for good."""
    buffer = ctypes.create_string_buffer(program, len(program))
    fprog = _SockFprog(len(program) // 8, ctypes.addressof(buffer))
    call = libc.prctl(libc.PR_SET_SECCOMP, libc.SECCOMP_MODE_FILTER, ctypes.addressof(fprog))
    return call._replace(kept=(buffer, fprog))


def install_told_filter(program: bytes) -> Call:
    """The same, and give a descriptor that tells of refused calls (Linux 5.0).

    EBUSY where this process is under a filter that has such a descriptor already, as in
    some containers.
    """
    buffer = ctypes.create_string_buffer(program, len(program))
    fprog = _SockFprog(len(program) // 8, ctypes.addressof(buffer))
    how = (_SECCOMP_SET_MODE_FILTER, _SECCOMP_FILTER_FLAG_NEW_LISTENER, fprog)
    call = libc.raw(libc.older("seccomp"), "seccomp", *how)
    return call._replace(kept=(buffer, fprog))
