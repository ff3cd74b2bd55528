"""Grants: the right to execute, and what a host may add to one execution."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from toolcell.cells.supervisor import Tap
from toolcell.errors import GrantError
from toolcell.events import EventKind
from toolcell.model import CellSettings, Limits, PreparedToolCall
from toolcell.normalizer import Origin


@dataclass(slots=True)
class Grant:
    """The right to execute one prepared call once, in a cell of these settings and limits."""

    digest: str
    origin: Origin
    settings: CellSettings
    limits: Limits
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
    """What a host may add to one execution: standard input, and a tap on the output.

    `stdin` is sent whole, with the call; text is encoded as UTF-8.
    """

    stdin: bytes | str | None = None
    tap: Tap | None = None

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


@dataclass(slots=True, eq=False)
class Cancellation:
    """The wish to end one call, which may come before, while or after it runs."""

    requested: bool = False
    _end: Callable[[], object] | None = None

    def request(self) -> None:
        """End the call: now if it runs, otherwise as soon as it would begin."""
        self.requested = True
        if self._end is not None:
            self._end()

    @contextmanager
    def ends(self, end: Callable[[], object]) -> Iterator[None]:
        """Let a request call `end` for as long as the body of the `with` runs."""
        self._end = end
        try:
            yield
        finally:
            self._end = None
