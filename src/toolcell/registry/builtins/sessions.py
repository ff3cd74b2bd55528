"""Tools that run in sessions, which keep their state from one call to the next."""

from typing import Annotated, Any, Literal

from pydantic import Field

from toolcell.registry.builtins.declaring import READS, WRITES, Arguments, declare

_SessionName = Annotated[
    str,
    Field(
        max_length=64,
        pattern=r"^\.*[A-Za-z0-9_-][A-Za-z0-9_.-]*$",
        description="The session to run in; a name that is not in use begins a new one.",
    ),
]
_Timeout = Annotated[
    float | None,
    Field(gt=0, description="Interrupt the call after so many seconds; less than the policy's."),
]
_STATE = (
    "A call that reaches its time limit is interrupted and the state is kept; the result says so, "
    "or that it is lost. Calls of one session run one after another. There is no network."
)


class _PythonSession(Arguments):
    code: str = Field(description="Python source; the value of a last expression is shown.")
    session: _SessionName = "main"
    timeout: _Timeout = None


class _ShellSession(Arguments):
    command: str = Field(min_length=1, pattern=r"^[^\x00]*$", description="Lines for bash.")
    session: _SessionName = "main"
    timeout: _Timeout = None


class _Sessions(Arguments):
    action: Literal["list", "restart", "end", "fork"] = Field(
        default="list", description="`restart` ends one, so that its next call starts afresh."
    )
    session: _SessionName = "main"
    kind: Literal["python", "shell"] | None = Field(
        default=None, description="Needed where sessions of both kinds have the name."
    )
    copies: int = Field(default=1, ge=1, le=64, description="Of `fork`: how many.")
    names: list[_SessionName] | None = Field(
        default=None, min_length=1, max_length=64, description="Of `fork`: names of the copies."
    )
    reseed: bool = Field(
        default=False, description="Of `fork`: other random numbers in each copy, not the same."
    )


_OPTIONS: dict[str, Any] = {"answers": "exit", "limit_arguments": {"timeout": "wall"}}

TOOLS = (
    declare(
        "python_session",
        _PythonSession,
        "session",
        "Run Python source in a session that keeps its state: variables, imports and functions "
        f"of earlier calls are there, as in a notebook. {_STATE}",
        WRITES,
        session="python",
        **_OPTIONS,
    ),
    declare(
        "shell_session",
        _ShellSession,
        "session",
        "Run lines in a bash session that keeps its state: working directory, variables, "
        "functions, aliases and background jobs of earlier calls are there. `exit` and a failure "
        f"under `set -e` end the session: put such lines in ( ). {_STATE}",
        WRITES,
        session="shell",
        shell_line="command",
        **_OPTIONS,
    ),
    declare(
        "sessions",
        _Sessions,
        "session",
        "List the sessions, end or restart one, or fork a Python session into copies that each "
        "go their own way from where it is now: `fork` returns the names of the copies.",
        READS.model_copy(update={"read_only": False, "idempotent": False}),
        isolation="controller",
    ),
)
