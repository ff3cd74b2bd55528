"""Scripts: what the calls of a tool come to, one after the other."""

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import Field

from toolcell.model import HandlerRef, PreparedToolCall, ToolDefinition, ToolSpec
from toolcell.testing.behaviours import Behaviour, behaviour

_ANY = {"type": "object"}


class UnscriptedCallError(AssertionError):
    """A call was granted for which the script has nothing: the agent, or the test, is wrong."""


class Script:
    """What the calls of one tool come to.

    Each step is a `Behaviour`, a value that is returned, an exception that is raised, or a
    function of the arguments that returns one of these. Steps are played one a run, tries
    included; `forever` plays the last one again and again.
    """

    def __init__(self, *steps: Any, forever: bool = False) -> None:
        """Play these in turn."""
        self._steps = list(steps)
        self._forever = forever

    @classmethod
    def of(cls, steps: Any) -> "Script":
        """Take a list for steps in turn, and everything else for one that is played each time."""
        if isinstance(steps, Script):
            return steps
        return cls(*steps) if isinstance(steps, list | tuple) else cls(steps, forever=True)

    def __call__(self, prepared: PreparedToolCall) -> Behaviour:
        """Return what this run comes to; raises UnscriptedCallError past the end."""
        if not self._steps:
            raise UnscriptedCallError(
                f"{prepared.definition.name} was called with {prepared.arguments}, and its script "
                "has no step left"
            )
        keep = self._forever and len(self._steps) == 1
        step = self._steps[0] if keep else self._steps.pop(0)
        return behaviour(step(**prepared.arguments) if callable(step) else step)

    @property
    def left(self) -> int:
        """How many steps were not played."""
        return 0 if self._forever else len(self._steps)


class ScriptedTool(ToolDefinition):
    """A tool whose behaviour is a script; only a `FakeExecutor` can run it."""

    script: Script = Field(exclude=True, repr=False)


def scripted(
    name: str, *steps: Any, schema: dict[str, Any] | None = None, **options: Any
) -> ScriptedTool:
    """Define a tool by its script.

    It takes any arguments, or those of a JSON Schema. `options` are fields of `ToolDefinition`,
    such as `idempotent`, `retries`, `timeout` and `poll`. A single step that is a `Script` is taken
    as it is.
    """
    whole = steps[0] if len(steps) == 1 and isinstance(steps[0], Script) else Script(*steps)
    spec = ToolSpec(name=name, description=f"{name}, scripted.", input_schema=schema or _ANY)
    handler = HandlerRef(module="toolcell.testing", function=name)
    return ScriptedTool(spec=spec, handler=handler, script=whole, **options)


def tools_of(script: Mapping[str, Any] | Iterable[ToolDefinition]) -> list[ToolDefinition]:
    """Make the tools that a script tells of: by name, or defined already."""
    if isinstance(script, Mapping):
        return [scripted(name, Script.of(steps)) for name, steps in script.items()]
    return list(script)
