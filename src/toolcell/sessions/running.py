"""One call that runs in a session: what came of it so far, and whether somebody is ending it."""

import asyncio
import time
from collections.abc import Callable
from typing import Any, TypeVarTuple

from toolcell.model import Captured, Kept, Killed, Report, SessionFacts
from toolcell.sessions.evidence import Evidence
from toolcell.sessions.protocol import Done, Ended

Ts = TypeVarTuple("Ts")

End = Done | Ended | None
"""How a call ended: its branch goes on, or ended with it; None: the whole cell ended."""


# Bytes of a call's output that may wait here before its host holds it up, and from when on it
# lets it go on again. What was on its way by then is far less than the most that may wait.
_MANY_WAITING, _FEW_WAITING = 256 * 1024, 64 * 1024
_MOST_WAITING = 8 * 1024 * 1024
# The host inside keeps no more of it (`sandbox_workers.session.outputs`).
_ONLY_ITS_END = "what earlier calls left running writes is kept to its last 32 KiB"


class Run:
    """A call from its start to its end; `over` is set by whoever learns of that."""

    def __init__(self, branch: int, number: int, evidence: Evidence) -> None:
        self.branch = branch
        self.number = number
        self.evidence = evidence
        self.killed: Killed | None = None
        self.over: asyncio.Future[End] = asyncio.get_running_loop().create_future()
        self._began = time.perf_counter()
        self._held = False
        self._timers: list[asyncio.TimerHandle] = []
        self._idle: asyncio.Future[None] | None = None

    @property
    def full(self) -> bool:
        """Whether so much of it waits that no more can be read for anybody."""
        return max(self.evidence.waiting, self.evidence.waiting_files) > _MOST_WAITING

    def holds(self) -> bool | None:
        """Whether its host is to hold it up from now on, or no longer; None: as before."""
        over = self.evidence.waiting > (_FEW_WAITING if self._held else _MANY_WAITING)
        if over == self._held:
            return None
        self._held = over
        return over

    def later(self, seconds: float, do: Callable[[*Ts], object], *given: *Ts) -> None:
        """Do something then, where the call is not over by that time."""
        timer = asyncio.get_running_loop().call_later(seconds, do, *given)
        self._timers.append(timer)

    def drop_timers(self) -> None:
        """Let nothing more be done later; a timer, fired or not, keeps all of a call in memory."""
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()

    def moved(self) -> None:
        """Notice that something that waited went on."""
        if self._idle is not None and self.evidence.idle and not self._idle.done():
            self._idle.set_result(None)

    async def dealt_with(self) -> None:
        """Wait until all that came is dealt with."""
        if not self.evidence.idle:
            self._idle = asyncio.get_running_loop().create_future()
            await self._idle

    async def told(self) -> Report:
        """What is known of it alone, once it is over; its spilled output is closed by that."""
        end = self.over.result()
        code = end.exit if end else None
        by_itself = code is not None and 0 <= code < 124 and not self.killed
        left = await self.evidence.finish(cut=not by_itself)
        return Report(
            exit=code,
            killed=self.killed,
            seconds=time.perf_counter() - self._began,
            left=left,
            **self.evidence.streams(),
        )

    def facts(self) -> dict[str, Any]:
        """What else is known of a call whose branch goes on."""
        end = self.over.result()
        if not isinstance(end, Done):
            raise AssertionError("its branch has ended")
        claim: dict[str, Any] | None = None
        if end.error:
            kind, name, words = end.error
            told = {"kind": kind, "name": name, "message": words, "hint": "", "retryable": False}
            claim = {"type": "error"} | told
        lost = Kept(handle="", size=0, lost=_ONLY_ITS_END)
        earlier = Captured(
            tail=end.earlier,
            total_bytes=end.earlier_total,
            total_lines=end.earlier_lines,
            kept=lost if end.earlier_total > len(end.earlier) else None,
        )
        return {
            "reply": claim,
            "gone": False,
            "mechanism": "the call ended; its session goes on",
            "session": SessionFacts(state="kept", earlier=earlier),
        }
