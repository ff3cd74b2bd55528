"""Refusals in words: which system calls the filter refused, as init tells of them."""

import platform
import socket
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from toolcell.cells.seccomp import NAMESPACES, NEW_TIME, REQUESTS, SET_GROUP_ID, SET_USER_ID
from toolcell.cells.syscalls import numbers

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
        flags = [text for bit, text in NAMESPACES.items() if arguments[0] & bit]
        if name == "unshare" and arguments[0] & NEW_TIME:
            flags.append("CLONE_NEWTIME")
        return f"{name}({'|'.join(flags)})"
    if name == "socket":
        return f"socket({_family(arguments[0])})"
    if name == "ioctl":
        return f"ioctl({REQUESTS.get(arguments[1] & 0xFFFFFFFF, hex(arguments[1]))})"
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
