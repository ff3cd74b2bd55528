"""The ledger: what the calls of one run have spent, and what is left of its budget.

A call is counted before it runs, so that calls at the same moment cannot all be the last one; one
that never began to run is given back. Time and output are counted as attempts end, and the time
of those that run by the clock.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from toolcell.bounds import Bounds
from toolcell.events import EventKind
from toolcell.model import Budget, Category, ErrorInfo, Spent
from toolcell.timing import Timing

_OUTPUT = ("stdout_bytes", "stderr_bytes", "answer_bytes")
_LEAST_WALL = 0.001


@dataclass(slots=True, eq=False)
class Account:
    """What one call spends; it is told of the borders that the call crosses."""

    ledger: "Ledger"
    began: bool = False

    def observe(self, kind: EventKind, data: dict[str, Any]) -> None:
        """Take note of the start and the end of an attempt."""
        if kind is EventKind.STARTED:
            self.began = True
            self.ledger.running[self] = self.ledger.now()
        elif kind is EventKind.ENDED:
            self.ledger.running.pop(self, None)
            self.ledger.seconds += data["seconds"]
            self.ledger.output_bytes += sum(data[name] for name in _OUTPUT)


class Ledger:
    """What was spent by the calls of one run."""

    def __init__(self, timing: Timing) -> None:
        """Begin with nothing spent."""
        self.now = timing.monotonic
        self.running: dict[Account, float] = {}
        self.calls = 0
        self.seconds = 0.0
        self.output_bytes = 0

    def spent(self) -> Spent:
        """Return what was spent so far."""
        now = self.now()
        seconds = self.seconds + sum(now - began for began in self.running.values())
        return Spent(calls=self.calls, seconds=round(seconds, 6), output_bytes=self.output_bytes)

    def exhausted(self, budget: Budget) -> ErrorInfo | None:
        """Return why no further call may begin, if none may."""
        if not _bounds(budget):
            return None
        spent = self.spent()
        for name, unit in _UNITS.items():
            bound = getattr(budget, name)
            if bound is not None and getattr(spent, name) >= bound:
                return ErrorInfo(
                    category=Category.BUDGET_SPENT,
                    message=f"the run's budget of {_amount(bound)} {unit} is spent",
                    hint=f"{_of(spent, budget)}; stop calling tools, and tell the user",
                )
        return None

    def narrowed(self, bounds: Bounds, budget: Budget) -> Bounds:
        """Return bounds within what is left."""
        if not _bounds(budget):
            return bounds
        spent = self.spent()
        if budget.seconds is not None:
            left = max(round(budget.seconds - spent.seconds, 3), _LEAST_WALL)
            whose = f"what was left of the run's budget of {budget.seconds:g} s"
            bounds = bounds.narrowed("wall", left, whose)
        if budget.output_bytes is not None:
            left = budget.output_bytes - spent.output_bytes
            whose = f"what was left of the run's budget of {budget.output_bytes:,} bytes"
            bounds = bounds.narrowed("output", left, whose)
        return bounds

    @contextmanager
    def account(self) -> Iterator[Account]:
        """Count a call for as long as the body of the `with` runs it, and after if it began."""
        account = Account(self)
        self.calls += 1
        try:
            yield account
        finally:
            if (since := self.running.pop(account, None)) is not None:
                self.seconds += self.now() - since  # it was ended with no word of its end
            if not account.began:
                self.calls -= 1


_UNITS = {"calls": "calls", "seconds": "seconds", "output_bytes": "bytes of output"}


def _bounds(budget: Budget) -> bool:
    """Whether a budget bounds anything: what was spent is added up for those that do."""
    return any(getattr(budget, name) is not None for name in _UNITS)


def _of(spent: Spent, budget: Budget) -> str:
    """What was spent of what, for each bound that there is."""
    parts = [
        f"{_amount(getattr(spent, name))} of {_amount(bound)} {unit}"
        for name, unit in _UNITS.items()
        if (bound := getattr(budget, name)) is not None
    ]
    return ", ".join(parts) + " were spent"


def _amount(number: float) -> str:
    return f"{number:,}" if isinstance(number, int) else f"{number:,.6g}"
