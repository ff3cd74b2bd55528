"""The supply of cells: for the settings and limits of a call, one whose walls stand.

Here meet what a call may have and what the host has: its workspace, the files that are kept from
being changed in there, and the code of the tools.
"""

from collections.abc import Iterable
from functools import partial
from pathlib import Path

from toolcell.cells.capabilities import capabilities, rungs
from toolcell.cells.cell import Cell
from toolcell.cells.narrowing import narrow
from toolcell.cells.plan import make_plan
from toolcell.cells.pool import CellPool, CellPools
from toolcell.errors import CellRefused, WorkspaceError
from toolcell.model import CellSettings, Enforcement, Limits, Plan, Report, Rung, canonical_json
from toolcell.registry import ToolRegistry


class CellSupply:
    """Makes the cells of one runtime, and keeps some ready."""

    def __init__(
        self, workspace: str | Path | None, protected: Iterable[str | Path], spare: int
    ) -> None:
        """Lend a workspace, in which `protected` files stay as they are."""
        # Now, because the current directory may be another by the time of a call.
        self.workspace = Path(workspace).absolute() if workspace is not None else None
        self.protected = {str(Path(path).absolute()) for path in protected}
        self._pools = CellPools(spare)
        self._last: tuple[tuple[CellSettings, Limits, int, int] | None, str] = (None, "")

    def protect(self, path: str | Path) -> None:
        """Keep one more file read-only, in cells made from now on."""
        self.protected.add(str(Path(path).absolute()))

    async def take(
        self,
        registry: ToolRegistry,
        settings: CellSettings,
        made_with: Limits,
        limits: Limits | None = None,
    ) -> tuple[Cell, Enforcement] | Report:
        """Take a ready cell, which is the caller's from then on, or say why there is none.

        It is one of many that are `made_with` the same limits, and gets `limits`, which are lower.
        """
        try:
            cell, plan = await self._pool(registry, settings, made_with).take()
        except CellRefused as error:
            return Report(setup=error.cause, remedy=error.remedy)
        except WorkspaceError as error:
            return Report(setup=str(error))
        try:
            narrow(cell, made_with, limits or made_with)
        except OSError as error:
            cell.kill()
            cell.close()
            return Report(setup=f"the cell could not be put under its memory limit: {error}")
        # A pool hands out no cell of a launcher whose walls were not tried.
        return cell, plan.enforcement.model_copy(update={"attested": plan.rung != "none"})

    def plan(
        self, registry: ToolRegistry, settings: CellSettings, limits: Limits, rung: Rung
    ) -> Plan:
        """Compute the plan of a cell; raises CellRefused or WorkspaceError."""
        # What a tool's neighbours were when it was registered; some may be gone by now.
        neighbours = {path for tool in registry for path in tool.handler.code}
        code = {path for path in neighbours if Path(path).exists()}
        return make_plan(
            settings,
            limits,
            self.workspace,
            capabilities(),
            sorted(code),
            self.protected,
            rung=rung,
        )

    async def close(self) -> None:
        """End every launcher and every cell."""
        await self._pools.close()

    def _pool(self, registry: ToolRegistry, settings: CellSettings, limits: Limits) -> CellPool:
        make_plan = partial(self.plan, registry, settings, limits)
        return self._pools.get(self._key(registry, settings, limits), make_plan, rungs(settings))

    def _key(self, registry: ToolRegistry, settings: CellSettings, limits: Limits) -> str:
        """What the cells are made of; the last is remembered, because most calls have the same."""
        revision, protected = registry.revision, len(self.protected)  # neither ever goes back
        last, key = self._last
        if last and last[0] is settings and last[1] is limits and last[2:] == (revision, protected):
            return key
        made_of = [
            settings.model_dump(mode="json"),
            limits.in_the_cell(),
            revision,  # a new tool's code has to be lent
            sorted(self.protected),
        ]
        key = canonical_json(made_of)
        self._last = ((settings, limits, revision, protected), key)
        return key
