"""The pool: one launcher a plan, and a few cells made ready ahead of their calls.

A cell is used once. Cells that wait are made while others run, so that a call does not
pay for the making of its walls.
"""

import asyncio
from collections import deque

from toolcell.cells.process import Cell, Launcher
from toolcell.errors import CellRefused
from toolcell.model import Plan


class CellPool:
    """Ready cells of one plan."""

    def __init__(self, plan: Plan, spare: int = 2) -> None:
        """Keep up to `spare` cells waiting; none is made before the first call."""
        self.plan = plan
        self._spare = spare
        self._ready: deque[Cell] = deque()
        self._launcher: Launcher | None = None
        self._starting = asyncio.Lock()
        self._refill: asyncio.Task[None] | None = None

    async def take(self) -> Cell:
        """Hand over a ready cell, which is the caller's from then on; raises CellRefused."""
        launcher = await self._living()
        try:
            cell = self._waiting_cell() or await launcher.make()
        except CellRefused:
            if launcher.alive:
                raise
            launcher = await self._living()  # it died just now; a new one may do better
            cell = await launcher.make()
        self._refill_soon(launcher)
        return cell

    async def close(self) -> None:
        """End the launcher and every cell that waits."""
        if self._refill is not None:
            self._refill.cancel()
            await asyncio.gather(self._refill, return_exceptions=True)
        self._drop()

    async def _living(self) -> Launcher:
        async with self._starting:
            if self._launcher is not None and not self._launcher.alive:
                self._drop()  # it died, and its cells with it: begin anew
            if self._launcher is None:
                self._launcher = await Launcher.start(self.plan)
            return self._launcher

    def _waiting_cell(self) -> Cell | None:
        while self._ready:
            cell = self._ready.popleft()
            if cell.alive():
                return cell
            cell.close()
        return None

    def _refill_soon(self, launcher: Launcher) -> None:
        if self._spare and (self._refill is None or self._refill.done()):
            self._refill = asyncio.create_task(self._fill(launcher))

    async def _fill(self, launcher: Launcher) -> None:
        try:
            while launcher.alive and len(self._ready) < self._spare:
                self._ready.append(await launcher.make())
        except CellRefused:
            return  # the next call meets the same refusal, and reports it

    def _drop(self) -> None:
        while self._ready:
            self._ready.popleft().close()
        if self._launcher is not None:
            self._launcher.close()
            self._launcher = None
