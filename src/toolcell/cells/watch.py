"""The watch: ends a cell that has gone over a limit which the kernel does not keep.

It looks at the cell's tree from outside, with pauses as long as it takes to look, so that it
never takes half a processor.
"""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from toolcell.cells.cell import Cell
from toolcell.cells.tree import Look, descendants, look, uses_more_than
from toolcell.model import Killed, Limits

_measuring = ThreadPoolExecutor(4, thread_name_prefix="toolcell-watch")
_WATCH_SECONDS = 0.1
_CALM_SECONDS = 1.0
_MISSES = 20
# More than the limit: a process that is at it is told by a signal first, and has a second.
_CPU_GRACE = 1.0
_STARTING = 16


class Watch:
    """Looks at one cell from `start` to `stop`.

    `most_tasks` and `cpu_seconds` are what was seen so far. While it is `calm`, as between the
    calls of a session, it looks less often.
    """

    def __init__(
        self,
        cell: Cell,
        limits: Limits,
        over: Callable[[Killed], object],
        blind: Callable[[], object],
        fail: Callable[[BaseException], object],
    ) -> None:
        """`over` is told which limit was passed, `blind` that nothing can be seen, `fail` of ours.

        Each is to end the cell.
        """
        self._cell = cell
        self._limits = limits
        self._over = over
        self._blind = blind
        self._fail = fail
        self._task: asyncio.Task[None] | None = None
        self._misses = 0
        self._calm = False
        self.most_tasks = 0
        # CPU seconds of each process by the last look at it, and of all.
        self._own: dict[tuple[int, float], float] = {}
        self.cpu_seconds = 0.0

    def start(self) -> None:
        """Begin to look."""
        self._task = asyncio.get_running_loop().create_task(self._run())
        self._task.add_done_callback(self._ended)

    def be_calm(self, *, calm: bool) -> None:
        """Look less often from now on, or as often as ever; at once where that is more."""
        woken, self._calm = self._calm and not calm, calm
        if woken:
            self.stop()
            self.start()

    def stop(self) -> None:
        """Look no more; doing it twice does nothing."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        took = 0.0
        while True:
            least = _CALM_SECONDS if self._calm else _WATCH_SECONDS
            await asyncio.sleep(max(least, took))
            began = time.perf_counter()
            if why := await self._over_a_limit():
                self._over(why)
                return
            took = time.perf_counter() - began

    async def _over_a_limit(self) -> Killed | None:
        # In a thread, because a tree of many processes takes long to measure; and not one
        # of the loop's own, which the host may have filled.
        try:
            pid = self._cell.pid()
            loop = asyncio.get_running_loop()
            seen, over = await loop.run_in_executor(_measuring, self._measure, pid)
        except OSError:  # such as no descriptor left in this process: the next time, then
            self._misses += 1
            if self._misses > _MISSES:
                self._blind()  # unwatched, a call must not go on
            return None
        self._misses = 0
        self.most_tasks = max(self.most_tasks, seen.tasks)
        self._own |= seen.own
        self.cpu_seconds = max(seen.seconds, sum(self._own.values()))
        if over:
            return "memory"
        if self.cpu_seconds > self._limits.cpu + _CPU_GRACE:
            return "cpu"
        # With namespaces the kernel keeps the count; without, init does, give or take those that
        # start at this moment, and where there are no walls nobody else.
        # Init keeps what the cell was made with, and nobody but this what is less.
        starting = 0 if "processes" in self._cell.narrowed else _STARTING
        most = self._limits.processes + starting
        return "processes" if self._cell.sweeps and seen.tasks > most else None

    def _measure(self, pid: int) -> tuple[Look, bool]:
        processes = descendants(pid)
        seen = look(pid, processes)
        if self._cell.group is not None:
            return seen, self._cell.memory_kills() > 0
        limit, own_files = self._limits.memory, not self._cell.sweeps
        return seen, uses_more_than(limit, pid, processes, own_files=own_files)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (error := task.exception()):
            self._fail(error)  # unwatched, a call must not go on
