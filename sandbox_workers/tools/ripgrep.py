"""ripgrep, where it is installed: which of many files are worth reading.

It is asked for nothing else. What matches, and how it is shown, is decided in one place with or
without it, so the answer is the same. It gets each file by name (what to search is not for it
to choose), a pattern that matches at least what is looked for, and no configuration. It tells
binary files too, by their NULs, because they are counted. If anything goes wrong with it, all
files are read.
"""

import os
from collections.abc import Sequence

from sandbox_workers.patterns.nodes import Node
from sandbox_workers.patterns.rendering import for_ripgrep

_OPTIONS = (
    *("--no-config", "--no-messages", "--files-with-matches", "--null", "--color=never"),
    *("--text", "--encoding=none", "--no-ignore", "--hidden", "--no-heading"),
    *("--regex-size-limit=200M", "--dfa-size-limit=200M"),
)
_NUL = r"(?-u:\x00)"
FOUND, NOT_FOUND = 0, 1


def installed() -> str | None:
    """Return where ripgrep is on PATH, if it is."""
    places = (f"{directory}/rg" for directory in os.get_exec_path() if directory)
    return next((place for place in places if os.access(place, os.X_OK)), None)


def worth_reading(program: str, node: Node, paths: Sequence[str]) -> Sequence[str]:
    """Return those of some files that may hold a match or a NUL, in their order."""
    names = [f"./{path}" for path in paths]
    arguments = [program, *_OPTIONS, "-e", for_ripgrep(node), "-e", _NUL, "--", *names]
    try:
        code, output = _run(program, arguments)
    except OSError:  # it cannot be started here, or the pattern is longer than an argument may be
        return paths
    if code not in (FOUND, NOT_FOUND) or (code == FOUND) is not bool(output):
        return paths
    found = set(os.fsdecode(output).split("\0"))
    return [path for path, name in zip(paths, names, strict=True) if name in found]


def _run(program: str, arguments: list[str]) -> tuple[int, bytes]:
    """Run a program to its end; returns its exit code and what it printed."""
    reading, writing = os.pipe()
    try:
        nowhere = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)
        silent = (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)
        actions = [nowhere, (os.POSIX_SPAWN_DUP2, writing, 1), silent]
        pid = os.posix_spawn(program, arguments, os.environ, file_actions=actions)
    except OSError:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    with open(reading, "rb") as stream:  # noqa: PTH123  # a descriptor, not a path
        output = stream.read()
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), output
