"""Scratch: a directory of a cell's own, where it cannot have file systems of its own.

    <temporary directory>/toolcell-<controller's PID>-<random>/    the keeper's, one a launcher
        <number>/                                                  the cell's: HOME, TMPDIR

The keeper makes the outer one and removes it when its launcher is gone. Init makes the
inner one and removes it at the end of the call. What a controller and keeper that were
both killed left behind is removed by the next keeper.
"""

import os
import stat
import time
from contextlib import suppress
from pathlib import Path

_MINE = 0o700
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def make(place: str, uid: int, gid: int) -> None:
    """Make the directory of a launcher, for a user, and remove what nobody owns any more."""
    base = Path(place)
    prefix = base.name.split("-")[0]
    for old in base.parent.glob(f"{prefix}-*-*"):
        owner = old.name.split("-")[1]
        if owner.isdigit() and not Path(f"/proc/{owner}").exists() and _is_ours(old, uid):
            clear(str(old), float("inf"))
    base.mkdir(mode=_MINE)
    os.chown(base, uid, gid)


def clear(place: str, seconds: float) -> None:
    """Remove a directory that a tool filled, unless that takes longer.

    Whatever is in it: subdirectories are moved up before they are emptied, so that no depth
    exhausts anything, no link is followed, and modes that keep their owner out are set back.
    """
    until = time.monotonic() + seconds
    with suppress(OSError):  # what cannot be removed stays, and the next sweep tries again
        top = os.open(place, _DIRECTORY)
        try:
            os.fchmod(top, _MINE)
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
            if not _is_directory(name, top):
                os.unlink(name, dir_fd=top)
                continue
            inner = _opened(name, top)
            try:
                for entry in os.listdir(inner):  # noqa: PTH208  # of a descriptor
                    if _is_directory(entry, inner):
                        moved += 1
                        _move_up(entry, inner, f"{unlike}.{moved}", top)
                    else:
                        os.unlink(entry, dir_fd=inner)
            finally:
                os.close(inner)
            os.rmdir(name, dir_fd=top)


def _opened(name: str, place: int) -> int:
    """Open a directory and make it its owner's to change.

    A keeper that is root is let in at once. It never changes a mode by name: a process of
    the directory's owner could put a link there.
    """
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


def _is_directory(name: str, place: int) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=place, follow_symlinks=False).st_mode)


def _is_ours(place: Path, uid: int) -> bool:
    try:
        found = place.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid in (uid, os.geteuid())
