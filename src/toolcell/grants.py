"""Grants: the right to execute, and what a host may add to one execution."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from toolcell.bounds import Bounds
from toolcell.cells.streams import Tap
from toolcell.errors import GrantError, ToolcellError
from toolcell.events import EventKind
from toolcell.model import CellSettings, Limits, PreparedToolCall
from toolcell.normalizer import Origin


@dataclass(slots=True)
class Grant:
    """The right to execute one prepared call once, in a cell of these settings and limits.

    `whose` says of limits that are not the policy's who named them.
    """

    digest: str
    origin: Origin
    settings: CellSettings
    limits: Limits
    whose: Mapping[str, str] = field(default_factory=dict)
    spent: bool = field(default=False, init=False)

    def spend(self, prepared: PreparedToolCall) -> None:
        """Use the grant up; raises GrantError for another call, or a second time."""
        if prepared.digest != self.digest:
            raise GrantError("this grant was given for another prepared call")
        if self.spent:
            raise GrantError("this grant has been spent; every execution needs its own")
        self.spent = True


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What a host may add to one execution: standard input, a tap on the output, and a deadline.

    `stdin` is sent whole, with the call; text is encoded as UTF-8. `deadline` is in seconds, and
    over everything that comes after the grant: the wait for a place to run in, the making of a
    cell, and all tries. It only shortens what the policy and the tool give.
    """

    stdin: bytes | str | None = None
    tap: Tap | None = None
    deadline: float | None = None

    def __post_init__(self) -> None:
        if self.deadline is not None and not self.deadline > 0:
            raise ToolcellError(f"a deadline is in seconds above 0, not {self.deadline!r}")

    def bounded(self, grant: Grant, left: float) -> Bounds:
        """The bounds of a grant, within what is left of the deadline."""
        bounds = Bounds(grant.limits, grant.whose)
        if self.deadline is None:
            return bounds
        whose = f"what was left of the {self.deadline:g} s that the host gave for the whole call"
        return bounds.narrowed("wall", max(round(left, 3), 0.001), whose)

    def input(self) -> bytes | None:
        """Return the standard input as bytes."""
        return self.stdin.encode() if isinstance(self.stdin, str) else self.stdin


class Observer(Protocol):
    """Who is told of the start and the end of each attempt at a call, as events are.

    What it raises at the start keeps the call from running.
    """

    def __call__(self, kind: EventKind, /, **data: Any) -> None:
        """Take note."""
        ...


def unobserved(kind: EventKind, /, **data: Any) -> None:
    """Take no note."""
