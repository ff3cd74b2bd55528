"""One call that runs in a session: what came of it so far, and whether somebody is ending it."""

import asyncio
import time
from collections.abc import Awaitable
from typing import Any

from toolcell.cells.captures import Begin, Captures
from toolcell.cells.parcels import Parcels, Shelf
from toolcell.cells.supervisor import Tap
from toolcell.model import Captured, Killed, LeftFiles, Limits, Report, SessionFacts
from toolcell.sessions.protocol import Done, Ended, Output

End = Done | Ended | None
"""How a call ended: its branch goes on, or ended with it; None: the whole cell ended."""


class Evidence:
    """What came of a call: its streams, their tap, and the files that it left."""

    def __init__(
        self, limits: Limits, tap: Tap | None, shelf: Shelf | None, spill: Begin | None
    ) -> None:
        self.failed: Exception | None = None
        """What the tap raised, to be raised when the call is over."""
        self._limit = limits.output
        self._tap = tap
        self._captures = Captures(spill)
        self._parcels = Parcels(shelf)
        self._has_files = False
        self._waiting: dict[str, asyncio.Future[None]] = {}

    @property
    def too_much(self) -> bool:
        """Whether the call wrote more than its limit."""
        return self._captures.total_bytes > self._limit

    def take(self, output: Output, *, tapped: bool) -> None:
        """Take a piece of output or of files; `tapped` says that the tap is to be told."""
        if output.stream == "files":
            self._has_files = True
            self._parcels.feed(output.data)
            return
        if spilling := self._captures.feed(output.stream, output.data):
            self._waiting["spill"] = spilling
        if self._tap is None or self.failed is not None or not tapped or self._is_busy("tap"):
            return
        try:
            waiting = self._tap(output.stream, output.data)
        except Exception as error:  # noqa: BLE001  # raised again when the call is over
            self.failed = error
            return
        if waiting is not None:
            self._waiting["tap"] = asyncio.ensure_future(_all_of(waiting))
            self._waiting["tap"].add_done_callback(self._after_tap)

    def pending(self, *, tapped: bool) -> "list[asyncio.Future[None]]":
        """What has to be done before more is taken, with or without the tap."""
        names = ("spill", "tap") if tapped else ("spill",)
        return [self._waiting[name] for name in names if self._is_busy(name)]

    async def finish(self, *, cut: bool) -> None:
        """Close what was spilled; `cut` says that the call did not end its streams itself."""
        await self._captures.finish(cut=cut)

    def release(self) -> None:
        """Let go of a tap that still takes its time, and of what was spilled."""
        self._captures.abandon()
        if self._is_busy("tap"):
            self._waiting["tap"].cancel()

    def told(self) -> Report:
        """As much of a report as this is."""
        self._parcels.finish()
        left = LeftFiles(
            artifacts=tuple(self._parcels.artifacts), refused=tuple(self._parcels.refused)
        )
        return Report(
            stdout=self._captures.result("stdout"),
            stderr=self._captures.result("stderr"),
            left=left if self._has_files else LeftFiles(),
        )

    def _is_busy(self, name: str) -> bool:
        return name in self._waiting and not self._waiting[name].done()

    def _after_tap(self, task: "asyncio.Future[None]") -> None:
        if not task.cancelled() and isinstance(error := task.exception(), Exception):
            self.failed = self.failed or error


class Run:
    """A call from its start to its end; `over` is set by whoever learns of that."""

    def __init__(self, branch: int, number: int, evidence: Evidence) -> None:
        self.branch = branch
        self.number = number
        self.evidence = evidence
        self.killed: Killed | None = None
        self.over: asyncio.Future[End] = asyncio.get_running_loop().create_future()
        self._began = time.perf_counter()

    def take(self, output: Output) -> None:
        """Take a piece of output; a cancelled call is nobody's to be told of."""
        self.evidence.take(output, tapped=self.killed != "cancel")

    def pending(self) -> "list[asyncio.Future[None]]":
        """What has to be done before more is read: nothing waits for the tap of an ended call."""
        return self.evidence.pending(tapped=self.killed is None)

    async def told(self) -> Report:
        """What is known of it alone, once it is over; its spilled output is closed by that."""
        end = self.over.result()
        code = end.exit if end else None
        by_itself = code is not None and 0 <= code < 124 and not self.killed
        await self.evidence.finish(cut=not by_itself)
        seconds = time.perf_counter() - self._began
        return self.evidence.told().model_copy(
            update={"exit": code, "killed": self.killed, "seconds": seconds}
        )

    def facts(self, end: Done) -> dict[str, Any]:
        """What else is known of a call whose branch goes on."""
        claim: dict[str, Any] | None = None
        if end.limit:
            kind, name, words = end.limit
            told = {"kind": kind, "name": name, "message": words, "hint": "", "retryable": False}
            claim = {"type": "error"} | told
        earlier = Captured(
            tail=end.earlier,
            total_bytes=end.earlier_total,
            total_lines=end.earlier.count(b"\n"),
        )
        return {
            "reply": claim,
            "gone": False,
            "mechanism": "the call ended; its session goes on",
            "session": SessionFacts(state="kept", earlier=earlier),
        }


async def _all_of(waiting: Awaitable[None]) -> None:
    await waiting
