"""Refusals in words: which system calls the filter refused, as init tells of them."""

import platform
import socket
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from toolcell.cells.seccomp import SET_GROUP_ID, SET_USER_ID
from toolcell.cells.syscalls import numbers

_NAMESPACES = {
    0x00020000: "CLONE_NEWNS",
    0x02000000: "CLONE_NEWCGROUP",
    0x04000000: "CLONE_NEWUTS",
    0x08000000: "CLONE_NEWIPC",
    0x10000000: "CLONE_NEWUSER",
    0x20000000: "CLONE_NEWPID",
    0x40000000: "CLONE_NEWNET",
}
_NEW_TIME = 0x80  # of unshare only: clone has its signal there
_REQUESTS = {0x5412: "TIOCSTI", 0x541C: "TIOCLINUX"}
_MODES = ("chmod", "fchmod", "fchmodat", "creat", "open", "openat")
_NODES = {"mknod": 1, "mknodat": 2}
_SET_ID = SET_USER_ID | SET_GROUP_ID


def in_words(told: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Name the calls with what makes them refused: "unshare(CLONE_NEWUSER)", "mount"."""
    names = _names(platform.machine())
    return tuple(
        _describe(names.get(item["number"], f"system call {item['number']}"), item["arguments"])
        for item in told
    )


@cache
def _names(architecture: str) -> dict[int, str]:
    return {number: name for name, number in numbers(architecture).items()}


def _describe(name: str, arguments: list[int]) -> str:
    if name in ("unshare", "clone"):
        flags = [text for bit, text in _NAMESPACES.items() if arguments[0] & bit]
        if name == "unshare" and arguments[0] & _NEW_TIME:
            flags.append("CLONE_NEWTIME")
        return f"{name}({'|'.join(flags)})"
    if name == "socket":
        return f"socket({_family(arguments[0])})"
    if name == "ioctl":
        return f"ioctl({_REQUESTS.get(arguments[1] & 0xFFFFFFFF, hex(arguments[1]))})"
    if name == "personality":
        return f"personality({arguments[0]:#x})"
    if name in _NODES and not arguments[_NODES[name]] & _SET_ID:
        return f"{name} of a device"
    return f"{name} with a set-id bit" if name in (*_MODES, *_NODES) else name


def _family(number: int) -> str:
    try:
        return socket.AddressFamily(number).name
    except ValueError:
        return str(number)
