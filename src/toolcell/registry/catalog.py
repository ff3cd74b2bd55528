"""ToolRegistry: register, resolve, list."""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator
from types import ModuleType
from typing import Any, Protocol, TypeVar

from toolcell.errors import DuplicateToolError, RegistrationError
from toolcell.model import ToolCall, ToolDefinition, ToolSpec
from toolcell.registry.builtins import builtin_tools
from toolcell.registry.signature import define

R_co = TypeVar("R_co", covariant=True)
Tool = ToolDefinition | Callable[..., Any]


class Handles(Protocol[R_co]):
    """Whatever can take a call the whole way: a `ToolController`."""

    def handle(self, call: ToolCall) -> Awaitable[R_co]:
        """Handle one call."""
        ...


class ToolRegistry:
    """Tools by name.

    Takes typed functions (declared with `@tool` or not) and ready `ToolDefinition`s.
    `revision` counts registrations.
    """

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, ToolDefinition] = {}
        self.revision = 0
        for tool in tools:
            self.register(tool)

    @classmethod
    def builtin(cls) -> "ToolRegistry":
        """Make a registry that holds the built-in tools; more can be registered."""
        return cls(builtin_tools())

    @classmethod
    def from_module(cls, module: ModuleType) -> "ToolRegistry":
        """Collect what a module declares with `@tool`; raises RegistrationError if nothing."""
        functions = dict.fromkeys(
            value
            for value in vars(module).values()
            if inspect.isfunction(value) and hasattr(value, "__toolcell__")
        )
        if not functions:
            raise RegistrationError(
                f"{module.__name__} declares no tool; put @tool above its functions"
            )
        return cls(functions)

    def register(self, tool: Tool) -> ToolDefinition:
        """Add a tool; raises DuplicateToolError, or RegistrationError where it cannot work."""
        definition = tool if isinstance(tool, ToolDefinition) else define(tool)
        if definition.name in self._tools:
            raise DuplicateToolError(
                f"a tool named {definition.name!r} is registered already "
                f"({self._tools[definition.name].handler}); give this one another name"
            )
        self._tools[definition.name] = definition
        self.revision += 1
        return definition

    def resolve(self, name: str) -> ToolDefinition | None:
        """Return the definition of a name, or None."""
        return self._tools.get(name)

    def specs(self) -> list[ToolSpec]:
        """Return what a model may see, sorted by name; no handler is reachable from it."""
        return [self._tools[name].spec.model_copy(deep=True) for name in sorted(self._tools)]

    def list(self) -> list[str]:
        """Return the names, sorted."""
        return sorted(self._tools)

    async def dispatch(self, call: ToolCall, controller: Handles[R_co]) -> R_co:
        """Take one call the whole way: the short form of `controller.handle(call)`."""
        return await controller.handle(call)

    def __iter__(self) -> Iterator[ToolDefinition]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools
