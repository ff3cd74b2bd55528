"""Claims of how calls in sessions, sessions and their places come to an end."""

import asyncio
import gc
import time

import pytest

from toolcell import RunOptions, SessionBounds
from toolcell.sessions.running import Run
from toolcell.sessions.session import Session
from toolcell.timing import RealTime

pytestmark = [pytest.mark.isolation, pytest.mark.any_user]


class Ahead(RealTime):
    """The time of this machine, and some seconds more."""

    seconds = 0.0

    def monotonic(self):
        return time.monotonic() + self.seconds


@pytest.fixture
def made(runner):
    """A factory of runners whose sessions end soon where they do not heed an interrupt."""

    def make(**options):
        bounds = SessionBounds(**({"grace": 0.4} | options.pop("bounds", {})))
        return runner(limits={"wall": 20}, session_bounds=bounds, **options)

    return make


def category(result):
    return result.error and result.error.category


async def test_waiting_for_a_session_is_of_the_hosts_time_and_not_of_the_policys(
    made, monkeypatch, until
):
    timing, walls, real = Ahead(), [], Session.run

    async def noted(self, branch, code, attempt, evidence, wall):
        walls.append(wall)
        return await real(self, branch, code, attempt, evidence, wall)

    monkeypatch.setattr(Session, "run", noted)
    run = made(timing=timing)
    wait = "import os, time\nwhile not os.path.exists('go'): time.sleep(.01)"
    calls = [asyncio.create_task(run("python_session", code=wait))]
    await until(lambda: walls, "the first one runs")
    deadlines = (RunOptions(deadline=60), None)
    calls += [
        asyncio.create_task(run.with_options("python_session", each, code="1"))
        for each in deadlines
    ]
    lock = next(iter(run.controller.sessions._names)).lock
    await until(lambda: len(lock._waiters or ()) == 2, "both wait for it")
    timing.seconds = 55
    (run.controller.runtime.supply.workspace / "go").touch()
    assert all(each.success for each in await asyncio.gather(*calls))
    assert walls[0] == 20
    assert walls[1] <= 5
    assert walls[2] == 20


async def test_nothing_of_an_interrupted_call_is_kept_in_memory(made):
    run = made()
    slow = await run("python_session", code="while True: pass", timeout=0.1)
    assert (category(slow), slow.metadata.session.state) == ("wall", "kept")
    gc.collect()
    assert not [each for each in gc.get_objects() if isinstance(each, Run)]


async def test_a_session_that_is_ended_while_it_is_made_runs_nothing_and_holds_no_place(made):
    run = made(bounds={"most": 1})
    sessions = run.controller.sessions
    call = asyncio.create_task(run("python_session", code="open('ran', 'w')"))
    while not sessions._making:
        await asyncio.sleep(0)
    await sessions.end("main")
    result = await call
    assert category(result) == "worker_lost"
    assert "it was ended on request" in result.for_llm()
    assert not (run.controller.runtime.supply.workspace / "ran").exists()
    assert not sessions._living
    assert (await run("python_session", code="1")).success


async def test_a_fork_that_is_given_up_leaves_no_copies(made, until):
    run = made()
    sessions = run.controller.sessions
    await run("python_session", code="1")
    (session,) = sessions._living
    fork = asyncio.create_task(sessions.fork("main", 3))
    while session.places == 1:
        await asyncio.sleep(0)
    fork.cancel()
    with pytest.raises(asyncio.CancelledError):
        await fork
    await until(lambda: session.places == 1, "the copies are gone")
    assert [each.name for each in sessions.list()] == ["main"]


async def test_a_call_that_lost_its_session_to_a_copys_is_not_said_to_be_cancelled(made, until):
    run = made()
    await run("python_session", code="import os, signal, time")
    await run.controller.sessions.fork("main")
    code = "open('on', 'w').close(); time.sleep(60)"
    other = asyncio.create_task(run("python_session", code=code, session="main.1"))
    await until((run.controller.runtime.supply.workspace / "on").exists, "it runs")
    stop = "os.kill(os.getppid(), signal.SIGSTOP); time.sleep(60)"
    stopped = await run("python_session", code=stop, timeout=0.2)
    assert category(stopped) == "wall"
    lost = await other
    assert category(lost) == "worker_lost"
    assert "a call of it had to end and did not heed the interrupt" in lost.error.message


async def test_an_idle_session_expires_also_where_a_fork_was_in_the_way(made, until):
    run = made(bounds={"idle": 0.05})
    sessions = run.controller.sessions
    await run("python_session", code="1")
    lock = next(iter(sessions._names)).lock
    async with lock:
        (session,) = sessions._living
        timer = sessions._timers[session]
        await until(lambda: sessions._timers[session] is not timer, "it was looked at meanwhile")
        assert not session.ending
    await until(lambda: session.ending, "it expired")


async def test_a_close_that_is_given_up_makes_no_session_look_gone(made, processes):
    run = made()
    await run("shell_session", command="sleep 951.5 &")
    (session,) = run.controller.sessions._living
    close = asyncio.create_task(run.controller.sessions.close())
    await asyncio.sleep(0)
    close.cancel()
    with pytest.raises(asyncio.CancelledError):
        await close
    assert not session.gone.cancelled()
    await session.gone
    assert not processes("951.5")
