"""probe: tries what a cell forbids, and says of each attempt how it ended.

Used when a launcher starts, to attest its walls, and by `doctor`. Each attempt returns
None where the wall held, or a few words on what was reached.
"""

import ctypes
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

_TIMEOUT = 2.0
_CLONE_NEWUSER = 0x10000000
_MNT_DETACH = 2
_ADDR_NO_RANDOMIZE = 0x0040000


def probe(targets: dict[str, Any], attempts: list[str]) -> dict[str, str | None]:
    """Make some attempts on targets that `toolcell.cells.attestation` has set up."""
    return {name: _attempt(ATTEMPTS[name], targets) for name in attempts}


def _attempt(
    attempt: Callable[[Mapping[str, Any]], str | None], targets: Mapping[str, Any]
) -> str | None:
    try:
        return attempt(targets)
    except OSError:
        return None


def _read_outside(targets: Mapping[str, Any]) -> str | None:
    Path(targets["file"]).read_bytes()
    return "read a file outside the workspace"


def _write_outside(targets: Mapping[str, Any]) -> str | None:
    Path(targets["file"]).with_name("written-by-a-cell").write_bytes(b"")
    return "wrote a file outside the workspace"


def _mount(targets: Mapping[str, Any]) -> str | None:
    libc = ctypes.CDLL(None, use_errno=True)
    # Where nothing is hidden by it, should it succeed; a cell with a root of its own has no such
    # place, and its own /tmp.
    outside = Path(targets["file"]).parent
    place = str(outside if outside.exists() else "/tmp").encode()  # noqa: S108  # the cell's own
    if libc.mount(b"none", place, b"tmpfs", 0, None) != 0:
        return None
    libc.umount2(place, _MNT_DETACH)
    return "mounted a file system"


def _connect_tcp(targets: Mapping[str, Any]) -> str | None:
    if targets["port"] is None:  # the host has no loopback of its own
        return None
    with socket.create_connection(("127.0.0.1", targets["port"]), _TIMEOUT):
        return "connected to a port of the host"


def _connect_abstract(targets: Mapping[str, Any]) -> str | None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect("\0" + targets["abstract"])
    return "connected to an abstract socket of the host"


def _connect_unix(targets: Mapping[str, Any]) -> str | None:
    if targets["letters"] is None:  # the path is too long for an address
        return None
    # A pair, because a filter may refuse any other socket.
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with one, other:
        one.sendto(b"letter", targets["letters"])
    return "sent to a unix socket of the host"


def _signal_controller(targets: Mapping[str, Any]) -> str | None:
    os.kill(targets["pid"], 0)
    return "could signal the controller" if targets["pid"] != os.getpid() else None


def _read_environment(targets: Mapping[str, Any]) -> str | None:
    if targets["variable"] is None:  # the controller has none that the cell lacks
        return None
    if targets["variable"] in os.environ:
        return "saw a variable of the controller's environment"
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{targets['variable']}=".encode() in entry.read_bytes():
                return "read the controller's environment in /proc"
        except OSError:  # one process hides it; another may not
            continue
    return None


def _use_system_calls(targets: Mapping[str, Any]) -> str | None:
    libc = ctypes.CDLL(None, use_errno=True)
    # A call that any process may make, that few tools need, and that the filter refuses.
    if libc.personality(_ADDR_NO_RANDOMIZE) < 0:
        return None
    return "changed its personality(2): no system call filter is in force"


def _leave_a_daemon(targets: Mapping[str, Any]) -> str | None:
    import subprocess

    subprocess.Popen(
        [sys.executable, "-S", "-c", "import time; time.sleep(300)", targets["mark"]],
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return None


def _new_user_namespace(targets: Mapping[str, Any]) -> str | None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWUSER) != 0:
        return None
    return "entered a new user namespace, with all rights in it"


ATTEMPTS: dict[str, Callable[[Mapping[str, Any]], str | None]] = {
    "read_outside": _read_outside,
    "write_outside": _write_outside,
    "mount": _mount,
    "new_user_namespace": _new_user_namespace,
    "connect_tcp": _connect_tcp,
    "connect_abstract": _connect_abstract,
    "connect_unix": _connect_unix,
    "signal_controller": _signal_controller,
    "read_environment": _read_environment,
    "use_system_calls": _use_system_calls,
    "leave_a_daemon": _leave_a_daemon,
}


def exhaust(what: str, amount: int) -> str | None:
    """Use up one resource past `amount`; returns what it got, where nothing stopped it."""
    attempt = {"memory": _take_memory, "processes": _fork, "disk": _write, "cpu": _spin}[what]
    try:
        return attempt(amount)
    except (OSError, MemoryError):
        return None


def _take_memory(amount: int) -> str:
    return f"took {len(bytearray(amount)):,} bytes"


def _fork(amount: int) -> str:
    started = []
    try:
        for _ in range(amount):
            pid = os.fork()
            if pid == 0:
                signal.pause()
            started.append(pid)
    finally:
        for pid in started:
            os.kill(pid, signal.SIGKILL)
    return f"started {amount} processes"


def _write(amount: int) -> str:
    with Path("/tmp/probe").open("wb") as file:  # noqa: S108  # the cell's own
        for _ in range(0, amount, 65536):
            file.write(bytes(65536))
    return f"wrote {amount:,} bytes"


def _spin(amount: int) -> str:
    while sum(os.times()[:2]) < amount:
        pass
    return f"used {amount} s of CPU time"
