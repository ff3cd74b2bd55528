"""The kernel's doors, rights that were given up, and other processes."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from escape.attacks import BOTH, FULL, LANDLOCK, Attack, each, each_on_its_rungs, not_attacked
from escape.host import OUTER_ID
from escape.siege import Siege
from toolcell import CellSettings, Limits, ToolPolicy, ToolRegistry
from toolcell.blocking import BlockingController

pytestmark = pytest.mark.isolation

LINES = (
    "ptrace, process_vm_writev",
    "pidfd_getfd",
    "mount, unshare, clone and clone3 with new user namespaces",
    "bpf, perf",
    "keyctl, init_module, kexec",
    "personality, 32-bit and x32 calls",
    "clearing no_new_privs",
    "TIOCSTI and TIOCLINUX, also with high bits set",
    "chroot tricks",
    "setuid(0)",
    "release_agent and cgroup writes",
    "/proc/sys writes when the controller is root",
    "LD_PRELOAD, PYTHONSTARTUP, NODE_OPTIONS, BASH_ENV",
    "signalling the controller or the launcher",
)
(
    _PTRACE, _GETFD, _NAMESPACES, _BPF, _KEYS, _ABI, _NO_NEW_PRIVS, _TERMINAL, _CHROOT, _SETUID,
    _CGROUPS, _SYSCTL, _PRELOAD, _SIGNALS,
) = LINES  # fmt: skip


def _calls(line: str, program: str, *names: str, **options: Any) -> list[Attack]:
    return [
        Attack(line, name, program=f"{program} {name!r}" if " " in name else f"{program} {name}",
               **options)
        for name in names
    ]  # fmt: skip


PROCESSES = [
    Attack(_PTRACE, f"{how} {whom}", program=f"processes {how!r} {pid}", missing=missing)
    for how in ("ptrace seize", "ptrace attach")
    for whom, pid, missing in (
        ("the bystander", "{bystander}", (38,)),
        ("the keeper", "{keeper}", (38,)),
    )
    if (how, whom) != ("ptrace attach", "the keeper")
] + [
    Attack(_PTRACE, "ptrace seize the parent", program="processes 'ptrace seize' parent"),
    *_calls(_PTRACE, "processes", "ptrace traceme", "ptrace a child"),
    Attack(_PTRACE, "process_vm_readv", judged=True,
           program="processes process_vm_readv {bystander} {address} {length}"),
    Attack(_PTRACE, "process_vm_writev",
           program="processes process_vm_writev {bystander} {address} {length}"),
    Attack(_PTRACE, "process_vm_readv of oneself", judged=False, code="""
        libc = ctypes.CDLL(None, use_errno=True)
        here, there = ctypes.create_string_buffer(8), ctypes.create_string_buffer(b"x", 8)
        one = struct.pack("QQ", ctypes.addressof(here), 1)
        two = struct.pack("QQ", ctypes.addressof(there), 1)
        need(libc.process_vm_readv(os.getpid(), one, 1, two, 1, 0) == 1)
        """),
    *(
        Attack(_PTRACE, name, program=f"processes {name} {{bystander}} {{address}}",
               missing=(1, 38) if name == "process_madvise" else (38,))
        for name in ("process_madvise", "move_pages", "kcmp", "get_robust_list",
                     "process_mrelease")
    ),
    Attack(_GETFD, "of the bystander", program="processes pidfd_getfd {bystander} {descriptor}"),
    Attack(_GETFD, "of the keeper", program="processes pidfd_getfd {keeper} 0"),
    Attack(_GETFD, "of the launcher", program="processes pidfd_getfd {launcher} 0"),
    Attack(_GETFD, "of the parent", program="processes pidfd_getfd parent 0"),
    Attack(_GETFD, "through /proc", "os.open(f'/proc/{T.bystander}/fd/{T.descriptor}', 0)"),
]  # fmt: skip

_KINDS = ("user", "mount", "network", "pid", "ipc", "uts", "cgroup", "time")
_NOT_BY_CLONE = ("time",)  # its flag is among the bits of the exit signal


def _making(how: str, kind: str) -> Attack:
    within = "" if kind == "user" else "U"
    program = f"namespaces {how!r} {kind}"
    return Attack(_NAMESPACES, f"{how}, {kind}", program=program, within=within, missing=(38, 22))


NAMESPACES = [
    *(_making("unshare", kind) for kind in _KINDS),
    *(_making("clone", kind) for kind in _KINDS if kind not in _NOT_BY_CLONE),
    *(_making("clone3", kind) for kind in _KINDS),
    *(_making("clone with high bits", kind) for kind in ("user", "mount", "network")),
    _making("clone with other flags", "user"),
    _making("clone3 of a larger size", "user"),
    Attack(_NAMESPACES, "unshare(1)", shell="unshare -Ur true"),
    Attack(_NAMESPACES, "unshare(1) with mounts", shell="unshare -Urm mount -t tmpfs none /mnt"),
    Attack(_NAMESPACES, "setns to one's own", program="namespaces setns /proc/self/ns/uts",
           within="Uu"),
    Attack(_NAMESPACES, "setns to the first", program="namespaces setns /proc/1/ns/mnt",
           root=True, missing=(13, 38)),
    Attack(_NAMESPACES, "setns to the parent's",
           "fd = os.open(f'/proc/{os.getppid()}/ns/uts', os.O_RDONLY)\n"
           "libc = ctypes.CDLL(None, use_errno=True)\n"
           "if libc.setns(fd, 0) != 0: raise OSError(ctypes.get_errno(), 'setns')", root=True),
    Attack(_NAMESPACES, "setns to a process's",
           program="namespaces 'setns of a process' {bystander}", root=True),
    Attack(_NAMESPACES, "setns to a process's, seen in /proc",
           program="namespaces setns /proc/{bystander}/ns/uts", root=True),
    *(
        Attack(_NAMESPACES, f"mount, {name}", program=f"mounts {name!r} {place}",
               within=within, missing=(19, 22, 38) if "cover" in name else (19, 38))
        for name, within in (
            ("tmpfs", "Um"), ("proc", "Umpf"), ("cgroup2", "UmC"), ("devpts", "Um"),
            ("mqueue", "Umi"), ("overlay", "Um"), ("bind", "Um"),
            ("bind with the magic number", "Um"), ("remount writable", "m"), ("move", "Um"),
            ("propagate", "Um"), ("umount2", "Um"), ("umount2 of a cover", "m"),
            ("fsopen", "Um"), ("fspick", "m"), ("fsconfig", ""), ("fsmount", "Um"),
            ("open_tree", ""), ("open_tree, a copy", "Um"), ("move_mount", "Um"),
            ("mount_setattr", "m"), ("pivot_root", "Um"),
        )
        # Of what is mounted itself, not of what it covers.
        for place in ("/" if name == "fspick" else "{workspace}",)
    ),
    Attack(_NAMESPACES, "mount(8)", shell="mount -t tmpfs none .", within="Um"),
    Attack(_NAMESPACES, "more namespaces allowed",
           "os.close(os.open('/proc/sys/user/max_user_namespaces', os.O_WRONLY))", within="U"),
]  # fmt: skip


# On the lower rung a tool is the workspace's owner, who may be root: it has a test of its own.
_IDS = (
    "setuid", "setgid", "setreuid", "setregid", "setresuid", "setresgid", "setfsuid", "be root",
)  # fmt: skip


def _lacks(program: str) -> str:
    return "" if shutil.which(program) else f"there is no {program}"


CALLS = [
    *_calls(_BPF, "kernel", "bpf", root=True),
    *_calls(_BPF, "kernel", "perf_event_open", "userfaultfd", missing=(13, 38)),
    *_calls(_KEYS, "kernel", "add_key", "request_key", "keyctl the session's keyring",
            "keyctl the user's keyring", "keyctl a new session"),
    *_calls(_KEYS, "kernel", "init_module", "finit_module", "delete_module", "kexec_load",
            "kexec_file_load", "reboot", "swapon", "swapoff", "acct", "settimeofday", "syslog",
            root=True),
    *_calls(_KEYS, "kernel", "clock_settime", "adjtimex", "clock_adjtime", "quotactl",
            "quotactl_fd", "memfd_secret", "fanotify_init", "name_to_handle_at", "ioprio_set",
            "io_setup", "io_uring_setup", "get_mempolicy", "modify_ldt read",
            "modify_ldt write", missing=(1, 38)),
    *_calls(_KEYS, "kernel", "open_by_handle_at", "iopl", "ioperm", root=True),
    *_calls(_KEYS, "kernel", "sethostname", "setdomainname", within="Uu"),
    *_calls(_ABI, "abi", "personality without randomization",
            "personality where reads execute", "personality with a page at zero",
            "personality of 32 bits", "personality with high bits",
            "a call's number with high bits"),
    *_calls(_ABI, "abi", "calls newer than the filter"),
    *_calls(_ABI, "abi", "int80", "int80 personality", "int80 unshare", "x32", "x32 ptrace",
            deadly=True, unless=lambda: _no_32_bits()),
    Attack(_ABI, "setarch", shell="setarch -R true", unless=lambda: _lacks("setarch")),
    *_calls(_NO_NEW_PRIVS, "privileges", "clear no_new_privs",
            "clear no_new_privs with high bits", "another filter", "another filter by prctl",
            "no filter", "own supervisor"),
    *_calls(_NO_NEW_PRIVS, "privileges", "raise a limit", root=True, missing=(1, 38)),
    Attack(_NO_NEW_PRIVS, "own landlock", program="privileges 'own landlock' {secret}",
           missing=(38, 95)),
    *_calls(_NO_NEW_PRIVS, "privileges", "PR_SET_MM", "PR_SET_MM_EXE_FILE", root=True,
            missing=(1, 38)),
    *_calls(_NO_NEW_PRIVS, "privileges", "real-time", "higher priority", root=True),
    *(
        Attack(_TERMINAL, f"{name}{how}", program=f"terminal ioctl {request} {high}",
               missing=(5, 38))
        for name, request in (("TIOCSTI", "5412"), ("TIOCLINUX", "541c"))
        for how, high in (("", "0"), (", one high bit", "1"), (", the highest bit", "80000000"),
                          (", all high bits", "ffffffff"))
    ),
    Attack(_TERMINAL, "writing to a terminal of the host", judged=True,
           code="os.write(os.open(T.terminal, os.O_RDWR | os.O_NOCTTY), b'x')"),
    Attack(_CHROOT, "chroot", program="mounts chroot .", within="U"),
    Attack(_CHROOT, "into a place and out of it", program="mounts 'chroot and out of it' conf",
           within="U"),
    Attack(_CHROOT, "by Python", "os.chroot('.')", within="U"),
    Attack(_CHROOT, "chroot(8)", shell="PATH=$PATH:/usr/sbin; mkdir -p usr; chroot / true",
           within="U"),
    Attack(_CHROOT, "by a descriptor from before", judged=True, code="""
        fd = os.open("/", os.O_RDONLY)
        for _ in range(64):
            os.chdir("..")
        os.fchdir(fd)
        read("." + T.secret)
        """),
    Attack(_CHROOT, "by the parent of the root", "read('/..' * 20 + T.secret)", judged=True),
    *_calls(_SETUID, "privileges", *_IDS, within="U", rungs=(FULL,)),
    *_calls(_SETUID, "privileges", "capset", "raise ambient", "secure bits",
            "have capabilities", within="U"),
    *_calls(_SETUID, "privileges", "setgroups", root=True),
    Attack(_SETUID, "by Python", "os.setuid(0)", within="U", rungs=(FULL,)),
    *(
        Attack(_SETUID, line.split()[0], shell=line, root=True)
        for line in ("su -c true", "sudo -n true", "pkexec true", "doas -n true")
        if not _lacks(line.split()[0])
    ),
]  # fmt: skip


def _no_32_bits() -> str:
    return "" if os.uname().machine == "x86_64" else "another architecture has none"


_EXISTING_CGROUPS = """
places = glob.glob("/sys/fs/cgroup/**/{name}", recursive=True)[:50]
need(places, "there is none to be seen")
opened = 0
for place in places:
    try:
        os.close(os.open(place, os.O_WRONLY))
        opened += 1
    except OSError:
        pass
need(opened, "none could be opened")
"""


def _has_cgroup(name: str) -> bool:
    return next(Path("/sys/fs/cgroup").rglob(name), None) is not None


_SETTINGS = (
    "kernel/core_pattern", "kernel/modprobe", "kernel/hotplug", "kernel/hostname",
    "kernel/sysrq", "kernel/panic", "vm/drop_caches",
    "vm/overcommit_memory", "fs/binfmt_misc/register", "fs/suid_dumpable", "net/ipv4/ip_forward",
    "kernel/yama/ptrace_scope", "kernel/unprivileged_bpf_disabled", "user/max_user_namespaces",
    "kernel/randomize_va_space", "fs/protected_symlinks",
)  # fmt: skip

FILES = [
    *(
        Attack(_CGROUPS, name, _EXISTING_CGROUPS.format(name=name), root=True,
               unless=lambda name=name: "" if _has_cgroup(name) else f"there is no {name} here")
        for name in ("release_agent", "cgroup.procs", "notify_on_release", "devices.allow",
                     "memory.limit_in_bytes", "memory.max", "cgroup.kill")
    ),
    Attack(_CGROUPS, "a group of one's own", """
        for place in glob.glob("/sys/fs/cgroup/*/") + ["/sys/fs/cgroup/"]:
            path = f"{place}toolcell-escape-{os.getpid()}"
            try:
                os.mkdir(path)
            except OSError:
                continue
            os.rmdir(path)
            break
        else:
            raise Held("nowhere")
        """, root=True),
    Attack(_CGROUPS, "through one's own /proc", """
        lines = open("/proc/self/cgroup").read().splitlines()
        places = ["/sys/fs/cgroup/" + (n or "unified") + p + "/cgroup.procs"
                  for _, n, p in (line.split(":", 2) for line in lines)]
        places += ["/sys/fs/cgroup" + lines[-1].split(":", 2)[2] + "/cgroup.procs"]
        for place in places:
            try:
                os.close(os.open(place, os.O_WRONLY))
                break
            except OSError:
                continue
        else:
            raise Held("none could be opened")
        """, root=True),
    Attack(_SYSCTL, "sysrq-trigger", "os.close(os.open('/proc/sysrq-trigger', os.O_WRONLY))",
           root=True, missing=(2, 38)),
    *(
        Attack(_SYSCTL, name, f"os.close(os.open('/proc/sys/{name}', os.O_WRONLY))", root=True,
               missing=(13, 38))
        for name in _SETTINGS
        if Path("/proc/sys", name).exists()
    ),
    Attack(_SYSCTL, "sysctl(8)", shell="PATH=$PATH:/usr/sbin\n"
           "sysctl -q kernel.panic=$(cat /proc/sys/kernel/panic)",
           root=True, unless=lambda: _lacks("sysctl")),
    Attack(_SYSCTL, "through /proc/self/root",
           "os.close(os.open('/proc/self/root/proc/sys/kernel/core_pattern', os.O_WRONLY))",
           root=True),
    *(
        Attack(_SYSCTL, path, f"os.close(os.open({path!r}, os.O_WRONLY))", root=True,
               missing=(1, 2, 38))
        for path in ("/proc/kcore", "/proc/kmsg", "/proc/irq/default_smp_affinity", "/proc/mtrr",
                     "/proc/bus/pci/devices", "/proc/acpi/wakeup", "/proc/scsi/scsi",
                     "/sys/kernel/uevent_helper", "/sys/kernel/mm/transparent_hugepage/enabled",
                     "/sys/power/state")
        if Path(path).exists()
    ),
]  # fmt: skip

_TO_ANOTHER = (
    "kill", "kill a group", "tgkill", "tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo",
    "pidfd_send_signal", "prlimit64", "prlimit64 read", "setpriority", "sched_setscheduler",
    "sched_setattr", "sched_setparam", "sched_setaffinity", "ioprio_set",
)  # fmt: skip
_PROC_WRITES = (
    "oom_score_adj", "coredump_filter", "comm", "clear_refs", "autogroup", "timerslack_ns",
)  # fmt: skip

SIGNALS = [
    *(
        Attack(_SIGNALS, f"{how} to a process of the same user",
               program=f"processes {how!r} {{bystander}}", missing=(1, 38))
        for how in _TO_ANOTHER
    ),
    Attack(_SIGNALS, "by the ownership of a descriptor",
           program="processes F_SETOWN {bystander}", judged=True),
    *(
        Attack(_SIGNALS, f"kill to the {whom}", f"os.kill(T.{name}, 0)")
        for whom, name in (("controller", "pid"), ("keeper", "keeper"), ("launcher", "launcher"))
    ),
    *(
        Attack(_SIGNALS, f"a handle of the {whom}",
               f"signal.pidfd_send_signal(os.pidfd_open(T.{name}), 0)")
        for whom, name in (("controller", "pid"), ("keeper", "keeper"), ("launcher", "launcher"))
    ),
    Attack(_SIGNALS, "kill(1) by the shell", shell="kill -s USR1 $BYSTANDER", judged=True),
    Attack(_SIGNALS, "the limits of the controller",
           program="processes 'prlimit64 read' {pid}"),
    Attack(_SIGNALS, "the limits of the keeper", program="processes prlimit64 {keeper}",
           missing=(1, 38)),
    Attack(_SIGNALS, "the priority of the keeper",
           "os.setpriority(os.PRIO_PROCESS, T.keeper, os.getpriority(os.PRIO_PROCESS, T.keeper))"),
    Attack(_SIGNALS, "the processors of the keeper",
           "os.sched_setaffinity(T.keeper, os.sched_getaffinity(T.keeper))"),
    *(
        Attack(_SIGNALS, f"{name} of a process of the same user",
               f"os.close(os.open(f'/proc/{{T.bystander}}/{name}', os.O_WRONLY))",
               missing=(2, 13, 38))
        for name in _PROC_WRITES
    ),
]  # fmt: skip

ATTACKS = [*PROCESSES, *NAMESPACES, *CALLS, *FILES, *SIGNALS]


@pytest.mark.attack
@each_on_its_rungs(ATTACKS)
def test_nothing_is_let_through(rung: str, attack: Attack, siege: Siege) -> None:
    siege.attack(rung, attack)


@pytest.mark.attack(control=True)
@each(ATTACKS)
def test_the_control_is_let_through(attack: Attack, siege: Siege) -> None:
    siege.control(attack)


@pytest.mark.attack
@pytest.mark.parametrize("rung", [LANDLOCK])
@pytest.mark.parametrize("attempt", _IDS)
def test_the_tool_of_an_ordinary_owner_does_not_become_root(
    rung: str, attempt: str, siege: Siege
) -> None:
    place = siege.of_an_ordinary_user()
    shutil.copy(siege.program("privileges"), place / "privileges")
    controller = siege.controller(rung, workspace=place)
    result = siege.call(controller, "shell", command=f"./privileges {shlex.quote(attempt)}")
    assert "TRY" in result.output
    assert "held:" in result.output, "REACHED"
    assert "REACHED" not in result.output


# As root only, and as a user of its own: other processes of a user would be touched too.
_OF_THE_USER = "setpriority of the user"


def _alone() -> None:
    if os.geteuid() != 0:
        pytest.skip("it would touch the other processes of the user who runs the tests")


@pytest.mark.attack
@pytest.mark.parametrize("rung", BOTH)
def test_the_priority_of_the_users_other_processes_is_kept(rung: str, siege: Siege) -> None:
    _alone()
    place = siege.of_an_ordinary_user()
    shutil.copy(siege.program("processes"), place / "processes")
    other = siege.host.bystander(siege.program("bystander"))["bystander"]
    os.setpriority(os.PRIO_PROCESS, other, 0)
    controller = siege.controller(rung, workspace=place)
    result = siege.call(controller, "shell", command=f"./processes '{_OF_THE_USER}'")
    assert "TRY" in result.output, result.for_llm()
    assert os.getpriority(os.PRIO_PROCESS, other) == 0, "REACHED"


@pytest.mark.attack(control=True)
def test_the_control_the_priority_of_a_users_processes_is_changed(siege: Siege) -> None:
    _alone()
    other = siege.host.bystander(siege.program("bystander"))["bystander"]
    os.setpriority(os.PRIO_PROCESS, other, 0)
    command = [str(siege.program("processes")), _OF_THE_USER]
    subprocess.run(command, user=OUTER_ID, group=OUTER_ID, extra_groups=[], timeout=20)
    assert os.getpriority(os.PRIO_PROCESS, other) == 1
    os.setpriority(os.PRIO_PROCESS, other, 0)


_KILL_THE_PARENT = """
import os, signal, time
parent = os.getppid()
print("TRY", flush=True)
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGSTOP, signal.SIGKILL):
    try:
        os.kill(parent, number)
    except OSError as error:
        print("held:", error, flush=True)
for _ in range(200):
    if os.getppid() != parent:
        print("REACHED", flush=True)
        break
    os.sched_yield()
    time.sleep(0.001)
"""


@pytest.mark.attack
@pytest.mark.parametrize("rung", BOTH)
def test_the_init_of_a_cell_survives_its_tool(rung: str, siege: Siege) -> None:
    siege.inside.refresh()
    result = siege.call(siege.controller(rung), "python", code=_KILL_THE_PARENT)
    assert "TRY" in result.output
    assert "REACHED" not in result.output
    assert result.success, result.for_llm()
    assert result.metadata.survivors_checked


@pytest.mark.attack(control=True)
def test_the_control_a_parent_can_be_killed(siege: Siege) -> None:
    line = '"$0" -c "$1"; exit 0'
    command = ["bash", "-c", line, sys.executable, _KILL_THE_PARENT]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=20)
    assert "REACHED" in done.stdout


# What an environment makes programs run. The files lie in the workspace, where a cell sees
# them: only the variable is missing.

_LIBRARY = """
#include <unistd.h>
__attribute__((constructor)) static void loaded(void)
{
    if (write(1, "REACHED\\n", 8) < 0)
        return;
}
"""
_HOOKS: dict[str, tuple[str, str, str]] = {
    "LD_PRELOAD": ("hook.so", "{hook}", "/bin/true"),
    "PYTHONSTARTUP": ("hook.py", "{hook}", "echo | python3 -i"),
    "PYTHONPATH": ("sitecustomize.py", "{directory}", "python3 -c pass"),
    "NODE_OPTIONS": ("hook.js", "--require {hook}", "node -e 0"),
    "BASH_ENV": ("hook.sh", "{hook}", "bash -c true"),
    "ENV": ("hook.sh", "{hook}", "echo exit | sh -i"),
    "PROMPT_COMMAND": ("hook.sh", ". {hook}", "echo exit | bash --norc -i"),
    "PERL5OPT": ("hook.pm", "-I{directory} -Mhook", "perl -e 1"),
    "RUBYOPT": ("hook.rb", "-r{hook}", "ruby -e 1"),
    "GIT_EXTERNAL_DIFF": (
        "hook.sh",
        "sh {hook}",
        "git init -q g; cd g; echo 1 > f; git add f; echo 2 > f; git diff; cat /dev/null",
    ),
    "GIT_CONFIG_PARAMETERS": ("hook.sh", "'alias.hooked=!sh {hook}'", "git hooked"),
}
_SOURCES = {
    ".py": "print('REACHED')",
    ".sh": "echo REACHED",
    ".js": "console.log('REACHED')",
    ".pm": 'print "REACHED\\n"; 1;',
    ".rb": "puts 'REACHED'",
}


def _hook(siege: Siege, ground: Any, name: str) -> tuple[str, str]:
    """Write a hook's file; returns the variable's value and the command that would run it."""
    file, value, command = _HOOKS[name]
    program = command.split("|")[-1].split()[0]
    if not shutil.which(program):
        pytest.skip(f"there is no {program}")
    directory = ground.workspace / "hooks"
    directory.mkdir()
    hook = directory / file
    if hook.suffix == ".so":
        _library(siege, hook)
    else:
        hook.write_text(_SOURCES[hook.suffix])
    return value.format(hook=hook, directory=directory), f"echo TRY; {command}; echo done"


def _library(siege: Siege, place: Path, source: str = _LIBRARY) -> None:
    siege.program("abi")  # skips where there is no compiler
    compiler = shutil.which("gcc") or "cc"
    text = place.with_suffix(".c")
    text.write_text(source)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", place, text], check=True, timeout=60)


@pytest.mark.attack
@pytest.mark.parametrize("rung", BOTH)
@pytest.mark.parametrize("name", _HOOKS)
def test_what_the_controllers_environment_makes_programs_run_is_not_run(
    rung: str, name: str, siege: Siege, monkeypatch: pytest.MonkeyPatch
) -> None:
    siege.inside.refresh()
    value, command = _hook(siege, siege.inside, name)
    monkeypatch.setenv(name, value)
    # A controller that is started, and starts its launcher, while the variable is set.
    controller = siege.controller(rung, {"env": {"HOOKED": name}})
    shown = f'{command}; test -z "${{{name}}}" || echo REACHED; echo $HOOKED'
    result = siege.call(controller, "shell", command=shown)
    assert result.output.splitlines()[-1] == name, result.for_llm()
    assert "TRY" in result.output
    assert "REACHED" not in result.output


@pytest.mark.attack(control=True)
@pytest.mark.parametrize("name", _HOOKS)
def test_the_control_the_environment_makes_programs_run_it(name: str, siege: Siege) -> None:
    siege.control_ground.refresh()
    value, command = _hook(siege, siege.control_ground, name)
    done = subprocess.run(
        ["bash", "-c", command],
        capture_output=True,
        text=True,
        timeout=20,
        cwd=siege.control_ground.workspace,
        env=os.environ | {name: value, "HOME": str(siege.control_ground.home)},
    )
    assert "REACHED" in done.stdout, done.stderr


_MARKING = """
#include <fcntl.h>
#include <unistd.h>
__attribute__((constructor)) static void loaded(void)
{
    close(open("%s", O_WRONLY | O_CREAT, 0666));
}
"""


@pytest.mark.attack
@pytest.mark.parametrize("rung", BOTH)
def test_the_keeper_and_the_launcher_load_nothing_that_the_environment_names(
    rung: str, siege: Siege, monkeypatch: pytest.MonkeyPatch
) -> None:
    siege.controller(rung)
    siege.inside.refresh()
    library, mark = siege.inside.outside / "mark.so", siege.inside.workspace / "loaded"
    _library(siege, library, _MARKING % mark)
    monkeypatch.setenv("LD_PRELOAD", str(library))
    isolation = {} if rung == FULL else {"isolation": rung}
    policy = ToolPolicy(
        name="siege", allow={"*": "an attack"}, cell=CellSettings(**isolation), limits=Limits()
    )
    with BlockingController(ToolRegistry.builtin(), policy, siege.inside.workspace) as fresh:
        assert siege.call(fresh, "shell", command="true").success
        assert not mark.exists()
    subprocess.run([sys.executable, "-I", "-S", "-c", ""], check=True)
    assert mark.exists(), "the control: what is started with that environment loads it"


def test_every_line_of_the_catalogue_is_attacked() -> None:
    assert not_attacked(LINES, ATTACKS, _PRELOAD) == set()
