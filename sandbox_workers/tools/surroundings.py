"""What a call asks for around its code: a directory, variables, an input, one stream of output.

All of it is done in this very process, before the code runs, so that a shell and a program of
Python find the same. The walls are shut by then: a directory outside of the workspace meets
nothing, and is only named politely here.
"""

import os
import stat
import sys

from sandbox_workers.handlers import HandlerError
from sandbox_workers.tools import ToolError, places


def enter(directory: str, environment: dict[str, str], text: str | None, *, separate: bool) -> None:
    """Set them up; raises HandlerError in words for the model."""
    if directory not in ("", "."):
        _change_to(directory)
    os.environ.update(environment)
    if text is not None:
        _give_input(text)
    if not separate:
        os.dup2(1, 2)
        # One object for both, or what is in their buffers would be out of order.
        sys.stderr = sys.stdout
        sys.__stderr__ = sys.__stdout__  # type: ignore[misc]  # final only by convention


def place_input(data: bytes) -> None:
    """Put data on standard input as a memory file: no pipe to fill or deadlock on."""
    fd = os.memfd_create("stdin", 0)
    with open(fd, "wb", closefd=False) as file:
        file.write(data)
    os.lseek(fd, 0, os.SEEK_SET)
    os.dup2(fd, 0)
    os.close(fd)


def _change_to(directory: str) -> None:
    try:
        os.chdir(places.existing_directory(directory))
    except ToolError as error:
        raise HandlerError(str(error), error.hint) from None
    except OSError as error:
        raise HandlerError(str(places.refused(directory, error)), "") from None


def _give_input(text: str) -> None:
    if not stat.S_ISCHR(os.fstat(0).st_mode):  # /dev/null where nobody gave any
        raise HandlerError(
            "standard input of this call is given by the host already",
            "leave out the argument `input`",
        )
    place_input(text.encode())
