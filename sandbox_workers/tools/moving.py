"""move, delete: files, directories and links by their own names; a link is never followed."""

import errno
import os
import stat
from pathlib import Path

from sandbox_workers.tools import ToolError
from sandbox_workers.tools.counting import counted
from sandbox_workers.tools.places import entry, must_exist, refused
from sandbox_workers.tools.replacing import remove_directories
from sandbox_workers.tools.writing import directory_for


def move(source: str, destination: str, overwrite: bool = False, parents: bool = False) -> str:
    """Give a file or directory another name, which is the whole new path."""
    start, end = _itself(source), entry(destination)
    if start == end:
        raise ToolError(f"{source} and {destination} are the same")
    if start in end.parents:
        raise ToolError(f"{source} cannot be moved into itself")
    replaced = _in_the_way(start, end, destination, overwrite)
    made = directory_for(end, destination, parents)
    try:
        _rename(start, end)
    except OSError as error:
        remove_directories(made)
        raise refused(f"{source} to {destination}", error) from None
    return f"moved {source} to {destination}{replaced}"


def delete(path: str, recursive: bool = False) -> str:
    """Delete a file, a link, an empty directory, or with `recursive` a directory and all in it."""
    place = _itself(path)
    status = place.lstat()
    try:
        if not stat.S_ISDIR(status.st_mode):
            place.unlink()
            if stat.S_ISLNK(status.st_mode):
                return f"deleted the link {path}, not what it leads to"
            return f"deleted {path} ({counted(status.st_size, 'byte')})"
        return _delete_directory(place, path, recursive)
    except OSError as error:
        raise refused(path, error) from None


def _itself(path: str) -> Path:
    place = entry(path)
    must_exist(place, path)
    if place == Path.cwd():
        raise ToolError(f"{path} is the workspace itself", "name a file or directory inside it")
    return place


def _in_the_way(start: Path, end: Path, path: str, overwrite: bool) -> str:
    """Say what the move replaces, or why it may not."""
    try:
        there = end.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        raise refused(path, error) from None
    if stat.S_ISDIR(there.st_mode):
        raise ToolError(
            f"{path} is a directory that exists already",
            f"name the new path itself, such as {path.rstrip('/')}/{start.name}",
        )
    if not overwrite:
        raise ToolError(f"{path} exists already", "set `overwrite` to true to replace it")
    if stat.S_ISDIR(start.lstat().st_mode):
        raise ToolError(f"{path} is a file, which a directory cannot replace")
    return f", which replaced what was there ({counted(there.st_size, 'byte')})"


def _rename(start: Path, end: Path) -> None:
    try:
        start.rename(end)
    except OSError as error:
        # Two file systems, or Landlock before its ABI 2, which lets nothing be renamed across
        # directories and says the same.
        if error.errno != errno.EXDEV:
            raise
        _copy_and_delete(start, end)


def _copy_and_delete(start: Path, end: Path) -> None:
    """Copy beside the new place first, so that nothing half copied ever has the new name."""
    import shutil

    beside = end.with_name(f".toolcell-{os.urandom(8).hex()}")
    try:
        if start.is_dir() and not start.is_symlink():
            shutil.copytree(start, beside, symlinks=True)
        else:
            shutil.copy2(start, beside, follow_symlinks=False)
        beside.rename(end)
    except OSError as error:  # shutil.Error too, of many files at once
        if os.path.lexists(beside):
            _remove(beside)
        if error.errno is None:
            raise OSError(
                errno.EXDEV, "another file system, and not all of it can be copied"
            ) from None
        raise
    _remove(start)


def _delete_directory(place: Path, path: str, recursive: bool) -> str:
    entries = sum(1 for _ in place.iterdir())
    if entries and not recursive:
        raise ToolError(
            f"{path} is a directory that holds {counted(entries, 'entry', 'entries')}",
            "set `recursive` to true to delete all of it",
        )
    files, directories, size = _remove(place)
    below = counted(directories - 1, "directory", "directories")
    counts = f"{counted(files, 'file')} and {below} in it, {counted(size, 'byte')}"
    return f"deleted the directory {path}" + (f" ({counts})" if entries else ", which was empty")


def _remove(top: Path) -> tuple[int, int, int]:
    """Remove what a name stands for; counts files, directories and bytes.

    Without recursion, because a tree may be deeper than Python's stack.
    """
    if top.is_symlink() or not top.is_dir():
        size = top.lstat().st_size
        top.unlink()
        return 1, 0, size
    waiting, found, files, size = [str(top)], [], 0, 0
    try:
        while waiting:
            found.append(waiting.pop())
            with os.scandir(found[-1]) as entries:
                for each in list(entries):
                    if each.is_dir(follow_symlinks=False):
                        waiting.append(each.path)
                        continue
                    size += each.stat(follow_symlinks=False).st_size
                    os.unlink(each.path)  # noqa: PTH108  # a Path for each would double the time
                    files += 1
        for directory in reversed(found):
            os.rmdir(directory)  # noqa: PTH106
    except OSError as error:
        where = os.path.relpath(error.filename) if error.filename else "something in it"
        gone = counted(files, "file is", "files are")
        raise ToolError(
            f"deleted in part: {gone} gone, then {refused(where, error)}",
            "list_files shows what is left",
        ) from None
    return files, len(found), size
