"""Landlock: a second wall around files, and the first where no namespace can be had.

In a cell with namespaces the rules say again, in another part of the kernel, what the mounts
say: everything in the root may be read, and only a few places written. TCP is left to the
network namespace there: rules on ports cannot tell the cell's own loopback from another.

In a cell without namespaces the rules are the wall: only what the plan lends may be read,
only the workspace and the cell's own scratch directory written, and no TCP port is bound or
connected to. Signals are scoped to the cell on both, and abstract sockets where the policy
does not open the network.

A rule holds across the mounts below its place and cannot subtract: what is mounted
read-only inside a writable place is protected by its mount alone.

Rights by ABI, linux/landlock.h: 1 (Linux 5.13), 2 refer (5.19), 3 truncate (6.2), 4 TCP (6.7),
5 ioctl on devices (6.10), 6 scopes (6.12).
"""

from collections.abc import Iterable
from pathlib import Path

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

BIND_TCP = 1 << 0
CONNECT_TCP = 1 << 1

SCOPE_ABSTRACT_UNIX_SOCKET = 1 << 0
SCOPE_SIGNAL = 1 << 1

COVERS_TRUNCATE = 3
SCOPED = 6
"""The first ABI that keeps a cell's signals to the cell."""

SCRATCH = "."
"""A cell's own scratch directory: where its worker stands when the rules are made."""

_READ = EXECUTE | READ_FILE | READ_DIR
_USE = _READ | WRITE_FILE | TRUNCATE | IOCTL_DEV
_OWN = (1 << 16) - 1 & ~(MAKE_CHAR | MAKE_BLOCK)
_OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV

_FILE_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1}
_ALL_FILE_RIGHTS = (1 << 16) - 1


def second_wall(abi: int, writable: Iterable[str], *, open_network: bool) -> Ruleset | None:
    """Return the rules for a cell with a root of its own, None for a kernel without Landlock.

    `writable` are the places that a tool may change. Rights that the ABI does not know
    are left out: the kernel refuses them.
    """
    rules = [("/", _READ), ("/proc", _USE), ("/dev", _USE), ("/dev/pts", _USE)]
    rules += [(place, _OWN) for place in writable]
    return _ruleset(abi, rules, tcp=0, open_network=open_network) if abi > 0 else None


def only_wall(
    abi: int,
    readable: Iterable[str],
    writable: Iterable[str],
    devices: Iterable[str],
    listed: Iterable[str],
    *,
    open_network: bool,
) -> Ruleset:
    """Return the rules for a cell that shares the host's root: what they do not name is denied.

    `listed` are directories whose names may be read, theirs and those below, and no file: an
    import looks for a module in the list of its directory.
    """
    rules = [("/proc", READ_FILE | READ_DIR), (SCRATCH, _OWN)]
    rules += [(place, _READ if Path(place).is_dir() else _READ & _OF_FILES) for place in readable]
    rules += [(place, _USE & _OF_FILES) for place in devices]
    rules += [(place, _OWN) for place in writable]
    rules += [(place, READ_DIR) for place in listed]
    tcp = BIND_TCP | CONNECT_TCP if abi >= 4 and not open_network else 0
    return _ruleset(abi, rules, tcp=tcp, open_network=open_network)


def _ruleset(abi: int, rules: list[tuple[str, int]], *, tcp: int, open_network: bool) -> Ruleset:
    handled = _FILE_RIGHTS.get(abi, _ALL_FILE_RIGHTS)
    scopes = SCOPE_SIGNAL | (0 if open_network else SCOPE_ABSTRACT_UNIX_SOCKET)
    return Ruleset(
        files=handled,
        tcp=tcp,
        scopes=scopes if abi >= SCOPED else 0,
        rules=tuple((path, rights & handled) for path, rights in rules),
    )
