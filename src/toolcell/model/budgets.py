"""Budgets: what all calls of a run may use together, and what they have used."""

from toolcell.model.base import Bytes, Count, Frozen, Seconds


class Budget(Frozen):
    """The policy's [budget] table: bounds on all calls of a run together; None is no bound.

    `calls` counts calls that begin to run, `seconds` the time that they run, each for itself, and
    `output_bytes` what they write to standard output and error, and return. A call that begins
    may use what is left; those that run at once may use it each.
    """

    calls: Count | None = None
    seconds: Seconds | None = None
    output_bytes: Bytes | None = None

    def within(self, other: "Budget") -> "Budget":
        """Return the smaller of each bound."""
        smaller = {
            name: min(bounds)
            for name in Budget.model_fields
            if (bounds := [b for b in (getattr(self, name), getattr(other, name)) if b is not None])
        }
        return Budget(**smaller)


class Spent(Frozen):
    """What the calls of a run have used of its budget so far, those that run now included."""

    calls: int = 0
    seconds: float = 0.0
    output_bytes: int = 0
