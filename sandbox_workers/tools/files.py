"""read_file, list_files, search_text, write_file: simple views of the workspace.

The walls are the kernel's. What is checked here only makes the answer clear: a path
that leads out of the workspace would meet nothing there, or a file of the system.
"""

import os
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from sandbox_workers.tools import ToolError

_SNIFF = 8192
_SKIPPED = {".git", ".hg", ".svn", "__pycache__", "node_modules", ".venv"}
_LINE_CAP = 500


def read_file(path: str, start_line: int = 1, end_line: int | None = None) -> str:
    """Return a text file, or the lines from start_line to end_line (from 1, both included)."""
    if end_line is not None and end_line < start_line:
        raise ToolError(f"end_line {end_line} is before start_line {start_line}")
    place = _existing_file(path)
    if start_line == 1 and end_line is None:
        return _text(place, path)
    lines = _lines(_text(place, path))
    if start_line > len(lines):
        raise ToolError(f"{path} has {len(lines)} lines; line {start_line} is past its end")
    return "\n".join(lines[start_line - 1 : end_line]) + "\n"


def list_files(path: str = ".", glob: str = "*", limit: int = 1000) -> dict[str, Any]:
    """List files below a directory whose path or name matches the glob, in sorted order."""
    base = _existing_directory(path)
    names = sorted(
        name
        for file in _walk(base)
        if fnmatch(name := _relative(file), glob) or fnmatch(file.name, glob)
    )
    left_out = max(0, len(names) - limit)
    return {"files": names[:limit], "total": len(names), "left_out": left_out}


def search_text(pattern: str, path: str = ".", glob: str = "*", limit: int = 200) -> dict[str, Any]:
    """Search text files for a regular expression; binary files are passed over."""
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise ToolError(
            f"`pattern` is not a regular expression: {error}",
            "escape the characters that are meant literally with a backslash",
        ) from None
    place = _inside(path)
    _must_exist(place, path)
    files = _walk(place) if place.is_dir() else [_existing_file(path)]
    matches: list[dict[str, Any]] = []
    total = searched = 0
    for file in files:
        name = _relative(file)
        if not (fnmatch(name, glob) or fnmatch(file.name, glob)):
            continue
        data = _read_text_or_none(file)
        if data is None:
            continue
        searched += 1
        for number, line in enumerate(_lines(data), 1):
            if expression.search(line):
                total += 1
                if len(matches) < limit:
                    matches.append({"file": name, "line": number, "text": line[:_LINE_CAP]})
    return {
        "matches": matches,
        "total": total,
        "left_out": total - len(matches),
        "files_searched": searched,
    }


def write_file(path: str, content: str) -> str:
    """Write a whole file, replacing what was there; the directory has to exist."""
    place = _inside(path)
    data = content.encode()
    try:
        if place.is_dir():
            raise ToolError(f"{path} is a directory, not a file")
        if not place.parent.is_dir():
            raise ToolError(f"{path}: its directory does not exist", "create the directory first")
        place.write_bytes(data)
    except OSError as error:
        raise _refused(path, error) from None
    return f"wrote {len(data)} bytes to {path}"


def _inside(path: str) -> Path:
    if "\0" in path:
        raise ToolError("a path cannot hold a NUL character")
    workspace = Path.cwd()
    place = Path(os.path.realpath(workspace / path))
    if place != workspace and workspace not in place.parents:
        raise ToolError(
            f"{path} is outside the workspace",
            f"use a path inside the workspace, {workspace}, or relative to it",
        )
    return place


def _must_exist(place: Path, path: str) -> None:
    try:
        place.lstat()
    except FileNotFoundError:
        raise ToolError(f"{path} does not exist", "list_files shows what is there") from None
    except OSError as error:
        raise _refused(path, error) from None


def _existing_file(path: str) -> Path:
    place = _inside(path)
    _must_exist(place, path)
    if place.is_dir():
        raise ToolError(f"{path} is a directory", "list_files shows what is in it")
    if not place.is_file():
        raise ToolError(f"{path} is not a regular file, but a device, a pipe or a socket")
    return place


def _existing_directory(path: str) -> Path:
    place = _inside(path)
    _must_exist(place, path)
    if not place.is_dir():
        raise ToolError(f"{path} is a file, not a directory", "read_file shows a file")
    return place


def _text(place: Path, path: str) -> str:
    try:
        data = place.read_bytes()
    except OSError as error:
        raise _refused(path, error) from None
    if _is_binary(data):
        raise ToolError(
            f"{path} is binary ({len(data)} bytes), not text",
            "look at it with the python or shell tool",
        )
    return data.decode("utf-8-sig", errors="replace")


def _read_text_or_none(place: Path) -> str | None:
    try:
        data = place.read_bytes()
    except OSError:  # unreadable to this user, or gone since it was listed: not searchable
        return None
    return None if _is_binary(data) else data.decode(errors="replace")


def _lines(text: str) -> list[str]:
    """Split at line feeds only, as editors and grep count lines."""
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def _is_binary(data: bytes) -> bool:
    return b"\0" in data[:_SNIFF]


def _walk(base: Path) -> Iterator[Path]:
    for directory, names, files in os.walk(base):
        names[:] = sorted(name for name in names if name not in _SKIPPED)
        for name in sorted(files):
            place = Path(directory, name)
            if place.is_file() and not place.is_symlink():
                yield place


def _relative(place: Path) -> str:
    return os.path.relpath(place)


def _refused(path: str, error: OSError) -> ToolError:
    return ToolError(f"{path}: {(error.strerror or str(error)).lower()}")
