"""Places: what a path that a model wrote means in the workspace, and clear words where nothing.

The walls are the kernel's. What is checked here only makes the answer clear: a path that leads
out of the workspace would meet nothing there, or a file of the system. The workspace is the
directory that the cell stands in.
"""

import os
import stat
from pathlib import Path
from typing import BinaryIO

from sandbox_workers.tools import ToolError, naming

_SNIFF = 8192
# Names in a directory that are compared, and how long they may be: difflib is slow.
_MOST_NAMES = 2000
_LONGEST_COMPARED = 80
_SUGGESTED = 2


def inside(path: str) -> Path:
    """Return where a path leads, links followed; raises ToolError where that is outside."""
    return _checked(path, Path(os.path.realpath(_joined(path))))


def entry(path: str) -> Path:
    """Return what a path names, a link at its end not followed; raises ToolError as `inside`."""
    joined = _joined(path)
    name = joined.name
    if name in ("", ".."):  # only a directory is called so
        return inside(path)
    return _checked(path, Path(os.path.realpath(joined.parent)) / name)


def must_exist(place: Path, path: str) -> None:
    """Raise ToolError where nothing is at a place."""
    try:
        place.lstat()
    except FileNotFoundError:
        hint = near_names(path) or "list_files shows what is there"
        raise ToolError(f"{path} does not exist", hint) from None
    except OSError as error:
        raise refused(path, error) from None


def existing_file(path: str) -> Path:
    """Return where a path leads, if to a regular file; never opens it, so a FIFO cannot block."""
    place = inside(path)
    must_exist(place, path)
    if place.is_dir():
        raise ToolError(f"{path} is a directory", "list_files shows what is in it")
    if not place.is_file():
        raise ToolError(f"{path} is not a regular file, but {_kind(place)}")
    return place


def existing_directory(path: str) -> Path:
    """Return where a path leads, if to a directory."""
    place = inside(path)
    must_exist(place, path)
    if not place.is_dir():
        raise ToolError(f"{path} is a file, not a directory", "read_file shows a file")
    return place


def opened(place: Path, path: str) -> BinaryIO:
    """Open a regular file to read; whatever has come to its place meanwhile cannot block."""
    try:
        fd = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise refused(path, error) from None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise ToolError(f"{path} is not a regular file")
    return os.fdopen(fd, "rb")


def relative(place: Path) -> str:
    """Name a place as seen from the workspace."""
    return os.path.relpath(place)


def refused(path: str, error: OSError) -> ToolError:
    """Put an error of the system into words for the model."""
    return ToolError(f"{path}: {(error.strerror or str(error)).lower()}")


def is_binary(data: bytes) -> bool:
    """Whether the beginning of a file is none of a text in UTF-8 or the like."""
    return b"\0" in data[:_SNIFF]


def near_names(path: str) -> str:
    """Ask whether something else was meant than what does not exist; "" if nothing is like it.

    Looks where the path leaves what there is: the names there, and below the likeliest of them
    the rest of the path. Those that differ in case only come first.
    """
    place, rest = _where_it_ends(path)
    found: list[Path] = []
    for name in _alike(rest[0], place) if rest else []:
        whole = place.joinpath(name, *rest[1:])
        found.append(whole if os.path.lexists(whole) else place / name)
    if not found:
        return ""
    names = list(dict.fromkeys(naming.shown(relative(each)) for each in found))
    return f"did you mean {' or '.join(names)}?"


def _where_it_ends(path: str) -> tuple[Path, tuple[str, ...]]:
    """Return the last directory on the way that a path describes, and the rest of the path."""
    place = Path(os.path.normpath(Path.cwd() / path))
    for above in place.parents:
        if above.is_dir():
            try:
                return _checked(path, Path(os.path.realpath(above))), place.relative_to(above).parts
            except ToolError:
                break
    return Path.cwd(), ()


def _alike(wanted: str, directory: Path) -> list[str]:
    """Return the names in a directory that are most like a name."""
    try:
        with os.scandir(directory) as entries:
            names = [each.name for each, _ in zip(entries, range(_MOST_NAMES), strict=False)]
    except OSError:
        return []
    same = [name for name in names if name.casefold() == wanted.casefold()]
    if same or len(wanted) > _LONGEST_COMPARED:
        return same[:_SUGGESTED]
    from difflib import get_close_matches

    folded = {name.casefold(): name for name in names if len(name) <= _LONGEST_COMPARED}
    close = get_close_matches(wanted.casefold(), folded, _SUGGESTED, 0.7)
    return [folded[each] for each in close]


def _joined(path: str) -> Path:
    if "\0" in path:
        raise ToolError("a path cannot hold a NUL character")
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        raise ToolError(f"{path!a} cannot be the name of a file: it is not Unicode") from None
    return Path.cwd() / path


def _checked(path: str, place: Path) -> Path:
    workspace = Path.cwd()
    if place != workspace and workspace not in place.parents:
        raise ToolError(
            f"{path} is outside the workspace",
            f"use a path inside the workspace, {workspace}, or relative to it",
        )
    return place


def _kind(place: Path) -> str:
    if place.is_fifo():
        return "a pipe"
    if place.is_socket():
        return "a socket"
    if place.is_symlink():
        return "a link that leads back to itself"
    return "a device"
