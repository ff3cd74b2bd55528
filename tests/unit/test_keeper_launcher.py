"""Claims of the pure parts of `sandbox_workers`: calls prepared, ordered, checked, told."""

import ctypes
import errno
import os
from pathlib import Path

import pytest

from sandbox_workers import claims, jail, launcher, libc, private
from sandbox_workers.libc import Call, SystemCallError
from toolcell.model import Limits

RULES = {"files": 1, "tcp": 0, "scopes": 0, "rules": [("/usr", 1), ("/tmp", 1)]}
_ALLOW = "06000000" + "0000ff7f"
PLAN = {
    "rung": "full",
    "limits": Limits().in_the_cell(),
    "landlock": RULES,
    "seccomp": _ALLOW,
    "seccomp_silent": _ALLOW,
}


ENDS = [20, 21, 22, 23]


def jailed(told=True, **changes):
    """The names of the steps of a jail."""
    return [step.name for step in jail.prepare(PLAN | changes, ENDS, 24 if told else None)]


def call(result, name="call", number=0, path=None, made=None):
    """A call that gives a result without asking the kernel."""

    def function(*arguments):
        if made is not None:
            made.append(name)
        ctypes.set_errno(number)
        return result

    return Call(function, (), name, path)


def test_calls_are_made_in_order_until_one_fails_and_that_one_is_named():
    made = []
    calls = [
        call(0, "first", made=made),
        call(-1, "second", errno.EPERM, "/a", made),
        call(-1, "third", errno.ENOENT, made=made),
    ]
    with pytest.raises(SystemCallError) as caught:
        libc.do(*calls)
    assert made == ["first", "second"]
    assert (caught.value.call, caught.value.errno, caught.value.filename) == ("second", 1, "/a")
    assert str(caught.value) == "second on /a failed: Operation not permitted (errno 1)"


def test_the_last_result_is_returned():
    assert libc.do(call(3), call(7)) == 7
    assert libc.do() == 0


def test_another_result_than_the_expected_one_is_a_failure():
    assert libc.do(call(5).returns(5)) == 5
    with pytest.raises(SystemCallError) as caught:
        libc.do(call(6, "open").returns(5))
    assert (caught.value.call, caught.value.errno) == ("open", errno.EBADF)


def test_a_descriptor_with_an_unexpected_number_is_found_in_the_kernel_too():
    lowest = os.open("/dev/null", os.O_RDONLY)
    os.close(lowest)
    opened = libc.open_file("/dev/null", os.O_RDONLY)
    assert libc.do(opened.returns(lowest), libc.close(lowest)) == 0
    with pytest.raises(SystemCallError, match="open on /dev/null failed"):
        libc.do(opened.returns(lowest + 1))
    os.close(lowest)


def test_writing_less_than_everything_is_a_failure():
    read, write = os.pipe()
    os.set_blocking(write, False)
    try:
        assert libc.do(libc.write(write, b"whole")) == 5
        with pytest.raises(SystemCallError, match="write"):
            libc.do(libc.write(write, bytes(1 << 20)))
    finally:
        os.close(read)
        os.close(write)


def test_the_jail_begins_with_descriptors_and_ends_with_the_filter():
    filter_name = f"prctl {libc.PR_SET_SECCOMP}"
    names = jailed(told=False)
    assert names[:6] == ["dup3"] * 5 + ["close_range"]
    assert names[-3:] == [filter_name, "close", "setrlimit"]
    assert names.count(filter_name) == 1


def test_the_descriptor_that_tells_is_given_away_and_closed_before_a_tool_runs():
    steps = jail.prepare(PLAN, ENDS, 24)
    *_, install, send, first, second, limit = steps
    names = [step.name for step in (install, send, first, second, limit)]
    assert names == ["seccomp", "sendmsg", "close", "close", "setrlimit"]
    assert {first.arguments[0], second.arguments[0]} == {install.expected, send.arguments[0]}
    assert limit.arguments[0] == jail.resource.RLIMIT_NOFILE, "or it would count for the message"


@pytest.mark.parametrize("told", [True, False])
def test_the_steps_of_the_jail_come_in_the_order_that_they_need(told):
    names = jailed(told)
    no_new_privileges = names.index(f"prctl {libc.PR_SET_NO_NEW_PRIVS}")
    assert names.index("close_range") < names.index("unshare"), "nothing inherited is open"
    assert names.index("unshare") < names.index("setrlimit"), "processes count per namespace"
    assert no_new_privileges < names.index("capset"), "rights go for good"
    assert no_new_privileges < names.index("landlock_restrict_self")


def test_a_kernel_without_landlock_leaves_out_that_step_only():
    with_it, without = jailed(), jailed(landlock=None)
    first = with_it.index("landlock_create_ruleset")
    last = with_it.index("landlock_restrict_self") + 1
    assert without == with_it[:first] + with_it[last + 1 :]


def test_without_namespaces_the_steps_that_need_one_are_left_out_and_the_walls_are_not():
    names = jailed(rung="landlock")
    assert "unshare" not in names
    assert {"landlock_restrict_self", "seccomp", "capset", "setrlimit"} <= set(names)
    assert f"prctl {libc.PR_SET_NO_NEW_PRIVS}" in names
    assert f"prctl {libc.PR_SET_PDEATHSIG}" in names


def test_without_walls_only_descriptors_and_limits_are_left():
    bare = {"rung": "none", "landlock": None, "seccomp": None, "seccomp_silent": None}
    kinds = {"dup3", "close_range", "close", "sigprocmask", "setsid", "setrlimit", "open", "write"}
    assert set(jailed(told=False, **bare)) == kinds | {f"prctl {libc.PR_SET_PDEATHSIG}"}


def test_the_worker_finds_its_pipes_where_it_looks_for_them():
    placed = [step.arguments for step in jail.place_descriptors(ENDS, 24)[:4]]
    inherited, closed_on_exec = 0, os.O_CLOEXEC
    assert placed == [
        (22, 1, inherited),
        (23, 2, inherited),
        (20, jail.REQUEST, closed_on_exec),
        (21, jail.REPLY, closed_on_exec),
    ]


def test_hard_limits_are_the_soft_ones_but_for_a_second_that_tells_of_cpu():
    limits = {"cpu": 3, "memory": 1, "processes": 2, "file_size": 5}
    pairs = {}
    for step in jail.set_limits(limits, namespaces=True):
        (limit,) = step.kept
        pairs[step.arguments[0]] = (limit.soft, limit.hard)
    assert pairs[jail.resource.RLIMIT_CPU] == (3, 4)
    del pairs[jail.resource.RLIMIT_CPU]
    assert all(soft == hard for soft, hard in pairs.values())


def test_without_a_user_namespace_the_limit_on_processes_leaves_room_for_the_users_others():
    limits = {"cpu": 3, "memory": 1, "processes": 2, "file_size": 5}
    steps = jail.set_limits(limits, namespaces=False)
    (step,) = (step for step in steps if step.arguments[0] == jail.resource.RLIMIT_NPROC)
    own = sum(1 for _ in Path("/proc/self/task").iterdir())
    assert step.kept[0].soft >= own + jail._ROOM + 2
    assert limits["processes"] == 2


def test_the_lowest_free_number_is_taken_as_the_kernel_does():
    free = private.Free([0, 1, 2, 5])
    assert [free.take() for _ in range(3)] == [3, 4, 6]
    free.release(4)
    assert [free.take() for _ in range(2)] == [4, 7]


def test_the_words_of_an_exception_are_bounded_and_can_be_sent():
    class MuteError(Exception):
        def __str__(self):
            raise SystemExit

    assert claims.words(ValueError("as it is")) == "as it is"
    assert claims.words(MuteError()) == "a MuteError that cannot be shown"
    assert claims.words("\ud800 lone") == "? lone"
    assert len(claims.words("x" * 10**6)) == claims._MESSAGE_CAP


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (SystemCallError("mount proc", errno.EPERM, "/proc"), "mount proc on /proc failed"),
        (FileNotFoundError(errno.ENOENT, "No such file", "/x"), "No such file (/x)"),
        (OSError("a descriptor leaked"), "a descriptor leaked"),
    ],
)
def test_what_failed_at_the_start_is_told_in_the_words_of_the_system(error, words):
    told = launcher.describe("the keeper", error)
    assert told["stage"] == "the keeper"
    assert told["message"].startswith(words)
    assert told["errno"] == error.errno
