"""Tools that run what a model wrote: a shell line, a Python program."""

from pydantic import Field

from toolcell.model.cells import VariableName, WithoutNul
from toolcell.registry.builtins.declaring import READS, WRITES, Arguments, PathInWorkspace, declare


class _Echo(Arguments):
    text: str = Field(description="What to return.")


class _Runs(Arguments):
    """What stands around code that runs."""

    input: str | None = Field(default=None, description="Text for its standard input.")
    directory: PathInWorkspace = Field(default=".", description="Where in the workspace to run.")
    environment: dict[VariableName, WithoutNul] = Field(
        default_factory=dict, description="Further environment variables."
    )
    timeout: float | None = Field(default=None, gt=0, description="Seconds; at most the policy's.")
    memory: int | None = Field(
        default=None, ge=16 * 1024**2, description="Bytes of memory; at most the policy's."
    )
    separate: bool = Field(
        default=True,
        description="Keep standard error apart; false puts both in the output, in their order.",
    )


class _Command(Arguments):
    command: str = Field(min_length=1, description="A command line for bash.")


class _Code(Arguments):
    code: str = Field(description="Python source, run as a program.")


# The fields of the last base come first.
class _Shell(_Runs, _Command): ...


class _Python(_Runs, _Code): ...


_LIMITS = {"timeout": "wall", "memory": "memory"}
TOOLS = (
    declare("echo", _Echo, "basic", "Return the given text. For trying a set-up.", READS),
    declare(
        "shell",
        _Shell,
        "shell",
        "Run a command line with bash in the workspace. Returns what it prints; a "
        "non-zero exit code is a failure. There is no network, and nothing that runs "
        "in the background outlives the call. Files left in $TOOLCELL_OUTBOX come back as "
        "artifacts.",
        WRITES,
        answers="exit",
        shell_line="command",
        shell_directory="directory",
        shell_variables="environment",
        shell_input="input",
        limit_arguments=_LIMITS,
    ),
    declare(
        "python",
        _Python,
        "python",
        "Run Python source as a program in the workspace. Returns what it prints, and the value "
        "of a last expression; an uncaught exception is a failure. Figures of matplotlib, and "
        "files left in the directory that TOOLCELL_OUTBOX names, come back as artifacts. There "
        "is no network and no state from one call to the next.",
        WRITES,
        answers="exit",
        limit_arguments=_LIMITS,
    ),
)
