"""What a cell must not reach. A snippet prints REACHED where nothing stops it, as on the host."""

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.isolation

_SECRET = "s3cr3t-d0-n0t-sh0w"

_READ = "print('REACHED' if open({path!r}).read() else '')"
_EXISTS = "import os; print('REACHED' if os.path.exists({path!r}) else '')"
_TCP = "import socket; socket.create_connection(('127.0.0.1', {port}), 2); print('REACHED')"
_ABSTRACT = """
import socket
socket.socket(socket.AF_UNIX).connect("\\0" + {name!r})
print("REACHED")
"""
_UNIX = "import socket; socket.socket(socket.AF_UNIX).connect({path!r}); print('REACHED')"
_SCAN = """
import glob
for path in glob.glob("/proc/[0-9]*/environ"):
    try:
        if {secret!r}.encode() in open(path, "rb").read():
            print("REACHED")
            break
    except OSError:
        pass
"""
_UNSHARE = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
print("REACHED" if libc.unshare({flags}) == 0 else ctypes.get_errno())
"""
_MOUNT = """
import ctypes, tempfile
libc = ctypes.CDLL(None, use_errno=True)
libc.unshare(0x10020000)
with tempfile.TemporaryDirectory() as place:
    done = libc.mount(b"none", place.encode(), b"tmpfs", 0, None)
    print("REACHED" if done == 0 else ctypes.get_errno())
    libc.umount2(place.encode(), 2)
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory that holds what people hold there."""
    place = tmp_path / "home"
    for name in (".ssh/id_ed25519", ".aws/credentials", ".kube/config", ".netrc", "notes.txt"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(_SECRET)
    monkeypatch.setenv("HOME", str(place))
    return place


async def _held(run: Any, on_host: Any, snippet: str, **host: Any) -> None:
    assert "REACHED" in on_host(snippet, **host), "the control failed"
    result = await run.py(snippet)
    assert "REACHED" not in result.output, "the wall did not hold"
    assert result.metadata.survivors_checked, result.for_llm()


@pytest.mark.parametrize("name", [".ssh/id_ed25519", ".aws/credentials", ".kube/config", ".netrc"])
async def test_files_of_the_home_directory_are_not_there(
    home: Path, run: Any, on_host: Any, name: str
) -> None:
    await _held(run, on_host, _READ.format(path=str(home / name)))
    tilde = "import os; print('REACHED' if open(os.path.expanduser('~/{}')).read() else '')"
    await _held(run, on_host, tilde.format(name))


async def test_a_file_is_there_once_the_policy_lends_it(
    home: Path, runner: Any, on_host: Any
) -> None:
    lent = runner(cell={"read": [str(home / "notes.txt")]})
    assert "REACHED" in (await lent.py(_READ.format(path=str(home / "notes.txt")))).output
    await _held(lent, on_host, _READ.format(path=str(home / ".netrc")))


async def test_other_projects_are_not_there(
    tmp_path: Path, workspace: Path, run: Any, on_host: Any
) -> None:
    for other in ("project/key", "workspace-evil/key"):
        (tmp_path / other).parent.mkdir()
        (tmp_path / other).write_text(_SECRET)
        await _held(run, on_host, _READ.format(path=str(tmp_path / other)))
        await _held(run, on_host, _READ.format(path=f"../{other}"), cwd=workspace)
    write = f"open({str(tmp_path / 'project' / 'new')!r}, 'w').write('x'); print('REACHED')"
    await _held(run, on_host, write)


@pytest.mark.parametrize(
    "path", ["/etc/shadow", "/etc/passwd-", "/var/log", "/boot", "/sys/kernel"]
)
async def test_the_hosts_own_files_are_not_there(run: Any, on_host: Any, path: str) -> None:
    if not os.path.lexists(path):
        pytest.skip(f"this host has no {path}")
    await _held(run, on_host, _EXISTS.format(path=path))


async def test_the_environment_holds_none_of_the_controllers(
    monkeypatch: pytest.MonkeyPatch, runner: Any, on_host: Any
) -> None:
    monkeypatch.setenv("SERVICE_API_KEY", _SECRET)
    monkeypatch.setenv("SSH_AUTH_SOCK", "/run/agent")
    run = runner()
    await _held(
        run, on_host, "import os; print('REACHED' if 'SERVICE_API_KEY' in os.environ else 0)"
    )
    await _held(run, on_host, "import os; print('REACHED' if 'SSH_AUTH_SOCK' in os.environ else 0)")
    await _held(run, on_host, _SCAN.format(secret=_SECRET))
    given = runner(cell={"env": {"SERVICE_API_KEY": "given"}})
    assert (await given.sh("echo $SERVICE_API_KEY")).output == "given\n"


async def test_the_controller_is_not_in_proc(run: Any, on_host: Any) -> None:
    for name in ("environ", "maps", "root", "cwd", "fd"):
        path = f"/proc/{os.getpid()}/{name}"
        await _held(run, on_host, _EXISTS.format(path=path))
    listed = await run.sh("ls -d /proc/[0-9]*")
    assert len(listed.output.split()) < 6


@contextmanager
def _listening(family: int, address: Any) -> Iterator[socket.socket]:
    with socket.socket(family) as listener:
        listener.bind(address)
        listener.listen()
        yield listener


async def test_the_hosts_loopback_is_another(run: Any, on_host: Any) -> None:
    with _listening(socket.AF_INET, ("127.0.0.1", 0)) as listener:
        snippet = _TCP.format(port=listener.getsockname()[1])
        await _held(run, on_host, snippet)


async def test_the_hosts_abstract_sockets_are_out_of_reach(run: Any, on_host: Any) -> None:
    name = f"toolcell-test-{os.getpid()}"
    with _listening(socket.AF_UNIX, f"\0{name}"):
        await _held(run, on_host, _ABSTRACT.format(name=name))


async def test_the_hosts_named_sockets_are_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Any, on_host: Any
) -> None:
    monkeypatch.chdir(tmp_path)  # the address of a socket has to be short
    with _listening(socket.AF_UNIX, "service.sock"):
        await _held(run, on_host, _UNIX.format(path=f"/proc/{os.getpid()}/cwd/service.sock"))
        await _held(run, on_host, _EXISTS.format(path=str(tmp_path / "service.sock")))


async def test_no_interface_but_an_own_loopback(run: Any, on_host: Any) -> None:
    listing = "print([line.split(':')[0].strip() for line in list(open('/proc/net/dev'))[2:]])"
    assert "lo" in on_host(listing)
    assert (await run.py(listing)).output == "['lo']\n"
    result = await run.py("import socket; socket.create_connection(('192.0.2.1', 80), 2)")
    assert "unreachable" in result.for_llm()


async def test_the_controller_cannot_be_signalled(run: Any, on_host: Any) -> None:
    received = []
    before = signal.signal(signal.SIGUSR1, lambda *_: received.append(1))
    try:
        snippet = f"import os, signal; os.kill({os.getpid()}, signal.SIGUSR1); print('REACHED')"
        await _held(run, on_host, snippet)
        assert received == [1], "the host's own, and no other"
    finally:
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize(
    ("name", "flags"),
    [("user", 0x10000000), ("user+mount", 0x10020000), ("user+network", 0x50000000)],
)
async def test_no_further_namespace_can_be_made(
    run: Any, on_host: Any, name: str, flags: int
) -> None:
    await _held(run, on_host, _UNSHARE.format(flags=flags))


async def test_nothing_can_be_mounted(run: Any, on_host: Any) -> None:
    await _held(run, on_host, _MOUNT)


async def test_a_network_that_the_policy_opens_is_open(runner: Any) -> None:
    opened = runner(cell={"network": "host", "require": ["filesystem"]})
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = f"import socket; print(socket.socket().connect_ex(('127.0.0.1', {port})))"
        assert (await opened.py(code)).output == "0\n"
    with socket.socket(socket.AF_UNIX) as named:
        named.bind("\0toolcell-open")
        named.listen()
        code = "import socket; print(socket.socket(socket.AF_UNIX).connect_ex('\\0toolcell-open'))"
        assert (await opened.py(code)).output == "0\n"
