"""Replacing a file's content: all at once, or not at all.

The new bytes go to a file without a name in the same directory, and get the name when all are
there: a reader sees the old content or the new, and a call that is killed meanwhile leaves
nothing behind. Where the file system knows no nameless files, a temporary name is used, and
taken away on failure. Nothing is synced to the disk: that guards against a crash of the whole
machine, and costs milliseconds.

A rename breaks a hard link, and that is wanted: the file's other names may lie outside of the
workspace (a package store, a snapshot), and keep the old content. Only where a rename cannot be
(the directory lets no file be made, the file is a mount of its own) the old file is written over.
"""

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

from sandbox_workers.tools.counting import counted

# They say that a directory takes no new file; the old one may yet be written.
_NOT_HERE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY, errno.EXDEV)
_ACL = "system.posix_acl_access"
_NEW, _NEW_PROGRAM = 0o666, 0o777


class Replacement:
    """New content for a place; `old` is the status of the file that it replaces.

    `stage` does all that needs room on the disk, `commit` puts the content in place, and
    `discard` takes back what was staged. All raise OSError. `notes` say what could not be kept.
    """

    def __init__(
        self, place: Path, data: bytes, old: os.stat_result | None, *, program: bool | None = None
    ) -> None:
        """Take what to write; `program` sets or clears the right to execute."""
        self.notes: list[str] = []
        self._place, self._data, self._old = place, data, old
        self._program = program
        self._fd = -1
        self._name = ""
        self._in_place = False

    def stage(self) -> None:
        """Write the content beside the place."""
        try:
            self._open()
            _write(self._fd, self._data)
            self._dress()
        except OSError as error:
            self.discard()
            if error.errno not in _NOT_HERE or self._old is None:
                raise
            self._in_place = True

    def commit(self) -> None:
        """Put the content in place."""
        if not self._in_place:
            try:
                self._rename()
            except OSError as error:
                if error.errno not in _NOT_HERE or self._old is None:
                    raise
                self._in_place = True
            finally:
                self.discard()
        if self._in_place:
            self._write_over()
        elif self._old is not None and self._old.st_nlink > 1:
            others = counted(self._old.st_nlink - 1, "other hard link", "other hard links")
            self.notes.append(f"the old content stays under {others} of it")

    def discard(self) -> None:
        """Take away what is staged; nothing where that is done."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        if self._name:
            name, self._name = self._name, ""
            (self._place.parent / name).unlink()

    def _open(self) -> None:
        mode = _NEW_PROGRAM if self._program else _NEW
        if self._old is not None:  # until it has the old one's mode it is nobody else's
            mode = 0o600
        flags = os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            self._fd = os.open(self._place.parent, flags | os.O_TMPFILE, mode)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL):
                raise
            name = _temporary()
            self._fd = os.open(self._place.parent / name, flags | os.O_CREAT | os.O_EXCL, mode)
            self._name = name

    def _dress(self) -> None:
        """Give the new file the old one's owner, attributes and mode."""
        if self._old is None:
            return
        now = os.fstat(self._fd)
        if (now.st_uid, now.st_gid) != (self._old.st_uid, self._old.st_gid):
            try:
                os.fchown(self._fd, self._old.st_uid, self._old.st_gid)
            except OSError:  # only root gives files away; the content matters more
                self.notes.append("its owner or group could not be kept")
        self._keep_attributes()
        mode = stat.S_IMODE(self._old.st_mode)
        if self._program is not None:
            # The right to execute goes with the right to read, as chmod and git have it.
            mode = mode | (mode & 0o444) >> 2 if self._program else mode & ~0o111
        os.fchmod(self._fd, mode)

    def _keep_attributes(self) -> None:
        """Copy what people and access lists say of the old file, before a mode that goes with it.

        What belongs to the system (security.*, trusted.*) is not a tool's to give.
        """
        try:
            names = os.listxattr(self._place, follow_symlinks=False)
        except OSError:  # a file system without them, or a cell that may not ask
            return
        lost = []
        for name in names:
            if name.startswith("user.") or name == _ACL:
                try:
                    value = os.getxattr(self._place, name, follow_symlinks=False)
                    os.setxattr(self._fd, name, value)
                except OSError:  # the content matters more
                    lost.append(name)
        if lost:
            self.notes.append(f"it lost {counted(len(lost), 'extended attribute')}")

    def _rename(self) -> None:
        directory = os.open(self._place.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if not self._name:
                name = _temporary()
                # By way of /proc: linkat(2) gives a name to an O_TMPFILE of one's own.
                os.link(
                    f"/proc/self/fd/{self._fd}", name, dst_dir_fd=directory, follow_symlinks=True
                )
                self._name = name
            os.rename(self._name, self._place.name, src_dir_fd=directory, dst_dir_fd=directory)
            self._name = ""
        finally:
            os.close(directory)

    def _write_over(self) -> None:
        fd = os.open(self._place, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            before = _read(fd)
            try:
                _put(fd, self._data)
            except OSError:
                _put(fd, before)
                raise
            if self._program is not None:
                mode = stat.S_IMODE(os.fstat(fd).st_mode)
                os.fchmod(fd, mode | (mode & 0o444) >> 2 if self._program else mode & ~0o111)
        finally:
            os.close(fd)
        self.notes.append("written over in place, because its directory lets no file be replaced")


def replace(place: Path, data: bytes, old: os.stat_result | None) -> list[str]:
    """Replace the content of one file, or make it; returns what could not be kept."""
    replacement = Replacement(place, data, old)
    replacement.stage()
    replacement.commit()
    return replacement.notes


def make_directories(directory: Path) -> list[Path]:
    """Make a directory and those above it; returns what was made, the deepest last."""
    missing = [directory, *directory.parents]
    made: list[Path] = []
    try:
        for each in reversed(missing[: [above.exists() for above in missing].index(True)]):
            each.mkdir()
            made.append(each)
    except OSError:
        remove_directories(made)
        raise
    return made


def remove_directories(made: list[Path]) -> None:
    """Take back directories that were made for what then could not be written."""
    for each in reversed(made):
        with suppress(OSError):  # somebody has put something into it meanwhile
            each.rmdir()


def _temporary() -> str:
    return f".toolcell-{os.urandom(8).hex()}"


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _put(fd: int, data: bytes) -> None:
    os.lseek(fd, 0, os.SEEK_SET)
    _write(fd, data)
    os.ftruncate(fd, len(data))


def _read(fd: int) -> bytes:
    with open(fd, "rb", closefd=False) as file:
        return file.read()
