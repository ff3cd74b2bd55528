"""What a tool's own module imports: `@tool` and `ToolError`, and nothing heavier.

This module is imported again inside every cell that runs a user's tool, so it stays
with the standard library: `@tool` only leaves a note on the function, and the registry
derives the spec from it in the controller.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, overload

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


class ToolError(Exception):
    """Raise it in a tool to say no in words for the model: a message, and a hint what to try."""

    is_tool_error = True

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


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
) -> Callable[[F], F]: ...
def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Declare a typed function a tool; it stays the plain function that it was.

    The name and the description default to the function's own name and docstring.
    `timeout` is in seconds. `isolation="inline"` runs it in the controller's process,
    for trusted host code only. `retries` needs `idempotent=True` to take effect.
    `shell_line` names the parameter that is a line for a shell, and `paths` those that are paths in
    the workspace (parameters annotated as Path are known to be): a policy can look into them.
    `limit_arguments` maps parameters to limits of the call (wall, cpu, memory, processes, output)
    that their values narrow: seconds, bytes or a count.
    """
    declaration = Declaration(**options)

    def mark(function: F) -> F:
        function.__toolcell__ = declaration  # type: ignore[attr-defined]  # a note on a function
        return function

    return mark if function is None else mark(function)
