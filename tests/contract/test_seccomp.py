"""The system call filter's answers, for every number and for the arguments that decide.

The expectations below are written without regard to the source: a table of what is dangerous,
a list of what ordinary programs were seen to call, and the harmless rest. Programs run in the
interpreter of `bpf`; the kernel and a published filter compiler (seccompy) have to agree.
"""

import errno
import json
import platform
import struct
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import seccompy
import seccompy.syscalls
from hypothesis import given
from hypothesis import strategies as st

from toolcell.cells import seccomp
from toolcell.cells.syscalls import numbers

from . import bpf

ALLOW = 0x7FFF0000
KILL = 0x80000000  # the process, not the thread
EPERM = 0x00050000 | errno.EPERM
ENOSYS = 0x00050000 | errno.ENOSYS
EAFNOSUPPORT = 0x00050000 | errno.EAFNOSUPPORT
EOPNOTSUPP = 0x00050000 | errno.EOPNOTSUPP
DONE = 0x00050000  # nothing is done, and no error told

# The answers of every variant are the same but for who is told; see test_seccomp_variants.
SILENT = seccomp.Variant(told=False)

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
FOREIGN = {
    "i386": 0x40000003,
    "arm": 0x40000028,
    "armeb": 0x28,
    "ppc64le": 0xC0000015,
    "riscv64": 0xC00000F3,
    "s390x": 0x80000016,
    "nothing": 0,
    "x86_64 without its 64-bit mark": 0x8000003E,
}

DANGEROUS = {
    "mounts": (
        EPERM,
        "mount umount2 pivot_root chroot open_tree move_mount fsopen fsconfig fsmount fspick "
        "mount_setattr",
    ),
    "namespaces; clone is looked at by its flags": (EPERM, "unshare setns"),
    "other processes' memory, descriptors and secrets": (
        EPERM,
        "ptrace process_vm_readv process_vm_writev pidfd_getfd kcmp process_madvise "
        "process_mrelease",
    ),
    "memory that the kernel itself does not see, or waits for": (
        EPERM,
        "memfd_secret userfaultfd",
    ),
    "programs and probes in the kernel": (
        EPERM,
        "bpf perf_event_open lookup_dcookie",
    ),
    "keyrings, which no namespace divides": (EPERM, "add_key request_key keyctl"),
    "io_uring: operations that no filter sees": (
        ENOSYS,
        "io_uring_setup io_uring_enter io_uring_register",
    ),
    "flags that lie in memory, so that an older call is used": (
        ENOSYS,
        "clone3 openat2 fchmodat2",
    ),
    "kernel modules and other kernels": (
        EPERM,
        "init_module finit_module delete_module create_module query_module get_kernel_syms "
        "kexec_load kexec_file_load reboot",
    ),
    "swap, accounting, quotas": (EPERM, "swapon swapoff acct quotactl quotactl_fd nfsservctl"),
    "ports of the machine and its segments": (EPERM, "iopl ioperm modify_ldt"),
    "files by handle, past every directory": (EPERM, "name_to_handle_at open_by_handle_at"),
    "watching the file system": (EPERM, "fanotify_init fanotify_mark"),
    "the kernel's log": (EPERM, "syslog"),
    "the clock": (EPERM, "settimeofday clock_settime adjtimex clock_adjtime"),
    "the machine's names": (EPERM, "sethostname setdomainname"),
    "terminals": (EPERM, "vhangup"),
    "where memory lies, and whose disk goes first": (
        EPERM,
        "get_mempolicy set_mempolicy mbind migrate_pages move_pages set_mempolicy_home_node "
        "ioprio_set",
    ),
    "never finished": (EPERM, "epoll_ctl_old epoll_wait_old"),
    "the older asynchronous files": (
        ENOSYS,
        "io_setup io_submit io_getevents io_pgetevents io_destroy io_cancel",
    ),
    "new, and nothing needs it yet": (
        ENOSYS,
        "statmount listmount map_shadow_stack lsm_get_self_attr lsm_set_self_attr lsm_list_modules",
    ),
    "gone from the kernel, or never in it": (
        ENOSYS,
        "_sysctl sysfs ustat uselib getpmsg putpmsg afs_syscall tuxcall security vserver",
    ),
}

# Seen with `strace -f -c` on x86_64 (glibc 2.36): Python with children, threads, sockets,
# asyncio, sqlite3 and a multiprocessing pool; numpy's threaded product; pytest; bash with
# some forty of the usual commands; git from init to gc, clone and stash; gcc; node with
# workers, sockets, watches and children; npm; sqlite3; eight pthreads.
NEEDED = """
    accept4 access arch_prctl bind brk capget chdir chmod clock_nanosleep clone clone3 close
    close_range connect copy_file_range creat dup dup2 epoll_create1 epoll_ctl epoll_pwait
    epoll_wait eventfd2 execve exit exit_group faccessat2 fadvise64 fchdir fchmod fchmodat
    fchown fcntl fdatasync fgetxattr fsetxattr fstat fstatfs fsync ftruncate futex
    get_mempolicy getcwd getdents64 getegid geteuid getgid getgroups getpeername getpgrp
    getpid getppid getrandom getrusage getsockname getsockopt gettid getuid getxattr
    inotify_add_watch inotify_init1 inotify_rm_watch ioctl lgetxattr link listen listxattr
    lseek madvise mbind mkdir mmap mprotect munmap newfstatat openat pipe2 pkey_alloc poll
    prctl pread64 prlimit64 pwrite64 read readlink recvfrom recvmsg rename renameat2
    restart_syscall rmdir rseq rt_sigaction rt_sigprocmask rt_sigreturn rt_sigsuspend
    sched_getaffinity sendfile sendto set_mempolicy set_robust_list set_tid_address setitimer
    setpgid setsid setsockopt shutdown sigaltstack signalfd4 socket socketpair statfs statx
    symlink symlinkat sysinfo timer_create timer_settime umask uname unlink unlinkat utimensat
    vfork wait4 write
"""

# ps (libnuma) and numpy (OpenBLAS) ask where memory lies, glibc for clone3: all of them go
# on without an answer.
TOLERATED = {"get_mempolicy", "set_mempolicy", "mbind", "clone3"}

HARMLESS = {
    "files": """
        open stat lstat pipe dup3 getdents readahead readlinkat linkat renameat mkdirat mknod
        mknodat truncate utime utimes futimesat chown fchownat lchown faccessat fallocate flock
        sync syncfs sync_file_range cachestat setxattr lsetxattr fremovexattr removexattr
        lremovexattr flistxattr llistxattr
    """,
    "reading and writing": """
        readv writev preadv preadv2 pwritev pwritev2 splice tee vmsplice
    """,
    "memory": """
        mincore mlock mlock2 mlockall mremap mseal msync munlock munlockall remap_file_pages
        memfd_create pkey_free pkey_mprotect membarrier shmat shmctl shmdt shmget
    """,
    "waiting": """
        alarm epoll_create epoll_pwait2 eventfd getitimer inotify_init nanosleep pause ppoll
        pselect6 select signalfd timer_delete timer_getoverrun timer_gettime timerfd_create
        timerfd_gettime timerfd_settime futex_requeue futex_wait futex_waitv futex_wake
        get_robust_list
    """,
    "time": "clock_getres clock_gettime gettimeofday time times",
    "processes and signals, as far as the cell's own tree": """
        fork execveat kill tkill tgkill pidfd_open pidfd_send_signal waitid personality
        rt_sigpending rt_sigqueueinfo rt_sigtimedwait rt_tgsigqueueinfo getpgid getsid
        get_thread_area set_thread_area
    """,
    "who one is: nothing to gain without capabilities": """
        capset getresgid getresuid setfsgid setfsuid setgid setgroups setregid setresgid
        setresuid setreuid setuid
    """,
    "limits and scheduling, downwards": """
        getrlimit setrlimit getpriority setpriority getcpu ioprio_get sched_get_priority_max
        sched_get_priority_min sched_getattr sched_getparam sched_getscheduler
        sched_rr_get_interval sched_setaffinity sched_setattr sched_setparam
        sched_setscheduler sched_yield
    """,
    "queues of the cell's own IPC namespace": """
        mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedsend mq_unlink msgctl msgget
        msgrcv msgsnd semctl semget semop semtimedop
    """,
    "what the kernel puts in the way of a traced function, not the program": "uretprobe",
    "sockets that exist": "accept recvmmsg sendmmsg sendmsg",
    "more walls of one's own": """
        seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self
    """,
}

NAMESPACES = {
    "mount": 0x00020000,
    "cgroup": 0x02000000,
    "uts": 0x04000000,
    "ipc": 0x08000000,
    "user": 0x10000000,
    "pid": 0x20000000,
    "net": 0x40000000,
}
SIGCHLD = 17
ORDINARY_CLONES = {
    "fork (glibc)": 0x01200000 | SIGCHLD,  # CHILD_SETTID, CHILD_CLEARTID
    "posix_spawn and vfork": 0x4100 | SIGCHLD,  # VM, VFORK
    "pthread_create (glibc)": 0x003D0F00,
    "pthread_create (musl)": 0x007D0F00,
    "a thread of Go": 0x00050F00,
    "a child with a pidfd": 0x1000 | SIGCHLD,
    "a sibling": 0x8000 | SIGCHLD,
    # CLONE_NEWTIME is in the byte of the exit signal, which clone(2) does not read as flags.
    "time namespace, which only clone3 can make": 0x80 | SIGCHLD,
}
O_RDONLY, O_WRONLY, O_RDWR, O_CREAT, O_EXCL, O_TRUNC = 0, 1, 2, 0o100, 0o200, 0o1000
O_CLOEXEC, TMPFILE_BIT = 0o2000000, 0o20000000
# aarch64 has another O_DIRECTORY; the kernel creates a file for the other bit alone.
O_TMPFILES = (TMPFILE_BIT, TMPFILE_BIT | 0o200000, TMPFILE_BIT | 0o40000)
S_IFREG, S_IFCHR, S_IFBLK, S_IFIFO, S_IFSOCK = 0o100000, 0o20000, 0o60000, 0o10000, 0o140000
SET_ID_MODES = (0o4755, 0o2755, 0o6755, 0o7777, 0o4000, 0o2000)
PLAIN_MODES = (0, 0o644, 0o600, 0o755, 0o777, 0o1777)
FAMILIES = {"unix": 1, "inet": 2, "inet6": 10}
TIOCSTI, TIOCLINUX = 0x5412, 0x541C
IOCTLS = {
    "TCGETS": 0x5401,
    "TIOCSCTTY": 0x540E,
    "TIOCGWINSZ": 0x5413,
    "TIOCSWINSZ": 0x5414,
    "FIONREAD": 0x541B,
    "TIOCCONS": 0x541D,
    "FIONBIO": 0x5421,
    "FIOCLEX": 0x5451,
    "TIOCGPTN": 0x80045430,
    "FICLONE": 0x40049409,
}

Case = tuple[str, tuple[int, ...], int]


def _cases() -> Iterator[Case]:
    """The calls whose arguments decide: name, arguments, answer."""
    for flag in NAMESPACES.values():
        yield "clone", (flag,), EPERM
        yield "clone", (flag | SIGCHLD,), EPERM
        for others in ORDINARY_CLONES.values():
            yield "clone", (flag | others,), EPERM
    for flags in ORDINARY_CLONES.values():
        yield "clone", (flags,), ALLOW
    for family in range(50):
        answer = ALLOW if family in FAMILIES.values() else EAFNOSUPPORT
        for kind in (1, 2, 3, 5, 1 | 0o2004000):
            yield "socket", (family, kind, 0), answer
        yield "socketpair", (family, 1, 0), answer
    yield "socket", (0xFFFFFFFF, 1, 0), EAFNOSUPPORT
    for request in IOCTLS.values():
        yield "ioctl", (0, request, 0), ALLOW
    for request in (TIOCSTI, TIOCLINUX):
        yield "ioctl", (0, request, 0x7FFF0000), EPERM
        yield "ioctl", (request, 0, request), ALLOW
    for persona in (0, 0xFFFFFFFF):  # Linux, and the question which one it is
        yield "personality", (persona,), ALLOW
    for persona in (0x0040000, 0x0400000, 0x8, 0x0020000, 0x0100000, 0x8000000, 1, 0xFFFFFFFE):
        yield "personality", (persona,), EPERM
    for mode in (*SET_ID_MODES, *PLAIN_MODES):
        answer = EPERM if mode & 0o6000 else ALLOW
        yield "chmod", (0x1000, mode), answer
        yield "fchmod", (3, mode), answer
        yield "fchmodat", (0xFFFFFF9C, 0x1000, mode), answer
        yield "creat", (0x1000, mode), answer
        for kind in (0, S_IFREG, S_IFIFO, S_IFSOCK):
            yield "mknod", (0x1000, kind | mode, 0), answer
            yield "mknodat", (0xFFFFFF9C, 0x1000, kind | mode, 0), answer
        for kind in (S_IFCHR, S_IFBLK):
            yield "mknod", (0x1000, kind | mode, 0x103), EPERM
            yield "mknodat", (0xFFFFFF9C, 0x1000, kind | mode, 0x103), EPERM
        for flags in (O_CREAT, O_CREAT | O_WRONLY | O_TRUNC, O_CREAT | O_EXCL, *O_TMPFILES):
            yield "open", (0x1000, flags | O_RDWR, mode), answer
            yield "openat", (0xFFFFFF9C, 0x1000, flags | O_CLOEXEC, mode), answer
        for flags in (O_RDONLY, O_WRONLY | O_TRUNC, O_RDWR | O_CLOEXEC):
            # Without O_CREAT the mode is whatever the register held.
            yield "open", (0x1000, flags, mode), ALLOW
            yield "openat", (0xFFFFFF9C, 0x1000, flags, mode), ALLOW
    # Only its own argument decides.
    yield "chmod", (0o6000, 0o644, 0o6000), ALLOW
    yield "fchmodat", (0o6000, 0o6000, 0o644, 0o6000), ALLOW
    yield "mknod", (0o26000, 0o644, 0o26000), ALLOW
    yield "openat", (O_CREAT, O_CREAT, 0, 0o6000), ALLOW
    yield "clone", (SIGCHLD, 0x7E020000, 0x7E020000, 0x7E020000, 0x7E020000), ALLOW


CASES = tuple(_cases())


@cache
def program(architecture: str) -> bpf.Program:
    return bpf.Program(seccomp.compile_filter(architecture, SILENT))


def answer(architecture: str, number: int, *args: int) -> int:
    data = bpf.data(number, ARCHITECTURES[architecture], *args)
    return program(architecture).run(data).action


@cache
def expected() -> dict[str, int]:
    """Every name's answer where all arguments are 0."""
    table: dict[str, int] = {}

    def enter(names: str, value: int) -> None:
        for name in names.split():
            assert name not in table, f"{name} is listed twice"
            table[name] = value

    for value, names in DANGEROUS.values():
        enter(names, value)
    enter(" ".join(set(NEEDED.split()) - TOLERATED), ALLOW)
    for names in HARMLESS.values():
        enter(names, ALLOW)
    table["socket"] = table["socketpair"] = EAFNOSUPPORT  # AF_UNSPEC
    return table


def cases(architecture: str) -> list[Case]:
    known = numbers(architecture)
    return [case for case in CASES if case[0] in known]


architectures = pytest.mark.parametrize("architecture", ARCHITECTURES)


@architectures
def test_every_known_call_is_listed_here_and_the_filter_answers_as_listed(
    architecture: str,
) -> None:
    known = numbers(architecture)
    assert known.keys() <= expected().keys(), "a call that these lists do not judge"
    found = {name: answer(architecture, number) for name, number in known.items()}
    assert found == {name: expected()[name] for name in known}


def test_every_listed_call_exists_on_some_architecture() -> None:
    known = {name for architecture in ARCHITECTURES for name in numbers(architecture)}
    assert expected().keys() <= known


@architectures
@pytest.mark.parametrize("family", DANGEROUS)
def test_a_dangerous_family_gets_one_answer_whatever_the_arguments(
    family: str, architecture: str
) -> None:
    wanted, names = DANGEROUS[family]
    known = numbers(architecture)
    for name in names.split():
        for value in (0, 1, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF):
            if name in known:
                assert answer(architecture, known[name], *[value] * 6) == wanted, name


@architectures
@pytest.mark.parametrize("name", sorted(NEEDED.split()))
def test_what_ordinary_programs_call_is_allowed_or_known_to_be_tolerated(
    name: str, architecture: str
) -> None:
    known = numbers(architecture)
    if name not in known:
        assert architecture != "x86_64", "it was seen there"
        return
    typical = {"socket": (1, 1, 0), "socketpair": (1, 1, 0)}.get(name, ())
    found = answer(architecture, known[name], *typical)
    assert found in (ENOSYS, EPERM) if name in TOLERATED else found == ALLOW


@architectures
def test_unknown_numbers_are_answered_as_by_a_kernel_that_lacks_them(architecture: str) -> None:
    known = set(numbers(architecture).values())
    unknown = [number for number in range(max(known) + 200) if number not in known]
    unknown += [1000, 4096, 65536, 1 << 20, (1 << 30) - 2, (1 << 30) - 1]
    assert max(known) + 1 in unknown
    assert {answer(architecture, number) for number in unknown} == {ENOSYS}


def test_the_numbers_that_belong_to_x32_are_unknown_without_its_bit() -> None:
    assert {answer("x86_64", number) for number in range(512, 548)} == {ENOSYS}


def test_x32_numbers_kill() -> None:
    known = numbers("x86_64").values()
    for number in (*known, *range(512, 548), 5000, (1 << 30) - 1):
        assert answer("x86_64", number | 1 << 30) == KILL
    for number in (1 << 31, 0xFFFFFFFF, 0xC0000000):
        assert answer("x86_64", number) == KILL
        assert answer("aarch64", number) == ENOSYS, "which has no x32"


@architectures
@pytest.mark.parametrize("foreign", [*FOREIGN, *ARCHITECTURES])
def test_a_foreign_architecture_kills_whatever_the_number(foreign: str, architecture: str) -> None:
    arch = (FOREIGN | ARCHITECTURES)[foreign]
    wanted = {KILL}
    if foreign == architecture:
        wanted = {ALLOW, EPERM, ENOSYS, EAFNOSUPPORT}
    found = {
        program(architecture).run(bpf.data(number, arch)).action
        for number in range(max(numbers(architecture).values()) + 2)
    }
    assert found == wanted


@architectures
def test_arguments_decide_as_listed(architecture: str) -> None:
    known = numbers(architecture)
    for name, args, wanted in cases(architecture):
        shown = f"{name}({', '.join(map(hex, args))})"
        assert answer(architecture, known[name], *args) == wanted, shown


@architectures
@pytest.mark.parametrize("high", [1, 1 << 31, 0xFFFFFFFF, 0x5412, 0x10000000])
def test_the_high_half_of_an_argument_changes_no_answer(architecture: str, high: int) -> None:
    known = numbers(architecture)
    for name, args, wanted in cases(architecture):
        raised = [arg | high << 32 for arg in (*args, *[0] * (6 - len(args)))]
        assert answer(architecture, known[name], *raised) == wanted, name


@architectures
def test_the_filter_looks_at_the_number_the_architecture_and_low_halves_only(
    architecture: str,
) -> None:
    assert program(architecture).loads() <= {0, 4, *(16 + 8 * index for index in range(6))}


@architectures
def test_no_way_leads_out_of_the_program_and_every_instruction_is_of_use(
    architecture: str,
) -> None:
    checked = program(architecture)  # Program refuses any jump or fall past the end
    assert checked.reached() == set(range(len(checked.steps)))
    assert checked.returns() == {ALLOW, KILL, EPERM, ENOSYS, EAFNOSUPPORT, EOPNOTSUPP, DONE}


@architectures
def test_no_call_costs_more_than_24_instructions(architecture: str) -> None:
    # Over every input there is, not only those of these tests.
    assert program(architecture).longest() <= 24
    assert len(program(architecture).steps) <= 350


_WORDS = st.one_of(
    st.integers(0, 0xFFFFFFFF), st.sampled_from([0, 1, 1 << 30, 1 << 31, 0xFFFFFFFF, *range(480)])
)
_ARGUMENTS = st.lists(
    st.one_of(
        st.integers(0, (1 << 64) - 1),
        st.sampled_from(sorted({arg for _, args, _ in CASES for arg in args})),
    ),
    min_size=6,
    max_size=6,
)
_ARCH_WORDS = st.one_of(
    st.sampled_from([*ARCHITECTURES.values(), *FOREIGN.values()]), st.integers(0, 0xFFFFFFFF)
)


@architectures
@given(number=_WORDS, arch=_ARCH_WORDS, args=_ARGUMENTS, pointer=st.integers(0, (1 << 64) - 1))
def test_any_call_at_all_ends_with_one_of_five_answers(
    architecture: str, number: int, arch: int, args: list[int], pointer: int
) -> None:
    checked = program(architecture)
    found = checked.run(bpf.data(number, arch, *args, pointer=pointer))
    assert found.action in (ALLOW, KILL, EPERM, ENOSYS, EAFNOSUPPORT)
    low = [arg & 0xFFFFFFFF for arg in args]
    assert checked.run(bpf.data(number, arch, *low)) == found
    if arch != ARCHITECTURES[architecture]:
        assert found.action == KILL


@given(st.binary(max_size=80))
def test_the_interpreter_refuses_or_ends_on_any_bytes(code: bytes) -> None:
    try:
        checked = bpf.Program(code)
    except bpf.BadProgramError:
        return
    assert checked.run(bpf.data(0, 0)).steps <= checked.longest() <= len(checked.steps)


def _code(*steps: tuple[int, int, int, int]) -> bytes:
    return b"".join(struct.pack("<HBBI", *step) for step in steps)


_END = (bpf.RETURN, 0, 0, ALLOW)


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ([], "0 instructions"),
        ([_END] * 4097, "4097 instructions"),
        ([(bpf.LOAD, 0, 0, 0)], "goes on at 1"),
        ([(bpf.JUMP, 0, 0, 1), _END], "goes on at 2"),
        ([_END, (bpf.JUMP, 0, 0, 0xFFFFFFFE), _END], "outside"),  # back by one
        ([(bpf.EQUAL, 1, 0, 0), _END], "goes on at 2"),
        ([(bpf.EQUAL, 0, 255, 0), _END], "goes on at 256"),
        ([(bpf.LOAD, 0, 0, 64), _END], "loads at 64"),
        ([(bpf.LOAD, 0, 0, 2), _END], "loads at 2"),
        ([(0x28, 0, 0, 0), _END], "unknown opcode 0x28"),  # a half word
        ([(0x16, 0, 0, 0)], "unknown opcode 0x16"),  # BPF_RET | BPF_A
        ([_END, (0x1D, 0, 0, 0), _END], "unknown opcode 0x1d"),  # JEQ with X
    ],
)
def test_the_interpreter_refuses_what_the_kernel_or_it_does_not_know(
    steps: list[tuple[int, int, int, int]], reason: str
) -> None:
    with pytest.raises(bpf.BadProgramError, match=reason):
        bpf.Program(_code(*steps))


def test_the_interpreter_refuses_half_an_instruction() -> None:
    with pytest.raises(bpf.BadProgramError, match="whole"):
        bpf.Program(_code(_END)[:-1])


@pytest.mark.parametrize(
    ("condition", "low", "same", "high"),
    [
        (bpf.EQUAL, False, True, False),
        (bpf.ABOVE, False, False, True),
        (bpf.AT_LEAST, False, True, True),
        (bpf.ANY_BIT, True, True, False),
    ],
)
def test_the_interpreter_compares_without_sign(
    condition: int, low: bool, same: bool, high: bool
) -> None:
    checked = bpf.Program(
        _code(
            (bpf.LOAD, 0, 0, 0),
            (condition, 0, 1, 0x7FFFFFFF),
            (bpf.RETURN, 0, 0, 1),
            (bpf.JUMP, 0, 0, 1),
            (bpf.RETURN, 0, 0, 7),
            (bpf.RETURN, 0, 0, 0),
        )
    )
    for number, holds in ((1, low), (0x7FFFFFFF, same), (0x80000000, high)):
        assert checked.run(bpf.data(number, 0)).action == int(holds)


# The oracle. seccompy has no simulator, so its bytes run in the interpreter above; what its
# rules cannot say is compared elsewhere: it has no rule for a range of numbers (x32 is left
# out here), and no "any of these bits", which becomes one rule for each bit. Its numbers
# and its architecture are those of platform.machine(), so that is what changes.


@pytest.fixture
def oracle(monkeypatch: pytest.MonkeyPatch, architecture: str) -> bpf.Program:
    """The same policy, from the lists of this file, compiled by somebody else."""
    monkeypatch.setattr(platform, "machine", lambda: architecture)
    filter_ = seccompy.Filter(default=ENOSYS)
    low = 0xFFFFFFFF

    def is_(argument: int, value: int) -> Any:
        return (argument, seccompy.CmpOp.MASKED_EQ, value, low)

    def bits(argument: int, mask: int) -> list[Any]:
        single = [1 << bit for bit in range(32) if mask >> bit & 1]
        return [(argument, seccompy.CmpOp.MASKED_EQ, bit, bit) for bit in single]

    def refuse_bits(name: str, argument: int, mask: int) -> None:
        for condition in bits(argument, mask):
            filter_.errno(name, errno.EPERM, args=[condition])

    known = numbers(architecture)
    set_id, device, creates = 0o6000, 0o20000, O_CREAT | TMPFILE_BIT
    for name, argument, mask in (
        ("clone", 0, sum(NAMESPACES.values())),
        ("chmod", 1, set_id),
        ("fchmod", 1, set_id),
        ("fchmodat", 2, set_id),
        ("creat", 1, set_id),
        ("mknod", 1, set_id | device),
        ("mknodat", 2, set_id | device),
    ):
        if name in known:
            refuse_bits(name, argument, mask)
    for name, flags, mode in (("open", 1, 2), ("openat", 2, 3)):
        if name in known:
            for one in bits(flags, creates):
                for two in bits(mode, set_id):
                    filter_.errno(name, errno.EPERM, args=[one, two])
    for request in (TIOCSTI, TIOCLINUX):
        filter_.errno("ioctl", errno.EPERM, args=[is_(1, request)])
    for name in ("socket", "socketpair"):
        for family in FAMILIES.values():
            filter_.allow(name, args=[is_(0, family)])
        filter_.errno(name, errno.EAFNOSUPPORT)
    for persona in (0, 0xFFFFFFFF):
        filter_.allow("personality", args=[is_(0, persona)])
    filter_.errno("personality", errno.EPERM)
    for name in known:
        if expected()[name] == ALLOW and name != "personality":
            filter_.allow(name)
        elif expected()[name] == EPERM:
            filter_.errno(name, errno.EPERM)
    return bpf.Program(filter_.program)


@architectures
def test_a_published_compiler_gives_the_same_answers(
    oracle: bpf.Program, architecture: str
) -> None:
    arch, known = ARCHITECTURES[architecture], numbers(architecture)
    calls = [(number, ()) for number in (*range(max(known.values()) + 20), (1 << 30) - 1)]
    calls += [(known[name], args) for name, args, _ in cases(architecture)]
    calls += [(known[name], (*args, -1 & (1 << 64) - 1)) for name, args, _ in cases(architecture)]
    for number, args in calls:
        data = bpf.data(number, arch, *args)
        assert program(architecture).run(data).action == oracle.run(data).action, (number, args)
    for foreign in FOREIGN.values():
        assert oracle.run(bpf.data(0, foreign)).action == KILL


@architectures
def test_a_published_table_has_the_same_numbers(architecture: str) -> None:
    table = getattr(seccompy.syscalls, f"{architecture.upper()}_SYSCALLS")
    known = numbers(architecture)
    assert known.items() <= table.items()
    later = set(range(463, 1000))  # than Linux 6.11, where ours ends
    elsewhere = set(range(403, 424))  # second calls for time, of 32-bit machines
    uprobe = {336}  # x86_64, Linux 6.18; made by the kernel's own trampoline, past any filter
    assert set(table.values()) - set(known.values()) <= later | elsewhere | uprobe
    assert seccomp.AUDIT_ARCH["x86_64"] == seccompy.syscalls.AUDIT_ARCH_X86_64
    assert seccomp.AUDIT_ARCH["aarch64"] == seccompy.syscalls.AUDIT_ARCH_AARCH64


# The kernel itself: what it answers under the filter. Every argument is -1, which is
# harmless where a call is made after all.
_ASK = """
import ctypes, json, sys
from sandbox_workers import confine, libc
request = json.load(sys.stdin)
call = ctypes.CDLL(None, use_errno=True).syscall
call.restype = ctypes.c_long
args = [ctypes.c_long(-1)] * 6
if request["filter"]:
    libc.do(libc.prctl(libc.PR_SET_NO_NEW_PRIVS, 1))
    libc.do(confine.install_filter(bytes.fromhex(request["filter"])))
answers = []
for number in request["numbers"]:
    ctypes.set_errno(0)
    answers.append(ctypes.get_errno() if call(ctypes.c_long(number), *args) == -1 else 0)
print(json.dumps(answers))
"""


def _ask_the_kernel(code: bytes, asked: list[int]) -> list[int]:
    done = subprocess.run(
        [sys.executable, "-c", _ASK],
        input=json.dumps({"filter": code.hex(), "numbers": asked}),
        capture_output=True,
        text=True,
        timeout=20,
        start_new_session=True,
    )
    assert done.returncode == 0, done.stderr
    answers: list[int] = json.loads(done.stdout)
    return answers


@pytest.mark.isolation
def test_the_kernel_gives_the_answers_of_the_interpreter() -> None:
    architecture = platform.machine()
    ones = [(1 << 64) - 1] * 6
    known = numbers(architecture)
    simulated = {
        number: answer(architecture, number, *ones) for number in range(max(known.values()) + 60)
    }
    # The kernel asks no filter about the two calls that its own trampolines make (Linux 6.14
    # and 6.18), and gives nothing to a program that makes them by hand (SIGILL, ENXIO).
    if architecture == "x86_64":
        del simulated[335], simulated[336]  # uretprobe, uprobe
    refused = {number: a & 0xFFFF for number, a in simulated.items() if a & ~0xFFFF == 0x50000}
    assert len(refused) > 100
    code = seccomp.compile_filter(architecture, SILENT)
    assert _ask_the_kernel(code, list(refused)) == list(refused.values())
    without = [known[name] for name in ("unshare", "ptrace", "clone3", "io_uring_setup")]
    found = _ask_the_kernel(b"", without)
    assert all(one != refused[number] for one, number in zip(found, without, strict=True)), (
        "the control: without the filter the kernel says something else"
    )


@pytest.mark.isolation
@architectures
def test_the_kernel_takes_the_program_of_either_architecture(architecture: str) -> None:
    # Its verifier does not look at the architecture; the next call does.
    code = (
        "import os, sys\nfrom sandbox_workers import confine, libc\n"
        "libc.do(libc.prctl(libc.PR_SET_NO_NEW_PRIVS, 1))\n"
        "print('asks', flush=True)\n"
        f"program = bytes.fromhex('{seccomp.compile_filter(architecture, SILENT).hex()}')\n"
        "libc.do(confine.install_filter(program))\n"
        "os.write(1, b'lives')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=20)
    if architecture == platform.machine():
        assert done.stdout == b"asks\nlives"
        assert done.returncode == 0
    else:
        assert done.stdout == b"asks\n"
        assert done.returncode == -31, "SIGSYS, not an exception for a refused program"


def test_an_unknown_architecture_has_no_program() -> None:
    with pytest.raises(KeyError):
        seccomp.compile_filter("riscv64", SILENT)
