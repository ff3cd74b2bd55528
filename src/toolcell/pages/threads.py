"""Work for which nobody has to wait: a thread of its own for each piece of it, and a daemon.

A pool would fill with searches that go on after their call was given up, and the interpreter
would wait for them at its exit.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


async def in_daemon(work: Callable[[], T]) -> T:
    """Do work in a thread and return or raise what it does; cancelling leaves it to itself."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(value: T | None, error: BaseException | None) -> None:
        if done.done():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(value)  # type: ignore[arg-type]  # None only where work returns it

    def body() -> None:
        outcome: tuple[T | None, BaseException | None]
        try:
            outcome = (work(), None)
        except BaseException as error:  # noqa: BLE001  # raised again where it is awaited
            outcome = (None, error)
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, *outcome)

    threading.Thread(target=body, name="toolcell-pages", daemon=True).start()
    return await done
