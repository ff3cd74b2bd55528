"""write_file: a whole text file, in the encoding and line endings of the one that it replaces."""

import os
import stat
from pathlib import Path
from typing import NamedTuple

from sandbox_workers.tools import ToolError
from sandbox_workers.tools.counting import counted
from sandbox_workers.tools.encoding import MOST_EDITED, UTF8, Encoding, encoding_of, line_ending
from sandbox_workers.tools.places import inside, is_binary, opened, refused
from sandbox_workers.tools.replacing import make_directories, remove_directories, replace


class _Manner(NamedTuple):
    """How the file that is replaced was written: what the new one keeps, and what it cannot."""

    data: bytes
    encoding: Encoding
    crlf: bool
    lost: str


def write_file(path: str, content: str, parents: bool = False) -> str:
    """Write a whole file, replacing what was there; says what it kept of that."""
    place = inside(path)
    try:
        old = _status(place, path)
        if old is None:
            return _create(place, path, content, parents)
        return _replace(place, path, content, old)
    except OSError as error:
        raise refused(path, error) from None


def directory_for(place: Path, path: str, parents: bool) -> list[Path]:
    """Say that a file's directory is missing, or make it where `parents`; returns what was made."""
    if place.parent.is_dir():
        return []
    above = next(each for each in place.parents if os.path.lexists(each))
    if not above.is_dir():
        raise ToolError(f"{path}: {os.path.relpath(above)} is not a directory")
    if not parents:
        raise ToolError(
            f"{path}: its directory {os.path.relpath(place.parent)} does not exist",
            "set `parents` to true to have it made, or correct the path",
        )
    return make_directories(place.parent)


def _status(place: Path, path: str) -> os.stat_result | None:
    try:
        status = place.lstat()
    except (FileNotFoundError, NotADirectoryError):
        if path.endswith("/"):
            raise ToolError(
                f"{path} is the name of a directory, for its slash at the end"
            ) from None
        return None
    if stat.S_ISDIR(status.st_mode):
        raise ToolError(f"{path} is a directory, not a file")
    if stat.S_ISLNK(status.st_mode):
        raise ToolError(f"{path} is a link that leads back to itself")
    if not stat.S_ISREG(status.st_mode):
        raise ToolError(f"{path} is not a regular file, but a device, a pipe or a socket")
    return status


def _create(place: Path, path: str, content: str, parents: bool) -> str:
    made = directory_for(place, path, parents)
    data = content.encode()
    try:
        replace(place, data, None)
    except OSError:
        remove_directories(made)
        raise
    beside = f", and the directory {os.path.relpath(made[-1])}" if made else ""
    return f"created {path} ({_size(data)}){beside}"


def _replace(place: Path, path: str, content: str, old: os.stat_result) -> str:
    manner = _manner(place, path)
    text = content.removeprefix("\ufeff") if manner.encoding.mark else content
    converted = manner.crlf and "\r" not in text and "\n" in text
    data = manner.encoding.encode(text.replace("\n", "\r\n") if converted else text)
    if data == manner.data:
        return f"{path} has this content already; nothing was written"
    notes = replace(place, data, old)
    kept = [f"mode {stat.S_IMODE(old.st_mode):o}"]
    kept += ["CRLF line endings"] if converted else []
    kept += [str(manner.encoding)] if manner.encoding != UTF8 else []
    said = [f"kept {', '.join(kept)}", *filter(None, [manner.lost]), *notes]
    return f"replaced {path} ({_size(data)}, before {old.st_size:,}); {'; '.join(said)}"


def _manner(place: Path, path: str) -> _Manner:
    """Look at what is there; of a huge file at its beginning."""
    with opened(place, path) as file:
        data = file.read(MOST_EDITED)
    encoding = encoding_of(data)
    body = data[len(encoding.mark) :]
    if encoding.codec == "utf-8" and is_binary(body):
        return _Manner(data, UTF8, False, "what was there was binary")
    text = body.decode(encoding.codec, "replace")
    lost = ""
    if encoding == UTF8 and text.count("\ufffd") > body.count("\ufffd".encode()):
        lost = "what was there was not all UTF-8; now it is"
    return _Manner(data, encoding, line_ending(text) == "\r\n", lost)


def _size(data: bytes) -> str:
    return counted(len(data), "byte")
