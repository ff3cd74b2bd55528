"""The variants of the filter: what is told, and what a cell without namespaces is refused."""

import errno
import itertools
import struct

import pytest

from toolcell.cells import seccomp
from toolcell.cells.seccomp import ALLOW, MISSING, NO_FAMILY, REFUSE, TOLD, UNSUPPORTED, Variant
from toolcell.cells.syscalls import numbers

from . import bpf

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
FULL = Variant()
SILENT = Variant(told=False)
SHARED = Variant(namespaces=False)
OPEN = Variant(namespaces=False, open_network=True)

architectures = pytest.mark.parametrize("architecture", ARCHITECTURES)

_SETS = (0, 1, 2, 10, 16, 17, 40, 0x10000000, 0x20000000, 0x5412, 0x541C, 0o4755, 0o2755, 0o755)


def answer(architecture: str, variant: Variant, name: str, *args: int) -> int:
    program = bpf.Program(seccomp.compile_filter(architecture, variant))
    data = bpf.data(numbers(architecture)[name], ARCHITECTURES[architecture], *args)
    return program.run(data).action


def every_call(architecture: str) -> list[tuple[int, tuple[int, ...]]]:
    """Every number there is, with values that the conditions look for in each place."""
    inputs = [(value,) * 6 for value in _SETS]
    inputs += [(*(0,) * place, value, *(0,) * (5 - place)) for place in (0, 1) for value in _SETS]
    return list(itertools.product(range(max(numbers(architecture).values()) + 20), inputs))


def table(architecture: str, variant: Variant) -> list[int]:
    program = bpf.Program(seccomp.compile_filter(architecture, variant))
    arch = ARCHITECTURES[architecture]
    return [program.run(bpf.data(n, arch, *args)).action for n, args in every_call(architecture)]


@architectures
def test_who_is_told_is_refused_by_a_kernel_that_cannot_tell(architecture: str) -> None:
    pairs = set(zip(table(architecture, FULL), table(architecture, SILENT), strict=True))
    assert (TOLD, REFUSE) in pairs
    assert all(told == silent for told, silent in pairs if told != TOLD)


@architectures
def test_without_namespaces_a_filter_refuses_more_and_allows_nothing_more(
    architecture: str,
) -> None:
    pairs = set(zip(table(architecture, FULL), table(architecture, SHARED), strict=True))
    assert (ALLOW, REFUSE) in pairs
    assert not [pair for pair in pairs if pair[0] != ALLOW and pair[1] == ALLOW]


@architectures
@pytest.mark.parametrize(
    "name",
    [
        "shmget",
        "shmat",
        "semget",
        "semop",
        "msgget",
        "msgsnd",
        "msgrcv",
        "mq_open",
        "mq_unlink",
        "inotify_add_watch",
    ],
)
def test_what_a_namespace_would_have_kept_to_the_cell_is_refused_without(
    architecture: str, name: str
) -> None:
    assert answer(architecture, FULL, name) == ALLOW, "the control"
    assert answer(architecture, SHARED, name) == REFUSE
    assert answer(architecture, OPEN, name) == REFUSE


@architectures
def test_extended_attributes_are_answered_as_by_a_file_system_without(architecture: str) -> None:
    for name in ("setxattr", "lsetxattr", "fsetxattr", "removexattr"):
        assert answer(architecture, SHARED, name) == UNSUPPORTED
        assert UNSUPPORTED & 0xFFFF == errno.EOPNOTSUPP


@architectures
def test_no_sockets_are_made_without_a_network_of_the_cells_own(architecture: str) -> None:
    for family, refused in ((1, REFUSE), (2, TOLD), (10, TOLD), (16, NO_FAMILY), (17, NO_FAMILY)):
        assert answer(architecture, SHARED, "socket", family) == refused
    for family in (2, 10):
        assert answer(architecture, OPEN, "socket", family) == ALLOW
        assert answer(architecture, FULL, "socket", family) == ALLOW
    assert answer(architecture, FULL, "socket", 1) == ALLOW, "its root holds no service's"
    assert answer(architecture, OPEN, "socket", 1) == REFUSE, "the host's root does"
    for kind in (1, 5, 1 | 0x80800):
        assert answer(architecture, SHARED, "socketpair", 1, kind) == ALLOW, "for its two ends only"
    for kind in (2, 3, 2 | 0x80800):
        assert answer(architecture, FULL, "socketpair", 1, kind) == ALLOW
        assert answer(architecture, SHARED, "socketpair", 1, kind) == REFUSE, "connected anew"


@architectures
@pytest.mark.parametrize(
    ("name", "place"),
    [("prlimit64", 0), ("sched_setaffinity", 0), ("sched_setscheduler", 0), ("setpriority", 1)],
)
def test_only_the_callers_own_limits_and_scheduling_can_be_set_without_a_pid_namespace(
    architecture: str, name: str, place: int
) -> None:
    own, other = [0, 0], [0, 0]
    other[place] = 4321
    assert answer(architecture, SHARED, name, *own) == ALLOW
    assert answer(architecture, SHARED, name, *other) == REFUSE
    assert answer(architecture, FULL, name, *other) == ALLOW, "there are no others"
    init = [0, 0]
    init[place] = 1
    assert answer(architecture, FULL, name, *init) == REFUSE, "it has the tool's user"


@architectures
def test_priorities_of_a_group_or_a_user_are_not_the_callers_own(architecture: str) -> None:
    for which in (1, 2):
        assert answer(architecture, SHARED, "setpriority", which, 0) == REFUSE
    assert answer(architecture, FULL, "setpriority", 1, 0) == ALLOW, "the control"
    assert answer(architecture, FULL, "setpriority", 2, 0) == REFUSE, "init is of the same user"


@architectures
def test_no_listener_of_the_tools_own_stands_before_inits(architecture: str) -> None:
    assert answer(architecture, FULL, "seccomp", 1, 0) == ALLOW, "a tool may filter itself further"
    for flags in (8, 8 | 1, 8 | 32):
        assert answer(architecture, FULL, "seccomp", 1, flags) == REFUSE


@architectures
def test_room_past_the_end_of_a_file_is_not_had(architecture: str) -> None:
    for mode in (0x01, 0x11, 0x41):
        assert answer(architecture, FULL, "fallocate", 3, mode) == UNSUPPORTED
    for mode in (0, 0x02 | 0x01, 0x08, 0x10, 0x20, 0x40):
        assert answer(architecture, FULL, "fallocate", 3, mode) == ALLOW


@architectures
def test_what_reaches_for_more_is_told_and_what_is_asked_in_passing_is_not(
    architecture: str,
) -> None:
    for name in ("mount", "ptrace", "bpf", "keyctl", "setns", "reboot", "pidfd_getfd"):
        assert answer(architecture, FULL, name) == TOLD
    assert answer(architecture, FULL, "unshare", 0x10000000) == TOLD
    assert answer(architecture, FULL, "clone", 0x10000000) == TOLD
    assert answer(architecture, FULL, "ioctl", 0, 0x5412) == TOLD
    for name in ("mbind", "set_mempolicy", "move_pages", "ioprio_set"):
        assert answer(architecture, FULL, name) == REFUSE
    assert answer(architecture, FULL, "clone3") == MISSING


@architectures
@pytest.mark.parametrize("variant", [FULL, SHARED, OPEN, Variant(set_group_id=True)])
def test_every_variant_is_a_whole_program(architecture: str, variant: Variant) -> None:
    code = seccomp.compile_filter(architecture, variant)
    checked = bpf.Program(code)
    assert checked.reached() == set(range(len(checked.steps)))
    assert checked.longest() <= 24
    assert len(code) % struct.calcsize("=HBBI") == 0
