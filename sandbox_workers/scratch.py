"""Scratch: a directory of a cell's own, where it cannot have file systems of its own.

    <temporary directory>/toolcell-<controller's PID>-<random>/    the keeper's, one a launcher
        <number>/                                                  the cell's: HOME, TMPDIR

The keeper makes the outer one, holds a lock on it, and removes it when its launcher is gone.
Init makes the inner one and removes it at the end of the call. What a controller and keeper
that were both killed left behind is removed in the background of the next one: a directory of
this form whose controller is gone and that nobody holds a lock on. Whoever clears one holds
the lock meanwhile: two at once would stumble over what the other has removed. What a keeper
cannot clear in the time that its controller waits is left to a child of it, which outlives it.

What a tool left is removed with the rights of the tool's user, never with more.
"""

import errno
import fcntl
import os
import re
import signal
import stat
import time
from contextlib import suppress
from pathlib import Path

from sandbox_workers import libc

_MINE = 0o700
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NAME = re.compile(r"toolcell-(\d+)-[0-9a-f]{16}")


def make(place: str, uid: int, gid: int) -> None:
    """Make the directory of a launcher, for a user; it is locked while this process lives."""
    base = Path(place)
    base.mkdir(mode=_MINE)
    os.chown(base, uid, gid)
    fcntl.flock(os.open(base, _DIRECTORY), fcntl.LOCK_EX)


def make_one(place: str) -> None:
    """Make the directory of a cell; another cell may have closed the way to it."""
    try:
        os.mkdir(place, _MINE)  # noqa: PTH102  # pathlib's pages would be copied in every cell
    except PermissionError:
        Path(place).parent.chmod(_MINE)
        Path(place).mkdir(mode=_MINE)


def sweep_left_behind(place: str) -> None:
    """Remove, in a child that ends with this process, what other launchers left beside it."""
    parent = os.getpid()
    if os.fork() != 0:
        return
    try:
        libc.do(libc.prctl(libc.PR_SET_PDEATHSIG, signal.SIGKILL))
        if os.getppid() == parent:
            for old in Path(place).parent.iterdir():
                found = _NAME.fullmatch(old.name)
                lock = _claimed(old, found[1]) if found else None
                if lock is not None:
                    clear_as_owner(str(old), float("inf"))
                    os.close(lock)
    finally:
        os._exit(0)


def clear_later(place: str, seconds: float) -> None:
    """Remove what is left of a directory in a child that outlives this process.

    It has the lock, as every child, and nothing that somebody waits for the end of.
    """
    if not os.path.lexists(place) or os.fork() != 0:
        return
    try:
        os.setsid()
        os.nice(10)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(nowhere, fd)
        clear_as_owner(place, seconds)
    finally:
        os._exit(0)


def clear_as_owner(place: str, seconds: float) -> None:
    """Remove a directory with no more rights than its owner has."""
    with suppress(OSError):  # somebody was faster
        found = os.lstat(place)
        if found.st_uid == os.geteuid():
            clear(place, seconds)
            return
        pid = os.fork()
        if pid == 0:
            try:
                os.setresgid(*[found.st_gid] * 3)
                os.setresuid(*[found.st_uid] * 3)
                clear(place, seconds)
            finally:
                os._exit(0)
        os.waitpid(pid, 0)


def clear(place: str, seconds: float) -> None:
    """Remove a directory that a tool filled, unless that takes longer.

    Whatever is in it: subdirectories are moved up before they are emptied, so that no depth
    exhausts anything, no link is followed, and modes that keep their owner out are set back.
    """
    until = time.monotonic() + seconds
    with suppress(OSError):  # what cannot be removed stays, and the next sweep tries again
        top = _opened(place, None)
        try:
            _empty(top, until)
        finally:
            os.close(top)
        Path(place).rmdir()


def _empty(top: int, until: float) -> None:
    moved, unlike = 0, os.urandom(8).hex()  # a name that no tool has taken
    while names := os.listdir(top):
        for name in names:
            if time.monotonic() > until:
                return
            if _is_gone(name, top):
                continue
            inner = _opened(name, top)
            try:
                for entry in os.listdir(inner):  # noqa: PTH208  # of a descriptor
                    if time.monotonic() > until:
                        return
                    if not _is_gone(entry, inner):
                        moved += 1
                        _move_up(entry, inner, f"{unlike}.{moved}", top)
            finally:
                os.close(inner)
            os.rmdir(name, dir_fd=top)


def _opened(name: str, place: int | None) -> int:
    """Open a directory and make it its owner's to change."""
    try:
        directory = os.open(name, _DIRECTORY, dir_fd=place)
    except PermissionError:
        os.chmod(name, _MINE, dir_fd=place)
        directory = os.open(name, _DIRECTORY, dir_fd=place)
    os.fchmod(directory, _MINE)
    return directory


def _move_up(name: str, place: int, new_name: str, top: int) -> None:
    try:
        os.rename(name, new_name, src_dir_fd=place, dst_dir_fd=top)
    except PermissionError:  # its own ".." is written in it
        os.chmod(name, _MINE, dir_fd=place)
        os.rename(name, new_name, src_dir_fd=place, dst_dir_fd=top)


def _is_gone(name: str, place: int) -> bool:
    """Remove what can be removed at once: all but a directory that has something in it."""
    if not stat.S_ISDIR(os.stat(name, dir_fd=place, follow_symlinks=False).st_mode):
        os.unlink(name, dir_fd=place)
        return True
    try:
        os.rmdir(name, dir_fd=place)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        return False
    return True


def _claimed(place: Path, controller: str) -> int | None:
    """Lock a directory that this user may remove and that is nobody's any more; else None."""
    with suppress(OSError):
        found = place.lstat()
        ours = stat.S_ISDIR(found.st_mode) and os.geteuid() in (0, found.st_uid)
        if not ours or Path(f"/proc/{controller}").exists():
            return None
        # Another PID namespace may share the place: then only the lock tells.
        directory = _opened(str(place), None)
        try:
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(directory)
            raise
        return directory
    return None
