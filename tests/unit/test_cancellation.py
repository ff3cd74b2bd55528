"""Claims of `toolcell.cancellation`: a wait ends by Withdrawn, and nothing else is mistaken."""

import asyncio

import pytest

from toolcell.cancellation import Cancellation, Withdrawn, expiring
from toolcell.timing import real_time


async def waiting(cancellation, entered):
    with cancellation.interrupts():
        entered.set()
        await asyncio.Event().wait()


async def begun(cancellation):
    entered = asyncio.Event()
    task = asyncio.create_task(waiting(cancellation, entered))
    await entered.wait()
    return task


@pytest.mark.parametrize("how", ["request", "expire"])
async def test_what_is_awaited_ends_and_the_task_goes_on(how):
    cancellation = Cancellation()

    async def whole():
        with pytest.raises(Withdrawn):
            await waiting(cancellation, asyncio.Event())
        await asyncio.sleep(0)  # would raise, if the task were still being cancelled
        return asyncio.current_task().cancelling()

    task = asyncio.create_task(whole())
    await asyncio.sleep(0)
    getattr(cancellation, how)()
    getattr(cancellation, how)()
    assert await task == 0


async def test_what_was_cancelled_before_does_not_begin():
    cancellation = Cancellation()
    cancellation.request()
    with pytest.raises(Withdrawn), cancellation.interrupts():
        pytest.fail("it began")


@pytest.mark.parametrize("first", ["task", "call"])
async def test_a_task_that_is_cancelled_as_well_stays_cancelled(first):
    cancellation = Cancellation()
    task = await begun(cancellation)
    for each in ("task", "call") if first == "task" else ("call", "task"):
        task.cancel() if each == "task" else cancellation.request()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_result_that_came_in_the_same_turn_is_released_by_who_waited_for_it():
    cancellation, places = Cancellation(), asyncio.Semaphore(1)
    await places.acquire()

    async def take():
        with cancellation.interrupts():
            await places.acquire()

    task = asyncio.create_task(take())
    await asyncio.sleep(0)
    places.release()
    cancellation.request()
    with pytest.raises(Withdrawn):
        await task
    await asyncio.wait_for(places.acquire(), 1)


async def test_a_request_after_the_wait_interrupts_nothing():
    cancellation = Cancellation()
    with cancellation.interrupts():
        await asyncio.sleep(0)
    cancellation.request()
    await asyncio.sleep(0)
    assert asyncio.current_task().cancelling() == 0


async def test_the_time_of_a_call_is_up_when_it_is_and_no_timer_is_left():
    cancellation, before = Cancellation(), asyncio.all_tasks()
    with pytest.raises(Withdrawn):
        async with expiring(cancellation, 0.01, real_time):
            await waiting(cancellation, asyncio.Event())
    assert (cancellation.late, cancellation.requested) == (True, False)
    async with expiring(Cancellation(), 60, real_time), expiring(Cancellation(), None, real_time):
        pass
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before
