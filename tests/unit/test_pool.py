"""Claims of `toolcell.cells.pool`: living cells only, one launcher a plan, none ended in use."""

import asyncio
import errno

import pytest

from toolcell.cells import pool as pools
from toolcell.cells.capabilities import Capabilities
from toolcell.cells.pool import CellPool
from toolcell.errors import CellRefused, WallsNotBuilt, WorkspaceError

from .pool_stage import RUNGS, FakeLauncher, save_anew
from .samples import HERE, plan


async def rested(pool, launcher, until, waiting=1):
    await until(lambda: len(pool._ready) == waiting, f"{waiting} wait")
    assert launcher.open_cells >= waiting


async def test_a_cell_is_made_ahead_and_handed_out_once(stage, make_plan, until):
    pool = CellPool(make_plan, RUNGS, spare=1)
    first, its_plan = await pool.take()
    (launcher,) = stage.started
    assert its_plan is launcher.plan
    await rested(pool, launcher, until)
    second, _ = await pool.take()
    assert (first, second) == tuple(launcher.made)
    await pool.close()


async def test_no_cell_is_made_before_the_first_call_and_none_ahead_without_spare(
    stage, make_plan, until
):
    pool = CellPool(make_plan, RUNGS, spare=0)
    assert stage.started == []
    await pool.take()
    later = asyncio.Event()
    asyncio.get_running_loop().call_later(3 * pools._PAUSE, later.set)
    await later.wait()
    assert len(stage.started[0].made) == 1
    await pool.close()


async def test_a_ready_cell_that_died_is_closed_and_not_handed_out(stage, make_plan, until):
    pool = CellPool(make_plan, RUNGS, spare=1)
    await pool.take()
    (launcher,) = stage.started
    await rested(pool, launcher, until)
    dead = launcher.made[1]
    dead.living = False
    cell, _ = await pool.take()
    assert cell is launcher.made[2]
    assert dead.closed
    await pool.close()


async def test_a_launcher_that_is_known_to_be_dead_is_replaced(stage, make_plan):
    pool = CellPool(make_plan, RUNGS, spare=0)
    await pool.take()
    stage.started[0].alive = False
    cell, its_plan = await pool.take()
    assert cell.launcher is stage.started[1]
    assert its_plan is stage.started[1].plan
    await pool.close()


async def test_a_launcher_that_dies_while_asked_is_replaced_once(stage, make_plan, monkeypatch):
    async def dies(self):
        self.alive = False
        raise CellRefused("it died")

    pool = CellPool(make_plan, RUNGS, spare=0)
    await pool.take()
    (first,) = stage.started
    monkeypatch.setattr(first, "make", dies.__get__(first))
    cell, _ = await pool.take()
    assert cell.launcher is stage.started[1]
    monkeypatch.setattr(FakeLauncher, "make", dies)
    stage.started.clear()
    with pytest.raises(CellRefused, match="it died"):
        await pool.take()
    assert len(stage.started) == 1
    await pool.close()


async def test_a_refusal_of_a_living_launcher_is_not_tried_again(stage, make_plan):
    pool = CellPool(make_plan, RUNGS, spare=1)
    cell, _ = await pool.take()
    cell.launcher.refuses = True
    with pytest.raises(CellRefused, match="no cell"):
        await pool.take()
    assert len(stage.started) == 1
    cell.launcher.refuses = False
    assert (await pool.take())[0].launcher is cell.launcher
    await pool.close()


async def test_a_launcher_whose_walls_do_not_hold_is_closed_and_never_used(stage, make_plan):
    pool = CellPool(make_plan, RUNGS, spare=1)
    stage.broken = True
    with pytest.raises(CellRefused, match="walls do not hold"):
        await pool.take()
    assert [launcher.made for launcher in stage.started] == [[]]
    assert stage.unclosed == []
    stage.broken = False
    assert (await pool.take())[0].launcher is stage.started[1]
    await pool.close()


async def test_a_plan_that_cannot_be_computed_leaves_the_pool_of_use(stage, make_plan):
    made = [make_plan("full")]

    def plans(rung):
        if not made:
            raise WorkspaceError("gone")
        return made[0]

    pool = CellPool(plans, RUNGS, spare=0)
    plan_of_it = made.pop()
    with pytest.raises(WorkspaceError, match="gone"):
        await pool.take()
    made.append(plan_of_it)
    await pool.take()
    await pool.close()


async def test_a_protected_place_that_was_replaced_retires_the_launcher(
    stage, make_plan, workspace, until
):
    pool = CellPool(make_plan, RUNGS, spare=1)
    running, _ = await pool.take()
    (old,) = stage.started
    await rested(pool, old, until)
    (workspace / "policy.toml").write_text("edited in place: the same file, as the control")
    again, _ = await pool.take()
    assert again.launcher is old
    again.close()
    await rested(pool, old, until)
    save_anew(workspace)
    fresh, _ = await pool.take()
    assert fresh.launcher is stage.started[1]
    assert old.open == {running}, "those that waited are closed, the one that runs is not"
    assert not old.closed
    fresh.close()
    running.close()
    (await pool.take())[0].close()
    assert old.closed, "with its last cell"
    assert not stage.started[1].closed
    await pool.close()


async def test_a_cell_made_ahead_by_a_launcher_that_retires_meanwhile_is_closed(
    stage, make_plan, workspace, monkeypatch, until
):
    pool = CellPool(make_plan, RUNGS, spare=1)
    running, _ = await pool.take()
    (old,) = stage.started
    make, ask, answer = old.make, asyncio.Event(), asyncio.Event()

    async def slow():
        ask.set()
        await answer.wait()
        return await make()

    monkeypatch.setattr(old, "make", slow)
    await ask.wait()
    save_anew(workspace)
    fresh, _ = await pool.take()
    answer.set()
    await until(lambda: len(old.made) == 2, "it is made")
    await until(lambda: old.made[1].closed, "it is closed")
    assert fresh.launcher is stage.started[1]
    assert not running.closed
    await pool.close()


async def test_a_launcher_that_starts_while_the_pool_closes_is_closed(stage, make_plan):
    pool = CellPool(make_plan, RUNGS, spare=1)
    stage.gate.clear()
    calls = [asyncio.create_task(pool.take()) for _ in range(2)]
    await asyncio.sleep(0)
    assert pool.in_use
    closing = asyncio.create_task(pool.close())
    await asyncio.sleep(0)
    stage.gate.set()
    await closing
    await asyncio.gather(*calls, return_exceptions=True)
    assert len(stage.started) == 1
    assert stage.unclosed == []
    with pytest.raises(CellRefused, match="was closed"):
        await pool.take()


async def test_closing_closes_what_waits_and_the_retired(stage, make_plan, workspace, until):
    pool = CellPool(make_plan, RUNGS, spare=2)
    await pool.take()
    save_anew(workspace)
    await pool.take()
    await rested(pool, stage.started[1], until, waiting=2)
    await pool.close()
    assert len(stage.started) == 2
    assert stage.unclosed == []
    assert sum(cell.closed for cell in stage.started[1].made) == 2


def not_allowed(stage, monkeypatch, refusal):
    """Let a launcher of the full rung fail to start."""
    start = stage.start

    async def fails(plan):
        if plan.rung == "full":
            raise refusal
        return await start(plan)

    monkeypatch.setattr(stage, "start", fails)


async def test_where_a_rung_is_not_allowed_the_next_that_will_do_is_taken(
    stage, workspace, monkeypatch
):
    not_allowed(stage, monkeypatch, WallsNotBuilt("unshare failed", errno.EPERM))
    pool = CellPool(lambda rung: plan(workspace, rung=rung), ("full", "landlock"), spare=0)
    _, its_plan = await pool.take()
    assert its_plan.rung == its_plan.enforcement.rung == "landlock"
    await pool.close()


async def test_a_policy_that_names_a_rung_gets_no_other(stage, workspace, monkeypatch):
    not_allowed(stage, monkeypatch, WallsNotBuilt("unshare failed", errno.EPERM))
    pool = CellPool(lambda rung: plan(workspace, rung=rung), RUNGS, spare=0)
    with pytest.raises(CellRefused, match="unshare failed"):
        await pool.take()
    assert stage.started == []
    await pool.close()


@pytest.mark.parametrize(
    "refusal",
    [WallsNotBuilt("too many open files", errno.EMFILE), CellRefused("the walls do not hold")],
)
async def test_no_other_failure_leads_to_a_weaker_rung(stage, workspace, monkeypatch, refusal):
    not_allowed(stage, monkeypatch, refusal)
    pool = CellPool(lambda rung: plan(workspace, rung=rung), ("full", "landlock"), spare=0)
    with pytest.raises(CellRefused, match=str(refusal)):
        await pool.take()
    assert stage.started == []
    await pool.close()


async def test_where_no_rung_can_be_had_the_causes_of_all_are_told(stage, workspace, monkeypatch):
    not_allowed(stage, monkeypatch, WallsNotBuilt("unshare failed", errno.EPERM))
    here = Capabilities(0, HERE.enforced, {"landlock": CellRefused("no Landlock", "lsm=landlock")})
    pool = CellPool(
        lambda rung: plan(workspace, capabilities=here, rung=rung), ("full", "landlock"), spare=0
    )
    with pytest.raises(CellRefused) as caught:
        await pool.take()
    assert "unshare failed" in caught.value.cause
    assert "no Landlock" in caught.value.cause
    assert "user namespaces" in caught.value.remedy
    assert "lsm=landlock" in caught.value.remedy
    await pool.close()
