"""Landlock: a second wall around files, for the case that a mount lets through too much.

The rules say again, in another part of the kernel, what the mounts say: everything in
the root may be read, and only a few places written. Signals are scoped to the cell, and
abstract sockets where the policy does not open the network. TCP is left to the network
namespace: rules on ports cannot tell the cell's own loopback from another.

A rule holds across the mounts below its place and cannot subtract: what is mounted
read-only inside a writable place is protected by its mount alone.

Rights by ABI, linux/landlock.h: 1 (Linux 5.13), 2 refer (5.19), 3 truncate (6.2), 5 ioctl
on devices (6.10), 6 scopes (6.12).
"""

from toolcell.model import Ruleset

EXECUTE = 1 << 0
WRITE_FILE = 1 << 1
READ_FILE = 1 << 2
READ_DIR = 1 << 3
REMOVE_DIR = 1 << 4
REMOVE_FILE = 1 << 5
MAKE_CHAR = 1 << 6
MAKE_DIR = 1 << 7
MAKE_REG = 1 << 8
MAKE_SOCK = 1 << 9
MAKE_FIFO = 1 << 10
MAKE_BLOCK = 1 << 11
MAKE_SYM = 1 << 12
REFER = 1 << 13
TRUNCATE = 1 << 14
IOCTL_DEV = 1 << 15

SCOPE_ABSTRACT_UNIX_SOCKET = 1 << 0
SCOPE_SIGNAL = 1 << 1

_READ = EXECUTE | READ_FILE | READ_DIR
_USE = _READ | WRITE_FILE | TRUNCATE | IOCTL_DEV
_OWN = (1 << 16) - 1 & ~(MAKE_CHAR | MAKE_BLOCK)

_FILE_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1}
_ALL_FILE_RIGHTS = (1 << 16) - 1


def ruleset(abi: int, writable: tuple[str, ...], *, open_network: bool) -> Ruleset | None:
    """Return the ruleset for a kernel's ABI, or None for one without Landlock.

    `writable` are the places that a tool may change. Rights that the ABI does not know
    are left out: the kernel refuses them.
    """
    if abi < 1:
        return None
    handled = _FILE_RIGHTS.get(abi, _ALL_FILE_RIGHTS)
    rules = [("/", _READ), ("/proc", _USE), ("/dev", _USE), ("/dev/pts", _USE)]
    rules += [(place, _OWN) for place in writable]
    scopes = SCOPE_SIGNAL | (0 if open_network else SCOPE_ABSTRACT_UNIX_SOCKET)
    return Ruleset(
        files=handled,
        tcp=0,
        scopes=scopes if abi >= 6 else 0,
        rules=tuple((path, rights & handled) for path, rights in rules),
    )
