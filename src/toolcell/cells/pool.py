"""The pool: one launcher a plan, and a few cells made ready ahead of their calls.

A cell is used once. Cells that wait are made while others run, so that a call does not
pay for the making of its walls.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from pathlib import Path

from toolcell.cells.attestation import attest
from toolcell.cells.capabilities import capabilities, explain, may_step_down
from toolcell.cells.cell import Cell
from toolcell.cells.cgroup import Group, Groups
from toolcell.cells.plan import SCRATCH
from toolcell.cells.process import Launcher
from toolcell.cells.tree import children
from toolcell.errors import CellRefused, WallsNotBuilt
from toolcell.model import Plan, Rung

_PAUSE = 0.002
_POOLS = 4


class CellPool:
    """Ready cells of one kind.

    The plan is computed anew for each launcher. A launcher is retired when a place that
    it protects inside the workspace was replaced on the host: the kernel detaches a mount
    whose mount point is renamed over (detach_mounts), and what it protected with it.
    """

    def __init__(
        self, make_plan: Callable[[Rung], Plan], rungs: tuple[Rung, ...], spare: int = 2
    ) -> None:
        """Keep up to `spare` cells waiting; none is made before the first call.

        `rungs` are those that will do, the strongest first.
        """
        self._make_plan = make_plan
        self._rungs = rungs
        self._spare = spare
        self._ready: deque[Cell] = deque()
        self._launcher: Launcher | None = None
        self._retired: list[Launcher] = []
        self._identities: dict[str, tuple[int, int] | None] = {}
        self._starting = asyncio.Lock()
        self._refill: asyncio.Task[None] | None = None
        self._closed = False
        self._groups = _MemoryGroups()

    async def take(self) -> tuple[Cell, Plan]:
        """Hand over a ready cell, which is the caller's from then on, and its plan.

        Raises CellRefused, or WorkspaceError where the plan cannot be computed.
        """
        launcher = await self._living()
        try:
            cell = self._waiting_cell() or await self._make(launcher)
        except CellRefused:
            if launcher.alive:
                raise
            launcher = await self._living()  # it died just now; a new one may do better
            cell = await self._make(launcher)
        # Not at once: the making would compete with the call that just got its cell.
        asyncio.get_running_loop().call_later(_PAUSE, self._refill_soon, launcher)
        return cell, launcher.plan

    @property
    def in_use(self) -> bool:
        """Whether a call has a cell of this pool, or waits for one."""
        launchers = [*self._retired, *([self._launcher] if self._launcher else [])]
        cells = sum(launcher.open_cells for launcher in launchers)
        return self._starting.locked() or cells > len(self._ready)

    async def close(self) -> None:
        """End the launchers and every cell of theirs; no cell can be taken afterwards."""
        self._closed = True
        if self._refill is not None:
            self._refill.cancel()
            await asyncio.gather(self._refill, return_exceptions=True)
        async with self._starting:  # one that starts just now is closed as well
            self._drop_waiting()
            for launcher in [*self._retired, *([self._launcher] if self._launcher else [])]:
                await launcher.close()
            self._retired, self._launcher = [], None
            self._groups.remove()

    async def _make(self, launcher: Launcher) -> Cell:
        """Make a cell, under a memory group where there are some; raises CellRefused."""
        try:
            cell = await launcher.make()
        except WallsNotBuilt as failure:
            raise explain(failure) from failure
        try:
            if groups := capabilities().groups:
                cell.group = self._groups.lend(groups, launcher.plan.limits.memory, cell)
                # Not init: in there, the kernel could end it for what the tool uses, and it is
                # who ends and answers the tool.
                for pid in children(cell.pid()):
                    cell.group.add(pid)
                if cell.group.is_empty():
                    raise OSError("its worker was not found")
        except OSError as error:
            cell.kill()
            cell.close()
            raise CellRefused(
                f"the cell could not be put under its memory limit: {error}"
            ) from error
        return cell

    async def _living(self) -> Launcher:
        async with self._starting:
            if self._closed:
                raise CellRefused("the runtime was closed")
            if self._launcher is not None and not self._fit(self._launcher):
                self._drop_waiting()
                self._retired.append(self._launcher)
                self._launcher = None
            await self._end_retired()
            if self._launcher is None:
                self._launcher = await self._started()
            return self._launcher

    async def _started(self) -> Launcher:
        """Start a launcher on the strongest rung that this machine allows."""
        refused: list[CellRefused] = []
        for rung in self._rungs:
            try:
                plan = _explained(self._make_plan(rung), refused)
                self._identities = {place: _identity(place) for place in _exposed(plan)}
                return await _attested(plan)
            except CellRefused as refusal:
                refused.append(explain(refusal) if isinstance(refusal, WallsNotBuilt) else refusal)
                if not may_step_down(refusal):
                    break
        raise _together(refused)

    def _fit(self, launcher: Launcher) -> bool:
        return launcher.alive and all(
            _identity(place) == known for place, known in self._identities.items()
        )

    def _waiting_cell(self) -> Cell | None:
        while self._ready:
            cell = self._ready.popleft()
            if cell.alive():
                return cell
            cell.close()
        return None

    def _refill_soon(self, launcher: Launcher) -> None:
        if self._spare and not self._closed and (self._refill is None or self._refill.done()):
            self._refill = asyncio.create_task(self._fill(launcher))

    async def _fill(self, launcher: Launcher) -> None:
        try:
            while launcher is self._launcher and len(self._ready) < self._spare:
                cell = await self._make(launcher)
                if launcher is not self._launcher:  # retired in the meantime
                    cell.close()
                    async with self._starting:
                        await self._end_retired()
                    return
                self._ready.append(cell)
        except CellRefused:
            return  # the next call meets the same refusal, and reports it

    async def _end_retired(self) -> None:
        for launcher in [each for each in self._retired if not each.open_cells]:
            self._retired.remove(launcher)
            await launcher.close()

    def _drop_waiting(self) -> None:
        while self._ready:
            self._ready.popleft().close()


class _MemoryGroups:
    """The memory groups of one pool's cells: one for each, used again once it is empty."""

    def __init__(self) -> None:
        self._lent: dict[Group, Cell] = {}

    def lend(self, groups: Groups, limit: int, cell: Cell) -> Group:
        """Give a cell a group of its own; raises OSError."""
        for group, last in self._lent.items():
            # Closed is not gone: a cell that was given up ends a moment later.
            if last.closed and group.is_empty():
                group.begin_again()
                break
        else:
            group = groups.make(limit)
        self._lent[group] = cell
        return group

    def remove(self) -> None:
        """Remove all groups, whose cells are gone with their launcher."""
        for group in self._lent:
            group.remove()
        self._lent.clear()


async def _attested(plan: Plan) -> Launcher:
    launcher = await Launcher.start(plan)
    try:
        await attest(launcher)
    except BaseException:
        await launcher.close()
        raise
    return launcher


def _explained(plan: Plan, refused: list[CellRefused]) -> Plan:
    """The plan of a rung, with why the stronger ones were refused."""
    why = "; ".join(refusal.cause for refusal in refused)
    enforcement = plan.enforcement.model_copy(update={"stepped_down": why})
    return plan.model_copy(update={"enforcement": enforcement}) if why else plan


def _together(refused: list[CellRefused]) -> CellRefused:
    """One refusal of all rungs that were tried: the remedy for the strongest comes first."""
    if len(refused) == 1:
        return refused[0]
    causes = "; and without namespaces, ".join(refusal.cause for refusal in refused)
    remedies = "; or, without them, ".join(refusal.remedy for refusal in refused if refusal.remedy)
    return CellRefused(causes, remedies)


class CellPools:
    """The pools of a runtime, by what their cells are made of; few at a time."""

    def __init__(self, spare: int) -> None:
        """Let each pool keep up to `spare` cells waiting."""
        self._spare = spare
        self._pools: dict[str, CellPool] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def get(self, key: str, make_plan: Callable[[Rung], Plan], rungs: tuple[Rung, ...]) -> CellPool:
        """Return the pool of a key, made if it is not there; others that idle may end."""
        pool = self._pools.pop(key, None) or CellPool(make_plan, rungs, self._spare)
        self._pools[key] = pool  # the last is the one used last
        idle = [key for key, each in self._pools.items() if each is not pool and not each.in_use]
        for old in idle[: max(0, len(self._pools) - _POOLS)]:
            task = asyncio.create_task(self._pools.pop(old).close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
        return pool

    async def close(self) -> None:
        """End all pools."""
        pools, self._pools = list(self._pools.values()), {}
        await asyncio.gather(*(pool.close() for pool in pools), *self._closing)


def _exposed(plan: Plan) -> list[str]:
    """The mounts that a tool's writable places hold, and those places themselves.

    Also those below scratch space, which each cell looks up anew.
    """
    writable = [mount.target for mount in plan.mounts if mount.writable]
    return [
        mount.source
        for mount in plan.mounts
        if any(Path(mount.target).is_relative_to(place) for place in (*writable, *SCRATCH))
    ]


def _identity(place: str) -> tuple[int, int] | None:
    try:
        found = Path(place).stat()
    except OSError:  # gone: not the same
        return None
    return found.st_dev, found.st_ino
