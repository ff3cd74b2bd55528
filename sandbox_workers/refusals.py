"""Refusals: system calls that the filter hands to init, which answers them.

A filter can hand a call to whoever holds its listening descriptor (seccomp_unotify(2),
Linux 5.0). The worker gives that descriptor to init before it runs any tool's code.

    calls that reach for more    EPERM, and an account of them for the controller
    clone, fork and vfork        where no user namespace counts processes: as long as there
                                 are fewer than the limit, they go on; then EAGAIN

To let a call go on is only safe where nothing that decides lies in memory, which the caller
could change meanwhile; the flags of clone are in a register.
"""

import errno
import fcntl
import os
import struct
import time
from typing import Any

from sandbox_workers import libc, sweep

# struct seccomp_notif and struct seccomp_notif_resp (linux/seccomp.h), and their ioctls.
_NOTICE = struct.Struct("=QIIiIQ6Q")
_ANSWER = struct.Struct("=QqiI")
_RECEIVE = 0xC0502100
_SEND = 0xC0182101
_CONTINUE = 1  # SECCOMP_USER_NOTIF_FLAG_CONTINUE, Linux 5.5

_NAMESPACES = (
    libc.CLONE_NEWNS
    | libc.CLONE_NEWCGROUP
    | libc.CLONE_NEWUTS
    | libc.CLONE_NEWIPC
    | libc.CLONE_NEWUSER
    | libc.CLONE_NEWPID
    | libc.CLONE_NEWNET
)

_ALLOW_ALL = struct.pack("=HBBI", 0x06, 0, 0, 0x7FFF0000)
_MOST = 32
_FULL_SECONDS = 0.005
_JUST_NOW = 1.0
_ARGUMENTS = 4


def can_tell() -> bool:
    """Whether a filter of ours can have a descriptor that tells, found out in a child.

    There can be one among all filters of a process, and some containers have theirs.
    """
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            libc.do(libc.prctl(libc.PR_SET_NO_NEW_PRIVS, 1), libc.install_told_filter(_ALLOW_ALL))
            status = 0
        finally:
            os._exit(status)
    return os.waitpid(pid, 0)[1] == 0


class Teller:
    """Answers the calls that are told, and keeps an account of those refused."""

    def __init__(self, forks: list[int], limit: int) -> None:
        """`forks` are the calls to be counted by number, clone first; `limit` the most tasks."""
        self._forks = forks
        self._limit = limit
        self._room = 0
        self._full_until = 0.0
        self._counts: dict[int, int] = {}
        self._arguments: dict[int, tuple[int, ...]] = {}
        self.started = 1 if forks else -1  # the worker
        self._refused_at = float("-inf")

    def answer(self, teller: int) -> bool:
        """Answer one call that was told; False where nobody is left who could make one."""
        notice = bytearray(_NOTICE.size)
        try:
            fcntl.ioctl(teller, _RECEIVE, notice)
            identity, _, _, number, _, _, *arguments = _NOTICE.unpack(notice)
            # Only clone has flags; in the others the register holds anything.
            is_clone = number in self._forks[:1]
            if number in self._forks and not (is_clone and arguments[0] & _NAMESPACES):
                error, flags = self._count()
            else:
                error, flags = errno.EPERM, 0
                self._note(number, tuple(arguments[:_ARGUMENTS]))
            fcntl.ioctl(teller, _SEND, _ANSWER.pack(identity, 0, -error, flags))
        except OSError as error:
            # ENOENT: the caller was killed in the meantime.
            return error.errno in (errno.ENOENT, errno.EINTR)
        return True

    def at_limit(self) -> bool:
        """Whether a start was refused just now."""
        return time.monotonic() - self._refused_at < _JUST_NOW

    def listed(self) -> list[dict[str, Any]]:
        """Number, first arguments and count of what was refused, in order."""
        return [
            {"number": number, "arguments": self._arguments[number], "count": count}
            for number, count in self._counts.items()
        ]

    def _count(self) -> tuple[int, int]:
        """Error and flags for one more task; all are counted anew once there may be too many."""
        if self._room <= 0 and time.monotonic() >= self._full_until:
            self._room = self._limit - sweep.tasks()
            # Counting takes long where there are many, and a bomb asks without end.
            self._full_until = time.monotonic() + _FULL_SECONDS
        if self._room <= 0:
            self._refused_at = time.monotonic()
            return errno.EAGAIN, 0
        self._room -= 1
        self.started += 1
        return 0, _CONTINUE

    def _note(self, number: int, arguments: tuple[int, ...]) -> None:
        if number in self._counts or len(self._counts) < _MOST:
            self._counts[number] = self._counts.get(number, 0) + 1
            self._arguments.setdefault(number, arguments)
