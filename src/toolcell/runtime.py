"""The runtime: prepares calls, and executes what it is given a grant for.

`prepare` has no side effect. `execute` needs a grant, which only a decision makes, for
exactly this prepared call, and once.
"""

import asyncio
import math
import os
import secrets
import time
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from sandbox_workers import wire
from toolcell import rejections
from toolcell.answers import Answerer, answer
from toolcell.artifacts import Shelf
from toolcell.attempt import Attempt
from toolcell.bounds import bounds_of
from toolcell.cancellation import Cancellation, Withdrawn, expiring
from toolcell.cells.captures import Begin
from toolcell.cells.cell import Cell
from toolcell.cells.supervisor import Supervisor
from toolcell.cells.survey import Survey, is_asked_for
from toolcell.cells.workspace import place_name, resolve_workspace
from toolcell.errors import (
    ToolcellError,
    WorkspaceError,
)
from toolcell.grants import Grant, Observer, RunOptions, unobserved
from toolcell.inline import run_inline
from toolcell.legible import OutputBudget
from toolcell.model import (
    CellSettings,
    Enforcement,
    ErrorInfo,
    Limits,
    Plan,
    PreparedToolCall,
    Report,
    Rung,
    ToolCall,
    ToolResult,
    WaitingInfo,
    canonical_json,
)
from toolcell.normalizer import Origin, from_inline, named, refused
from toolcell.outputs import Keeper, OutputStore, with_keeper
from toolcell.pages import OutputReader
from toolcell.preparing import check_tools, prepare
from toolcell.redaction import Redactor, no_redaction
from toolcell.registry import ToolRegistry
from toolcell.retries import tried
from toolcell.sessions import SessionBounds, Sessions, SessionsAnswerer
from toolcell.slots import Slots
from toolcell.supply import CellSupply
from toolcell.timing import Timing, real_time

_SHOWN = 32 * 1024


class ToolRuntime:
    """Runs prepared calls of one registry in cells that see one workspace."""

    def __init__(
        self,
        registry: ToolRegistry,
        workspace: str | Path | None = None,
        *,
        protected: Iterable[str | Path] = (),
        spare_cells: int = 2,
        max_running: int | None = None,
        max_waiting: int = 10_000,
        output_budget: OutputBudget | int = _SHOWN,
        redactor: Redactor | None = None,
        timing: Timing = real_time,
        outputs: OutputStore | None = None,
        run: str = "",
        session_bounds: SessionBounds = SessionBounds(),  # noqa: B008  # frozen
    ) -> None:
        """Make a runtime.

        `protected` files stay read-only inside the workspace. At most `max_running`
        calls run at once (four for each processor if not given), further ones wait, and
        past `max_waiting` they are rejected as overloaded. `output_budget` is how much of a
        stream a result shows: a number of bytes, or more than that. `redactor` takes secrets
        out of every result; what a tap is given stays as the tool wrote it. Pauses between tries
        go by `timing`. `outputs` keeps what results do not show and the files that come back, by
        default in the state directory, under the name of a `run`; `no_outputs` keeps nothing.
        Raises RegistrationError where a tool's own input schema cannot be used.
        """
        if os.environ.get("TOOLCELL_CELL"):
            raise ToolcellError(
                "this code runs inside a cell and tries to start another runtime; put the part "
                'of the script that is not a tool below `if __name__ == "__main__":`'
            )
        check_tools(registry)
        self.registry = registry
        self.redactor = redactor or no_redaction
        """Takes secrets out of results; a new one may be set at any time, for later calls."""
        self._slots = Slots(max_running or 4 * (os.cpu_count() or 1), max_waiting)
        self._timing = timing
        self._budget = OutputBudget.of(output_budget)
        self.outputs = outputs or OutputStore()
        self._kept_for = {"run": run, "workspace": place_name(workspace) or secrets.token_hex(16)}
        self.sessions = Sessions(session_bounds, self._take, self._timing)
        self.answerers: dict[str, Answerer] = {
            "read_output": OutputReader(self.outputs, self._kept_for["workspace"], self._budget),
            "sessions": SessionsAnswerer(self.sessions),
        }
        """Who answers the tools whose isolation is "controller", by the tools' names."""
        self.supply = CellSupply(workspace, protected, spare_cells)
        self._closed = False

    def require_open(self) -> None:
        """Raise ToolcellError after `close`."""
        if self._closed:
            raise ToolcellError("the runtime is closed; make a new one")

    def protect(self, path: str | Path) -> None:
        """Keep one more file read-only inside the workspace, in cells made from now on."""
        self.supply.protect(path)

    def check(self, settings: CellSettings) -> None:
        """Raise WorkspaceError where cells of these settings could not have the workspace."""
        if settings.workspace != "none" and any(t.isolation == "cell" for t in self.registry):
            resolve_workspace(self.supply.workspace)

    def prepare(
        self, call: ToolCall, origin: Origin | None = None
    ) -> PreparedToolCall | ToolResult:
        """Resolve the tool and validate the arguments; a result says why that failed."""
        return prepare(self.registry, origin or Origin(call, redactor=self.redactor))

    async def execute(
        self,
        prepared: PreparedToolCall,
        grant: Grant,
        options: RunOptions | None = None,
        cancellation: Cancellation | None = None,
        observe: Observer = unobserved,
    ) -> ToolResult:
        """Run a prepared call; `observe` is told of the start and the end of each attempt.

        Raises GrantError without a fresh grant for exactly this call, ToolcellError after
        `close`, and what a tap of the options raised.
        """
        grant.spend(prepared)
        if grant.origin.redactor is no_redaction:
            grant.origin = replace(grant.origin, redactor=self.redactor)
        self.require_open()
        if self._slots.full:
            return refused(grant.origin, rejections.overloaded(self._slots.most))
        options, cancellation = options or RunOptions(), cancellation or Cancellation()
        until = self._timing.monotonic() + (options.deadline or math.inf)
        try:
            with self._slots.entered(cancellation):
                async with (
                    expiring(cancellation, options.deadline, self._timing),
                    self._slots.place(cancellation),
                ):
                    left = until - self._timing.monotonic()
                    bounds = bounds_of(prepared, options.bounded(grant, left))
                    return await self._run(
                        Attempt.first(
                            prepared, grant, options, cancellation, bounds, observe, until
                        )
                    )
        except Withdrawn:
            return refused(grant.origin, rejections.withdrawn(cancellation))

    async def close(self) -> None:
        """Cancel what runs, and end every launcher and every cell."""
        self._closed = True
        await self.sessions.close()
        await self._slots.clear()
        await self.supply.close()

    async def _run(self, first: Attempt) -> ToolResult:
        in_a_cell = first.prepared.definition.isolation == "cell"
        return await tried(first, self._in_a_cell if in_a_cell else self._inline, self._timing)

    async def _inline(self, attempt: Attempt) -> ToolResult:
        give_up = asyncio.Event()
        enforcement = Enforcement(rung="inline", required=attempt.grant.settings.require)
        attempt.tell_start(enforcement)
        began = time.monotonic()
        with attempt.cancellation.ends(give_up.set):
            if attempt.cancellation.requested:  # by who was told of the start
                give_up.set()
            value, error = await self._answer(attempt, give_up)
        attempt.tell_end(Report(seconds=time.monotonic() - began, answer_bytes=_size(value)))
        error = error and named(error, attempt.bounds.whose)
        make = partial(
            from_inline,
            attempt.grant.origin,
            value,
            error,
            enforcement,
            self._budget,
            attempt.number,
            attempt.prepared.definition.asked_by,
        )
        return await with_keeper(make, self._keeper(attempt))

    async def _answer(
        self, attempt: Attempt, give_up: asyncio.Event
    ) -> tuple[Any, ErrorInfo | None]:
        prepared, wall = attempt.prepared, attempt.wall
        if prepared.definition.isolation == "inline":
            return await run_inline(prepared, wall, give_up)
        return await answer(self.answerers, prepared, wall, give_up)

    async def _in_a_cell(self, attempt: Attempt) -> ToolResult:
        report, enforcement = await self._in_cell(attempt)
        make = partial(attempt.result, report, enforcement, self._budget)
        return await with_keeper(make, self._keeper(attempt, cut=not report.ended_by_itself))

    async def _in_cell(self, attempt: Attempt) -> tuple[Report, Enforcement]:
        required = Enforcement(required=attempt.grant.settings.require)
        try:
            with attempt.cancellation.interrupts():
                survey = await self._survey(attempt)
        except WorkspaceError as error:
            return Report(setup=str(error)), required
        keeper = self._keeper(attempt)
        shelf = Shelf(keeper)
        run = self.sessions.run if attempt.prepared.definition.session else self._in_its_own
        report, enforcement = await run(attempt, shelf, keeper.begin)
        if survey is not None and report.setup is None:
            left = await survey.end(report.left, shelf, attempt.bounds.limits)
            report = report.model_copy(update={"left": left})
        return report, enforcement

    async def _in_its_own(
        self, attempt: Attempt, shelf: Shelf, spill: Begin
    ) -> tuple[Report, Enforcement]:
        """Run a call in a cell of its own."""
        required = Enforcement(required=attempt.grant.settings.require)
        with attempt.cancellation.interrupts():
            taken = await self.supply.take(
                self.registry,
                attempt.grant.settings,
                attempt.grant.limits,
                attempt.bounds.limits,
            )
        if isinstance(taken, Report):
            return taken, required
        cell, enforcement = taken
        try:
            attempt.tell_start(enforcement)
        except BaseException:
            cell.close()
            raise
        supervisor = Supervisor(cell, attempt.bounds.limits, attempt.options.tap, shelf, spill)
        try:
            with attempt.cancellation.ends(supervisor.cancel):
                if attempt.cancellation.requested:  # by who was told of the start
                    supervisor.cancel()
                report = await supervisor.run(
                    attempt.prepared,
                    attempt.options.input(),
                    attempt.left(self._timing.monotonic()),
                )
        except wire.WireError as error:
            return Report(setup=f"the call cannot be sent to a cell: {error}"), required
        attempt.tell_end(report)
        return report, enforcement

    async def _survey(self, attempt: Attempt) -> Survey | None:
        """Look at the workspace before a call, where anybody asks what comes of it there."""
        settings, definition = attempt.grant.settings, attempt.prepared.definition
        if not is_asked_for(settings, definition):
            return None
        if not attempt.surveys:
            place = resolve_workspace(self.supply.workspace)
            attempt.surveys.append(await Survey.begin(place, settings, definition))
        return attempt.surveys[0]

    def _keeper(self, attempt: Attempt, *, cut: bool = False) -> Keeper:
        call, redactor = attempt.prepared.call, attempt.grant.origin.redactor
        return Keeper(self.outputs, call.call_id, call.name, redactor, self._kept_for, cut)

    def plan(self, settings: CellSettings, limits: Limits, rung: Rung) -> Plan:
        """Compute the plan of a cell; raises CellRefused or WorkspaceError."""
        return self.supply.plan(self.registry, settings, limits, rung)

    async def _take(self, attempt: Attempt) -> tuple[Cell, Enforcement] | Report:
        """Take a cell for a session, which has its first call's limits for all."""
        return await self.supply.take(self.registry, attempt.grant.settings, attempt.bounds.limits)


def _size(value: Any) -> int:
    """The bytes of an answer that came without a pipe."""
    if value is None:
        return 0
    told = value.model_dump(mode="json") if isinstance(value, WaitingInfo) else value
    return len(canonical_json(told).encode())
