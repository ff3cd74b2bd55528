"""A call can use up its own limits, and nothing of the machine's or of other calls'."""

import asyncio
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

from toolcell import RunOptions

from .conftest import Mark, host_program, marked

pytestmark = [pytest.mark.isolation, pytest.mark.attack]

_MIB = 1024**2


# Processes and threads.

_COUNT_FORKS = """
made = 0
try:
    while made < 100:
        if os.fork() == 0:
            hold()
        made += 1
except OSError:
    pass
print(made, flush=True)
os.killpg(0, signal.SIGKILL)
"""
_BOMBS = {
    "a fork bomb": """
while True:
    try:
        os.fork()
    except OSError:
        pass
""",
    "a bomb of threads": """
import _thread
while True:
    try:
        _thread.start_new_thread(time.sleep, (60,))
    except RuntimeError:
        pass
""",
    "a bomb of vforks": """
while True:
    try:
        if clone(0x4000 | signal.SIGCHLD) == 0:
            continue
    except OSError:
        pass
""",
}


async def test_no_more_processes_are_made_than_the_limit(
    walled: Any, rung: str, mark: Mark, on_host: Any
) -> None:
    if rung == "landlock":
        pytest.skip("without a user namespace no kernel keeps the count: a bomb is ended instead")
    group = "os.setpgid(0, 0)\n"
    on_host_count = on_host(marked(group + _COUNT_FORKS, mark, 5))
    assert int(on_host_count) == 100, "the control"
    run = walled(limits={"processes": 24, "memory": 8 << 30})
    inside = await run.py(marked(_COUNT_FORKS, mark, 60))
    assert 0 < int(inside.output) < 24, inside.for_llm()


@pytest.mark.parametrize("kind", _BOMBS)
async def test_the_machine_withstands(walled: Any, mark: Mark, until: Any, kind: str) -> None:
    run = walled(limits={"wall": 1, "processes": 40, "memory": 2 << 30})
    bomb = asyncio.create_task(run.py(marked(_BOMBS[kind], mark, 60)))
    alone = kind == "a bomb of threads"
    await until(lambda: len(mark.pids()) >= (1 if alone else 20), "the control: it goes off")
    other = await run("echo", text="answered")
    assert other.output == "answered", other.for_llm()
    assert not bomb.done(), "while the bomb was there"
    result = await bomb
    assert result.error.category in ("wall", "processes"), result.for_llm()
    assert mark.pids() == []
    assert (await run.sh("echo next")).output == "next\n"


async def test_a_shells_own_fork_bomb_is_contained(walled: Any, mark: Mark, until: Any) -> None:
    run = walled(limits={"wall": 1, "processes": 40})
    bomb = asyncio.create_task(run.sh(mark.shell + "b() { b | b & }; b; while :; do :; done"))
    await until(lambda: len(mark.pids()) > 20, "the control: it goes off")
    result = await bomb
    assert mark.pids() == []
    assert not result.success
    assert (await run.sh("echo next")).output == "next\n"


async def test_the_processes_of_one_call_do_not_use_up_anothers(walled: Any) -> None:
    run = walled(limits={"processes": 16})
    hold = "for n in $(seq 10); do sleep 0.5 & done; wait; echo done"
    results = await asyncio.gather(*(run.sh(hold) for _ in range(4)))
    assert [result.output for result in results] == ["done\n"] * 4, results[0].for_llm()
    assert [result.metadata.stderr for result in results] == [""] * 4


# Memory.

_HEAP = "held = []\nwhile True: held.append(bytearray(os.urandom(1)) * (1 << 20))\n"
_CHILDREN = """
for _ in range(6):
    if os.fork() == 0:
        held = bytearray(os.urandom(1)) * (60 << 20)
        hold()
hold()
"""
_SHARED = """
import mmap
held = mmap.mmap(-1, 256 << 20)
for offset in range(0, 256 << 20, 4096):
    held[offset] = 1
hold()
"""
_THREADS = """
import _thread, mmap
held = []
def grow():
    block = mmap.mmap(-1, 60 << 20)
    held.append(block)
    for offset in range(0, 60 << 20, 4096):
        block[offset] = 1
for _ in range(5):
    _thread.start_new_thread(grow, ())
hold()
"""
_COUNTED_ALWAYS = {
    "the heap": _HEAP,
    "children": _CHILDREN,
    "a shared mapping": _SHARED,
    "threads": _THREADS,
}


@pytest.mark.parametrize("kind", _COUNTED_ALWAYS)
async def test_a_memory_bomb_ends_its_call_and_no_other(walled: Any, mark: Mark, kind: str) -> None:
    code = marked(_COUNTED_ALWAYS[kind], mark, 60)
    run = walled(limits={"memory": 96 * _MIB, "wall": 20})
    result, other = await asyncio.gather(run.py(code), run.sh("sleep 0.2; echo answered"))
    assert result.error.category in ("memory", "exit_code"), result.for_llm()
    if result.error.category == "exit_code":
        assert "MemoryError" in result.metadata.stderr
    assert other.output == "answered\n"
    assert mark.pids() == []
    if kind != "the heap":
        control = await walled(limits={"memory": 2048 * _MIB, "wall": 1}).py(code)
        assert control.error.category in ("wall", "memory")


_MEMFD = """
fd = os.memfd_create("held")
for _ in range(COUNT):
    os.write(fd, bytes(1 << 20))
print("all", flush=True)
"""
_IN_FLIGHT = """
import array, socket
here, there = socket.socketpair()
for _ in range(COUNT // 4):
    fd = os.memfd_create("held")
    os.write(fd, bytes(4 << 20))
    here.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))])
    os.close(fd)
print("all", flush=True)
"""
_IN_PIPES = """
import fcntl
held = []
try:
    while len(held) < COUNT:
        read, write = os.pipe()
        held.append((read, write))
        os.set_blocking(write, False)
        try:
            fcntl.fcntl(write, 1031, 1 << 20)
        except OSError:
            pass
        try:
            while os.write(write, bytes(65536)):
                pass
        except BlockingIOError:
            pass
except OSError:
    pass
print("all", flush=True)
"""
_IN_SOCKETS = """
import socket
held = []
try:
    while len(held) < COUNT * 6:
        pair = socket.socketpair()
        held.append(pair)
        pair[0].setblocking(False)
        try:
            while pair[0].send(bytes(30000)):
                pass
        except BlockingIOError:
            pass
except OSError:
    pass
print("all", flush=True)
"""
_SYSTEM_V = """
for _ in range(COUNT // 8):
    number = libc.shmget(0, 8 << 20, 0o1600)
    libc.shmat.restype = ctypes.c_void_p
    place = libc.shmat(number, None, 0)
    ctypes.memset(place, 1, 8 << 20)
    libc.shmdt(ctypes.c_void_p(place))
print("all", flush=True)
"""
_SCRATCH = "with open('/tmp/held', 'wb') as f:\n  for _ in range(COUNT): f.write(bytes(1 << 20))\n"
_COUNTED_IN_GROUPS = {
    "a memory file": _MEMFD,
    "memory files in flight": _IN_FLIGHT,
    "pipes": _IN_PIPES,
    "sockets": _IN_SOCKETS,
}
_ONLY_FULL = {
    "scratch": _SCRATCH + "print('all', flush=True)\n",
    "shared memory": _SCRATCH.replace("/tmp", "/dev/shm") + "print('all', flush=True)\n",
    "System V shared memory": _SYSTEM_V,
}


async def _is_counted(make: Any, code: str, mark: Mark) -> None:
    program = marked(code.replace("COUNT", "220"), mark, 60)
    limits = {"scratch": 512 * _MIB, "wall": 20, "open_files": 4096}
    few = await make(limits=limits | {"memory": 48 * _MIB}).py(program)
    assert few.error is not None, few.output
    assert few.error.category == "memory", few.for_llm()
    assert few.metadata.peak_memory <= 49 * _MIB
    many = await make(limits=limits | {"memory": 1536 * _MIB}).py(program)
    assert many.output == "all\n", "the control"


@pytest.mark.usefixtures("grouped")
@pytest.mark.parametrize("kind", _COUNTED_IN_GROUPS)
async def test_memory_that_belongs_to_no_process_is_counted(
    walled: Any, mark: Mark, kind: str
) -> None:
    await _is_counted(walled, _COUNTED_IN_GROUPS[kind], mark)


@pytest.mark.usefixtures("grouped")
@pytest.mark.parametrize("kind", _ONLY_FULL)
async def test_files_in_memory_of_the_cells_own_are_counted(
    runner: Any, mark: Mark, kind: str
) -> None:
    await _is_counted(runner, _ONLY_FULL[kind], mark)


_SMALL_HOARDER = r"""
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
int main(int count, char **words) {
    unsigned long mark = strtoul(words[1], 0, 10);
    struct rlimit limit = {mark, mark};
    setrlimit(10, &limit);
    static char page[65536];
    int fd = memfd_create("held", 0), megabytes = atoi(words[2]);
    for (int children = 0; children < 3; children++) if (fork() == 0) break;
    for (long written = 0; written < megabytes * 16L; written++) write(fd, page, sizeof page);
    write(1, "all\n", 4);
    while (megabytes > 300) sleep(1);
    return 0;
}
"""
"""Four small processes that fill one memory file: of all in the cell, init is the largest."""


@pytest.mark.usefixtures("grouped")
async def test_a_bomb_of_processes_smaller_than_init_ends_as_a_whole(
    walled: Any, compiled: Any, mark: Mark, until: Any
) -> None:
    program = compiled(_SMALL_HOARDER)
    run = walled(limits={"memory": 64 * _MIB, "wall": 8})
    result = await run.sh(f"exec {program} {mark.number} 1000")
    left = mark.pids()
    assert left == []
    assert not result.success
    assert result.error.category == "memory", result.for_llm()
    assert result.metadata.survivors_checked
    assert (await run.sh("echo next")).output == "next\n"
    control = await walled(limits={"memory": 1024 * _MIB}).sh(f"{program} {mark.number} 20")
    assert control.output.startswith("all\n"), "the control"


# Processor time and the clock.

_SPIN = {
    "ignored": "signal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass\n",
    "caught": "signal.signal(signal.SIGXCPU, lambda *_: None)\nwhile True: pass\n",
    "blocked": "signal.pthread_sigmask(0, [signal.SIGXCPU])\nwhile True: pass\n",
}


@pytest.mark.parametrize("kind", _SPIN)
async def test_a_spin_ends_though_its_signal_is(walled: Any, mark: Mark, kind: str) -> None:
    code = marked(_SPIN[kind], mark, 60)
    result = await walled(limits={"cpu": 1}).py(code)
    assert result.error.category == "cpu", result.for_llm()
    if kind == "ignored":
        control = await walled(limits={"cpu": 60, "wall": 2.5}).py(code)
        assert control.error.category == "wall", "the control: it is that limit that ended it"


async def test_neither_sleep_nor_deafness_outlasts_the_wall(walled: Any, mark: Mark) -> None:
    deaf = "for n in set(signal.valid_signals()) - {9, 19}: signal.signal(n, signal.SIG_IGN)\n"
    code = marked(deaf + "print('kept', flush=True)\nwhile True: time.sleep(60)\n", mark, 60)
    result = await walled(limits={"wall": 0.4, "grace": 0.2}).py(code)
    assert (result.status, result.output) == ("timed_out", "kept\n")
    assert mark.pids() == []
    control = await walled(limits={"wall": 0.4, "grace": 5}).sh("trap exit TERM; sleep 60 & wait")
    assert control.status == "timed_out", "the control: one that is not deaf ends in its grace"
    assert control.latency_ms < result.latency_ms + 4000


# Descriptors and what they hold.

_DESCRIPTORS = {
    "files": "held.append(os.open('/dev/null', os.O_RDONLY))",
    "pipes": "held.extend(os.pipe())",
    "socket pairs": "held.append(socket.socketpair())",
    "memory files": "held.append(os.memfd_create('x'))",
    "epolls": "held.append(select.epoll())",
}
_EXHAUST = """
import resource, select, socket
held = []
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
try:
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
except (OSError, ValueError):
    pass
try:
    while len(held) < 1500:
        {how}
except OSError as error:
    print(error.errno, flush=True)
else:
    print("all", flush=True)
"""


def _open() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.mark.parametrize("kind", _DESCRIPTORS)
async def test_descriptors_run_out_inside_only(walled: Any, kind: str) -> None:
    code = "import os\n" + _EXHAUST.replace("{how}", _DESCRIPTORS[kind])
    before = _open()
    run = walled(limits={"open_files": 256})
    result = await run.py(code)
    assert result.output == "24\n", result.for_llm()  # EMFILE
    assert (await walled(limits={"open_files": 4096}).py(code)).output == "all\n", "the control"
    assert _open() < before + 40


_PARK = """
import array, socket
fd = os.open("/dev/null", os.O_RDONLY)
parked, pairs = 0, []
try:
    while parked < 3000:
        pairs.append(socket.socketpair())
        for _ in range(200):
            rights = array.array("i", [fd] * 10)
            try:
                pairs[-1][0].sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)], 64)
            except BlockingIOError:
                break
            parked += 10
except OSError:
    pass
print(parked, flush=True)
open("parked", "w").close()
hold()
"""
_PIPES = """
import fcntl
held = []
try:
    while True:
        held.append(os.pipe())
        fcntl.fcntl(held[-1][1], 1031, 1 << 20)
except OSError:
    pass
try:
    while True:
        held.append(os.pipe())
except OSError:
    pass
print(len(held), flush=True)
os.close(held.pop()[0])
open("parked", "w").close()
hold()
"""
_WATCHES = """
libc.inotify_init.restype = ctypes.c_int
instances, watches = [], 0
while len(instances) < 500 and (fd := libc.inotify_init()) >= 0:
    instances.append(fd)
for number in range(20000):
    path = f"{os.environ.get('TMPDIR', '/tmp')}/w{number}"
    open(path, "w").close()
    if libc.inotify_add_watch(instances[0], path.encode(), 2) < 0:
        break
    watches += 1
print(len(instances), watches, flush=True)
open("parked", "w").close()
hold()
"""
_TERMINALS = """
held = []
try:
    while len(held) < 1000:
        held.append(os.open("/dev/ptmx", os.O_RDWR))
except OSError:
    pass
print(len(held), flush=True)
open("parked", "w").close()
hold()
"""
_LOCKS = """
import fcntl
fd = os.open("locked", os.O_RDWR | os.O_CREAT)
os.truncate(fd, 1 << 20)
for place in range(0, 1 << 13, 2):
    fcntl.lockf(fd, fcntl.LOCK_EX, 1, place)
print("locked", flush=True)
open("parked", "w").close()
hold()
"""
_SIGNALS = """
signal.pthread_sigmask(0, [signal.SIGRTMIN])
sent = 0
while sent < 5000 and libc.sigqueue(os.getpid(), signal.SIGRTMIN, ctypes.c_void_p(0)) == 0:
    sent += 1
print(sent, flush=True)
open("parked", "w").close()
hold()
"""
_HOARDS = {
    "descriptors in flight": _PARK,
    "pipes of the largest size": _PIPES,
    "watches": _WATCHES,
    "terminals": _TERMINALS,
    "locks": _LOCKS,
    "queued signals": _SIGNALS,
}


@pytest.mark.parametrize("kind", _HOARDS)
async def test_a_hoard_of_one_call_is_not_missed_by_another(
    walled: Any, rung: str, workspace: Path, mark: Mark, until: Any, kind: str
) -> None:
    if rung == "landlock" and kind in ("terminals", "watches"):
        pytest.skip("without namespaces a cell has none at all")
    run = walled(limits={"wall": 20}, spare_cells=0)  # each cell is made while the hoard is there
    code = marked(_HOARDS[kind], mark, 60)
    hoard = asyncio.create_task(run.py(code))
    await until((workspace / "parked").exists, "the control: it has what it can get", 15)
    hoarding = run.last_id
    flow = "head -c 3000000 /dev/zero | tr '\\0' x | wc -c; echo done >&2"
    others = await asyncio.gather(*(run.sh(flow) for _ in range(3)))
    assert [other.output.strip() for other in others] == ["3000000"] * 3, others[0].for_llm()
    nested = "import os, socket, signal; os.pipe(); socket.socketpair(); print('can')"
    assert (await run.py(nested)).output == "can\n"
    assert not hoard.done(), "while the hoard was there"
    assert run.controller.cancel(hoarding)
    assert (await hoard).output.strip() not in ("", "0")
    assert mark.pids() == []


@pytest.mark.parametrize(
    ("code", "most"),
    [(_WATCHES, (32, 8192)), (_TERMINALS, (128,)), (_PARK, (1100,))],
    ids=["watches", "terminals", "descriptors in flight"],
)
async def test_a_hoard_has_a_bound_of_its_own(
    runner: Any, mark: Mark, code: str, most: tuple[int, ...]
) -> None:
    program = marked(code.replace("hold()", ""), mark, 20)
    inside = await runner(limits={"scratch": 512 * _MIB}).py(program)
    had = [int(number) for number in inside.output.split()]
    assert len(had) == len(most), inside.for_llm()
    assert all(0 < count <= bound for count, bound in zip(had, most, strict=True)), had
    with tempfile.TemporaryDirectory(dir="/dev/shm") as place:
        words = f"import os\nos.chdir({place!r})\nos.environ['TMPDIR'] = {place!r}\n" + program
        outside = [int(number) for number in (await host_program(words)).split()]
    if os.geteuid() == 0 or code != _PARK:  # in flight, ordinary users have that limit as well
        assert any(count > bound for count, bound in zip(outside, most, strict=True)), "the control"


# Disk.

_FALLOCATE = """
import ctypes.util
fd = os.open(PLACE + "/big", os.O_RDWR | os.O_CREAT, 0o666)
libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long]
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
done = HOW
print("all" if done == 0 else "refused", os.fstat(fd).st_blocks * 512, flush=True)
"""
_GROW = {
    "fallocate": "libc.fallocate(fd, 0, 0, 64 << 20)",
    "fallocate past the end, the size kept": "libc.fallocate(fd, 1, 0, 64 << 20)",
    "posix_fallocate": "libc.posix_fallocate(fd, ctypes.c_long(0), ctypes.c_long(64 << 20))",
    "a hole": "libc.ftruncate(fd, ctypes.c_long(64 << 20))",
    "a byte far away": "1 - libc.pwrite(fd, b'x', ctypes.c_long(1), ctypes.c_long(64 << 20))",
    "sendfile": """0
source = os.memfd_create("source")
os.write(source, bytes(2 << 20))
try:
    for _ in range(32):
        os.sendfile(fd, source, 0, 2 << 20)
except OSError:
    done = 1
""",
}


@pytest.mark.parametrize("kind", _GROW)
async def test_no_file_takes_more_room_than_its_limit(
    walled: Any, mark: Mark, kind: str, tmp_path: Path
) -> None:
    code = _FALLOCATE.replace("HOW", _GROW[kind]).replace("PLACE", "'.'")
    program = marked(code, mark, 20)
    small = await walled(limits={"file_size": 4 * _MIB}).py(program)
    assert small.output, small.for_llm()
    word, room = small.output.split()
    assert int(room) <= 5 * _MIB, "room on the disk beyond the limit of a file"
    assert word == "refused"
    large = await walled(limits={"file_size": 128 * _MIB}).py(program.replace("/big", "/other"))
    if kind.endswith("the size kept"):  # no limit counts it, so it is refused under any
        assert large.output.startswith("refused")
        large_output = await host_program(program.replace("'.'", repr(str(tmp_path))))
    else:
        large_output = large.output
    assert large_output.startswith("all"), "the control"


_FILL = """
import errno
place = os.environ.get("FILL") or os.environ["TMPDIR"]
made, code = 0, 0
try:
    while made < COUNT:
        os.mknod(f"{place}/{made}")
        made += 1
except OSError as error:
    code = error.errno
print(made, code, flush=True)
"""


async def test_scratch_does_not_take_a_million_small_files(
    runner: Any, mark: Mark, on_host: Any
) -> None:
    code = marked(_FILL.replace("COUNT", "70000"), mark, 60)
    made, error = (await runner(limits={"memory": 1 << 30}).py(code)).output.split()
    assert int(made) < 65536
    assert int(error) == 28  # ENOSPC
    with tempfile.TemporaryDirectory(dir="/dev/shm") as place:
        environment = os.environ | {"FILL": place}
        assert on_host(code, env=environment) == "70000 0\n", "the control"


@pytest.mark.parametrize("kind", ["fallocate", "a byte far away", "sendfile"])
async def test_scratch_has_a_size_whatever_fills_it(runner: Any, mark: Mark, kind: str) -> None:
    code = _FALLOCATE.replace("HOW", _GROW[kind]).replace("PLACE", "os.environ['TMPDIR']")
    fill = "room = open(os.environ['TMPDIR'] + '/big', 'ab')\nroom.write(bytes(64 << 20))\n"
    program = marked(code + fill, mark, 20)
    full = await runner(limits={"scratch": 8 * _MIB}).py(program)
    assert not full.success
    assert "No space left" in full.for_llm()
    assert (await runner(limits={"scratch": 256 * _MIB}).py(program)).success, "the control"


_DEEP = """
place = os.environ["TMPDIR"] if SCRATCH else "."
os.chdir(place)
depth = 0
while depth < 3000:
    os.mkdir("d" * 20)
    os.chdir("d" * 20)
    depth += 1
print(depth, flush=True)
"""
_UNREADABLE = """
place = os.environ["TMPDIR"]
for number in range(20):
    os.makedirs(f"{place}/{number}/inner")
    open(f"{place}/{number}/inner/file", "w").close()
    os.symlink("/", f"{place}/{number}/inner/link")
    os.mkfifo(f"{place}/{number}/pipe")
    open(os.fsencode(place) + b"/\\xff\\n" + bytes([65 + number]), "w").close()
    os.chmod(f"{place}/{number}/inner", 0)
    os.chmod(f"{place}/{number}", 0)
os.chmod(place, 0)
print("made", flush=True)
"""
_SCRATCH_MESS = {
    "deep directories": _DEEP.replace("SCRATCH", "True"),
    "places without rights": _UNREADABLE,
    "many files": _FILL.replace("COUNT", "20000"),
}


@pytest.mark.parametrize("kind", _SCRATCH_MESS)
async def test_scratch_is_gone_after_the_call_whatever_is_in_it(
    walled: Any, mark: Mark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, until: Any, kind: str
) -> None:
    place = tmp_path / "temporary"
    place.mkdir()
    place.chmod(0o1777)
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    run = walled(limits={"memory": 1 << 30})
    there = (await run.sh("ls -A $TMPDIR")).output  # such as where the workspace is mounted
    result = await run.py(marked(_SCRATCH_MESS[kind], mark, 60))
    assert result.success, result.for_llm()
    left = await run.sh("ls -A $TMPDIR; echo > $TMPDIR/mine && echo writes")
    assert left.output == there + "writes\n"
    await run.controller.close()
    await until(lambda: not list(place.iterdir()), "nothing is left on the host", 10)


async def test_deep_directories_in_the_workspace_disturb_no_later_call(
    walled: Any, mark: Mark, workspace: Path
) -> None:
    run = walled()
    deep = await run.py(marked(_DEEP.replace("SCRATCH", "False"), mark, 60))
    assert deep.output == "3000\n", deep.for_llm()
    assert (await run("list_files", path=".")).error is None
    assert (await run.sh("rm -rf ddd*; ls")).output == ""


# Each limit that ends a call is named.

_MEETS = """
import os, time
def processes() -> int:
    made = 0
    while made < 60:
        if os.fork() == 0:
            time.sleep(20)
            os._exit(0)
        made += 1
    time.sleep(1)
    return made
def open_files() -> int:
    return len([open("/dev/null") for _ in range(200)])
def disk() -> int:
    with open(os.environ["TMPDIR"] + "/big", "wb") as file:
        return sum(file.write(bytes(1 << 20)) for _ in range(8))
def file_size() -> int:
    with open("big", "wb") as file:
        return sum(file.write(bytes(1 << 20)) for _ in range(8))
"""
_LEAST = {
    "processes": {"processes": 16},
    "open_files": {"open_files": 64},
    "disk": {"scratch": 4 * _MIB},
    "file_size": {"file_size": 4 * _MIB},
}


@pytest.mark.parametrize("name", _LEAST)
async def test_the_limit_that_a_tool_met_is_named(
    walled: Any, rung: str, module: Any, name: str
) -> None:
    if (rung, name) == ("landlock", "disk"):
        pytest.skip("without a file system of its own scratch has no size")
    tool = getattr(module(_MEETS), name)
    met = await walled(tool, limits=_LEAST[name])(name)
    assert met.error is not None, met.output
    assert met.error.category == ("disk" if name == "file_size" else name), met.for_llm()
    assert (await walled(tool)(name)).success, "the control"


# Streams.


@pytest.mark.parametrize("streams", [("1",), ("2",), ("1", "2")], ids=["out", "err", "both"])
async def test_a_flood_ends_at_its_limit(walled: Any, until: Any, streams: tuple[str, ...]) -> None:
    pours = " & ".join(f"yes {number} >&{number}" for number in streams)
    run = walled(limits={"output": 4 * _MIB})
    result, other = await asyncio.gather(run.sh(pours), run("echo", text="answered"))
    assert result.error.category == "output_limit", result.for_llm()
    assert other.output == "answered"
    little = await run.sh(" & ".join(f"yes {n} | head -c 1000 >&{n}" for n in streams) + "; wait")
    assert little.success, "the control"


async def test_a_flood_is_read_while_others_are_answered(walled: Any) -> None:
    run = walled(limits={"wall": 2})
    flood = asyncio.create_task(run.sh("yes out & yes err >&2"))
    for number in range(20):
        assert (await run("echo", text=str(number))).output == str(number)
    assert not flood.done(), "while the flood came"
    result = await flood
    assert result.status == "timed_out"
    assert result.truncation.total_bytes > _MIB


async def test_standard_input_that_is_never_read_holds_nothing_up(walled: Any) -> None:
    run = walled()
    text = "line\n" * 400_000
    unread = await run.with_options("shell", RunOptions(stdin=text), command="exec sleep 0.1")
    assert unread.success, unread.for_llm()
    closed = await run.with_options("shell", RunOptions(stdin=text), command="exec <&-; echo shut")
    assert closed.output == "shut\n"
    read = await run.with_options("shell", RunOptions(stdin=text), command="wc -c")
    assert read.output.strip() == str(len(text)), "the control"
