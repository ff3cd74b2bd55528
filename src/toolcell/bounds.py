"""Bounds: the limits in force for one call, each the smallest that anybody named, and who did.

The policy gives, the tool and the arguments of a call can only take away. Whoever named the one
that a call ends at stands in its result, because the remedy is another one each time.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from annotated_types import Ge

from toolcell.arguments import UNITS, InvalidArguments
from toolcell.model import LimitName, Limits, PreparedToolCall, ToolDefinition

OF_THE_TOOL = "the limit is the tool's own"


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits of one call; `whose` says of each that is not the policy's who named it."""

    limits: Limits
    whose: Mapping[str, str] = field(default_factory=dict)

    def narrowed(self, name: LimitName, value: float, whose: str) -> "Bounds":
        """Return bounds with a limit that is as small as `value`, if it was larger."""
        if value >= getattr(self.limits, name):
            return self
        limits = self.limits.model_copy(update={name: value})
        return Bounds(limits, {**self.whose, name: whose})

    def asked(self, name: LimitName, value: float, argument: str) -> "Bounds":
        """Return bounds as narrow as an argument asks; one that asks for more is told so."""
        if value <= getattr(self.limits, name):
            return self.narrowed(name, value, f"its argument `{argument}` asked for this limit")
        why = self.whose.get(name, "the policy gives no more")
        amount = f"{value:,g}" if name in ("wall", "cpu") else f"{value:,}"
        unit = f" {UNITS[name]}" if UNITS[name] else ""
        told = f"{why}; `{argument}` asked for {amount}{unit}, and cannot widen it"
        return Bounds(self.limits, {**self.whose, name: told})


def bounds_of(prepared: PreparedToolCall, given: Bounds) -> Bounds:
    """Narrow what a call was given by what its tool says, and by its own arguments."""
    definition, bounds = prepared.definition, given
    if definition.timeout:
        bounds = bounds.narrowed("wall", definition.timeout, OF_THE_TOOL)
    for argument, name in definition.limit_arguments.items():
        value = prepared.arguments.get(argument)
        if value is not None:
            asked = max(int(value) if name in _WHOLE else value, _least(name))
            bounds = bounds.asked(name, asked, argument)
    return bounds


def check_limits(definition: ToolDefinition, arguments: Mapping[str, Any]) -> None:
    """Raise InvalidArguments where an argument that narrows a limit cannot be one.

    Also where the schema would let it pass: what cannot be read must not leave a limit wide.
    """
    problems = []
    for argument, name in definition.limit_arguments.items():
        value = arguments.get(argument)
        if value is None:
            continue
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not math.isfinite(value) or value <= 0:
            problems.append(f"`{argument}`: expected a number above 0, for the {name} limit")
        elif name in _WHOLE and value != int(value):
            problems.append(f"`{argument}`: expected a whole number, for the {name} limit")
    if problems:
        raise InvalidArguments(problems)


_WHOLE = ("memory", "processes", "output")


def _least(name: str) -> Any:
    """The smallest limit of a kind that a cell can be made with."""
    metadata = Limits.model_fields[name].metadata
    ends: list[Any] = [each.ge for each in metadata if isinstance(each, Ge)]
    return max(ends, default=0)
