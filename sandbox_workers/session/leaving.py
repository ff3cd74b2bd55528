"""Leaving: the files that a call left in the outbox of its branch, sent while the session goes on.

A child of the host does it, as `outbox` does it for a cell: to open what a tool made may take
its time, and must not hold up the host. What was sent is removed.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from sandbox_workers import outbox, scratch
from sandbox_workers.session.loop import Loop

_READ = 64 * 1024
_CLEAR_SECONDS = 1.0
# Where the host's own lies, as it found it before any code ran.
_FIRST = os.environ.get("TOOLCELL_OUTBOX", "")


def place(branch: int) -> str:
    """The directory that holds a branch's outbox; that of the first one is the cell's."""
    above = str(Path(_FIRST).parent)
    return f"{above}/toolcell-branch-{branch}" if branch else above


def make(branch: int) -> str:
    """Make the outbox of a copy, and return its path."""
    os.mkdir(place(branch), 0o700)  # noqa: PTH102  # as the worker makes the first one
    return outbox.make(place(branch))


class Leaving:
    """One sending, from its start to its end."""

    def __init__(self, loop: Loop, fd: int) -> None:
        self._loop = loop
        self._fd = fd
        self._read: Callable[[], object] | None = None
        self._ends: list[Callable[[], object]] = []

    @classmethod
    def begin(cls, loop: Loop, branch: int, limits: dict[str, int]) -> "Leaving | None":
        """Start to send, if there is anything; raises OSError."""
        if not (_FIRST and outbox.is_used(place(branch))):
            return None
        near, far = os.pipe()
        try:
            if os.fork() == 0:
                _send(branch, far, limits)
        except OSError:
            os.close(near)
            raise
        finally:
            os.close(far)
        return cls(loop, near)

    def relay(self, take: Callable[[bytes], None], end: Callable[[], object]) -> None:
        """Hand on what comes, once it is to go on, and tell its end."""

        def read() -> None:
            data = os.read(self._fd, _READ)
            if data:
                take(data)
                return
            self._loop.forget(self._fd)
            self._read = None
            os.close(self._fd)
            for each in self._ends:
                each()

        self._read = read
        self._ends.append(end)

    def afterwards(self, call: Callable[[], object]) -> None:
        """Call behind what its end calls already."""
        self._ends.append(call)

    def go_on(self) -> None:
        """Read in the loop from now on, or again."""
        if self._read is not None:
            self._loop.on_readable(self._fd, self._read)

    def pause(self) -> None:
        """Read no more until it goes on."""
        self._loop.forget(self._fd)


def _send(branch: int, far: int, limits: dict[str, int]) -> None:
    try:
        with suppress(BrokenPipeError):  # a file changed: what was sent of it counts for nothing
            outbox.send(place(branch), far, limits)
        left = Path(place(branch), Path(_FIRST).name)
        if left.is_dir() and not left.is_symlink():
            scratch.clear(str(left), _CLEAR_SECONDS)
        else:  # a tool put something else in its place
            left.unlink()
        outbox.make(place(branch))
    finally:
        os._exit(0)
