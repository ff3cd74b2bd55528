"""A stage for tests of the pool: launchers and cells that are played."""

import asyncio

from toolcell.errors import CellRefused

RUNGS = ("full",)


class FakeCell:
    def __init__(self, launcher):
        self.launcher, self.living, self.closed = launcher, True, False

    def alive(self):
        return self.living

    def close(self):
        self.closed = True
        self.launcher.open.discard(self)


class FakeLauncher:
    """Makes cells as long as it is alive."""

    def __init__(self, plan):
        self.plan, self.alive, self.closed = plan, True, False
        self.made, self.open, self.refuses = [], set(), False

    @property
    def open_cells(self):
        return len(self.open)

    async def make(self):
        await asyncio.sleep(0)
        if self.refuses or not self.alive:
            raise CellRefused("no cell")
        cell = FakeCell(self)
        self.made.append(cell)
        self.open.add(cell)
        return cell

    async def close(self):
        self.alive, self.closed = False, True


class Stage:
    """Stands for Launcher and keeps what was started; `gate` holds up starts."""

    def __init__(self):
        self.started, self.gate = [], asyncio.Event()
        self.gate.set()
        self.broken = False

    async def start(self, plan):
        await self.gate.wait()
        launcher = FakeLauncher(plan)
        self.started.append(launcher)
        return launcher

    async def attest(self, launcher):
        if self.broken:
            raise CellRefused("the walls do not hold")

    @property
    def unclosed(self):
        return [launcher for launcher in self.started if not launcher.closed]


def save_anew(workspace):
    """Save the protected file as editors do."""
    (workspace / "new").touch()
    (workspace / "new").replace(workspace / "policy.toml")
