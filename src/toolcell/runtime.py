"""The runtime: prepares calls, and executes what it is given a grant for.

`prepare` has no side effect. `execute` needs a grant, which only a decision makes, for
exactly this prepared call, and once.
"""

import asyncio
import os
import time
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from sandbox_workers import wire
from toolcell import rejections
from toolcell.answers import Answerer, answer
from toolcell.arguments import InvalidArguments, check_schema, validate
from toolcell.attempt import Attempt
from toolcell.bounds import bounds_of, check_limits
from toolcell.cells.capabilities import capabilities, rungs
from toolcell.cells.plan import make_plan
from toolcell.cells.pool import CellPool, CellPools
from toolcell.cells.supervisor import Supervisor
from toolcell.cells.workspace import resolve_workspace
from toolcell.errors import (
    CellRefused,
    RegistrationError,
    ToolcellError,
    WorkspaceError,
)
from toolcell.grants import Cancellation, Grant, Observer, RunOptions, unobserved
from toolcell.inline import run_inline
from toolcell.journal import EventLost
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
    canonical_json,
)
from toolcell.normalizer import Origin, from_inline, from_report, named, refused
from toolcell.redaction import Redactor, no_redaction
from toolcell.registry import ToolRegistry

_RETRY_PAUSE = 0.05
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
        output_budget: int = _SHOWN,
        redactor: Redactor | None = None,
    ) -> None:
        """Make a runtime.

        `protected` files stay read-only inside the workspace. At most `max_running`
        calls run at once (four for each processor if not given), further ones wait, and
        past `max_waiting` they are rejected as overloaded. `output_budget` is how many
        bytes of a stream a result shows. `redactor` takes secrets out of every result; what a
        tap is given stays as the tool wrote it. Raises RegistrationError where a tool's own input
        schema cannot be used.
        """
        if os.environ.get("TOOLCELL_CELL"):
            raise ToolcellError(
                "this code runs inside a cell and tries to start another runtime; put the part "
                'of the script that is not a tool below `if __name__ == "__main__":`'
            )
        for definition in registry:
            check_schema(definition)
        self.registry = registry
        self.redactor = redactor or no_redaction
        """Takes secrets out of results; a new one may be set at any time, for later calls."""
        # Now, because the current directory may be another by the time of a call.
        self._workspace = Path(workspace).absolute() if workspace is not None else None
        self._protected = {str(Path(path).absolute()) for path in protected}
        running = max_running or 4 * (os.cpu_count() or 1)
        self._slots = asyncio.Semaphore(running)
        self._most = running + max_waiting
        self._running: set[Cancellation] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._budget = output_budget
        self.answerers: dict[str, Answerer] = {}
        """Who answers the tools whose isolation is "controller", by the tools' names."""
        self._pools = CellPools(spare_cells)
        self._closed = False

    def require_open(self) -> None:
        """Raise ToolcellError after `close`."""
        if self._closed:
            raise ToolcellError("the runtime is closed; make a new one")

    def protect(self, path: str | Path) -> None:
        """Keep one more file read-only inside the workspace, in cells made from now on."""
        self._protected.add(str(Path(path).absolute()))

    def check(self, settings: CellSettings) -> None:
        """Raise WorkspaceError where cells of these settings could not have the workspace."""
        if settings.workspace != "none" and any(t.isolation == "cell" for t in self.registry):
            resolve_workspace(self._workspace)

    def prepare(
        self, call: ToolCall, origin: Origin | None = None
    ) -> PreparedToolCall | ToolResult:
        """Resolve the tool and validate the arguments; a result says why that failed."""
        origin = origin or Origin(call, redactor=self.redactor)
        definition = self.registry.resolve(call.name)
        if definition is None:
            return refused(origin, rejections.unknown_tool(call.name, self.registry.list()))
        try:
            arguments = validate(definition, call.arguments)
            check_limits(definition, arguments)
        except InvalidArguments as error:
            return refused(origin, rejections.invalid(str(error)))
        except RegistrationError as error:  # registered after the runtime was made
            return refused(origin, rejections.unusable_tool(str(error)))
        return PreparedToolCall.of(call, definition, arguments)

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
        if len(self._running) >= self._most:
            return refused(grant.origin, rejections.overloaded(self._most))
        cancellation = cancellation or Cancellation()
        self._running.add(cancellation)
        self._idle.clear()
        try:
            if not await self._slot(cancellation):
                return refused(grant.origin, rejections.cancelled())
            try:
                return await self._run(
                    prepared, grant, options or RunOptions(), cancellation, observe
                )
            finally:
                self._slots.release()
        finally:
            self._running.discard(cancellation)
            if not self._running:
                self._idle.set()

    async def close(self) -> None:
        """Cancel what runs, and end every launcher and every cell."""
        self._closed = True
        for cancellation in list(self._running):
            cancellation.request()
        await self._idle.wait()
        await self._pools.close()

    async def _slot(self, cancellation: Cancellation) -> bool:
        """Wait for a place to run in; False where the call was cancelled first."""
        if cancellation.requested:
            return False
        if not self._slots.locked():
            return await self._slots.acquire()
        waiting = asyncio.ensure_future(self._slots.acquire())
        with cancellation.ends(waiting.cancel):
            try:
                await asyncio.wait([waiting])
            except asyncio.CancelledError:
                if not waiting.cancel():  # it came in the same turn of the loop
                    self._slots.release()
                raise
        if waiting.cancelled():
            return False
        if cancellation.requested:
            self._slots.release()
        return not cancellation.requested

    async def _run(
        self,
        prepared: PreparedToolCall,
        grant: Grant,
        options: RunOptions,
        cancellation: Cancellation,
        observe: Observer,
    ) -> ToolResult:
        bounds = bounds_of(prepared, grant.limits)
        first = Attempt(
            prepared, grant, options, cancellation, bounds, bounds.limits.wall, 1, observe
        )
        if prepared.definition.isolation != "cell":
            return await self._inline(first)
        return await self._in_cells(first)

    async def _inline(self, attempt: Attempt) -> ToolResult:
        give_up = asyncio.Event()
        enforcement = Enforcement(rung="inline", required=attempt.grant.settings.require)
        attempt.tell_start(enforcement)
        began = time.monotonic()
        with attempt.cancellation.ends(give_up.set):
            value, error = await self._answer(attempt, give_up)
        attempt.tell_end(Report(seconds=time.monotonic() - began))
        error = error and named(error, attempt.bounds.whose)
        return from_inline(attempt.grant.origin, value, error, enforcement, self._budget)

    async def _answer(
        self, attempt: Attempt, give_up: asyncio.Event
    ) -> tuple[Any, ErrorInfo | None]:
        prepared, wall = attempt.prepared, attempt.wall
        if prepared.definition.isolation == "inline":
            return await run_inline(prepared, wall, give_up)
        return await answer(self.answerers, prepared, wall, give_up)

    async def _in_cells(self, first: Attempt) -> ToolResult:
        """Try in one cell after the other, while that may help and there is time."""
        loop, definition, grant = asyncio.get_running_loop(), first.prepared.definition, first.grant
        until = loop.time() + first.wall
        tries = 1 + (definition.retries if definition.idempotent else 0)
        result: ToolResult | None = None
        for number in range(1, tries + 1):
            left = max(until - loop.time(), 0.001)
            try:
                report, enforcement = await self._in_cell(replace(first, wall=left, number=number))
            except EventLost:
                if result is None:
                    raise
                return result  # of the attempt before: this one could not be recorded
            result = from_report(
                grant.origin,
                report,
                definition,
                first.bounds.limits,
                enforcement,
                wall=first.wall,
                whose=first.bounds.whose,
                attempts=number,
                budget=self._budget,
            )
            pause = _RETRY_PAUSE * 2 ** (number - 1)
            helps = result.error is not None and result.error.retryable and number < tries
            if not helps or first.cancellation.requested or loop.time() + pause >= until:
                break
            await asyncio.sleep(pause)
        if result is None:
            raise AssertionError("a call is tried once at least")
        return result

    async def _in_cell(self, attempt: Attempt) -> tuple[Report, Enforcement]:
        settings, limits = attempt.grant.settings, attempt.bounds.limits
        required = Enforcement(required=settings.require)
        try:
            cell, plan = await self._pool(settings, limits).take()
        except CellRefused as error:
            return Report(setup=error.cause, remedy=error.remedy), required
        except WorkspaceError as error:
            return Report(setup=str(error)), required
        if attempt.cancellation.requested:  # while its cell was made
            cell.close()
            return Report(killed="cancel"), required
        # A pool hands out no cell of a launcher whose walls were not tried.
        enforcement = plan.enforcement.model_copy(update={"attested": plan.rung != "none"})
        try:
            attempt.tell_start(enforcement)
        except BaseException:
            cell.close()
            raise
        supervisor = Supervisor(cell, limits, attempt.options.tap)
        try:
            with attempt.cancellation.ends(supervisor.cancel):
                report = await supervisor.run(
                    attempt.prepared, attempt.options.input(), attempt.wall
                )
        except wire.WireError as error:
            return Report(setup=f"the call cannot be sent to a cell: {error}"), required
        attempt.tell_end(report)
        return report, enforcement

    def _pool(self, settings: CellSettings, limits: Limits) -> CellPool:
        made_of = [
            settings.model_dump(mode="json"),
            limits.in_the_cell(),
            self.registry.revision,  # a new tool's code has to be lent
            sorted(self._protected),
        ]
        make_plan = partial(self.plan, settings, limits)
        return self._pools.get(canonical_json(made_of), make_plan, rungs(settings))

    def plan(self, settings: CellSettings, limits: Limits, rung: Rung) -> Plan:
        """Compute the plan of a cell; raises CellRefused or WorkspaceError."""
        # What a tool's neighbours were when it was registered; some may be gone by now.
        neighbours = {path for tool in self.registry for path in tool.handler.code}
        code = {path for path in neighbours if Path(path).exists()}
        return make_plan(
            settings,
            limits,
            self._workspace,
            capabilities(),
            sorted(code),
            self._protected,
            rung=rung,
        )
