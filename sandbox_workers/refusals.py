"""Refusals: system calls that the filter refused, told by the kernel and answered by init.

A filter can hand a call to whoever holds its listening descriptor (seccomp_unotify(2),
Linux 5.0). The worker gives that descriptor to init before it runs any tool's code. Init
answers every call with EPERM and keeps an account; it never lets one pass.
"""

import errno
import fcntl
import os
import struct
from typing import Any

from sandbox_workers import confine, libc

# struct seccomp_notif and struct seccomp_notif_resp (linux/seccomp.h), and their ioctls.
_NOTICE = struct.Struct("=QIIiIQ6Q")
_ANSWER = struct.Struct("=QqiI")
_RECEIVE = 0xC0502100
_SEND = 0xC0182101
_ALLOW_ALL = struct.pack("=HBBI", 0x06, 0, 0, 0x7FFF0000)
_MOST = 32
_ARGUMENTS = 4


def can_tell() -> bool:
    """Whether a filter of ours can have a descriptor that tells, found out in a child.

    There can be one among all filters of a process, and some containers have theirs.
    """
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            libc.do(
                libc.prctl(libc.PR_SET_NO_NEW_PRIVS, 1), confine.install_told_filter(_ALLOW_ALL)
            )
            status = 0
        finally:
            os._exit(status)
    return os.waitpid(pid, 0)[1] == 0


class Teller:
    """Answers the calls that are told, and keeps an account of them."""

    def __init__(self) -> None:
        """Begin with none."""
        self._counts: dict[int, int] = {}
        self._arguments: dict[int, tuple[int, ...]] = {}

    def answer(self, teller: int) -> bool:
        """Answer one call that was told; False where nobody is left who could make one."""
        notice = bytearray(_NOTICE.size)
        try:
            fcntl.ioctl(teller, _RECEIVE, notice)
            identity, _, _, number, _, _, *arguments = _NOTICE.unpack(notice)
            fcntl.ioctl(teller, _SEND, _ANSWER.pack(identity, 0, -errno.EPERM, 0))
        except OSError as error:
            # ENOENT: the caller was killed, or a signal took it away, in the meantime.
            return error.errno in (errno.ENOENT, errno.EINTR)
        if number in self._counts or len(self._counts) < _MOST:
            self._counts[number] = self._counts.get(number, 0) + 1
            self._arguments.setdefault(number, tuple(arguments[:_ARGUMENTS]))
        return True

    def listed(self) -> list[dict[str, Any]]:
        """Number, first arguments and count of what was refused, in order."""
        return [
            {"number": number, "arguments": self._arguments[number], "count": count}
            for number, count in self._counts.items()
        ]
