"""One attempt at a call: what runs, for how long at most, and who is told of its two ends."""

import math
from dataclasses import dataclass, field

from toolcell.bounds import Bounds
from toolcell.cancellation import Cancellation
from toolcell.cells.survey import Survey
from toolcell.events import EventKind
from toolcell.grants import Grant, Observer, RunOptions
from toolcell.legible import OutputBudget
from toolcell.model import Enforcement, PreparedToolCall, Report, ToolResult
from toolcell.normalizer import from_report
from toolcell.normalizer.truncation import Keep


@dataclass(frozen=True, slots=True)
class Attempt:
    """One of the tries at a call; `wall` is what is left of its time, in seconds.

    `until` is when the time is up that the host gave for all of the call, by a monotonic clock.
    `surveys` has at most one, of before the first try; all tries at a call share it.
    """

    prepared: PreparedToolCall
    grant: Grant
    options: RunOptions
    cancellation: Cancellation
    bounds: Bounds
    observe: Observer
    wall: float
    number: int = 1
    until: float = math.inf
    surveys: list[Survey] = field(default_factory=list)

    @classmethod
    def first(
        cls,
        prepared: PreparedToolCall,
        grant: Grant,
        options: RunOptions,
        cancellation: Cancellation,
        bounds: Bounds,
        observe: Observer,
        until: float = math.inf,
    ) -> "Attempt":
        """The first one, which has all of the call's time."""
        wall = bounds.limits.wall
        return cls(prepared, grant, options, cancellation, bounds, observe, wall=wall, until=until)

    def left(self, now: float) -> float:
        """Return how long it may run if it begins now, which may be later than it was to."""
        return max(min(self.wall, self.until - now), 0.001)

    def result(
        self,
        report: Report,
        enforcement: Enforcement,
        budget: OutputBudget | int,
        *,
        keep: Keep | None = None,
    ) -> ToolResult:
        """Return what a report of it comes to; `budget` is how much of its output is shown."""
        return from_report(
            self.grant.origin,
            report,
            self.prepared.definition,
            self.bounds.limits,
            enforcement,
            wall=self.bounds.limits.wall,
            whose=self.bounds.whose,
            attempts=self.number,
            budget=budget,
            keep=keep,
        )

    def tell_start(self, enforcement: Enforcement) -> None:
        """Tell that a cell was taken; what this raises keeps the call from running."""
        self.observe(
            EventKind.STARTED,
            attempt=self.number,
            rung=enforcement.rung,
            attested=enforcement.attested,
        )

    def tell_end(self, report: Report) -> None:
        """Tell how it ended."""
        self.observe(
            EventKind.ENDED,
            attempt=self.number,
            seconds=round(report.seconds, 6),
            exit=report.exit,
            killed=report.killed,
            stdout_bytes=report.stdout.total_bytes,
            stderr_bytes=report.stderr.total_bytes,
            answer_bytes=report.answer_bytes,
            cpu_seconds=report.usage and report.usage.cpu_seconds,
            peak_memory=report.usage and report.usage.peak_memory,
        )
