"""Sockets and shared memory: what listens on the host hears nothing from a cell."""

import ctypes
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from escape.attacks import BOTH, FULL, Attack, each, each_on_its_rungs, not_attacked
from escape.ground import text_of
from escape.siege import Siege
from toolcell import CellSettings, PolicyError, ToolResult
from toolcell.policy.file import parse_policy

pytestmark = pytest.mark.isolation

LINES = (
    "TCP, UDP, raw, ICMP",
    "IPv6",
    "the metadata address",
    "a service on the host's loopback",
    "abstract unix sockets",
    "path unix sockets (docker, dbus, systemd)",
    "netlink",
    "a socket made through io_uring",
    "an empty allow list must deny",
    "binding a port",
    "SysV shared memory",
)
(
    _INTERNET, _IPV6, _METADATA, _LOOPBACK, _ABSTRACT, _PATH, _NETLINK, _RING, _EMPTY, _BINDING,
    _SHARED,
) = LINES  # fmt: skip
_NO_FAMILY = (38, 93, 94, 97)


def _tcp(line: str, how: str, address: str, port: str = "T.tcp", **options: Any) -> Attack:
    return Attack(
        line, how, f"socket.create_connection(({address!r}, {port}), 3)", judged=True, **options
    )


_UDP = "socket.socket({family}, socket.SOCK_DGRAM).sendto(b'x', ({address!r}, {port}))"
_NO_IPV6 = "" if Path("/proc/net/if_inet6").exists() else "the host has no IPv6"

INTERNET = [
    _tcp(_LOOPBACK, "127.0.0.1", "127.0.0.1"),
    _tcp(_LOOPBACK, "by name", "localhost"),
    _tcp(_LOOPBACK, "0.0.0.0", "0.0.0.0"),
    _tcp(_LOOPBACK, "another of 127/8", "127.9.9.9", "T.everywhere"),
    _tcp(_LOOPBACK, "in one number", "2130706433"),
    _tcp(_LOOPBACK, "in short", "127.1"),
    Attack(_LOOPBACK, "by curl", judged=True,
           shell="curl -s --max-time 0.3 http://127.0.0.1:$TCP/ || true"),
    Attack(_LOOPBACK, "by the shell", shell="exec 3<>/dev/tcp/127.0.0.1/$TCP", judged=True),
    Attack(_LOOPBACK, "by sending", program="network 'fast open' {tcp}", judged=True),
    Attack(_LOOPBACK, "by several paths", program="network multipath {tcp}", judged=True,
           missing=(38, 92, 93)),
    Attack(_LOOPBACK, "without waiting", judged=True, code="""
        s = socket.socket()
        s.setblocking(False)
        code = s.connect_ex(("127.0.0.1", T.tcp))
        need(code in (0, errno.EINPROGRESS), code)
        """),
    Attack(_LOOPBACK, "from a thread", judged=True, code="""
        import threading
        thread = threading.Thread(
            target=lambda: socket.socket().connect_ex(("127.0.0.1", T.tcp)))
        thread.start()
        thread.join()
        """),
    Attack(_LOOPBACK, "from a child", judged=True, code="""
        pid = os.fork()
        if pid == 0:
            try:
                os._exit(socket.socket().connect_ex(("127.0.0.1", T.tcp)) != 0)
            finally:
                os._exit(1)
        os.waitpid(pid, 0)
        """),
    Attack(_INTERNET, "UDP", judged=True,
           code=_UDP.format(family="socket.AF_INET", address="127.0.0.1", port="T.udp")),
    Attack(_INTERNET, "UDP, connected", judged=True, code="""
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.connect(("127.0.0.1", T.udp))
        s.send(b"x")
        """),
    Attack(_INTERNET, "UDP by the shell", judged=True,
           shell="echo x > /dev/udp/127.0.0.1/$UDP"),
    Attack(_INTERNET, "UDP by a message", judged=True, code="""
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.sendmsg([b"x"], [], 0, ("127.0.0.1", T.udp))
        """),
    Attack(_INTERNET, "raw", "socket.socket(socket.AF_INET, socket.SOCK_RAW, 255)", root=True),
    Attack(_INTERNET, "raw ICMP", root=True,
           code="socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)"),
    Attack(_INTERNET, "ICMP for everybody", within="Un",
           code="socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP)",
           missing=(13, 38)),
    Attack(_INTERNET, "raw ICMP 6", root=True,
           code="socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)"),
    *(
        Attack(_INTERNET, "ping", shell="ping -c 1 -W 1 127.0.0.1", root=True)
        for _ in filter(shutil.which, ["ping"])
    ),
    Attack(_INTERNET, "packets", "socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3)", root=True),
    Attack(_INTERNET, "a tunnel", "os.close(os.open('/dev/net/tun', os.O_RDWR))", root=True,
           missing=(2, 19, 38)),
    Attack(_INTERNET, "an own header", within="Un",
           code="s = socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)\n"
           "s.setsockopt(0, 3, 1)"),
    Attack(_INTERNET, "an interface of the host", rungs=(FULL,), code="""
        names = [line.split(":")[0].strip() for line in list(open("/proc/net/dev"))[2:]]
        need([name for name in names if name != "lo"], names)
        """, unless=lambda: "" if len(socket.if_nameindex()) > 1 else "the host has only lo"),
    Attack(_INTERNET, "another network's rules", within="Un",
           code="s = socket.socket()\ns.setsockopt(socket.SOL_SOCKET, 36, 1)"),
    Attack(_INTERNET, "any odd family", program="network 'odd families'"),
    *(
        Attack(_INTERNET, name, program=f"network socket {family} {kind} 0 0",
               missing=(1, *_NO_FAMILY))
        for name, family, kind in (
            ("AF_VSOCK", 40, 1), ("AF_ALG", 38, 5), ("AF_PACKET", 17, 3), ("AF_XDP", 44, 3),
            ("AF_BLUETOOTH", 31, 1), ("AF_CAN", 29, 3), ("AF_TIPC", 30, 1), ("AF_KCM", 41, 2),
            ("AF_KEY", 15, 3), ("AF_RDS", 21, 5), ("AF_SMC", 43, 1), ("AF_QIPCRTR", 42, 2),
        )
    ),
    Attack(_INTERNET, "AF_VSOCK with high bits", program="network socket 40 1 0 ffffffff",
           missing=_NO_FAMILY),
    _tcp(_IPV6, "::1", "::1", "T.tcp6", unless=lambda: _NO_IPV6),
    _tcp(_IPV6, "an IPv4 address within", "::ffff:127.0.0.1", unless=lambda: _NO_IPV6),
    Attack(_IPV6, "an IPv4 address within, by its own family", judged=True,
           unless=lambda: _NO_IPV6, code="""
        s = socket.socket(socket.AF_INET6)
        s.connect(("::ffff:127.0.0.1", T.tcp))
        """),
    Attack(_IPV6, "UDP", judged=True, unless=lambda: _NO_IPV6,
           code=_UDP.format(family="socket.AF_INET6", address="::1", port="T.udp6")),
    *(
        Attack(_NETLINK, name, program=f"network socket 16 3 {protocol} {high}",
               missing=_NO_FAMILY)
        for name, protocol, high in (
            ("routes", 0, 0), ("sockets", 4, 0), ("audit", 9, 0), ("events", 15, 0),
            ("crypto", 21, 0), ("generic", 16, 0), ("routes, with high bits", 0, "ffffffff"),
        )
    ),
    Attack(_NETLINK, "by Python", "socket.socket(16, socket.SOCK_RAW, 0).bind((0, 0))"),
    Attack(_NETLINK, "a pair", program="network socketpair 16"),
    Attack(_NETLINK, "the list of interfaces",
           "need(len(socket.if_nameindex()) > 1)", rungs=(FULL,),
           unless=lambda: "" if len(socket.if_nameindex()) > 1 else "the host has only lo"),
    Attack(_RING, "by its operation", program="network io_uring", missing=(22, 38, 1)),
    Attack(_RING, "the ring itself", program="kernel io_uring_setup", missing=(1, 38)),
    *(
        Attack(_RING, name, f"libc = ctypes.CDLL(None, use_errno=True)\n"
               f"libc.syscall({number}, 0, 0, 0, 0, 0, 0)\n"
               "need(ctypes.get_errno() not in (1, 38), ctypes.get_errno())",
               unless=lambda: _no_ring())
        for name, number in (("io_uring_enter", 426), ("io_uring_register", 427))
    ),
]  # fmt: skip


def _no_ring() -> str:
    setting = Path("/proc/sys/kernel/io_uring_disabled")
    off = setting.exists() and setting.read_text().strip() == "2"
    return "io_uring is switched off by kernel.io_uring_disabled" if off else ""


_CONNECT = "s = socket.socket(socket.AF_UNIX, {kind}); s.connect({address})"
_SEND = "s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.sendto(b'x', {address})"
_STREAM, _DGRAM, _SEQ = "socket.SOCK_STREAM", "socket.SOCK_DGRAM", "socket.SOCK_SEQPACKET"

UNIX = [
    Attack(_ABSTRACT, "connect", _CONNECT.format(kind=_STREAM, address="'\\0' + T.abstract"),
           judged=True),
    Attack(_ABSTRACT, "send", _SEND.format(address="'\\0' + T.abstract_dgram"), judged=True),
    Attack(_ABSTRACT, "connect a datagram socket", judged=True,
           code=_CONNECT.format(kind=_DGRAM, address="'\\0' + T.abstract_dgram")
           + "; s.send(b'x')"),
    Attack(_ABSTRACT, "an end of a pair connects", judged=True,
           program="network 'a pair connects' @{abstract_dgram}"),
    Attack(_ABSTRACT, "an end of a pair sends", judged=True,
           program="network 'a pair sends' @{abstract_dgram}"),
    Attack(_ABSTRACT, "the list", "need(T.abstract in open('/proc/net/unix').read())",
           rungs=(FULL,)),
    *(
        Attack(_PATH, how, _CONNECT.format(kind=kind, address=address), judged=True)
        for how, kind, address in (
            ("a stream, as docker's", _STREAM, "T.stream"),
            ("packets, as a bus's", _SEQ, "T.packet"),
            ("through /proc/self/root", _STREAM, "'/proc/self/root' + T.stream"),
            ("from the directory above", _STREAM, "'../../docker.sock'"),
        )
    ),
    Attack(_PATH, "datagrams, as a log's", _SEND.format(address="T.dgram"), judged=True),
    Attack(_PATH, "through a link", judged=True,
           code="os.symlink(T.stream, 'l'); " + _CONNECT.format(kind=_STREAM, address="'l'")),
    Attack(_PATH, "through the directory of a process", judged=True, code="""
        fd = os.open("/", os.O_PATH)
        s = socket.socket(socket.AF_UNIX)
        s.connect(f"/proc/self/fd/{fd}" + T.stream)
        """),
    Attack(_PATH, "an end of a pair connects", judged=True,
           program="network 'a pair connects' {dgram}"),
    Attack(_PATH, "an end of a pair sends", judged=True, program="network 'a pair sends' {dgram}"),
    Attack(_PATH, "an end of a raw pair sends", judged=True,
           program="network 'a raw pair sends' {dgram}"),
    Attack(_PATH, "by curl", judged=True, root=False,
           shell="curl -s --max-time 0.3 --unix-socket $STREAM http://localhost/ || true"),
    *(
        Attack(_PATH, path, f"need(os.path.exists({path!r}))", rungs=(FULL,),
               unless=lambda path=path: "" if Path(path).exists() else f"the host has no {path}")
        for path in ("/run/docker.sock", "/run/dbus/system_bus_socket", "/run/systemd/private",
                     "/run/containerd/containerd.sock", "/dev/log", "/run/user", "/run/lock",
                     "/tmp/.X11-unix")
        if Path(path).exists()
    ),
]  # fmt: skip

ATTACKS = [*INTERNET, *UNIX]


@pytest.mark.attack
@each_on_its_rungs(ATTACKS)
def test_nothing_arrives(rung: str, attack: Attack, siege: Siege) -> None:
    siege.attack(rung, attack)


@pytest.mark.attack(control=True)
@each(ATTACKS)
def test_the_control_arrives(attack: Attack, siege: Siege) -> None:
    siege.control(attack)


# The metadata address is asked for nothing on the host: the control has a network of its
# own, where a listener stands for the service.

_ASK = "socket.create_connection(('{address}', 80), 2); print('REACHED')"
_SERVED = """
import socket, subprocess, sys
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
subprocess.run(["ip", "address", "add", "{address}{bits}", "dev", "lo"], check=True)
listener = socket.socket({family})
listener.bind(("{address}", 80))
listener.listen()
{ask}
"""
_METADATA_ADDRESSES = {
    "169.254.169.254": ("socket.AF_INET", "/32"),
    "169.254.170.2": ("socket.AF_INET", "/32"),
    "100.100.100.200": ("socket.AF_INET", "/32"),
    "fd00:ec2::254": ("socket.AF_INET6", ["/128", "nodad"][0]),
}


@pytest.mark.attack
@pytest.mark.parametrize("rung", BOTH)
@pytest.mark.parametrize("address", _METADATA_ADDRESSES)
def test_the_metadata_service_is_not_asked(rung: str, address: str, siege: Siege) -> None:
    attack = Attack(_METADATA, address, _ASK.format(address=address))
    siege.attack(rung, attack)


@pytest.mark.attack(control=True)
@pytest.mark.parametrize("address", _METADATA_ADDRESSES)
def test_the_control_a_service_is_asked(address: str) -> None:
    if not shutil.which("ip") or not shutil.which("unshare"):
        pytest.skip("there is no ip(8) or no unshare(1)")
    family, bits = _METADATA_ADDRESSES[address]
    ask = _ASK.format(address=address)
    code = _SERVED.format(address=address, family=family, bits=bits, ask=ask)
    command = ["unshare", "-Urn", "--", sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    assert "REACHED" in done.stdout, done.stderr


# A port that a cell listens on, or a name: the host tries it while the cell waits.

_LISTEN = """
import os, select, socket, sys
def place(name, text=""):
    with open("new", "w") as file:
        file.write(text)
    os.rename("new", name)
listener = None
print("TRY", flush=True)
try:
    {bind}
except OSError as error:
    print("held:", error, flush=True)
    place("up", "0")
    sys.exit()
place("up", str({told}))
while not os.path.exists("tried"):
    readable, _, _ = select.select([listener], [], [], 0.005)
    if readable:
        print("REACHED", flush=True)
        break
else:
    print("done")
"""
_TCP_BIND = "listener = socket.create_server(({address!r}, 0), family={family})"
_LISTENERS = {
    "TCP on loopback": (
        _TCP_BIND.format(address="127.0.0.1", family="socket.AF_INET"), "tcp", "127.0.0.1"),
    "TCP everywhere": (
        _TCP_BIND.format(address="0.0.0.0", family="socket.AF_INET"), "tcp", "127.0.0.1"),
    "TCP on IPv6": (
        _TCP_BIND.format(address="::1", family="socket.AF_INET6"), "tcp", "::1"),
    "UDP": (
        "listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
        "listener.bind(('127.0.0.1', 0))", "udp", "127.0.0.1"),
    "TCP without binding": (
        "listener = socket.socket(); listener.listen()", "tcp", "127.0.0.1"),
}  # fmt: skip


def _try(kind: str, address: str, port: int) -> None:
    """Connect from the host, as another program of it would."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM) as s:
        s.settimeout(2)
        with suppress(OSError):
            s.connect((address, port))
            s.send(b"x")


@contextmanager
def _in_the_background(siege: Siege, rung: str | None, code: str) -> Iterator[list[str]]:
    """Run Python code in a cell, or on the host; the list has its output in the end."""
    output: list[str] = []
    ground = siege.inside if rung else siege.control_ground
    ground.refresh()
    command = [sys.executable, "-c", code]

    def run() -> None:
        if rung:
            result = siege.controller_call(siege.controller(rung), "python", code=code)
            told = result.output + str(result.metadata.stderr)
            output.append(told if result.enforcement.rung == rung else result.for_llm())
        else:
            done = subprocess.run(command, cwd=ground.workspace, capture_output=True, text=True)
            output.append(done.stdout + done.stderr)

    if rung:
        siege.controller(rung)  # skips here, where it can
    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield output
    finally:
        (ground.workspace / "tried").touch()
        thread.join()


def _listened(siege: Siege, rung: str | None, how: str) -> str:
    bind, kind, address = _LISTENERS[how]
    code = _LISTEN.format(bind=bind, told="listener.getsockname()[1]")
    ground = siege.inside if rung else siege.control_ground
    with _in_the_background(siege, rung, code) as output:
        port = int(text_of(ground.workspace / "up", words=1))
        if port:
            _try(kind, address, port)
            if not rung:  # it is read before the word that all was tried
                end = time.monotonic() + 5
                while not output and time.monotonic() < end:
                    time.sleep(0.005)
    return output[0]


@pytest.mark.attack
@pytest.mark.parametrize("rung", BOTH)
@pytest.mark.parametrize("how", _LISTENERS)
def test_a_port_of_a_cell_is_not_the_hosts(rung: str, how: str, siege: Siege) -> None:
    text = _listened(siege, rung, how)
    assert "TRY" in text
    assert "REACHED" not in text
    assert "held:" in text or "done" in text, text


@pytest.mark.attack(control=True)
@pytest.mark.parametrize("how", _LISTENERS)
def test_the_control_a_port_of_a_process_is_reached(how: str, siege: Siege) -> None:
    if "IPv6" in how and _NO_IPV6:
        pytest.skip(_NO_IPV6)
    assert "REACHED" in _listened(siege, None, how)


_NAME = "listener = socket.socket(1); listener.bind('\\0{name}'); listener.listen()"


@pytest.mark.attack
@pytest.mark.parametrize("rung", BOTH)
def test_a_name_that_a_cell_listens_on_is_not_the_hosts(rung: str, siege: Siege) -> None:
    name = f"escape-{os.urandom(4).hex()}"
    bind = _NAME.format(name=name)
    with _in_the_background(siege, rung, _LISTEN.format(bind=bind, told="1")) as output:
        text_of(siege.inside.workspace / "up")
        with socket.socket(socket.AF_UNIX) as client, pytest.raises(ConnectionRefusedError):
            client.connect(f"\0{name}")
    assert "REACHED" not in output[0]
    assert "TRY" in output[0]


@pytest.mark.attack(control=True)
def test_the_control_a_name_that_a_process_listens_on_is_found(siege: Siege) -> None:
    name = f"escape-{os.urandom(4).hex()}"
    bind = _NAME.format(name=name)
    with _in_the_background(siege, None, _LISTEN.format(bind=bind, told="1")):
        text_of(siege.control_ground.workspace / "up")
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(f"\0{name}")


# Shared memory, semaphores and queues of System V and of POSIX.

_PRIVATE_KEY = 0x70000000


@contextmanager
def _shared_by_the_host(siege: Siege) -> Iterator[dict[str, Any]]:
    """Make one of each on the host, open to everybody, the memory with the secret in it."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmat.restype = ctypes.c_void_p
    key = _PRIVATE_KEY + int.from_bytes(os.urandom(3), "big")
    create = 0o1000 | 0o666
    queue = f"/escape-{os.urandom(4).hex()}"
    with ExitStack() as stack:
        memory = _made(libc.shmget(key, 4096, create))
        stack.callback(libc.shmctl, memory, 0, None)
        address = libc.shmat(memory, None, 0)
        ctypes.memmove(address, siege.secret.encode(), len(siege.secret))
        stack.callback(libc.shmdt, ctypes.c_void_p(address))
        messages = _made(libc.msgget(key, create))
        stack.callback(libc.msgctl, messages, 0, None)
        semaphores = _made(libc.semget(key, 1, create))
        stack.callback(libc.semctl, semaphores, 0, 0, 0)
        before = os.umask(0)
        mq = _made(libc.mq_open(queue.encode(), os.O_CREAT | os.O_RDWR, 0o666, None))
        os.umask(before)
        stack.callback(libc.mq_unlink, queue.encode())
        stack.callback(os.close, mq)
        posix = Path("/dev/shm") / queue[1:]
        posix.write_text(siege.secret)
        posix.chmod(0o666)
        stack.callback(posix.unlink)
        yield {"key": key, "number": memory, "queue": queue[1:], "posix": str(posix)}


def _made(result: int) -> int:
    assert result >= 0, os.strerror(ctypes.get_errno())
    return result


_SHARED_ATTEMPTS = {
    "the segment by its key": {"program": "network shmget {key}"},
    "the segment by its number": {"program": "network shmat {number}"},
    "the message queue": {"program": "network msgget {key}"},
    "the semaphores": {"program": "network semget {key}"},
    "the POSIX queue": {"program": "network mq_open {queue}"},
    "POSIX memory": {"code": "read({posix!r})", "judged": True},
    "a listing": {"code": "need('{key}' in open('/proc/sysvipc/shm').read())", "rungs": (FULL,)},
    "POSIX memory in a listing": {
        "code": "need({queue!r} in os.listdir('/dev/shm'))",
    },
}


def _sharing(how: str, names: dict[str, Any]) -> Attack:
    given: dict[str, Any] = dict(_SHARED_ATTEMPTS[how])
    for part in ("program", "code"):
        if part in given:
            given[part] = given[part].format(**names)
    return Attack(_SHARED, how, **given)


@pytest.mark.attack
@pytest.mark.parametrize(
    ("rung", "how"),
    [
        (rung, how)
        for how, given in _SHARED_ATTEMPTS.items()
        for rung in given.get("rungs", BOTH)  # type: ignore[attr-defined]
    ],
)
def test_what_processes_of_the_host_share_is_not_shared(rung: str, how: str, siege: Siege) -> None:
    with _shared_by_the_host(siege) as names:
        siege.attack(rung, _sharing(how, names))


@pytest.mark.attack(control=True)
@pytest.mark.parametrize("how", _SHARED_ATTEMPTS)
def test_the_control_processes_of_the_host_share_it(how: str, siege: Siege) -> None:
    with _shared_by_the_host(siege) as names:
        siege.control(_sharing(how, names))


_SHARE = """
import ctypes, os, time
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
memory = libc.shmget({key}, 4096, 0o1666)
if memory >= 0:
    ctypes.memmove(libc.shmat(memory, None, 0), b"{secret}", {length})
try:
    open("/dev/shm/{name}", "w").write("{secret}")
except OSError:
    pass
print(memory, flush=True)
open("up", "w").close()
while not os.path.exists("tried"):
    time.sleep(0.005)
if memory >= 0:
    libc.shmctl(memory, 0, None)
try:
    os.remove("/dev/shm/{name}")
except OSError:
    pass
"""
_SHARING = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
print("TRY")
memory = libc.shmget({key}, 0, 0)
if memory >= 0:
    print(ctypes.string_at(libc.shmat(memory, None, 0), {length}).decode())
try:
    print(open("/dev/shm/{name}").read())
except OSError as error:
    print("held:", error)
"""


def _share(siege: Siege, rung: str | None) -> str:
    names = {
        "key": _PRIVATE_KEY + int.from_bytes(os.urandom(3), "big"),
        "secret": siege.secret,
        "length": len(siege.secret),
        "name": f"escape-{os.urandom(4).hex()}",
    }
    ground = siege.inside if rung else siege.control_ground
    with _in_the_background(siege, rung, _SHARE.format(**names)):
        text_of(ground.workspace / "up")
        code = _SHARING.format(**names)
        if rung:
            result: ToolResult = siege.call(siege.controller(rung), "python", code=code)
            return result.output
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        return done.stdout


@pytest.mark.attack
@pytest.mark.parametrize("rung", BOTH)
def test_cells_share_no_memory(rung: str, siege: Siege) -> None:
    text = _share(siege, rung)
    assert "TRY" in text
    assert siege.secret not in text


@pytest.mark.attack(control=True)
def test_the_control_processes_share_memory(siege: Siege) -> None:
    assert _share(siege, None).count(siege.secret) == 2


# An allow list of the network that is empty, left out or ill-formed opens nothing.

_OPEN = ("", "[cell]\n", '[cell]\nnetwork = "none"\n')
_ILL = ("[]", '""', "false", '["127.0.0.1"]', '"hosts"', '"HOST"', "{}")


@pytest.mark.attack
@pytest.mark.parametrize("rung", BOTH)
@pytest.mark.parametrize("text", _OPEN)
def test_a_policy_that_opens_nothing_denies(rung: str, text: str, siege: Siege) -> None:
    policy = parse_policy(f"version = 1\n{text}", "policy.toml")
    cell = policy.cell.model_dump(mode="json", exclude={"isolation"})
    attack = Attack(
        _EMPTY,
        "connect",
        "socket.create_connection(('127.0.0.1', T.tcp), 3)",
        judged=True,
        cell=cell,
    )
    siege.attack(rung, attack)


@pytest.mark.attack
@pytest.mark.parametrize("value", _ILL)
def test_a_network_that_is_none_of_the_words_is_refused(value: str) -> None:
    with pytest.raises(PolicyError):
        parse_policy(f"version = 1\n[cell]\nnetwork = {value}\n", "policy.toml")
    assert parse_policy('version = 1\n[cell]\nnetwork = "none"\n', "policy.toml")


@pytest.mark.attack(control=True)
def test_the_control_a_network_that_is_opened_is_open(siege: Siege) -> None:
    assert CellSettings().network == "none"
    siege.inside.refresh()
    opened = siege.controller(FULL, {"network": "host", "require": ["filesystem"]})
    port = siege.host.named["tcp"]
    siege.host.arrived()
    code = f"import socket; socket.create_connection(('127.0.0.1', {port}), 3)"
    assert siege.call(opened, "python", code=code).success
    assert siege.host.arrived()


def test_every_line_of_the_catalogue_is_attacked() -> None:
    assert not_attacked(LINES, ATTACKS, _METADATA, _EMPTY, _BINDING, _SHARED) == set()
