"""System calls that a cell refuses: each works on the host, where the control makes it.

A snippet prints DONE, or the name of the error. `raw` makes a call by its number, past
whatever the C library would do with the arguments.
"""

import dataclasses
import errno
import os
import platform
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from toolcell.cells.capabilities import capabilities
from toolcell.cells.landlock import second_wall
from toolcell.cells.syscalls import numbers

pytestmark = pytest.mark.isolation

_X86 = platform.machine() == "x86_64"
_NUMBERS = numbers(platform.machine())

_PRELUDE = f"""
import ctypes, errno, fcntl, os, pty, signal, socket, stat, struct, sys
NR = {_NUMBERS!r}
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def raw(call, *args):
    args = [ctypes.c_ulong(value & (1 << 64) - 1) for value in args]
    number = NR[call] if isinstance(call, str) else call
    result = libc.syscall(ctypes.c_long(number), *args, *[ctypes.c_ulong(0)] * (6 - len(args)))
    if result == -1:
        raise OSError(ctypes.get_errno(), "")
    return result
kept = []
def memory(content):
    kept.append(ctypes.create_string_buffer(content, max(len(content), 256)))
    return ctypes.addressof(kept[-1])
def child_of(make):
    pid = make()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
def mode_of(path):
    return oct(stat.S_IMODE(os.stat(path).st_mode))
def done():
    pass
try:
    {{body}}
    print("DONE")
except OSError as error:
    print(errno.errorcode[error.errno])
"""


class Case(NamedTuple):
    """What to try, and what it says in a cell and on a host that lets it happen."""

    body: str
    refused: str = "EPERM"
    host: str = "DONE"
    only_root: bool = False
    only_x86: bool = False
    family: int = 0  # a socket's, which the host's kernel may lack


CASES = {
    "ptrace": Case("raw('ptrace', 0)"),
    "process_vm_readv": Case(
        "one = memory(b'x')\n    vector = memory(struct.pack('QQ', one, 1))\n"
        "    raw('process_vm_readv', os.getpid(), vector, 1, vector, 1, 0)"
    ),
    "process_vm_writev": Case(
        "one = memory(b'x')\n    vector = memory(struct.pack('QQ', one, 1))\n"
        "    raw('process_vm_writev', os.getpid(), vector, 1, vector, 1, 0)"
    ),
    "pidfd_getfd": Case("raw('pidfd_getfd', os.pidfd_open(os.getpid()), 0, 0)"),
    "kcmp": Case("raw('kcmp', os.getpid(), os.getpid(), 1, 0, 0)"),
    "add_key": Case("raw('add_key', memory(b'user'), memory(b'a key'), memory(b'k'), 1, -2)"),
    "keyctl": Case("raw('keyctl', 0, -2, 1)"),
    "request_key": Case(
        "raw('request_key', memory(b'user'), memory(b'no such key'), 0, -2)", host="ENOKEY"
    ),
    "io_uring_setup": Case("raw('io_uring_setup', 1, memory(bytes(256)))", "ENOSYS"),
    "userfaultfd": Case("raw('userfaultfd', 1)"),
    "bpf": Case(
        "raw('bpf', 0, memory(struct.pack('IIII', 2, 4, 4, 1) + bytes(112)), 128)", only_root=True
    ),
    # A software clock of this process, in user mode only.
    "perf_event_open": Case(
        "raw('perf_event_open', memory(struct.pack('IIQQQQQ', 1, 112, 0, 0, 0, 0, 0x60)"
        " + bytes(64)), 0, -1, -1, 0)"
    ),
    "unshare a user namespace": Case("raw('unshare', 0x10000000)"),
    "unshare a mount namespace": Case("raw('unshare', 0x10020000)"),
    "unshare nothing": Case("raw('unshare', 0)"),
    "setns": Case("raw('setns', os.open('/proc/self/ns/uts', os.O_RDONLY), 0)", only_root=True),
    "clone with a user namespace": Case("child_of(lambda: raw('clone', 0x10000011))"),
    "clone with a network namespace": Case("child_of(lambda: raw('clone', 0x50000011))"),
    "clone3": Case(
        "child_of(lambda: raw('clone3', memory(struct.pack('QQQQQ', 0, 0, 0, 0, 17)"
        " + bytes(24)), 64))",
        "ENOSYS",
    ),
    "clone3 with a user namespace": Case(
        "child_of(lambda: raw('clone3', memory(struct.pack('QQQQQ', 0x10000000, 0, 0, 0, 17)"
        " + bytes(24)), 64))",
        "ENOSYS",
    ),
    "openat2": Case("raw('openat2', -100, memory(b'.'), memory(bytes(24)), 24)", "ENOSYS"),
    "mount": Case(
        "os.mkdir('here')\n    raw('mount', memory(b'none'), memory(b'here'), memory(b'tmpfs'))\n"
        "    raw('umount2', memory(b'here'), 0)",
        only_root=True,
    ),
    "fsopen": Case("raw('fsopen', memory(b'tmpfs'), 0)", only_root=True),
    "open_tree": Case("raw('open_tree', -100, memory(b'.'), 0)"),
    "chroot": Case("raw('chroot', memory(b'/'))", only_root=True),
    "name_to_handle_at": Case(
        "raw('name_to_handle_at', -100, memory(b'.'), memory(struct.pack('I', 128)),"
        " memory(b''), 0)"
    ),
    "fanotify_init": Case("raw('fanotify_init', 0x200, 0)"),
    "memfd_secret": Case("raw('memfd_secret', 0)"),
    "syslog": Case("raw('syslog', 10, 0, 0)", only_root=True),
    "adjtimex": Case("raw('adjtimex', memory(bytes(256)))"),
    "clock_adjtime": Case("raw('clock_adjtime', 0, memory(bytes(256)))"),
    "modify_ldt": Case("raw('modify_ldt', 0, memory(bytes(64)), 16)", only_x86=True),
    "ioprio_set": Case("raw('ioprio_set', 1, 0, 3 << 13)"),
    "get_mempolicy": Case("raw('get_mempolicy', 0, 0, 0, 0, 0)"),
    "AF_NETLINK": Case("socket.socket(16, socket.SOCK_RAW, 0)", "EAFNOSUPPORT"),
    "AF_PACKET": Case("socket.socket(17, socket.SOCK_RAW, 0)", "EAFNOSUPPORT", only_root=True),
    "AF_VSOCK": Case("socket.socket(40, socket.SOCK_STREAM)", "EAFNOSUPPORT", family=40),
    "AF_ALG": Case("socket.socket(38, socket.SOCK_SEQPACKET)", "EAFNOSUPPORT", family=38),
    "chmod to set-user-id": Case("os.close(os.open('f', 65, 0o755)); os.chmod('f', 0o4755)"),
    "chmod to set-group-id": Case("os.close(os.open('f', 65, 0o755)); os.chmod('f', 0o2755)"),
    "fchmod to set-user-id": Case("os.fchmod(os.open('f', 65, 0o755), 0o4755)"),
    "fchmodat to set-group-id": Case(
        "os.close(os.open('f', 65, 0o755)); raw('fchmodat', -100, memory(b'f'), 0o2755)"
    ),
    "fchmodat2": Case(
        "os.close(os.open('f', 65, 0o755)); raw('fchmodat2', -100, memory(b'f'), 0o4755, 0)",
        "ENOSYS",
    ),
    "chmod to set-user-id with high bits": Case(
        "os.close(os.open('f', 65, 0o755))\n"
        "    raw('fchmodat', -100, memory(b'f'), 0o4755 | 1 << 40)"
    ),
    "open a new set-user-id file": Case("os.open('f', os.O_CREAT | os.O_WRONLY, 0o4755)"),
    "open a nameless set-user-id file": Case("os.open('.', os.O_TMPFILE | os.O_RDWR, 0o4755)"),
    "creat a set-user-id file": Case("raw('creat', memory(b'f'), 0o4755)", only_x86=True),
    "mknod a set-user-id file": Case("os.mknod('f', 0o104755)"),
    "mknod a device": Case("os.mknod('f', 0o020600, os.makedev(1, 3))", only_root=True),
    "mknod a block device": Case("os.mknod('f', 0o060600, os.makedev(7, 0))", only_root=True),
    # The one device that anybody may make (Linux 5.8).
    "mknod a whiteout": Case("os.mknod('f', 0o020600, 0)"),
    "personality": Case("raw('personality', 0x0040000)"),
    "personality of another system": Case("raw('personality', 8)"),
}

_TERMINAL = """main, side = pty.openpty()
    if (pid := os.fork()) == 0:
        answer = "DONE"
        try:
            os.setsid()
            fcntl.ioctl(side, 0x540E, 0)  # TIOCSCTTY: otherwise it is refused in any case
            raw("ioctl", side, {request}, memory({content!r}))
        except OSError as error:
            answer = errno.errorcode[error.errno]
        print(answer, flush=True)
        os._exit(0)
    os.waitpid(pid, 0)
    os._exit(0)"""
TERMINAL_CASES = {
    "TIOCSTI": Case(_TERMINAL.format(request="0x5412", content=b"x")),
    "TIOCSTI with a high bit": Case(_TERMINAL.format(request="0x5412 | 1 << 32", content=b"x")),
    "TIOCSTI with all high bits": Case(
        _TERMINAL.format(request="0x5412 | 0xFFFFFFFF << 32", content=b"x")
    ),
    # Pseudo-terminals have no such request: ENOTTY is their own answer.
    "TIOCLINUX": Case(_TERMINAL.format(request="0x541C", content=b"\x03"), host="ENOTTY"),
    "TIOCLINUX with a high bit": Case(
        _TERMINAL.format(request="0x541C | 1 << 63", content=b"\x03"), host="ENOTTY"
    ),
}


def _program(case: Case) -> str:
    return _PRELUDE.replace("{body}", case.body)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A place to run controls in."""
    place = tmp_path / "outside"
    place.mkdir()
    return place


@pytest.mark.parametrize("name", CASES)
async def test_a_call_that_works_on_the_host_is_refused(
    name: str, run: Any, on_host: Callable[..., str], outside: Path
) -> None:
    await _refused(CASES[name], run, on_host, outside)


@pytest.mark.parametrize("name", TERMINAL_CASES)
async def test_no_input_is_put_into_a_terminal(
    name: str, run: Any, on_host: Callable[..., str], outside: Path
) -> None:
    legacy = Path("/proc/sys/dev/tty/legacy_tiocsti")
    case = TERMINAL_CASES[name]
    if "TIOCSTI" in name and legacy.exists() and legacy.read_text() == "0\n" and os.geteuid():
        case = case._replace(host="EIO")
    await _refused(case, run, on_host, outside)


async def _refused(case: Case, run: Any, on_host: Callable[..., str], outside: Path) -> None:
    if case.only_x86 and not _X86:
        pytest.skip("this architecture has no such call")
    if case.only_root and os.geteuid():
        pytest.skip("the host lets only root do this")
    program = _program(case)
    if case.family and _has_no_family(case.family):
        pytest.skip("the host's kernel has no such family either")
    assert on_host(program, cwd=outside) == f"{case.host}\n", "the control"
    result = await run.py(program)
    assert result.output == f"{case.refused}\n", result.for_llm()


def _has_no_family(family: int) -> bool:
    try:
        socket.socket(family, socket.SOCK_STREAM).close()
    except OSError as error:
        # A family that is there, without this kind of socket, is ESOCKTNOSUPPORT or the like.
        return error.errno == errno.EAFNOSUPPORT
    return False


_ALLOWED = {
    "fork and wait": "child_of(os.fork)",
    "clone as fork": "child_of(lambda: raw('clone', 17))",
    "sockets that are allowed": (
        "[socket.socket(family, kind) for family in (1, 2, 10) for kind in (1, 2)]"
    ),
    "plain modes": (
        "os.close(os.open('f', 65, 0o644))\n"
        "    for mode in (0o600, 0o755, 0o777):\n"
        "        os.chmod('f', mode); assert mode_of('f') == oct(mode)"
    ),
    "a sticky directory": "os.mkdir('d'); os.chmod('d', 0o1777)",
    "a mode that is not looked at": (
        "os.close(os.open('f', 65, 0o644)); raw('openat', -100, memory(b'f'), 0, 0o6777)"
    ),
    "a FIFO, a file by mknod, a nameless file": (
        "os.mkfifo('p'); os.mknod('n', 0o100600); os.open('.', os.O_TMPFILE | os.O_RDWR, 0o600)"
    ),
    "the question for the personality": "assert raw('personality', 0xFFFFFFFF) == 0",
    "a pseudo-terminal": (
        "main, side = pty.openpty(); fcntl.ioctl(side, 0x5413, bytes(8)); os.write(main, b'x')"
    ),
    "pidfd, memfd, eventfd, timerfd, inotify": (
        "os.pidfd_open(os.getpid()); os.memfd_create('m'); raw('eventfd2', 0, 0)\n"
        "    raw('timerfd_create', 1, 0); raw('inotify_init1', 0)"
    ),
}


@pytest.mark.parametrize("name", _ALLOWED)
async def test_what_stands_beside_a_refused_call_works(name: str, run: Any) -> None:
    result = await run.py(_program(Case(_ALLOWED[name])))
    assert result.output == "DONE\n", result.for_llm()


async def test_programs_that_ask_where_memory_lies_go_on_without_an_answer(run: Any) -> None:
    if not shutil.which("ps"):
        pytest.skip("needs ps")
    result = await run.sh("ps -o pid= -p $$")
    assert result.success, result.for_llm()


_UNKNOWN = "print(all(libc.syscall(n, 0) == -1 and ctypes.get_errno() == 38 for n in {numbers}))"


async def test_new_calls_are_missing_though_this_kernel_may_have_them(run: Any) -> None:
    code = "import ctypes; libc = ctypes.CDLL(None, use_errno=True); " + _UNKNOWN
    result = await run.py(code.format(numbers="(463, 464, 467, 468, 470, 471, 500, 1 << 29)"))
    assert result.output == "True\n", result.for_llm()


_X32_BIT = 1 << 30
_X32 = f"""
import ctypes
ctypes.CDLL(None).syscall({_X32_BIT} | 39)
print("lives")
"""
_INT_80 = r"""
#include <stdio.h>
int main(void)
{
    long result;
    puts("asks");
    fflush(stdout);
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(20) : "memory"); /* getpid */
    puts(result > 0 ? "reached" : "missing");
    return 0;
}
"""


@pytest.mark.skipif(not _X86, reason="another architecture")
async def test_an_x32_call_kills(run: Any, on_host: Callable[..., str]) -> None:
    assert on_host(_X32) == "lives\n", "the control"
    result = await run.py(_X32)
    assert "lives" not in result.output
    assert not result.success
    killed = await run.sh(f"python3 -c '{_X32}'; echo $?")
    assert killed.output.split()[-1] == str(128 + 31), "SIGSYS"


@pytest.mark.skipif(not _X86, reason="another architecture")
async def test_a_32_bit_call_kills(run: Any, workspace: Path) -> None:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    (workspace / "call.c").write_text(_INT_80)
    program = workspace / "call"
    subprocess.run([compiler, "-o", program, workspace / "call.c"], check=True, timeout=30)
    control = subprocess.run([program], capture_output=True, text=True, timeout=10)
    if control.returncode == -11:
        pytest.skip("this kernel has no 32-bit calls")
    assert control.stdout == "asks\nreached\n", "the control"
    result = await run.sh("./call; echo $?")
    assert result.output.split() == ["asks", str(128 + 31)], result.for_llm()


# Landlock. What only it refuses, in cells that differ by nothing else.


def _abi() -> int:
    return capabilities().landlock_abi


@pytest.fixture
def without_landlock(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Make this machine one whose kernel has no Landlock."""

    def lose() -> None:
        less = dataclasses.replace(capabilities(), landlock_abi=0)
        monkeypatch.setattr("toolcell.supply.capabilities", lambda: less)

    return lose


_SIGNAL = "raw('kill', 1, 0)"


@pytest.mark.skipif(_abi() < 6, reason="the kernel's Landlock has no scopes")
async def test_the_init_of_the_cell_cannot_be_signalled(
    runner: Any, without_landlock: Callable[[], None]
) -> None:
    inside = await runner().py(_program(Case(_SIGNAL)))
    assert inside.output == "EPERM\n", inside.for_llm()
    without_landlock()
    control = await runner().py(_program(Case(_SIGNAL)))
    assert control.output == "DONE\n", "the control: the same cell without Landlock"


async def test_an_open_network_is_open_and_the_rest_of_landlock_stays(runner: Any) -> None:
    name = f"\0toolcell-{os.getpid()}"
    shared = runner(cell={"network": "host", "require": ()})
    with socket.socket(socket.AF_UNIX) as abstract, socket.create_server(("127.0.0.1", 0)) as tcp:
        abstract.bind(name)
        abstract.listen()
        address = tcp.getsockname()
        for body in (
            f"socket.socket(socket.AF_UNIX).connect({name!r})",
            f"socket.create_connection({address!r}, 5)",
            "socket.create_server(('127.0.0.1', 0))",
        ):
            assert (await shared.py(_program(Case(body)))).output == "DONE\n"
            if "connect" in body:
                closed = await runner().py(_program(Case(body)))
                assert closed.output == "ECONNREFUSED\n", "not the host's"
    if _abi() >= 6:
        assert (await shared.py(_program(Case(_SIGNAL)))).output == "EPERM\n"


@pytest.mark.skipif(_abi() < 1, reason="the kernel has no Landlock")
async def test_landlock_refuses_writing_where_the_mount_lets_it_through(
    runner: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = _program(Case("assert open('file').read() == 'text'\n    open('new', 'w')"))

    def forgetful(abi: int, writable: tuple[str, ...], *, open_network: bool) -> Any:
        return second_wall(abi, ("/tmp", "/dev/shm"), open_network=open_network)

    # Not below the scratch space: a rule holds across the mounts below its place.
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        workspace = Path(name)
        (workspace / "file").write_text("text")
        with monkeypatch.context() as patch:
            patch.setattr("toolcell.cells.plan.second_wall", forgetful)
            refused = await runner(lend=workspace).py(program)
        assert refused.output == "EACCES\n", refused.for_llm()
        assert not (workspace / "new").exists()
        control = await runner(lend=workspace).py(program)
        assert control.output == "DONE\n", "the control: with the rule that the mount stands for"
