"""Claims of both sides of a refused call: how init answers it, and what it is called."""

import errno

import pytest

from sandbox_workers import refusals
from sandbox_workers.refusals import Teller
from toolcell.cells.refusals import in_words
from toolcell.cells.syscalls import numbers

NEWUSER = 0x10000000


class Kernel:
    """Hands out calls, and keeps the answers: number, error, flags."""

    def __init__(self, monkeypatch):
        self.calls, self.answers = [], []
        monkeypatch.setattr(refusals.fcntl, "ioctl", self.ioctl)

    def ioctl(self, fd, request, data):
        if request == refusals._RECEIVE:
            assert bytes(data) == bytes(len(data)), "the kernel refuses any other"
            call = self.calls.pop(0)
            if isinstance(call, OSError):
                raise call
            number, *arguments = call
            arguments += [0] * (6 - len(arguments))
            data[:] = refusals._NOTICE.pack(7, 2, 0, number, 0, 0, *arguments)
        else:
            identity, value, error, flags = refusals._ANSWER.unpack(data)
            assert (identity, value) == (7, 0)
            self.answers.append((-error, flags))


@pytest.fixture
def kernel(monkeypatch):
    return Kernel(monkeypatch)


def tell(kernel, teller, *calls):
    kernel.calls += calls
    return [teller.answer(3) for _ in calls]


def test_a_refused_call_is_answered_and_counted(kernel):
    teller = Teller()
    assert tell(kernel, teller, (165, 1, 2, 3, 4, 5, 6), (165, 9), (272, NEWUSER)) == [True] * 3
    assert kernel.answers == [(errno.EPERM, 0)] * 3
    assert teller.listed() == [
        {"number": 165, "arguments": (1, 2, 3, 4), "count": 2},
        {"number": 272, "arguments": (NEWUSER, 0, 0, 0), "count": 1},
    ]


def test_a_caller_that_was_killed_in_the_meantime_ends_nothing(kernel):
    teller = Teller()
    assert tell(kernel, teller, OSError(errno.ENOENT, "")) == [True]
    assert tell(kernel, teller, OSError(errno.ENOTCONN, "")) == [False]


def test_the_account_is_bounded(kernel):
    teller = Teller()
    tell(kernel, teller, *((number,) for number in range(1000)))
    assert len(teller.listed()) == refusals._MOST
    assert len(kernel.answers) == 1000


@pytest.mark.parametrize("architecture", ["x86_64", "aarch64"])
@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("mount", [], "mount"),
        ("unshare", [0x50000000], "unshare(CLONE_NEWUSER|CLONE_NEWNET)"),
        ("clone", [NEWUSER | 17], "clone(CLONE_NEWUSER)"),
        ("socket", [2], "socket(AF_INET)"),
        ("socket", [200], "socket(200)"),
        ("ioctl", [0, 0x5412], "ioctl(TIOCSTI)"),
        ("ioctl", [0, (1 << 32) | 0x5412], "ioctl(TIOCSTI)"),
        ("personality", [8], "personality(0x8)"),
        ("fchmodat", [0, 0, 0o4755], "fchmodat with a set-id bit"),
        ("mknodat", [0, 0, 0o020666], "mknodat of a device"),
        ("mknodat", [0, 0, 0o104755], "mknodat with a set-id bit"),
    ],
)
def test_a_refused_call_is_named_with_what_made_it_one(
    monkeypatch, architecture, name, arguments, words
):
    monkeypatch.setattr("platform.machine", lambda: architecture)
    arguments = arguments + [0] * (4 - len(arguments))
    told = {"number": numbers(architecture)[name], "arguments": arguments, "count": 1}
    assert in_words([told]) == (words,)


def test_a_number_without_a_name_is_told_as_it_is():
    assert in_words([{"number": 9999, "arguments": [0] * 4, "count": 1}]) == ("system call 9999",)
