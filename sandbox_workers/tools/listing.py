"""list_files: what is in the workspace, a line for each entry.

src/                     a directory
src/main.py  2048        a file, with its size in bytes
latest -> releases/9     a link, with what it says; it is not followed
queue  (pipe)            something else
"a\\nb"  0               a name that would mislead (see `naming`)
[5 entries: 2 files, 1 directory, 1 link, 1 other (+ 2 ignored).]
"""

import os
import stat
from collections import Counter
from pathlib import Path

from sandbox_workers.tools.answering import (
    ROOM,
    account,
    glob_of,
    glob_of_its_own,
    hidden_and_ignored,
    left_out,
    passed_over,
)
from sandbox_workers.tools.counting import counted
from sandbox_workers.tools.naming import shown
from sandbox_workers.tools.places import existing_directory, relative
from sandbox_workers.tools.walking import Entry, Walk

_OTHERS = {stat.S_IFIFO: "pipe", stat.S_IFSOCK: "socket"}


def list_files(
    path: str = ".",
    glob: str = "*",
    depth: int | None = None,
    hidden: bool = False,
    ignored: bool = False,
    limit: int = 1000,
) -> str:
    """List what is below a directory, in order; see the module for what the lines look like."""
    base = relative(existing_directory(path))
    wanted = glob_of(glob)
    walk = Walk(base, hidden=hidden, ignored=ignored, depth=depth)
    kinds: Counter[str] = Counter()
    lines: list[str] = []
    room = ROOM
    for entry in walk.matching(wanted):
        kinds[entry.kind] += 1
        if room > 0 and len(lines) < limit:
            line = _line(entry)
            room -= len(line.encode()) + 1
            if room > 0:
                lines.append(line)
    told = _summary(kinds, len(lines), hidden_and_ignored(walk))
    if not kinds:
        told += glob_of_its_own(base, glob)
    return "\n".join([*lines, account(*told, *passed_over(walk, found=bool(kinds)))])


def _line(entry: Entry) -> str:
    name = shown(entry.path)
    try:
        if entry.kind == "directory":
            return f"{name}/"
        if entry.kind == "link":
            return f"{name} -> {shown(str(Path(entry.path).readlink()))}"
        status = os.lstat(entry.path)
    except OSError:  # it went away, or changed its kind, since its directory was read
        return f"{name}  (gone)"
    if entry.kind == "file":
        return f"{name}  {status.st_size}"
    return f"{name}  ({_OTHERS.get(stat.S_IFMT(status.st_mode), 'device')})"


def _summary(kinds: "Counter[str]", lines: int, more: list[str]) -> list[str]:
    total = kinds.total()
    if not total:
        return ["Nothing found."]
    parts = [
        counted(kinds[kind], noun, plural)
        for kind, noun, plural in (
            ("file", "file", ""),
            ("directory", "directory", "directories"),
            ("link", "link", ""),
            ("other", "other", "others"),
        )
        if kinds[kind]
    ]
    beside = f" (+ {', '.join(more)})" if more else ""
    told = [f"{counted(total, 'entry', 'entries')}: {', '.join(parts)}{beside}."]
    if lines < total:
        told.append(
            f"{left_out(lines, total)}: "
            f"narrow path, glob or depth{', or raise limit' if lines else ''}."
        )
    return told
