"""The runtime: prepares calls, and executes what it is given a grant for.

`prepare` has no side effect. `execute` needs a grant, which only a decision makes, for
exactly this prepared call, and once.
"""

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from sandbox_workers import wire
from toolcell.arguments import InvalidArguments, check_schema, validate
from toolcell.cells.capabilities import capabilities, explain
from toolcell.cells.plan import make_plan
from toolcell.cells.pool import CellPool
from toolcell.cells.process import LauncherFailed
from toolcell.cells.supervisor import Supervisor, Tap
from toolcell.errors import (
    CellRefused,
    GrantError,
    RegistrationError,
    ToolcellError,
    WorkspaceError,
)
from toolcell.inline import ENFORCEMENT, run_inline
from toolcell.model import (
    Category,
    CellSettings,
    Enforcement,
    ErrorInfo,
    Limits,
    Plan,
    PreparedToolCall,
    Report,
    ToolCall,
    ToolResult,
    canonical_json,
)
from toolcell.normalizer import Origin, from_inline, from_report, refused
from toolcell.registry import ToolRegistry

_RETRY_PAUSE = 0.05
_SHOWN = 32 * 1024


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
    """What a host may add to one execution: text for standard input, a tap on the output."""

    stdin: str | None = None
    tap: Tap | None = None


@dataclass(slots=True)
class Cancellation:
    """The wish to end one call, which may come before, while or after it runs."""

    requested: bool = False
    _end: Callable[[], None] | None = None

    def request(self) -> None:
        """End the call: now if it runs, otherwise as soon as it would begin."""
        self.requested = True
        if self._end is not None:
            self._end()

    @contextmanager
    def ends(self, end: Callable[[], None]) -> Iterator[None]:
        """Let a request call `end` for as long as the body of the `with` runs."""
        self._end = end
        try:
            yield
        finally:
            self._end = None


class ToolRuntime:
    """Runs prepared calls of one registry in cells that see one workspace."""

    def __init__(
        self,
        registry: ToolRegistry,
        workspace: str | Path | None = None,
        *,
        protected: tuple[str, ...] = (),
        spare_cells: int = 2,
        max_running: int | None = None,
        max_waiting: int = 10_000,
        output_budget: int = _SHOWN,
    ) -> None:
        """Make a runtime.

        `protected` files stay read-only inside the workspace. At most `max_running`
        calls run at once (four for each processor if not given), further ones wait, and
        past `max_waiting` they are rejected as overloaded. `output_budget` is how many
        bytes of a stream a result shows. Raises RegistrationError where a tool's own input
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
        self._workspace = Path(workspace) if workspace is not None else None
        self._protected = protected
        self._spare = spare_cells
        running = max_running or 4 * (os.cpu_count() or 1)
        self._slots = asyncio.Semaphore(running)
        self._most = running + max_waiting
        self._accepted = 0
        self._budget = output_budget
        self._pools: dict[str, CellPool] = {}

    def prepare(self, call: ToolCall) -> PreparedToolCall | ToolResult:
        """Resolve the tool and validate the arguments; a result says why that failed."""
        origin = Origin(call)
        definition = self.registry.resolve(call.name)
        if definition is None:
            return refused(origin, _unknown_tool(call.name, self.registry.list()))
        try:
            arguments = validate(definition, call.arguments)
        except InvalidArguments as error:
            return refused(origin, _invalid(str(error)))
        except RegistrationError as error:  # registered after the runtime was made
            return refused(origin, _unusable(str(error)))
        return PreparedToolCall.of(call, definition, arguments)

    async def execute(
        self,
        prepared: PreparedToolCall,
        grant: Grant,
        options: RunOptions | None = None,
        cancellation: Cancellation | None = None,
    ) -> ToolResult:
        """Run a prepared call; raises GrantError without a fresh grant for exactly this call."""
        grant.spend(prepared)
        if self._accepted >= self._most:
            return refused(grant.origin, _overloaded(self._most))
        self._accepted += 1
        try:
            async with self._slots:
                return await self._run(
                    prepared, grant, options or RunOptions(), cancellation or Cancellation()
                )
        finally:
            self._accepted -= 1

    async def close(self) -> None:
        """End every launcher and every cell."""
        pools, self._pools = list(self._pools.values()), {}
        for pool in pools:
            await pool.close()

    async def _run(
        self,
        prepared: PreparedToolCall,
        grant: Grant,
        options: RunOptions,
        cancellation: Cancellation,
    ) -> ToolResult:
        definition = prepared.definition
        wall = min(grant.limits.wall, definition.timeout or grant.limits.wall)
        if cancellation.requested:
            return refused(grant.origin, _cancelled())
        if definition.isolation == "inline":
            give_up = asyncio.Event()
            with cancellation.ends(give_up.set):
                value, error = await run_inline(prepared, wall, give_up)
            return from_inline(grant.origin, value, error, ENFORCEMENT, self._budget)
        loop = asyncio.get_running_loop()
        until = loop.time() + wall
        tries = 1 + (definition.retries if definition.idempotent else 0)
        attempt = 0
        while True:
            attempt += 1
            left = max(until - loop.time(), 0.001)
            report, enforcement = await self._in_cell(prepared, grant, options, cancellation, left)
            result = from_report(
                grant.origin,
                report,
                definition,
                grant.limits,
                enforcement,
                wall=wall,
                attempts=attempt,
                budget=self._budget,
            )
            again = result.error is not None and result.error.retryable and attempt < tries
            pause = _RETRY_PAUSE * 2 ** (attempt - 1)
            if not again or loop.time() + pause >= until:
                return result
            await asyncio.sleep(pause)

    async def _in_cell(
        self,
        prepared: PreparedToolCall,
        grant: Grant,
        options: RunOptions,
        cancellation: Cancellation,
        wall: float,
    ) -> tuple[Report, Enforcement]:
        required = Enforcement(required=grant.settings.require)
        try:
            cell, plan = await self._pool(grant.settings, grant.limits).take()
        except LauncherFailed as error:
            refusal = explain(error.cause, error.errno)
            return Report(setup=refusal.cause, remedy=refusal.remedy), required
        except CellRefused as error:
            return Report(setup=error.cause, remedy=error.remedy), required
        except WorkspaceError as error:
            return Report(setup=str(error)), required
        if cancellation.requested:  # while its cell was made
            cell.close()
            return Report(killed="cancel"), required
        supervisor = Supervisor(cell, grant.limits, options.tap)
        try:
            with cancellation.ends(supervisor.cancel):
                report = await supervisor.run(prepared, options.stdin, wall)
        except wire.WireError as error:
            return Report(setup=f"the call cannot be sent to a cell: {error}"), required
        return report, plan.enforcement

    def _pool(self, settings: CellSettings, limits: Limits) -> CellPool:
        key = canonical_json([settings.model_dump(mode="json"), limits.in_the_cell()])
        pool = self._pools.get(key)
        if pool is None:
            pool = CellPool(partial(self.plan, settings, limits), self._spare)
            self._pools[key] = pool
        return pool

    def plan(self, settings: CellSettings, limits: Limits) -> Plan:
        """Compute the plan of a cell; raises CellRefused or WorkspaceError."""
        code = {path for tool in self.registry for path in tool.handler.code}
        return make_plan(
            settings, limits, self._workspace, capabilities(), sorted(code), self._protected
        )


def _unknown_tool(name: str, known: list[str]) -> ErrorInfo:
    return ErrorInfo(
        category=Category.UNKNOWN_TOOL,
        message=f"there is no tool named {name[:80]!r}",
        hint=f"the tools are {', '.join(known)}" if known else "no tool is registered",
    )


def _invalid(problems: str) -> ErrorInfo:
    return ErrorInfo(
        category=Category.INVALID_ARGUMENTS,
        message=problems,
        hint="correct the arguments and call again",
    )


def _unusable(why: str) -> ErrorInfo:
    return ErrorInfo(category=Category.CELL_SETUP, message=f"the call was not run: {why}")


def _overloaded(most: int) -> ErrorInfo:
    return ErrorInfo(
        category=Category.OVERLOADED,
        message=f"{most} calls are running or waiting already",
        retryable=True,
        hint="wait for some of them to end",
    )


def _cancelled() -> ErrorInfo:
    return ErrorInfo(category=Category.CANCELLED, message="the call was cancelled before it ran")
