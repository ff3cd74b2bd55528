"""What a tool's own module imports: `@tool`, `ToolError` and `Waiting`, and nothing heavier.

This module is imported again inside every cell that runs a user's tool, so it stays
with the standard library: `@tool` only leaves a note on the function, and the registry
derives the spec from it in the controller.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeVar, overload

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Declaration:
    """The note that `@tool` leaves on a function, as `__toolcell__`."""

    name: str | None = None
    description: str | None = None
    isolation: Literal["cell", "inline"] = "cell"
    timeout: float | None = None
    retries: int = 0
    idempotent: bool = False
    read_only: bool | None = None
    destructive: bool | None = None
    shell_line: str | None = None
    paths: tuple[str, ...] = ()
    limit_arguments: Mapping[str, str] = field(default_factory=dict)
    poll: str | None = None
    shell_directory: str | None = None
    shell_variables: str | None = None
    shell_input: str | None = None
    artifacts: tuple[str, ...] = ()


class ToolError(Exception):
    """Raise it in a tool to say no in words for the model: a message, and a hint what to try.

    `retryable` says that the same call can do better in a moment, such as after a time-out of
    what it asked; a tool that is idempotent and has `retries` is then tried again.
    """

    is_tool_error = True

    def __init__(self, message: str, hint: str = "", *, retryable: bool = False) -> None:
        super().__init__(message)
        self.hint = hint
        self.retryable = retryable


@dataclass(frozen=True, slots=True)
class Waiting:
    """Return it from a tool that is not done: a state, a handle to ask by, and a note.

    return Waiting("queued", handle="job-17", note="three jobs are before it")

    The tool that `@tool(poll=...)` names takes the handle, and settles the call by an answer
    that is not waiting. Raises ValueError for a state or a handle that cannot be one.
    """

    state: Literal["accepted", "queued", "dry_run"]
    handle: str
    note: str = ""

    is_tool_waiting: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.state not in ("accepted", "queued", "dry_run"):
            raise ValueError(f"a tool waits accepted, queued or dry_run, not {self.state!r}")
        if not isinstance(self.handle, str) or not 0 < len(self.handle) <= _LONGEST_HANDLE:
            raise ValueError(f"a handle is text of 1 to {_LONGEST_HANDLE} characters")


_LONGEST_HANDLE = 512


@overload
def tool(function: F, /) -> F: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    isolation: Literal["cell", "inline"] = "cell",
    timeout: float | None = None,
    retries: int = 0,
    idempotent: bool = False,
    read_only: bool | None = None,
    destructive: bool | None = None,
    shell_line: str | None = None,
    paths: tuple[str, ...] = (),
    limit_arguments: Mapping[str, str] = ...,
    poll: str | None = None,
    shell_directory: str | None = None,
    shell_variables: str | None = None,
    shell_input: str | None = None,
    artifacts: tuple[str, ...] = (),
) -> Callable[[F], F]: ...
def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Declare a typed function a tool; it stays the plain function that it was.

    The name and the description default to the function's own name and docstring.
    `timeout` is in seconds. `isolation="inline"` runs it in the controller's process,
    for trusted host code only. `retries` needs `idempotent=True`.
    `shell_line` names the parameter that is a line for a shell, and `paths` those that are paths in
    the workspace (parameters annotated as Path are known to be): a policy can look into them.
    `limit_arguments` maps parameters to limits of the call (wall, cpu, memory, processes, output)
    that their values narrow: seconds, bytes or a count. `poll` names the tool that takes the
    `handle` of an answer that is `Waiting`. `shell_directory`, `shell_variables` (a dict) and
    `shell_input` name what the tool puts around its line. `artifacts` are globs below the
    workspace, such as "report/**/*.html", in a policy's language (no braces): files that fit one
    come back with the result where the call made or changed them. Raises TypeError for an option
    that there is not.
    """
    known = Declaration.__dataclass_fields__
    for name in options:
        if name not in known:
            raise _misuse(f"has no option `{name}`", name, [*known])
    if function is not None and not callable(function):
        raise _misuse(f"takes its options by name, and {function!r} has none", "name", [*known])
    declaration = Declaration(**options)

    def mark(function: F) -> F:
        function.__toolcell__ = declaration  # type: ignore[attr-defined]  # a note on a function
        return function

    return mark if function is None else mark(function)


def _misuse(what: str, name: str, options: list[str]) -> TypeError:
    from difflib import get_close_matches  # late: only a mistake needs it

    close = get_close_matches(name, options, 1)
    end = f"did you mean `{close[0]}`?" if close else f"its options are {', '.join(options)}"
    return TypeError(f"@tool {what}; {end}")
