"""What a cell must not learn: secrets, other processes, other cells, the host's names."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from escape.attacks import BOTH, FULL, Attack, each, each_on_its_rungs, not_attacked
from escape.ground import CREDENTIALS as CREDENTIAL_FILES
from escape.ground import text_of
from escape.siege import Siege
from toolcell import ToolResult

pytestmark = pytest.mark.isolation

LINES = (
    "secret environment variables",
    "/proc/1/environ",
    "the parent's memory and maps",
    "ssh, cloud, kube and gh credentials",
    "/etc/shadow",
    "SSH_AUTH_SOCK",
    "other cells' directories",
    "host name and hardware",
    "host process ids",
    "arguments seen in ps",
)
_ENVIRONMENT = "secret environment variables"
_INIT = "/proc/1/environ"
_PARENT = "the parent's memory and maps"
_CREDENTIALS_LINE = "ssh, cloud, kube and gh credentials"
_SHADOW = "/etc/shadow"
_AGENT = "SSH_AUTH_SOCK"
_CELLS = "other cells' directories"
_NAMES = "host name and hardware"
_PIDS = "host process ids"
_ARGUMENTS = "arguments seen in ps"


def _readable(path: str) -> Callable[[], str]:
    def reason() -> str:
        if not Path(path).exists():
            return f"the host has no {path}"
        return "" if os.access(path, os.R_OK) else "the host lets only root do this"

    return reason


def _opens(path: str) -> Callable[[], str]:
    def reason() -> str:
        try:
            Path(path).read_bytes()
        except OSError:
            return f"the host does not let even this user read {path}"
        return ""

    return reason


# The name in two parts, so that a payload does not find itself.
_SCAN = """
T.bystander
def found():
    for pid in processes():
        for path in [f"/proc/{pid}/environ", *glob.glob(f"/proc/{pid}/task/[0-9]*/environ")]:
            try:
                if b"BYSTANDER_" + b"TOKEN" in open(path, "rb").read():
                    return True
            except OSError:
                pass
    return False
need(found(), "no process shows it")
"""

ENVIRONMENT = [
    Attack(_ENVIRONMENT, "in Python", 'need("ESCAPE_TOKEN" in os.environ)'),
    Attack(_ENVIRONMENT, "in the shell", shell='test -n "$ESCAPE_TOKEN"'),
    Attack(_ENVIRONMENT, "in a program", shell="env | grep -q ^ESCAPE_TOKEN="),
    Attack(_ENVIRONMENT, "in one's own /proc",
           'need(b"ESCAPE_" + b"TOKEN=" in open("/proc/self/environ", "rb").read())'),
    Attack(_ENVIRONMENT, "in one's own memory", """
        def found():
            with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
                for line in maps:
                    if "[stack]" in line or "[heap]" in line:
                        first, last = (int(n, 16) for n in line.split()[0].split("-"))
                        memory.seek(first)
                        if b"a secret of the " + b"controller" in memory.read(last - first):
                            return True
            return False
        need(found())
        """),
    Attack(_ENVIRONMENT, "of every process", _SCAN),
    Attack(_ENVIRONMENT, "of the bystander",
           'print(open(f"/proc/{T.bystander}/environ").read())', judged=True),
    Attack(_ENVIRONMENT, "of the controller", 'need(open(f"/proc/{T.pid}/environ").read())'),
    Attack(_ENVIRONMENT, "of the keeper", 'need(open(f"/proc/{T.keeper}/environ").read())'),
    Attack(_INIT, "read", "need(open('/proc/1/environ').read())", root=True, missing=(13, 38)),
    Attack(_INIT, "by the shell", shell="tr '\\\\0' '\\\\n' < /proc/1/environ | grep .",
           root=True, unless=_opens("/proc/1/environ")),
    Attack(_INIT, "of the parent", "need(open(f'/proc/{os.getppid()}/environ').read())"),
]  # fmt: skip

_MEMORY = """
T.bystander
pid = {pid}
with open(f"/proc/{{pid}}/maps") as maps:
    line = next(line for line in maps if "rw-p" in line)
first = int(line.split("-")[0], 16)
with open(f"/proc/{{pid}}/mem", "rb", 0) as memory:
    memory.seek(first)
    need(memory.read(64))
"""
MEMORY = [
    Attack(_PARENT, "memory of the parent", _MEMORY.format(pid="os.getppid()")),
    Attack(_PARENT, "memory of the controller", _MEMORY.format(pid="T.pid")),
    Attack(_PARENT, "memory of the keeper", _MEMORY.format(pid="T.keeper")),
    Attack(_PARENT, "memory of the launcher", _MEMORY.format(pid="T.launcher")),
    Attack(_PARENT, "the secret of the bystander", """
        with open(f"/proc/{T.bystander}/mem", "rb", 0) as memory:
            memory.seek(T.address)
            print(memory.read(T.length).decode())
        """, judged=True),
    Attack(_PARENT, "writing to the bystander", """
        with open(f"/proc/{T.bystander}/mem", "r+b", 0) as memory:
            memory.seek(T.address)
            byte = memory.read(1)
            memory.seek(T.address)
            memory.write(byte)
        """),
    Attack(_PARENT, "by process_vm_readv of the bystander",
           program="processes process_vm_readv {bystander} {address} {length}", judged=True),
    *(
        Attack(_PARENT, f"{name} of {whose}", f"""
            with open(f"/proc/{{{pid}}}/{name}", "rb", 0) as file:
                need(file.read(8))
            """, missing=(1, 2, 13, 38))
        for whose, pid in (("the parent", "os.getppid()"), ("the bystander", "T.bystander"))
        for name in ("maps", "smaps", "auxv", "pagemap")
    ),
    # Their numbers may be listed on the lower rung; what they lead to must not be told.
    Attack(
        _PARENT,
        "descriptors of the parent",
        "place = f'/proc/{os.getppid()}/fd'\n"
        "need([os.readlink(f'{place}/{fd}') for fd in os.listdir(place)])",
    ),
    Attack(_PARENT, "the executable of the parent",
           "need(os.readlink(f'/proc/{os.getppid()}/exe'))"),
    Attack(_PARENT, "the namespaces of the parent",
           "need(os.readlink(f'/proc/{os.getppid()}/ns/mnt'))"),
    Attack(_PARENT, "memory of the machine",
           "os.close(os.open('/proc/kcore', os.O_RDONLY))", root=True, missing=(2, 38)),
]  # fmt: skip


CREDENTIALS = [
    *(
        Attack(_CREDENTIALS_LINE, name, f"read(f'{{T.home}}/{name}')", judged=True)
        for name in CREDENTIAL_FILES
    ),
    Attack(_CREDENTIALS_LINE, "where ~ leads", judged=True,
           code="import pwd\n"
           "for home in {os.path.expanduser('~'), os.environ['HOME'], T.home}:\n"
           "    for path in glob.glob(home + '/.*/*') + glob.glob(home + '/.*'):\n"
           "        try:\n"
           "            read(path)\n"
           "        except OSError:\n"
           "            pass"),
    Attack(_CREDENTIALS_LINE, "found by the shell", judged=True,
           shell="cat $HOME/.ssh/* $HOME/.aws/* ~/.netrc"),
    Attack(_CREDENTIALS_LINE, "a listing", "need('.ssh' in os.listdir(T.home))"),
    *(
        Attack(_SHADOW, path, f"need(open({path!r}).read(1))", unless=_readable(path))
        for path in ("/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/passwd-")
    ),
    Attack(_SHADOW, "through /proc/self/root", "need(open('/proc/self/root/etc/shadow').read(1))",
           unless=_readable("/etc/shadow")),
    Attack(_SHADOW, "through a link",
           "os.symlink('/etc/shadow', 'l'); need(open('l').read(1))",
           unless=_readable("/etc/shadow")),
    Attack(_SHADOW, "users of the host", "need('root:x:0:0' in open('/etc/passwd').read())",
           rungs=(FULL,)),
    Attack(_AGENT, "the variable", "need('SSH_AUTH_SOCK' in os.environ)"),
    Attack(_AGENT, "the socket", "socket.socket(socket.AF_UNIX).connect(T.agent)"),
    Attack(_AGENT, "the socket by its variable",
           "socket.socket(socket.AF_UNIX).connect(os.environ.get('SSH_AUTH_SOCK', '/absent'))"),
]  # fmt: skip

_HARDWARE = (
    "/etc/machine-id", "/sys/class/dmi/id/product_uuid", "/sys/class/net/lo/address",
    "/sys/class/dmi/id/product_name", "/sys/firmware/acpi/tables/DSDT", "/proc/cmdline",
    "/proc/config.gz", "/var/lib/dbus/machine-id", "/sys/block", "/sys/devices/system/cpu",
)  # fmt: skip
_HOST_NAME = socket.gethostname()

NAMES = [
    Attack(_NAMES, f"the name, by {how}", code, rungs=(FULL,),
           unless=lambda: "" if _HOST_NAME != "cell" else "it has the name of a cell")
    for how, code in {
        "gethostname": f"need(socket.gethostname() == {_HOST_NAME!r})",
        "uname": f"need(os.uname().nodename == {_HOST_NAME!r})",
        "/proc/sys": f"need(open('/proc/sys/kernel/hostname').read().strip() == {_HOST_NAME!r})",
        "hostname": f"need(subprocess.run(['uname', '-n'], capture_output=True, text=True)"
                    f".stdout.strip() == {_HOST_NAME!r})",
    }.items()
] + [
    Attack(_NAMES, path, f"path = {path!r}\n"
           "need(os.listdir(path) if os.path.isdir(path) else open(path, 'rb').read(1))",
           rungs=(FULL,), unless=_readable(path))
    for path in _HARDWARE
    if Path(path).exists()
] + [
    Attack(_PIDS, "the controller's", "need(os.path.exists(f'/proc/{T.pid}/stat'))",
           rungs=(FULL,)),
    Attack(_PIDS, "the bystander's", "need(os.path.exists(f'/proc/{T.bystander}'))",
           rungs=(FULL,)),
    Attack(_PIDS, "the keeper's", "need(os.path.exists(f'/proc/{T.keeper}'))", rungs=(FULL,)),
    Attack(_PIDS, "by asking for a handle", "os.pidfd_open(T.bystander)", rungs=(FULL,)),
    Attack(_PIDS, "by asking for its session",
           "need(os.getsid(T.bystander) and os.getpgid(T.bystander))", rungs=(FULL,)),
    Attack(_PIDS, "by asking for its priority",
           "os.getpriority(os.PRIO_PROCESS, T.bystander)", rungs=(FULL,)),
    Attack(_PIDS, "by trying numbers", """
        def seen():
            T.bystander
            for number in range(1, 70000):
                try:
                    os.getpgid(number)
                except ProcessLookupError:
                    continue
                yield number
        need(T.bystander in set(seen()))
        """, rungs=(FULL,)),
    Attack(_PIDS, "by a listing",
           "need(str(T.bystander) in os.listdir('/proc'))", rungs=(FULL,)),
    Attack(_PIDS, "the handle's own account", rungs=(FULL,),
           code="fd = os.pidfd_open(T.bystander)\n"
           "need('Pid:' in open(f'/proc/self/fdinfo/{fd}').read())"),
    Attack(_ARGUMENTS, "/proc/PID/cmdline",
           "need(T.mark in open(f'/proc/{T.bystander}/cmdline').read())", rungs=(FULL,)),
    Attack(_ARGUMENTS, "every cmdline", """
        T.bystander
        mark = b"bystander-" + T.mark.split("-")[1].encode()
        lines = []
        for pid in processes():
            try:
                lines.append(open(f"/proc/{pid}/cmdline", "rb").read().split(b"\\0")[-2:-1])
            except OSError:
                pass
        need([mark] in lines)
        """, rungs=(FULL,)),
    Attack(_ARGUMENTS, "ps", rungs=(FULL,),
           shell="ps -eo comm= | grep -qx bystander; test $BYSTANDER -gt 0"),
]  # fmt: skip

ATTACKS = [*ENVIRONMENT, *MEMORY, *CREDENTIALS, *NAMES]


@pytest.mark.attack
@each_on_its_rungs(ATTACKS)
def test_nothing_is_learnt(rung: str, attack: Attack, siege: Siege) -> None:
    siege.attack(rung, attack)


@pytest.mark.attack(control=True)
@each(ATTACKS)
def test_the_control_learns_it(attack: Attack, siege: Siege) -> None:
    siege.control(attack)


# Two cells at once: one holds a secret until the other has looked.

_HIDE = """
import os, time
secret = {secret!r}
scratch = os.environ.get("TMPDIR", "/tmp")
place = os.path.join(scratch, "hidden-{tag}")
open(place, "w").write(secret)
os.chmod(place, 0o666)
shm = os.path.join("/dev/shm", "hidden-{tag}")
try:
    open(shm, "w").write(secret)
except OSError:
    shm = place  # a rung where it is not given
os.environ["HIDDEN"] = secret
hidden = open(place)
os.chdir(scratch)
with open({told!r}, "w") as file:
    file.write(f"{{os.path.realpath(place)}} {{os.getpid()}} {{shm}}")
while not os.path.exists({looked!r}):
    time.sleep(0.005)
"""
_LOOKS = {
    "its scratch, by its path": "read(place)",
    "its /dev/shm": "read(shm)",
    "its scratch, beside one's own": """
scratch = os.path.realpath(os.environ.get("TMPDIR", "/tmp"))
for path in glob.glob(os.path.dirname(scratch) + "/*/hidden-{tag}"):
    read(path)
read(scratch + "/hidden-{tag}")
""",
    "its scratch, through every process's root": """
for other in processes():
    try:
        read(f"/proc/{{other}}/root" + place)
    except OSError:
        pass
""",
    "its scratch, through every process's directory": """
for other in processes():
    for path in [f"/proc/{{other}}/cwd", *glob.glob(f"/proc/{{other}}/fd/*")]:
        try:
            read(path if os.path.isfile(path) else path + "/hidden-{tag}")
        except OSError:
            pass
""",
    "its memory": """
for other in processes():
    if other == os.getpid():
        continue
    try:
        with open(f"/proc/{{other}}/maps") as maps, open(f"/proc/{{other}}/mem", "rb", 0) as memory:
            for line in maps:
                first, last = (int(n, 16) for n in line.split()[0].split("-"))
                if "rw-p" in line:
                    memory.seek(first)
                    print(memory.read(last - first).decode("latin-1"))
    except OSError:
        pass
""",
}


_SIGNAL = "os.kill(int(pid), 0); print('REACHED')"


def _look(siege: Siege, rung: str | None, how: str) -> str:
    """Hide in one process, look in another, in cells of a rung or, for None, on the host."""
    ground = siege.inside if rung else siege.control_ground
    ground.refresh()
    tag = os.urandom(4).hex()
    hidden, looked = ground.workspace / "hidden", ground.workspace / "looked"
    hide = _HIDE.format(secret=siege.secret, tag=tag, told=str(hidden), looked=str(looked))
    done: list[ToolResult] = []
    if rung:
        controller = siege.controller(rung)
        thread = threading.Thread(
            target=lambda: done.append(siege.controller_call(controller, "python", code=hide))
        )
        thread.start()
    else:
        hiding = subprocess.Popen(
            [sys.executable, "-c", hide], cwd=ground.workspace, stdout=subprocess.DEVNULL
        )
    try:
        place, pid, shm = text_of(hidden, words=3).split()
        names = f"place, pid, shm = {place!r}, {pid!r}, {shm!r}\n"
        payload = _SIGNAL if how == "a signal to it" else _LOOKS[how].format(tag=tag)
        looking = Attack(_CELLS, how, names + payload, judged=True)
        own = [] if rung == FULL else [int(pid)]
        code = looking.python(ground.targets() | {"own": own})
        if rung:
            result = siege.call(controller, "python", code=code)
            assert result.enforcement.rung == rung
            return result.output
        command = [sys.executable, "-c", code]
        seen = subprocess.run(
            command, cwd=ground.workspace, capture_output=True, text=True, errors="replace"
        )
        return seen.stdout
    finally:
        looked.touch()
        if rung:
            thread.join()
            assert done, "the cell that hides was alive all along"
            assert done[0].success, done[0].for_llm()
        else:
            assert hiding.wait(10) == 0
            for path in (f"/tmp/hidden-{tag}", f"/dev/shm/hidden-{tag}", place):
                Path(path).unlink(missing_ok=True)


@pytest.mark.attack
@pytest.mark.parametrize("rung", BOTH)
@pytest.mark.parametrize("how", _LOOKS)
def test_another_cell_is_not_seen(rung: str, how: str, siege: Siege) -> None:
    text = _look(siege, rung, how)
    assert siege.secret not in text, "REACHED"
    assert "TRY" in text
    assert "held:" in text or "done" in text.splitlines()


@pytest.mark.attack(control=True)
@pytest.mark.parametrize("how", _LOOKS)
def test_the_control_another_process_is_seen(how: str, siege: Siege) -> None:
    assert siege.secret in _look(siege, None, how)


@pytest.mark.attack
@pytest.mark.parametrize("rung", BOTH)
@pytest.mark.parametrize("place", ["/tmp", "/dev/shm", "/var/tmp", "$TMPDIR", "$HOME"])
def test_what_one_cell_left_the_next_does_not_find(rung: str, place: str, siege: Siege) -> None:
    siege.inside.refresh()
    controller = siege.controller(rung)
    name = f"{place}/left-{os.urandom(4).hex()}"
    left = siege.call(
        controller, "shell", command=f"echo {siege.secret} > {name} && cat {name}; echo {place}"
    )
    found = siege.call(controller, "shell", command=f"cat {name}; echo looked")
    assert siege.secret not in found.output
    assert "looked" in found.output
    kept = siege.call(controller, "shell", command=f"echo {siege.secret} > left; cat left")
    assert siege.secret in kept.output
    again = siege.call(controller, "shell", command="cat left")
    assert siege.secret in again.output, "the control: what is in the workspace stays"
    assert left.enforcement.rung == rung


# A watch tells the names of what is used in a directory, without listing it.

_WATCH = """
import ctypes, os, select, sys
libc = ctypes.CDLL(None, use_errno=True)
print("TRY", flush=True)
fd = libc.inotify_init1(os.O_NONBLOCK)
done = libc.inotify_add_watch(fd, {directory!r}.encode(), 0x100 | 0x20)
if done < 0:
    print("held:", os.strerror(ctypes.get_errno()), flush=True)
open("hidden", "w").write("a b c")
while not os.path.exists("looked"):
    readable, _, _ = select.select([fd], [], [], 0.005)
    if readable:
        break
if select.select([fd], [], [], 0)[0]:
    print(os.read(fd, 4096)[16:].rstrip(b"\\0").decode(), flush=True)
print("done")
"""


def _watched(siege: Siege, rung: str | None) -> str:
    ground = siege.inside if rung else siege.control_ground
    ground.refresh()
    code = _WATCH.format(directory=str(ground.outside))
    output: list[str] = []

    def watch() -> None:
        if rung:
            result = siege.controller_call(siege.controller(rung), "python", code=code)
            output.append(result.output or result.for_llm())
        else:
            command = [sys.executable, "-c", code]
            done = subprocess.run(command, cwd=ground.workspace, capture_output=True, text=True)
            output.append(done.stdout)

    if rung:
        siege.controller(rung)  # skips here, where it can
    thread = threading.Thread(target=watch)
    thread.start()
    try:
        text_of(ground.workspace / "hidden", words=3)
        (ground.outside / siege.secret).write_text("used")
    finally:
        (ground.workspace / "looked").touch()
        thread.join()
    return output[0]


@pytest.mark.attack
@pytest.mark.parametrize("rung", BOTH)
def test_a_watch_tells_no_names(rung: str, siege: Siege) -> None:
    text = _watched(siege, rung)
    assert "TRY" in text
    assert siege.secret not in text, "REACHED"


@pytest.mark.attack(control=True)
def test_the_control_a_watch_tells_names(siege: Siege) -> None:
    assert siege.secret in _watched(siege, None)


# On the full rung another cell's process has no number here.


@pytest.mark.attack
@pytest.mark.parametrize("rung", ["landlock"])
def test_another_cells_process_cannot_be_signalled(rung: str, siege: Siege) -> None:
    text = _look(siege, rung, "a signal to it")
    assert "TRY" in text
    assert "REACHED" not in text
    assert "held:" in text


@pytest.mark.attack(control=True)
def test_the_control_another_process_can_be_signalled(siege: Siege) -> None:
    assert "REACHED" in _look(siege, None, "a signal to it")


def test_every_line_of_the_catalogue_is_attacked() -> None:
    assert not_attacked(LINES, ATTACKS, _CELLS) == set()
