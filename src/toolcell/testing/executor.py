"""A fake executor: takes the runtime's place, and runs nothing.

What a call comes to is played; that it may run, for how long, and how often it is tried is decided
by the code that decides it for cells.
"""

import asyncio
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from toolcell import rejections
from toolcell.attempt import Attempt
from toolcell.bounds import bounds_of
from toolcell.cancellation import Cancellation, Withdrawn, expiring
from toolcell.errors import ToolcellError
from toolcell.grants import Grant, Observer, RunOptions, unobserved
from toolcell.model import (
    CellSettings,
    Enforcement,
    PreparedToolCall,
    Report,
    ToolCall,
    ToolResult,
)
from toolcell.normalizer import Origin, refused
from toolcell.preparing import check_tools, prepare
from toolcell.redaction import Redactor, no_redaction
from toolcell.registry import ToolRegistry
from toolcell.retries import tried
from toolcell.slots import Slots
from toolcell.testing.behaviours import Behaviour, behaviour
from toolcell.testing.clock import FakeClock
from toolcell.testing.script import ScriptedTool, UnscriptedCallError

Play = Callable[[PreparedToolCall], Any]
"""Says what a run of a call comes to: a behaviour, a value, an exception, or a whole result."""

_MANY = 100_000
_SHOWN = 32 * 1024


class FakeExecutor:
    """Plays the calls of one registry: those of scripted tools by their scripts."""

    def __init__(
        self,
        registry: ToolRegistry,
        play: Play | None = None,
        *,
        clock: FakeClock | None = None,
        output_budget: int = _SHOWN,
        complete: bool = False,
    ) -> None:
        """Make an executor; `play` says what calls of the other tools come to.

        Of a script that is `complete`, the call of a tool that it does not name is a mistake, and
        no result.
        """
        check_tools(registry)
        self.unscripted: list[UnscriptedCallError] = []
        """What was raised for calls that nothing is said of; an agent may have caught it."""
        self._complete = complete
        self.registry = registry
        self.redactor: Redactor = no_redaction
        self.clock = clock or FakeClock(auto=True)
        self._play = play
        self._budget = output_budget
        self._slots = Slots(_MANY, 0)
        self._closed = False

    def require_open(self) -> None:
        """Raise ToolcellError after `close`."""
        if self._closed:
            raise ToolcellError("the executor is closed; make a new one")

    def protect(self, path: str | Path) -> None:
        """Do nothing: no call can change a file."""

    def check(self, settings: CellSettings) -> None:
        """Do nothing: no call needs a workspace."""

    def prepare(
        self, call: ToolCall, origin: Origin | None = None
    ) -> PreparedToolCall | ToolResult:
        """Resolve the tool and validate the arguments; a result says why that failed.

        Raises UnscriptedCallError for a tool that a complete script does not name.
        """
        if self._complete and call.name not in self.registry:
            names = ", ".join(self.registry.list()) or "no tool"
            raise self._noted(
                UnscriptedCallError(
                    f"{call.name} was called with {call.arguments}, and the script names {names}; "
                    "with a `registry` of the tools, such a call would be answered"
                )
            )
        return prepare(self.registry, origin or Origin(call, redactor=self.redactor))

    async def execute(
        self,
        prepared: PreparedToolCall,
        grant: Grant,
        options: RunOptions | None = None,
        cancellation: Cancellation | None = None,
        observe: Observer = unobserved,
    ) -> ToolResult:
        """Play a prepared call; raises UnscriptedCallError where nothing says what it comes to."""
        grant.spend(prepared)
        self.require_open()
        options, cancellation = options or RunOptions(), cancellation or Cancellation()
        bounds = bounds_of(prepared, options.bounded(grant, options.deadline or math.inf))
        first = Attempt.first(prepared, grant, options, cancellation, bounds, observe)
        try:
            with self._slots.entered(cancellation):
                async with expiring(cancellation, options.deadline, self.clock):
                    cancellation.check()
                    return await tried(first, self._attempt, self.clock)
        except Withdrawn:
            return refused(grant.origin, rejections.withdrawn(cancellation))

    async def close(self) -> None:
        """Cancel what is played."""
        self._closed = True
        await self._slots.clear()

    async def _attempt(self, attempt: Attempt) -> ToolResult:
        played = self._played(attempt.prepared)
        if isinstance(played, ToolResult):
            return _again(played, attempt)
        enforcement = Enforcement(rung="none", required=attempt.grant.settings.require)
        report = await self._report(behaviour(played), attempt, enforcement)
        return attempt.result(report, enforcement, self._budget)

    def _played(self, prepared: PreparedToolCall) -> Any:
        name = prepared.definition.name
        try:
            if isinstance(prepared.definition, ScriptedTool):
                return prepared.definition.script(prepared)
            if self._play is None:
                raise UnscriptedCallError(f"nothing says what {name} comes to")
            return self._play(prepared)
        except UnscriptedCallError as error:
            raise self._noted(error) from None

    def _noted(self, error: UnscriptedCallError) -> UnscriptedCallError:
        self.unscripted.append(error)
        return error

    async def _report(
        self, played: Behaviour, attempt: Attempt, enforcement: Enforcement
    ) -> Report:
        limits, began = attempt.bounds.limits, self.clock.monotonic()
        report = played.report(limits) if math.isfinite(played.seconds) else None
        if report is not None and report.setup is not None:
            return report
        attempt.tell_start(enforcement)
        await _tap(attempt, played)
        if ended := await self._ended(played, attempt):
            report = played.report(limits, exit=None, killed=ended)
        if report is None:
            raise AssertionError("what has no end is ended")
        report = report.model_copy(update={"seconds": self.clock.monotonic() - began})
        attempt.tell_end(report)
        return report

    async def _ended(self, played: Behaviour, attempt: Attempt) -> str | None:
        """Let its time pass; returns why it was ended before, if it was."""
        takes = min(played.seconds, attempt.wall)
        try:
            with attempt.cancellation.interrupts():
                if takes:
                    await self.clock.sleep(takes)
                else:
                    await asyncio.sleep(0)
        except Withdrawn:
            return "cancel" if attempt.cancellation.requested else "wall"
        return "wall" if played.seconds > attempt.wall else None


async def _tap(attempt: Attempt, played: Behaviour) -> None:
    """Give the output to whoever listens."""
    if attempt.options.tap is None:
        return
    kept = played.output(attempt.bounds.limits)
    for stream in ("stdout", "stderr"):
        captured = kept[stream]
        for data in filter(None, (captured.head, captured.tail)):
            waiting = attempt.options.tap(stream, data)
            if waiting is not None:
                await waiting


def _again(result: ToolResult, attempt: Attempt) -> ToolResult:
    """A recorded result, as that of this call."""
    origin = attempt.grant.origin
    now = {
        "digest": origin.digest,
        "rule_id": origin.rule_id,
        "policy_version": origin.policy_version,
        "approval_id": origin.approval_id,
        "decision": origin.decision,
    }
    return result.model_copy(
        update={
            "call_id": origin.call.call_id,
            "tool_name": origin.call.name,
            "metadata": result.metadata.model_copy(update=now),
        }
    )
