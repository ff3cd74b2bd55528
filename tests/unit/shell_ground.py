"""Ground for the tests of shell lines: the tables, and a real bash with a false git."""

import os
import shlex
import shutil
import signal
import subprocess
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any

from toolcell.shell.lines import Line

CONTRACT = Path(__file__).parent.parent / "contract"
TABLE: dict[str, list[dict[str, Any]]] = tomllib.loads((CONTRACT / "shell_lines.toml").read_text())
EVASIONS: list[str] = tomllib.loads((CONTRACT / "shell_evasions.toml").read_text())["lines"]
BASH = shutil.which("bash") or "/bin/bash"
PROGRAMS = [
    "env",
    "nice",
    "xargs",
    "sh",
    "bash",
    "cat",
    "find",
    "sed",
    "awk",
    "timeout",
    "nohup",
    "setsid",
    "stdbuf",
    "tar",
]
NOTES = """#!/bin/sh
printf '%s\\n' "$*" >> "{notes}"
"""


class Ground:
    """A directory in which bash finds a git that notes its arguments and does nothing."""

    def __init__(self, path: Path) -> None:
        self._programs, self._work, self._notes = path / "bin", path / "work", path / "notes"
        self._programs.mkdir()
        self._work.mkdir()
        git = self._programs / "git"
        git.write_text(NOTES.format(notes=self._notes))
        git.chmod(0o755)
        for name in PROGRAMS:
            (self._programs / name).symlink_to(shutil.which(name) or f"/bin/{name}")

    def pushes(self, line: str) -> bool:
        """Run a line and tell whether `git push` was reached."""
        self._notes.unlink(missing_ok=True)
        process = subprocess.Popen(
            [BASH, "-c", line],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=self._work,
            env={"PATH": str(self._programs), "HOME": str(self._work), "LC_ALL": "C.UTF-8"},
            start_new_session=True,
        )
        # Until the last that holds the pipe has ended, in the background too; a line that
        # never ends has noted by then what it does.
        with suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=5)
        stop(process)
        calls = self._notes.read_text().split("\n") if self._notes.exists() else []
        return any(call.split(" ")[0] == "push" for call in calls)


def stop(process: subprocess.Popen[bytes]) -> None:
    """End what a line has left behind."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


def shows_push(line: Line) -> bool:
    """Whether the facts let a person see that the line may push, or that it is in doubt."""
    return bool(line.unreadable) or any(
        command.doubt or command.words[0] is None or _may_push(command.words)
        for command in line.commands
    )


def _may_push(words: tuple[str | None, ...]) -> bool:
    return words[0] == "git" and len(words) > 1 and words[1] in ("push", None)


def as_listed(line: Line) -> dict[str, Any]:
    """Facts in the shape that the table of lines has."""
    runs = [(bool(command.doubt), command.wraps, tuple(command.words)) for command in line.commands]
    return {
        "unreadable": bool(line.unreadable),
        "runs": runs,
        "writes": [write.path for write in line.writes if not write.implied],
        "implied": [write.path for write in line.writes if write.implied],
    }


def listed(entry: dict[str, Any]) -> dict[str, Any]:
    """An entry of the table, ready to be compared."""
    return {
        "unreadable": entry.get("unreadable", False),
        "runs": [_run(text) for text in entry.get("runs", [])],
        "writes": [_known(path) for path in entry.get("writes", [])],
        "implied": [_known(path) for path in entry.get("implied", [])],
    }


def _run(text: str) -> tuple[bool, bool, tuple[str | None, ...]]:
    doubt, wraps = text.startswith("doubt: "), False
    text = text.removeprefix("doubt: ")
    if text.startswith("wraps: "):
        wraps, text = True, text.removeprefix("wraps: ")
    return doubt, wraps, tuple(_known(word) for word in shlex.split(text))


def _known(word: str) -> str | None:
    return None if word == "?" else word
