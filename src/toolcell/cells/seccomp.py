"""seccomp: the system calls that a cell may make, compiled to a BPF program.

    foreign architecture, x32        the process is killed
    known, and not for tools         EPERM, so that a program says what it was refused
    among these, a reach for more    init is told, and answers EPERM (seccomp_unotify(2))
    clone3, openat2, io_uring_setup  ENOSYS, so that programs take the older way
    unknown                          ENOSYS, as on a kernel that does not have it

The filter is a list of what is allowed, with conditions on some arguments. A condition
only sees registers: what a pointer leads to can change after the check, which is why
clone3 and openat2, whose flags lie in memory, are not allowed at all.

A filter for a cell without namespaces refuses more: what a namespace would have kept to the
cell (System V IPC, message queues, sockets, limits of other processes), and what Landlock
does not cover (extended attributes, watches on directories).

The program is a search tree over ranges of numbers with equal answers. It is compiled
here, on the trusted side, and only installed in the cell. Classic BPF, seccomp(2).
"""

import errno
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from toolcell.cells.syscalls import numbers

AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32_BIT = 0x40000000

KILL = 0x80000000  # SECCOMP_RET_KILL_PROCESS
ALLOW = 0x7FFF0000
_ERRNO = 0x00050000
REFUSE = _ERRNO | errno.EPERM
MISSING = _ERRNO | errno.ENOSYS
TOLD = 0x7FC00000  # SECCOMP_RET_USER_NOTIF, Linux 5.0
DONE = _ERRNO | 0
UNSUPPORTED = _ERRNO | errno.EOPNOTSUPP
NO_FAMILY = _ERRNO | errno.EAFNOSUPPORT

_ALLOWED = """
    accept accept4 access alarm arch_prctl bind brk cachestat capget capset chdir chmod chown
    clock_getres clock_gettime clock_nanosleep clone close close_range connect copy_file_range
    creat dup dup2 dup3 epoll_create epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait
    eventfd eventfd2 execve execveat exit exit_group faccessat faccessat2 fadvise64 fallocate
    fchdir fchmod fchmodat fchown fchownat fcntl fdatasync fgetxattr flistxattr flock fork
    fremovexattr fsetxattr fstat fstatfs fsync ftruncate futex futex_requeue futex_wait
    futex_waitv futex_wake futimesat get_robust_list get_thread_area getcpu getcwd getdents
    getdents64 getegid geteuid getgid getgroups getitimer getpeername getpgid getpgrp getpid
    getppid getpriority getrandom getresgid getresuid getrlimit getrusage getsid getsockname
    getsockopt gettid gettimeofday getuid getxattr inotify_add_watch inotify_init
    inotify_init1 inotify_rm_watch ioctl ioprio_get kill landlock_add_rule
    landlock_create_ruleset landlock_restrict_self lchown lgetxattr link linkat listen
    listxattr llistxattr lremovexattr lseek lsetxattr lstat madvise membarrier memfd_create
    mincore mkdir mkdirat mknod mknodat mlock mlock2 mlockall mmap mprotect mq_getsetattr
    mq_notify mq_open mq_timedreceive mq_timedsend mq_unlink mremap mseal msgctl msgget msgrcv
    msgsnd msync munlock munlockall munmap nanosleep newfstatat open openat pause personality
    pidfd_open pidfd_send_signal pipe pipe2 pkey_alloc pkey_free pkey_mprotect poll ppoll prctl
    pread64 preadv preadv2 prlimit64 pselect6 pwrite64 pwritev pwritev2 read readahead readlink
    readlinkat readv recvfrom recvmmsg recvmsg remap_file_pages removexattr rename renameat
    renameat2 restart_syscall rmdir rseq rt_sigaction rt_sigpending rt_sigprocmask
    rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo
    sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr
    sched_getparam sched_getscheduler sched_rr_get_interval sched_setaffinity sched_setattr
    sched_setparam sched_setscheduler sched_yield seccomp select semctl semget semop semtimedop
    sendfile sendmmsg sendmsg sendto set_robust_list set_thread_area set_tid_address setfsgid
    setfsuid setgid setgroups setitimer setpgid setpriority setregid setresgid setresuid
    setreuid setrlimit setsid setsockopt setuid setxattr shmat shmctl shmdt shmget shutdown
    sigaltstack signalfd signalfd4 socket socketpair splice stat statfs statx symlink symlinkat
    sync sync_file_range syncfs sysinfo tee tgkill time timer_create timer_delete
    timer_getoverrun timer_gettime timer_settime timerfd_create timerfd_gettime
    timerfd_settime times tkill truncate umask uname unlink unlinkat uretprobe utime utimensat
    utimes vfork vmsplice wait4 waitid write writev
"""

_ANSWERED_MISSING = """
    clone3 openat2 fchmodat2 io_uring_setup io_uring_enter io_uring_register io_setup io_submit
    io_getevents io_pgetevents io_destroy io_cancel statmount listmount map_shadow_stack
    lsm_get_self_attr lsm_set_self_attr lsm_list_modules _sysctl sysfs ustat uselib getpmsg
    putpmsg afs_syscall tuxcall security vserver
"""

_TOLD = """
    acct add_key bpf chroot clock_adjtime clock_settime delete_module fanotify_init finit_module
    fsconfig fsmount fsopen fspick init_module ioperm iopl kcmp kexec_file_load kexec_load keyctl
    mount mount_setattr move_mount name_to_handle_at open_by_handle_at open_tree
    perf_event_open pidfd_getfd pivot_root process_vm_readv process_vm_writev ptrace quotactl
    quotactl_fd reboot request_key setdomainname sethostname setns settimeofday swapoff swapon
    syslog umount2 unshare userfaultfd
"""
"""Refused calls that reach for more than a tool has. The others that are refused are made by
honest programs in passing, such as the placing of memory on a machine's nodes."""

_OWN_IPC_ONLY = """
    shmget shmat shmctl semget semop semtimedop semctl msgget msgsnd msgrcv msgctl
    mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr
"""
_WATCHES = "inotify_init inotify_init1 inotify_add_watch"
_ATTRIBUTES = "setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr"

# FALLOC_FL_KEEP_SIZE alone, with ZERO_RANGE and with UNSHARE_RANGE: they take room past the
# end of a file, which RLIMIT_FSIZE does not count.
_BEYOND_THE_END = (0x01, 0x11, 0x41)

NAMESPACES = {
    0x00020000: "CLONE_NEWNS",
    0x02000000: "CLONE_NEWCGROUP",
    0x04000000: "CLONE_NEWUTS",
    0x08000000: "CLONE_NEWIPC",
    0x10000000: "CLONE_NEWUSER",
    0x20000000: "CLONE_NEWPID",
    0x40000000: "CLONE_NEWNET",
}
"""The flags of clone(2) and unshare(2) that make a namespace, with their names."""

NEW_TIME = 0x80  # of unshare only: clone has its signal there
_NAMESPACES = sum(NAMESPACES)
SET_USER_ID = 0o4000
SET_GROUP_ID = 0o2000
_DEVICE_BIT = 0o020000  # set in S_IFCHR and S_IFBLK, not in files, pipes and sockets
_CREATES = 0o100 | 0o20000000  # O_CREAT, and __O_TMPFILE without O_DIRECTORY
_AF_UNIX, _AF_INET, _AF_INET6 = 1, 2, 10
_SOCK_DGRAM = 2  # a bit of SOCK_RAW (3) too, and not of SOCK_STREAM (1) and SOCK_SEQPACKET (5)
_PR_SET_DUMPABLE = 4
_PRIO_PROCESS, _PRIO_USER = 0, 2
_NEW_LISTENER = 8  # SECCOMP_FILTER_FLAG_NEW_LISTENER
_ON_PROCESSES = (
    *("prlimit64", "sched_setaffinity", "sched_setattr", "sched_setparam"),
    "sched_setscheduler",
)
REQUESTS = {0x5412: "TIOCSTI", 0x541C: "TIOCLINUX"}
"""The requests of ioctl(2) that put input into a terminal, with their names."""


class Test(NamedTuple):
    """A look at the low 32 bits of one argument, which is all the kernel itself takes of these.

    `kind` is "any" (some bit of `value` is set) or "is" (equal to `value`).
    """

    argument: int
    kind: str
    value: int


@dataclass(frozen=True, slots=True)
class Guard:
    """The answer to a call by its arguments: the first rule all of whose tests hold."""

    rules: tuple[tuple[tuple[Test, ...], int], ...]
    otherwise: int = ALLOW


def _refuse_if(*tests: Test) -> Guard:
    return Guard(((tests, REFUSE),))


def _tell_if(*tests: Test) -> Guard:
    return Guard(((tests, TOLD),))


def _only(argument: int, values: Iterable[int], otherwise: int) -> Guard:
    return Guard(tuple(((Test(argument, "is", v),), ALLOW) for v in values), otherwise)


_FAMILIES = _only(0, (_AF_UNIX, _AF_INET, _AF_INET6), NO_FAMILY)


def _shared_network(internet: int) -> Guard:
    """Which sockets there are where the host's are near; `internet` is the answer for IP.

    No unix sockets: a service's may lie anywhere in the host's tree, and Landlock does not
    cover a connection to one (before Linux 7). Netlink is asked for in passing by every
    look-up of a host's name.
    """
    rules = [((Test(0, "is", family),), internet) for family in (_AF_INET, _AF_INET6)]
    return Guard((*rules, ((Test(0, "is", _AF_UNIX),), REFUSE)), NO_FAMILY)


def guards(set_id_bits: int) -> dict[str, Guard]:
    """The conditions on arguments, by call; modes with one of `set_id_bits` are refused.

    A file with them, made in the workspace, would lend its owner's or group's rights to
    every other user of the host, and its owner may be root.
    """
    mode, node = set_id_bits, set_id_bits | _DEVICE_BIT
    return {
        "clone": _tell_if(Test(0, "any", _NAMESPACES)),
        "unshare": Guard((((Test(0, "any", _NAMESPACES | NEW_TIME),), TOLD),), REFUSE),
        "socket": _FAMILIES,
        "socketpair": _FAMILIES,
        # On the low 32 bits, as the kernel reads it (CVE-2019-10063).
        "ioctl": Guard(tuple(((Test(1, "is", v),), TOLD) for v in REQUESTS)),
        "personality": _only(0, (0, 0xFFFFFFFF), TOLD),
        # The newest filter is asked first: a listener of the tool's own could let pass what
        # init is to refuse, once init is gone.
        "seccomp": _refuse_if(Test(1, "any", _NEW_LISTENER)),
        # A tool has init's user: it must not set the limits and priority of PID 1.
        **{name: _refuse_if(Test(0, "is", 1)) for name in _ON_PROCESSES},
        "setpriority": Guard(
            (
                ((Test(0, "is", _PRIO_USER),), REFUSE),
                ((Test(0, "is", _PRIO_PROCESS), Test(1, "is", 1)), REFUSE),
            )
        ),
        # As if done: what hides from the watch that measures it must not.
        "prctl": Guard((((Test(0, "is", _PR_SET_DUMPABLE),), DONE),)),
        "fallocate": Guard(
            tuple(((Test(1, "is", mode),), UNSUPPORTED) for mode in _BEYOND_THE_END)
        ),
        "chmod": _tell_if(Test(1, "any", mode)),
        "fchmod": _tell_if(Test(1, "any", mode)),
        "fchmodat": _tell_if(Test(2, "any", mode)),
        "creat": _tell_if(Test(1, "any", mode)),
        "mknod": _tell_if(Test(1, "any", node)),
        "mknodat": _tell_if(Test(2, "any", node)),
        "open": _tell_if(Test(1, "any", _CREATES), Test(2, "any", mode)),
        "openat": _tell_if(Test(2, "any", _CREATES), Test(3, "any", mode)),
    }


def _without_namespaces(*, open_network: bool) -> dict[str, int | Guard]:
    """The answers that differ in a cell that shares the host's namespaces."""
    refused = dict.fromkeys((_OWN_IPC_ONLY + _WATCHES).split(), REFUSE)
    own: dict[str, int | Guard] = {
        # 0 is the caller itself; any other may be a process outside.
        **{name: _only(0, (0,), REFUSE) for name in _ON_PROCESSES},
        "setpriority": Guard(
            (((Test(0, "is", _PRIO_PROCESS), Test(1, "is", 0)), ALLOW),), otherwise=REFUSE
        ),
        # A pair of datagram sockets can be connected anew, to a service of the host's; SOCK_RAW
        # is another name for them (unix(7)).
        "socketpair": Guard(
            (((Test(1, "any", _SOCK_DGRAM),), REFUSE), *_FAMILIES.rules), _FAMILIES.otherwise
        ),
    }
    own["socket"] = _shared_network(ALLOW if open_network else TOLD)
    return refused | dict.fromkeys(_ATTRIBUTES.split(), UNSUPPORTED) | own


class Instruction(NamedTuple):
    """One classic BPF instruction (linux/filter.h)."""

    code: int
    jump_true: int
    jump_false: int
    value: int


_LOAD = 0x20  # BPF_LD | BPF_W | BPF_ABS
_EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_AT_LEAST = 0x35  # BPF_JMP | BPF_JGE | BPF_K
_ANY_BIT = 0x45  # BPF_JMP | BPF_JSET | BPF_K
_JUMP = 0x05  # BPF_JMP | BPF_JA
_RETURN = 0x06  # BPF_RET | BPF_K
_FARTHEST = 255  # a conditional jump's reach

# Offsets in struct seccomp_data; both architectures are little endian.
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16


@dataclass(frozen=True, slots=True)
class Variant:
    """What a filter is for.

    `set_group_id` allows that bit, for workspaces whose directories inherit it.
    `namespaces` says that the cell has its own, `open_network` that it has the host's
    network. `told` has init told of what was refused.
    """

    set_group_id: bool = False
    namespaces: bool = True
    open_network: bool = False
    told: bool = True


@cache
def compile_filter(architecture: str, variant: Variant) -> bytes:
    """Return the program for one architecture, as an array of struct sock_filter."""
    program = instructions(architecture, variant)
    return b"".join(struct.pack("=HBBI", *item) for item in program)


def instructions(architecture: str, variant: Variant) -> list[Instruction]:
    """Return the program for one architecture; raises KeyError for one it does not know."""
    known = numbers(architecture)
    answers: dict[int, int | Guard] = dict.fromkeys(known.values(), REFUSE)
    for name, answer in _answers(variant).items():
        if name in known:
            answers[known[name]] = answer if variant.told else _silent(answer)
    return [
        Instruction(_LOAD, 0, 0, _ARCHITECTURE),
        Instruction(_EQUAL, 1, 0, AUDIT_ARCH[architecture]),
        Instruction(_RETURN, 0, 0, KILL),
        Instruction(_LOAD, 0, 0, _NUMBER),
        *_x32(architecture),
        *_tree(_ranges(answers)),
    ]


def _answers(variant: Variant) -> dict[str, int | Guard]:
    """The answers by name; what is not here is refused."""
    set_id_bits = SET_USER_ID | (0 if variant.set_group_id else SET_GROUP_ID)
    answers: dict[str, int | Guard] = dict.fromkeys(_ANSWERED_MISSING.split(), MISSING)
    answers |= dict.fromkeys(_TOLD.split(), TOLD)
    answers |= dict.fromkeys(_ALLOWED.split(), ALLOW)
    answers |= guards(set_id_bits)
    if not variant.namespaces:
        answers |= _without_namespaces(open_network=variant.open_network)
    return answers


def _silent(answer: int | Guard) -> int | Guard:
    """The same answer for a kernel that cannot tell."""
    if isinstance(answer, int):
        return REFUSE if answer == TOLD else answer
    rules = tuple((tests, REFUSE if result == TOLD else result) for tests, result in answer.rules)
    return Guard(rules, REFUSE if answer.otherwise == TOLD else answer.otherwise)


def _x32(architecture: str) -> list[Instruction]:
    """x32 shares x86_64's architecture and sets a bit of the number."""
    if architecture != "x86_64":
        return []
    return [Instruction(_AT_LEAST, 0, 1, _X32_BIT), Instruction(_RETURN, 0, 0, KILL)]


def _ranges(answers: dict[int, int | Guard]) -> list[tuple[int, int | Guard]]:
    """Numbers from 0 up as (first number, answer) where the answer changes."""
    ranges: list[tuple[int, int | Guard]] = []
    for number in range(max(answers) + 2):
        answer = answers.get(number, MISSING)
        if not ranges or ranges[-1][1] != answer:
            ranges.append((number, answer))
    return ranges


def _tree(ranges: list[tuple[int, int | Guard]]) -> list[Instruction]:
    if len(ranges) == 1:
        return _leaf(ranges[0][1])
    middle = len(ranges) // 2
    low, high = _tree(ranges[:middle]), _tree(ranges[middle:])
    first = ranges[middle][0]
    if len(low) <= _FARTHEST:
        return [Instruction(_AT_LEAST, len(low), 0, first), *low, *high]
    far = Instruction(_JUMP, 0, 0, len(low))
    return [Instruction(_AT_LEAST, 0, 1, first), far, *low, *high]


def _leaf(answer: int | Guard) -> list[Instruction]:
    if isinstance(answer, int):
        return [Instruction(_RETURN, 0, 0, answer)]
    program: list[Instruction] = []
    for tests, result in answer.rules:
        rule: list[Instruction] = [Instruction(_RETURN, 0, 0, result)]
        for test in reversed(tests):
            code = _ANY_BIT if test.kind == "any" else _EQUAL
            # A test that fails skips the rest of its rule.
            rule = [
                Instruction(_LOAD, 0, 0, _ARGUMENTS + 8 * test.argument),
                Instruction(code, 0, len(rule), test.value),
                *rule,
            ]
        program += rule
    return [*program, Instruction(_RETURN, 0, 0, answer.otherwise)]
