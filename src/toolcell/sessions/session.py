"""A session: one cell that lives for many calls, its branches, and how calls and it come to an end.

The watch over memory, CPU time and processes is the same as a call's, from the first moment on and
between calls too. What ends a session is the end of its cell, which takes all of its branches
with it; `ended` says how it came to that.

A call that is to end is interrupted first, again after half of a grace, and at its end its branch
is killed, or the whole cell where that is its only one.
"""

import asyncio
import signal
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from toolcell.attempt import Attempt
from toolcell.cells.cell import Cell
from toolcell.cells.refusals import in_words
from toolcell.cells.watch import Watch
from toolcell.model import Enforcement, Killed, Limits, Report, SessionFacts, Usage
from toolcell.normalizer.verdict import signal_name
from toolcell.sessions.evidence import Evidence
from toolcell.sessions.link import Link
from toolcell.sessions.protocol import Dialogue, Done, Ended, Forked, Message, Output, Unforked
from toolcell.sessions.running import Run

_KILL_SECONDS = 1.0
# When in its grace a call is interrupted again: a bash that is just forking may miss one.
_AGAIN = (0.5, 0.75)
# How often, and when, a call is looked at again that seems not to heed its interrupt while there is
# something that was not read yet.
_LOOKS, _LOOK_SECONDS = 5, 0.1
_DEATH_SECONDS = 10.0
_FORK_SECONDS = 10.0
_OVER_LIMIT = "it went over its {} limit"


class Session:
    """Owns a cell from now until it has ended; `gone` tells when that is."""

    def __init__(
        self,
        cell: Cell,
        enforcement: Enforcement,
        kind: str,
        limits: Limits,
        grace: float,
        on_end: Callable[["Session"], object],
    ) -> None:
        """Make the cell a session; `on_end` is called once it has ended."""
        self.enforcement = enforcement
        self._cell = cell
        self._kind = kind
        self._limits = limits
        self._grace = grace
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self.gone: asyncio.Future[None] = self._loop.create_future()
        self._dialogue = Dialogue()
        self._link = Link(cell, self._dialogue, self)
        self._watch = Watch(cell, limits, self._over_limit, self._end_unseen, self._fail)
        self._runs: dict[int, Run] = {}
        self._forks: dict[int, asyncio.Future[Forked | str]] = {}
        # How branches ended, why the session is to end, and by which limit of it or by whom.
        self._ends: dict[int, str] = {}
        self._last_end: Ended | None = None
        self._why = ""
        self._killed: Killed | None = None
        self._ended_here = False
        self._kills = 0
        self._failed: BaseException | None = None
        self._watch.start()
        self._link.send(self._dialogue.start(kind, limits.in_the_cell()))

    @property
    def branches(self) -> int:
        """How many branches live."""
        return self._dialogue.living

    @property
    def places(self) -> int:
        """How many branches live or are being made."""
        return self._dialogue.living + self._dialogue.coming

    def how_ended(self, branch: int) -> str:
        """How a branch ended, or the session with it; empty while it lives."""
        return self._ends.get(branch, "") or self._why

    async def run(
        self, branch: int, code: str, attempt: Attempt, evidence: Evidence, wall: float
    ) -> Report:
        """Run code in a branch that is idle, for so many seconds at most.

        Raises WireError where it is too large to be sent, and whatever the tap raised. If it is
        cancelled, the call is ended first.
        """
        number, frame = self._dialogue.call(branch, code, attempt.options.input())
        run = self._runs[number] = Run(branch, number, evidence)
        evidence.moved = partial(self._moved, run)
        self._watch.be_calm(calm=False)
        self._link.send(frame)
        run.later(wall, self._stop, run, "wall")
        try:
            with attempt.cancellation.ends(partial(self._stop, run, "cancel")):
                if attempt.cancellation.requested:  # by who was told of the start
                    self._stop(run, "cancel")
                await asyncio.shield(run.over)
                await run.dealt_with()
        except BaseException:
            self._stop(run, "cancel")
            await self._settled(run.over)
            evidence.release()
            raise
        finally:
            run.drop_timers()
            del self._runs[number]
            self._link.proceed()  # it may have been what held up all others
            self._watch.be_calm(calm=not self._runs)
        return await self._report(run)

    async def fork(self, branch: int, copies: int, *, reseed: bool) -> Forked | str:
        """Copy an idle branch; returns why that was not possible where it was not."""
        done = self._forks[branch] = self._loop.create_future()
        self._link.send(self._dialogue.fork(branch, copies, reseed=reseed))
        timer = self._loop.call_later(_FORK_SECONDS, self.end, "it did not answer when forked")
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            await self._settled(done)
            if done.done() and isinstance(made := done.result(), Forked):
                for copy in made.copies:  # nobody knows of them
                    self.let_go(copy, "its fork was given up")
            raise
        finally:
            timer.cancel()

    async def end_branch(self, branch: int, why: str) -> None:
        """End a branch, and the session with its last one; returns when that is gone."""
        self.let_go(branch, why)
        if self.ending:
            await self._settled(self.gone)

    def let_go(self, branch: int, why: str) -> None:
        """As `end_branch`, without waiting."""
        if self.gone.done() or self._ends.get(branch):
            return
        self._ends[branch] = why
        for run in self._runs.values():
            if run.branch == branch:
                run.killed = run.killed or "cancel"
        if self.branches <= 1:
            self.end(why, "cancel")
        else:
            self._link.send(self._dialogue.kill(branch))

    @property
    def ending(self) -> bool:
        """Whether it is to end, or has ended."""
        return bool(self._why)

    def end(self, why: str, killed: Killed | None = None) -> None:
        """End the cell, and what runs in it.

        `killed` is what that means for calls that did nothing to it; None: they are lost.
        """
        if not self._why:
            self._why, self._killed, self._ended_here = why, killed, True
            self._link.end()
            self._link.proceed()

    # Ending a call.

    def _stop(self, run: Run, why: Killed) -> None:
        if why == "cancel":  # nobody is to be told of it any more
            run.evidence.untap()
        if run.over.done() and why == "cancel":
            run.killed = run.killed or why
        if run.over.done() or run.killed:
            return
        run.killed = why
        self._interrupt(run, again=False)
        for share in _AGAIN:
            run.later(self._grace * share, partial(self._interrupt, run, again=True))
        run.later(self._grace, self._give_up, run, _LOOKS)

    def _interrupt(self, run: Run, *, again: bool) -> None:
        if not run.over.done():
            self._link.send(self._dialogue.interrupt(run.number, again=again))

    def _give_up(self, run: Run, looks: int) -> None:
        if run.over.done():
            return
        if looks and self._link.behind:  # its end may be in the pipe
            run.later(_LOOK_SECONDS, self._give_up, run, looks - 1)
            return
        why = "a call of it had to end and did not heed the interrupt"
        if self.branches > 1:
            self._ends[run.branch] = why
            self._link.send(self._dialogue.kill(run.branch))
            run.later(_KILL_SECONDS, self._end_with, run, why)
        else:
            self.end(why)

    def _end_with(self, run: Run, why: str) -> None:
        if not run.over.done():
            self.end(why)

    # What the link tells.

    def take(self, message: Message) -> None:
        """Take what the host said next."""
        match message:
            case Output():
                self._take_output(message)
            case Done():
                if run := self._runs.get(message.call):
                    _settle(run.over, message)
            case Forked():
                _settle(self._forks.pop(message.branch), message)
            case Unforked():
                _settle(self._forks.pop(message.branch), message.message)
            case Ended():
                self._branch_ended(message)

    def full(self) -> bool:
        """Whether more of some call waits than an honest host lets come."""
        return any(run.full for run in self._runs.values())

    def broken(self, problem: str) -> None:
        """End the session of a host that said what no host says."""
        self.end(f"its host said what no host says: {problem}", "reply")

    def ended(self) -> None:
        """Settle everything, now that the cell is gone."""
        self._kills = self._cell.memory_kills()
        if self._kills and not self._why:
            self._why = _OVER_LIMIT.format("memory")
        self._why = self._why or self._cause()
        if self._last_end is not None and self._last_end.exit == -signal.SIGKILL:
            # Why the cell ended says more than how its last process did.
            self._ends[self._last_end.branch] = self._why
        self._watch.stop()
        for waiting in self._forks.values():
            _settle(waiting, f"the session has ended: {self._why}")
        for run in self._runs.values():
            _settle(run.over, None)
        _settle(self.gone, None)
        self._on_end(self)

    def _take_output(self, output: Output) -> None:
        run = self._runs.get(output.call)
        if run is None:  # its task was cancelled
            return
        run.evidence.take(output)
        self._look_at(run)

    def _moved(self, run: Run) -> None:
        """Go on, now that something of a call was dealt with."""
        run.moved()
        if run.number in self._runs:
            self._look_at(run)
        self._link.proceed()

    def _look_at(self, run: Run) -> None:
        evidence = run.evidence
        if evidence.problem:
            self._dialogue.problem = self._dialogue.problem or evidence.problem
        if evidence.failed is not None:
            self._stop(run, "cancel")
        elif evidence.too_much:
            self._stop(run, "output")
        if (held := run.holds()) is not None:
            self._link.send(self._dialogue.hold(run.number, held=held))

    def _branch_ended(self, message: Ended) -> None:
        self._last_end = message
        self._ends.setdefault(message.branch, message.why or _how(message.exit, self._kind))
        if waiting := self._forks.pop(message.branch, None):
            _settle(waiting, f"the session has ended: {self._ends[message.branch]}")
        for run in self._runs.values():
            if run.branch == message.branch:
                _settle(run.over, message)

    def _over_limit(self, killed: Killed) -> None:
        self.end(_OVER_LIMIT.format(killed), killed)

    def _end_unseen(self) -> None:
        self.end("what it uses could not be measured any more")

    def _fail(self, error: BaseException) -> None:
        self._failed = error
        self.end("of a defect of toolcell")

    def _cause(self) -> str:
        if self._last_end is not None:
            return self._ends[self._last_end.branch]
        return "its host was ended" if self._link.account else "its cell was lost"

    # Reports.

    async def _report(self, run: Run) -> Report:
        """The evidence of a call that is over."""
        end = run.over.result()
        kept = isinstance(end, Done) and not run.evidence.problem
        if run.evidence.problem or (isinstance(end, Ended) and self.branches == 0):
            await self._settled(self.gone)
        report = await run.told()
        run.evidence.release()
        if (error := run.evidence.failed or self._failed) is not None:
            raise error
        facts = run.facts() if kept else self._last_facts(run, report)
        return report.model_copy(update=facts)

    def _last_facts(self, run: Run, report: Report) -> dict[str, Any]:
        """What else is known of a call that ended with its branch, and perhaps with the session."""
        facts: dict[str, Any] = {
            "killed": run.killed or self._killed,
            "bad_reply": self._dialogue.problem,
            "mechanism": "its branch of the session ended",
            "gone": self.gone.done() and not self._cell.lost,
            "session": SessionFacts(state="lost", ended=self.how_ended(run.branch)),
        }
        told = self._link.account
        if told is None:
            return facts
        # What ended the host for us says nothing of the call.
        code = None if self._ended_here and not facts["killed"] else told.code
        return facts | {
            "exit": code if report.exit is None else report.exit,
            "mechanism": "the session's cell ended",
            "usage": Usage(
                cpu_seconds=max(told.cpu_seconds, self._watch.cpu_seconds),
                peak_memory=told.peak_memory,
                processes=told.started if told.started >= 0 else self._watch.most_tasks or None,
            ),
            "memory_kills": self._kills,
            "refused": in_words(told.refused),
            "at_process_limit": told.met(self._limits.processes, self._watch.most_tasks),
            "scratch_full": told.scratch_full,
        }

    async def _settled(self, future: "asyncio.Future[Any]") -> None:
        """Wait for what has to come, also where this task is cancelled meanwhile."""
        until = self._loop.time() + self._grace + _KILL_SECONDS + _DEATH_SECONDS
        while not future.done() and (left := until - self._loop.time()) > 0:
            with suppress(asyncio.CancelledError):
                await asyncio.wait([future], timeout=left)


def _settle(future: "asyncio.Future[Any]", value: object) -> None:
    if not future.done():
        future.set_result(value)


def _how(code: int, kind: str) -> str:
    """How the process of a branch ended, in words."""
    if code >= 0 and kind == "shell":
        return f"the shell exited with code {code}, as `exit` and a failure under `set -e` make it"
    if code >= 0:
        return f"its process exited with code {code}"
    return f"its process was ended by {signal_name(-code)}"
