"""list_files, search_text: what is in the workspace, and where a text is in it."""

import os
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from sandbox_workers.tools import ToolError
from sandbox_workers.tools.places import (
    existing_directory,
    existing_file,
    inside,
    is_binary,
    must_exist,
    relative,
)

_SKIPPED = {".git", ".hg", ".svn", "__pycache__", "node_modules", ".venv"}
_LINE_CAP = 500


def list_files(path: str = ".", glob: str = "*", limit: int = 1000) -> dict[str, Any]:
    """List files below a directory whose path or name matches the glob, in sorted order."""
    base = existing_directory(path)
    names = sorted(
        name
        for file in _walk(base)
        if fnmatch(name := relative(file), glob) or fnmatch(file.name, glob)
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
    place = inside(path)
    must_exist(place, path)
    files = _walk(place) if place.is_dir() else [existing_file(path)]
    matches: list[dict[str, Any]] = []
    total = searched = 0
    for file in files:
        name = relative(file)
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


def _read_text_or_none(place: Path) -> str | None:
    try:
        data = place.read_bytes()
    except OSError:  # unreadable to this user, or gone since it was listed: not searchable
        return None
    return None if is_binary(data) else data.decode(errors="replace")


def _lines(text: str) -> list[str]:
    """Split at line feeds only, as editors and grep count lines."""
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def _walk(base: Path) -> Iterator[Path]:
    for directory, names, files in os.walk(base):
        names[:] = sorted(name for name in names if name not in _SKIPPED)
        for name in sorted(files):
            place = Path(directory, name)
            if place.is_file() and not place.is_symlink():
                yield place
