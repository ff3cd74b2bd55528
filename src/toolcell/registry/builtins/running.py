"""Tools that run what a model wrote: a shell line, a Python program."""

from pydantic import Field

from toolcell.registry.builtins.declaring import READS, WRITES, Arguments, declare


class _Echo(Arguments):
    text: str = Field(description="What to return.")


class _Shell(Arguments):
    command: str = Field(min_length=1, description="A command line for bash.")


class _Python(Arguments):
    code: str = Field(description="Python source, run as a program; print what you want to see.")


TOOLS = (
    declare("echo", _Echo, "basic", "Return the given text. For trying a set-up.", READS),
    declare(
        "shell",
        _Shell,
        "shell",
        "Run a command line with bash in the workspace. Returns what it prints; a "
        "non-zero exit code is a failure. There is no network, and nothing that runs "
        "in the background outlives the call.",
        WRITES,
        answers="exit",
        shell_line="command",
    ),
    declare(
        "python",
        _Python,
        "python",
        "Run Python source as a program in the workspace. Returns what it prints; an "
        "uncaught exception is a failure. There is no network and no state from one "
        "call to the next.",
        WRITES,
        answers="exit",
    ),
)
