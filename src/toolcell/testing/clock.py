"""A clock for tests: nothing is waited for, and time passes when it is told to."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

START = datetime(2030, 1, 1, tzinfo=UTC)
# Turns of the loop that others get to begin their own pauses, before time jumps.
_TURNS = 5


@dataclass(eq=False)
class _Sleeper:
    until: float
    passes: bool  # a pause, which lets time pass; not a deadline, which waits for it
    woken: "asyncio.Future[None]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    def wake(self) -> None:
        self.woken.get_loop().call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        if not self.woken.done():
            self.woken.set_result(None)


class FakeClock:
    """Time for one controller: what its approvals and events are stamped by, and its pauses.

    With `auto`, whoever pauses lets the time pass, at once and by as much as the shortest pause:
    a tool that takes 5 seconds, a pause between two tries. Otherwise time stands still, and those
    who wait do so until `advance` has let enough of it pass; what that wakes runs when the test
    awaits next. Both may be called from any thread.
    """

    def __init__(self, start: datetime = START, *, auto: bool = False) -> None:
        """Begin at a moment."""
        self._start = start
        self._passed = 0.0
        self._auto = auto
        self._sleepers: list[_Sleeper] = []

    def __call__(self) -> datetime:
        """Return the moment that it is."""
        return self._start + timedelta(seconds=self._passed)

    def monotonic(self) -> float:
        """Return the seconds that have passed."""
        return self._passed

    def jitter(self) -> float:
        """Return 1: pauses are as long as they can be, each time."""
        return 1.0

    def advance(self, seconds: float) -> None:
        """Let time pass, and wake who waits for that, the earliest first."""
        self._turn(self._passed + seconds)

    async def sleep(self, seconds: float) -> None:
        """Pause."""
        await self._wait(seconds, passes=True)

    async def elapse(self, seconds: float) -> None:
        """Wait until so much time has passed otherwise."""
        await self._wait(seconds, passes=False)

    @property
    def waiting(self) -> int:
        """How many pauses and deadlines wait for the time to pass."""
        return len(self._sleepers)

    async def _wait(self, seconds: float, *, passes: bool) -> None:
        sleeper = _Sleeper(self._passed + seconds, passes)
        self._sleepers.append(sleeper)
        try:
            while self._auto and passes and not sleeper.woken.done():
                for _ in range(_TURNS):
                    await asyncio.sleep(0)
                self._turn(min(each.until for each in self._sleepers if each.passes))
                await asyncio.sleep(0)
            await sleeper.woken
        finally:
            self._sleepers.remove(sleeper)

    def _turn(self, to: float) -> None:
        moment: Callable[[_Sleeper], float] = lambda sleeper: sleeper.until  # noqa: E731
        for sleeper in sorted(self._sleepers, key=moment):
            if sleeper.until <= to:
                self._passed = max(self._passed, sleeper.until)
                sleeper.wake()
        self._passed = max(self._passed, to)
