"""The question at the terminal: shown in full, then answered with a line that is typed for it.

It goes to the controlling terminal itself, since standard input may hold the calls and the
other streams lead elsewhere. Whatever was typed or pasted before the question stood there is
thrown away. Silence is not consent: an empty line, the end of the input and Ctrl-C leave the
question open.
"""

import atexit
import os
import signal
import sys
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum

from toolcell.approvals import utc_now
from toolcell.cli.question import account, words
from toolcell.model import ApprovalRequest, ApprovalResponse

_TERMINAL = "/dev/tty"
_LOCAL_FLAGS, _CHARACTERS = 3, 6
_CTRL_C = b"\x03"
_LONGEST_LINE = 4096
_WIDTH = 80

# Calls that run at once ask one after the other.
_one_at_a_time = threading.Lock()


class Left(StrEnum):
    """Why a question was left open."""

    UNANSWERED = "unanswered"
    SKIPPED = "skipped"
    ENDED = "ended"


def can_ask() -> bool:
    """Whether somebody sits there: a terminal on stderr, ours to read from."""
    if sys.stderr is None or not sys.stderr.isatty():
        return False
    try:
        with _terminal() as terminal:
            return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False


def ask(request: ApprovalRequest, *, by: str) -> ApprovalResponse | None:
    """Show what will run on the terminal and return the answer; None leaves the question open.

    Blocks until a line is typed; may be called from any thread, one asks at a time. Ctrl-C
    leaves the question open, and then interrupts the program as ever.
    """
    answer = ask_watching(request, by=by)
    return answer if isinstance(answer, ApprovalResponse) else None


def ask_watching(request: ApprovalRequest, *, by: str) -> ApprovalResponse | Left:
    """The same for one who sits and watches: says why a question was left open."""
    if not can_ask():
        return Left.UNANSWERED
    with _one_at_a_time, _terminal() as terminal, _line_mode(terminal):
        width = os.get_terminal_size(terminal).columns or _WIDTH
        _write(terminal, f"\n{account(request, utc_now(), width)}\n\n{_choices(request)}")
        while True:
            line = _typed(terminal)
            if line == _CTRL_C:
                break
            if line is None:
                return Left.ENDED
            answer, problem = _understood(line.decode(errors="replace").strip(), request, by)
            if answer is not None:
                return answer
            _write(terminal, f"{problem}\n")
    os.kill(os.getpid(), signal.SIGINT)  # for the main thread, whichever asks
    return Left.ENDED


def _choices(request: ApprovalRequest) -> str:
    lines = ["  y       yes, this once", "  n       no; n and some words tell the model why"]
    if request.run:
        lines.append("  a       yes, and exactly this again for the rest of the run")
    if request.run and request.prefix:
        lines.append(
            f"  p       yes, and all commands of this workspace that start with "
            f"{words(request.prefix)}, for the rest of the run"
        )
    return "\n".join([*lines, "  s       leave it open", ""])


def _understood(
    line: str, request: ApprovalRequest, by: str
) -> tuple[ApprovalResponse | Left | None, str]:
    """Take a line for an answer, or say what is wrong with it."""
    word, _, note = line.partition(" ")
    answer = {"approval_id": request.approval_id, "approved": True, "by": by}
    match word.lower(), note.strip():
        case "", "":
            return Left.UNANSWERED, ""
        case (("s" | "skip"), ""):
            return Left.SKIPPED, ""
        case (("q" | "quit"), ""):
            return Left.ENDED, ""
        case (("n" | "no"), reason):
            denied = answer | {"approved": False, "note": reason}
            return ApprovalResponse.model_validate(denied), ""
        case (("y" | "yes"), ""):
            return ApprovalResponse.model_validate(answer), ""
        case (("a" | "again"), "") if request.run:
            return ApprovalResponse.model_validate(answer | {"remember": "call"}), ""
        case (("p" | "prefix"), "") if request.run and request.prefix:
            remembered = answer | {"remember": "prefix", "prefix": request.prefix}
            return ApprovalResponse.model_validate(remembered), ""
    return None, "That is none of the answers above; nothing was decided."


@contextmanager
def _terminal() -> Iterator[int]:
    terminal = os.open(_TERMINAL, os.O_RDWR | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        yield terminal
    finally:
        os.close(terminal)


@contextmanager
def _line_mode(terminal: int) -> Iterator[None]:
    """Whole lines, shown as they are typed; Ctrl-C ends a line instead of sending a signal.

    A signal would reach the main thread only, and leave a thread that asks in its read.
    """
    before = termios.tcgetattr(terminal)
    mode = termios.tcgetattr(terminal)
    mode[_LOCAL_FLAGS] |= termios.ICANON | termios.ECHO | termios.ISIG
    mode[_CHARACTERS][termios.VINTR] = b"\0"  # _POSIX_VDISABLE of Linux: no key sends it
    mode[_CHARACTERS][termios.VEOL] = _CTRL_C

    def restore() -> None:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)

    atexit.register(restore)  # a daemon thread may still ask when the program ends
    try:
        termios.tcsetattr(terminal, termios.TCSADRAIN, mode)
        yield
    finally:
        restore()
        atexit.unregister(restore)


def _typed(terminal: int) -> bytes | None:
    """Return a line that was typed after now, Ctrl-C if it ends so, or None at the end."""
    termios.tcdrain(terminal)
    termios.tcflush(terminal, termios.TCIFLUSH)
    _write(terminal, "run it? ")
    line = os.read(terminal, _LONGEST_LINE)
    if line.endswith(_CTRL_C):
        _write(terminal, "\n")
        return _CTRL_C
    return line if line.endswith(b"\n") else None


def _write(terminal: int, text: str) -> None:
    data = text.encode(sys.stderr.encoding or "utf-8", "backslashreplace")
    while data:
        data = data[os.write(terminal, data) :]
