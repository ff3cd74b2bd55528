"""Claims of `CellPools` in `toolcell.cells.pool`: few at a time, and none is ended in use."""

import asyncio

from toolcell.cells import pool as pools
from toolcell.cells.pool import CellPools

from .pool_stage import RUNGS


async def test_pools_of_many_kinds_are_few_at_a_time(stage, make_plan, until):
    kinds = CellPools(spare=0)
    for number in range(10):
        pool = kinds.get(str(number), make_plan, RUNGS)
        assert kinds.get(str(number), make_plan, RUNGS) is pool
        (await pool.take())[0].close()
    await until(lambda: len(stage.unclosed) == pools._POOLS, "the others ended")
    assert stage.unclosed == stage.started[-pools._POOLS :], "the last used are kept"
    await kinds.close()
    assert stage.unclosed == []


async def test_no_pool_is_ended_while_a_call_has_a_cell_of_it_or_waits_for_one(stage, make_plan):
    kinds = CellPools(spare=0)
    stage.gate.clear()
    takes = []
    for number in range(10):
        takes.append(asyncio.create_task(kinds.get(str(number), make_plan, RUNGS).take()))
        await asyncio.sleep(0)
    stage.gate.set()
    cells = [cell for cell, _ in await asyncio.gather(*takes)]
    for number in range(10):
        kinds.get(str(number), make_plan, RUNGS)
    assert len(stage.unclosed) == 10
    for cell in cells[:-1]:
        cell.close()
    last = cells[-1].launcher
    for number in range(9):
        (await kinds.get(str(number), make_plan, RUNGS).take())[0].close()
    assert not last.closed
    await kinds.close()
    assert last.closed
