"""The Landlock ruleset: its numbers, what it handles on each ABI, and whom it lets write."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import landlockpy
import pytest

from sandbox_workers import confine
from toolcell.cells import landlock
from toolcell.cells.landlock import second_wall
from toolcell.model import Ruleset

_FILE_RIGHTS = [right for right in landlockpy.AccessFS if right <= landlockpy.AccessFS.IOCTL_DEV]
_WRITABLE = ("/tmp", "/dev/shm", "/home/someone/work")
_SINCE = {
    "REFER": 2,
    "TRUNCATE": 3,
    "IOCTL_DEV": 5,
    "SCOPE_ABSTRACT_UNIX_SOCKET": 6,
    "SCOPE_SIGNAL": 6,
}
# Rights by which something is changed, made, moved or removed.
_CHANGES = sum(
    right
    for right in _FILE_RIGHTS
    if right.name not in ("EXECUTE", "READ_FILE", "READ_DIR", "IOCTL_DEV")
)

abis = pytest.mark.parametrize("abi", range(1, 8))


def _rules(abi: int, **options: Any) -> Ruleset:
    found = second_wall(abi, _WRITABLE, **({"open_network": False} | options))
    assert found is not None
    return found


@pytest.mark.parametrize("right", _FILE_RIGHTS, ids=lambda right: right.name)
def test_a_file_right_has_the_oracles_number(right: landlockpy.AccessFS) -> None:
    assert getattr(landlock, str(right.name)) == right.value


def test_the_scopes_have_the_oracles_numbers() -> None:
    assert landlockpy.Scope.SIGNAL.value == landlock.SCOPE_SIGNAL
    abstract = landlockpy.Scope.ABSTRACT_UNIX_SOCKET.value
    assert abstract == landlock.SCOPE_ABSTRACT_UNIX_SOCKET


@pytest.mark.parametrize("abi", [0, -1])
def test_a_kernel_without_landlock_gets_no_ruleset(abi: int) -> None:
    assert second_wall(abi, _WRITABLE, open_network=False) is None


@abis
def test_each_abi_handles_exactly_what_it_knows(abi: int) -> None:
    found = _rules(abi)
    assert found.files == landlockpy.fs_for_abi(abi)
    assert found.scopes == landlockpy.scope_for_abi(abi)


@abis
@pytest.mark.parametrize("name", _SINCE)
def test_a_right_is_handled_since_the_abi_that_brought_it(name: str, abi: int) -> None:
    found = _rules(abi)
    handled = found.scopes if name.startswith("SCOPE") else found.files
    assert bool(handled & getattr(landlock, name)) == (abi >= _SINCE[name])


@abis
@pytest.mark.parametrize("open_network", [True, False])
def test_tcp_is_left_to_the_network_namespace(open_network: bool, abi: int) -> None:
    # A rule on ports would refuse the cell's own loopback, or what the policy opened.
    assert _rules(abi, open_network=open_network).tcp == 0


@abis
def test_an_open_network_opens_abstract_sockets_and_nothing_else(abi: int) -> None:
    closed, opened = _rules(abi), _rules(abi, open_network=True)
    assert (opened.files, opened.rules) == (closed.files, closed.rules)
    assert closed.scopes & ~opened.scopes == closed.scopes & landlock.SCOPE_ABSTRACT_UNIX_SOCKET
    assert opened.scopes & landlock.SCOPE_SIGNAL == closed.scopes & landlock.SCOPE_SIGNAL


@abis
def test_no_rule_grants_what_is_not_handled(abi: int) -> None:
    found = _rules(abi)
    for path, rights in found.rules:
        assert rights & ~found.files == 0, path
        assert rights, "the kernel refuses a rule without rights (ENOMSG)"


@abis
def test_writing_is_granted_below_the_writable_places_and_proc_and_dev_only(abi: int) -> None:
    found = _rules(abi)
    granted = {path for path, rights in found.rules if rights & _CHANGES}
    assert granted == {*_WRITABLE, "/proc", "/dev", "/dev/pts"}
    # There only what exists is written to: devices, and a process's own settings.
    for path, rights in found.rules:
        if path not in _WRITABLE:
            allowed = landlock.WRITE_FILE | landlock.TRUNCATE
            assert rights & _CHANGES & ~allowed == 0, path
    assert {path for path, _ in second_wall(abi, (), open_network=False).rules} == {  # type: ignore[union-attr]
        "/",
        "/proc",
        "/dev",
        "/dev/pts",
    }


@abis
def test_everything_in_the_root_may_be_read_and_run(abi: int) -> None:
    read = landlock.READ_FILE | landlock.READ_DIR | landlock.EXECUTE
    assert dict(_rules(abi).rules)["/"] == read


@abis
def test_no_place_is_lent_for_devices(abi: int) -> None:
    for path, rights in _rules(abi).rules:
        assert rights & (landlock.MAKE_CHAR | landlock.MAKE_BLOCK) == 0, path


@abis
def test_a_writable_place_has_every_other_right_of_the_abi(abi: int) -> None:
    found = _rules(abi)
    devices = landlock.MAKE_CHAR | landlock.MAKE_BLOCK
    for place in _WRITABLE:
        assert dict(found.rules)[place] == landlockpy.fs_for_abi(abi) & ~devices


# The kernel's part: the same rules through our calls and through the oracle's have to let
# the same things happen. The root's rule stands for "/", the place's for the workspace.
_ACT = """
import json, os, socket, sys
import landlockpy
from sandbox_workers import confine, libc
request = json.load(sys.stdin)
rules, how, base = request["rules"], request["how"], request["base"]
os.chdir(base)
def actions():
    yield "read outside", lambda: open("outside/file").read()
    yield "write outside", lambda: open("outside/file", "w")
    yield "truncate outside", lambda: os.truncate("outside/file", 0)
    yield "make outside", lambda: open("outside/new", "w")
    yield "mkdir outside", lambda: os.mkdir("outside/d")
    yield "symlink outside", lambda: os.symlink("x", "outside/l")
    yield "fifo outside", lambda: os.mkfifo("outside/p")
    yield "socket outside", lambda: socket.socket(socket.AF_UNIX).bind("outside/s")
    yield "link in from outside", lambda: os.link("outside/file", "place/linked")
    yield "rename out", lambda: os.rename("place/goes", "outside/moved")
    yield "unlink outside", lambda: os.unlink("outside/file")
    yield "rmdir outside", lambda: os.rmdir("outside/empty")
    yield "write through a link", lambda: open("place/link", "w")
    yield "read inside", lambda: open("place/file").read()
    yield "write inside", lambda: open("place/file", "w")
    yield "make inside", lambda: open("place/new", "w")
    yield "mkdir inside", lambda: os.mkdir("place/d")
    yield "fifo inside", lambda: os.mkfifo("place/p")
    yield "move inside", lambda: os.rename("place/new", "place/d/new")
    yield "rmdir inside", lambda: os.rmdir("place/empty")
    yield "whiteout inside", lambda: os.mknod("place/w", 0o20600, 0)
    yield "TCP", lambda: socket.socket().bind(("127.0.0.1", 0))
    yield "abstract socket", lambda: socket.socket(socket.AF_UNIX).connect("\\0" + request["name"])
    yield "signal", lambda: os.kill(os.getppid(), 0)
def ours():
    fd = libc.do(confine.landlock_ruleset(rules["files"], rules["tcp"], rules["scopes"]))
    for path, rights in rules["rules"]:
        place = os.open(path, os.O_PATH)
        libc.do(confine.landlock_rule(fd, place, rights, path))
    libc.do(confine.landlock_restrict(fd))
def theirs():
    strict = landlockpy.Ruleset(
        handled_fs=landlockpy.AccessFS(rules["files"]),
        handled_net=landlockpy.AccessNet(rules["tcp"]),
        scoped=landlockpy.Scope(rules["scopes"]),
        best_effort=False,
    )
    for path, rights in rules["rules"]:
        strict.allow_path(path, landlockpy.AccessFS(rights))
    strict.restrict()
libc.do(libc.prctl(libc.PR_SET_NO_NEW_PRIVS, 1))
{"ours": ours, "theirs": theirs, "none": lambda: None}[how]()
found = {}
for name, act in actions():
    try:
        act()
        found[name] = 0
    except OSError as error:
        found[name] = error.errno
print(json.dumps(found))
"""
_EACCES, _EPERM, _EXDEV = 13, 1, 18


def _tree(base: Path) -> Path:
    for name in ("outside/empty", "place/empty"):
        (base / name).mkdir(parents=True)
    for name in ("outside/file", "outside/target", "place/file", "place/goes"):
        (base / name).write_text("text")
    (base / "place/link").symlink_to("../outside/target")
    return base


def _act(base: Path, how: str, abi: int, name: str) -> dict[str, int]:
    place = _tree(base) / "place"
    rules = second_wall(abi, (str(place),), open_network=False)
    assert rules is not None
    request = {"rules": rules.model_dump(), "how": how, "base": str(base), "name": name}
    done = subprocess.run(
        [sys.executable, "-c", _ACT],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        timeout=20,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, int] = json.loads(done.stdout)
    return found


@pytest.mark.isolation
@abis
def test_the_kernel_enforces_the_ruleset_as_it_does_the_oracles(abi: int, tmp_path: Path) -> None:
    if abi > confine.landlock_abi():
        pytest.skip(f"this kernel has Landlock ABI {confine.landlock_abi()}")
    name = f"landlock-{os.getpid()}-{abi}"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0{name}")
        listener.listen()
        control = _act(tmp_path / "none", "none", abi, name)
        ours = _act(tmp_path / "ours", "ours", abi, name)
        theirs = _act(tmp_path / "theirs", "theirs", abi, name)
    assert set(control.values()) == {0}, "the control: without rules all of it works"
    assert ours == theirs
    wanted = dict.fromkeys(control, 0)
    wanted |= {action: _EACCES for action in control if "outside" in action}
    wanted |= {"read outside": 0, "rename out": _EACCES, "write through a link": _EACCES}
    wanted["whiteout inside"] = _EACCES
    # Everything is allowed where the file would go, and to leave its place is not.
    wanted["link in from outside"] = _EXDEV
    # ABI 1 has no right to move between directories, and refuses it always.
    wanted["move inside"] = _EXDEV if abi < 2 else 0
    wanted["truncate outside"] = 0 if abi < 3 else _EACCES
    wanted["abstract socket"] = wanted["signal"] = 0 if abi < 6 else _EPERM
    assert ours == wanted
