"""The shell of a session: a bash that is driven as a person at a terminal drives one.

It is interactive, because then SIGINT ends the whole line that it runs, loops too, and nothing
else of it; and neither a syntax error nor an unset variable ends it. There is no terminal: it
reads its lines from a pipe, edits and remembers none, and has no job control. Its own standard
output and error lead nowhere, where prompts and notices go.

Two lines are sent for each call. The first evaluates the command with its descriptors in place;
the second reports the status, and bash comes to it however the first ended. Where SIGINT hits a
child that bash has just forked, before it is the command, that child comes to the second line
too, as if it were the shell; it then tells so and ends, and the shell is interrupted again. No
name is defined in the shell for this, and quoted or looked up as a builtin, its words are what
they are whatever aliases and functions a call defines (but one named `builtin`, which breaks the
session).
"""

import os
import re
import signal
from pathlib import Path
from typing import Any

from sandbox_workers.session.executor import BadReportError, Channel, place

_PLACES = ("/bin/bash", "/usr/bin/bash")
_SETUP = (
    b"PS0= PS1= PS2=; set +H +m +o history; unset HISTFILE HISTCONTROL MAILCHECK PROMPT_COMMAND\n"
)
_REPORT = re.compile(rb"([0-9]{1,10}) ([0-9]{1,3}) ([01])")
_ESCAPED = re.compile(r"[\\'\n!]")
_LONGEST = 4096
_SYNC = 5_000_000_000  # above the numbers of calls, which have four bytes


def path() -> str | None:
    """Where there is a bash; None where there is none."""
    return next((path for path in _PLACES if Path(path).exists()), None)


class Shell:
    """How a bash is spoken to."""

    whole_group = True

    def __init__(self, channel: Channel) -> None:
        """Report through a channel."""
        self._reports = place(channel.reports)
        self._heard = b""

    def begin(self, call: dict[str, Any], stdin: str, stdout: str, stderr: str) -> bytes:
        """The two lines of a call."""
        line = f"\\builtin eval {quoted(call['code'])} <{stdin} >{stdout} 2>{stderr}"
        if call["last"]:
            # So that $? is what the call before left, whatever errexit and traps are set.
            line = f"if (\\builtin exit {call['last']}); then :; else {line}; fi"
        return f"{line}\n".encode() + self.nudge(call["call"])

    def fork(self, request: dict[str, Any], channels: list[Channel]) -> bytes:
        """Nothing: a bash cannot be told to go on as two."""
        return b""

    def nudge(self, call: int) -> bytes:
        """The report again: an interrupt may have hit the first one."""
        return self._report(call)

    def sync(self, number: int) -> bytes:
        """A report of its own, by which it is certain that no interrupt is on its way any more.

        One that comes when the shell has just read its next lines makes it forget them.
        """
        return self._report(_SYNC + number)

    def _report(self, call: int) -> bytes:
        own = "$((BASHPID == $$))"
        report = f"\\builtin printf '%d %d %d\\n' {call} \"$?\" {own} >{self._reports}"
        return f"{report}; (({own})) || \\builtin kill -KILL $BASHPID\n".encode()

    def hear(self, data: bytes) -> list[dict[str, Any]]:
        """Each line reports the end of a call."""
        *lines, self._heard = (self._heard + data).split(b"\n")
        found = [_REPORT.fullmatch(line) for line in lines]
        if len(self._heard) > _LONGEST or not all(found):
            raise BadReportError("the shell does not report as it was told to")
        return [_message(*map(int, match.groups())) for match in found if match]


def _message(number: int, status: int, own: int) -> dict[str, Any]:
    if not own:
        return {"type": "missed"}
    if number >= _SYNC:
        return {"type": "synced", "number": number - _SYNC}
    return {"type": "done", "call": number, "exit": status, "error": None}


def setup() -> bytes:
    """What a new shell is told first."""
    return _SETUP


def become(bash: str, channel: Channel) -> None:
    """Turn this process, a fork of the host, into the shell."""
    os.dup2(channel.hears, 0)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    # The interpreter ignores some of these, and an ignored signal stays ignored across execve.
    for number in (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    os.execv(bash, ["bash", "--noprofile", "--norc", "--noediting", "-i"])  # noqa: S606  # it is the shell


def quoted(text: str) -> str:
    """Write any text as one word on one line of bash (ANSI-C quoting)."""
    return "$'" + _ESCAPED.sub(lambda found: f"\\x{ord(found[0]):02x}", text) + "'"
