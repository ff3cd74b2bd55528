"""Sessions by name: made at their first call, used one call at a time, ended when nobody does.

A session is made of the settings and limits of its first call's decision, and a later call whose
decision differs in them is not run in it. One that ended says so once, to the next call that
names it: nothing begins anew in silence. Where as many cells are in use as there may be, the one
that was idle longest makes room; where none is idle, the call is not run.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

from sandbox_workers import wire
from toolcell.attempt import Attempt
from toolcell.cells.captures import Begin
from toolcell.cells.cell import Cell
from toolcell.cells.parcels import Shelf
from toolcell.model import Enforcement, Report, SessionFacts, canonical_json
from toolcell.sessions import protocol
from toolcell.sessions.evidence import Evidence
from toolcell.sessions.names import (
    Entry,
    Kind,
    Names,
    SessionBounds,
    SessionFork,
    SessionInfo,
    is_name,
)
from toolcell.sessions.session import Session

Take = Callable[[Attempt], Awaitable[tuple[Cell, Enforcement] | Report]]
"""Takes a ready cell for a call, or reports why there is none."""


class Sessions:
    """The sessions of one controller."""

    def __init__(self, bounds: SessionBounds, take: Take) -> None:
        """Keep within bounds; cells come from `take`."""
        self._bounds = bounds
        self._take = take
        self._names = Names()
        self._living: set[Session] = set()
        self._making = 0
        self._closed = False
        self._timers: dict[Session, asyncio.TimerHandle] = {}

    async def run(
        self, attempt: Attempt, shelf: Shelf | None = None, spill: Begin | None = None
    ) -> tuple[Report, Enforcement]:
        """Run a call in the session that it names.

        Files that it leaves go to the shelf, and output that memory cannot hold is spilled.
        """
        kind, name = attempt.prepared.definition.session, attempt.prepared.arguments["session"]
        if kind is None:
            raise AssertionError("a call of another kind of tool")
        with attempt.cancellation.interrupts():
            entry = await self._names.held(kind, name)
        try:
            evidence = Evidence(attempt.bounds.limits, attempt.options.tap, shelf, spill)
            return await self._run(entry, attempt, evidence)
        finally:
            entry.used = time.monotonic()
            entry.lock.release()
            if entry.session is None:
                self._names.drop(entry)
            else:
                self._expire_later(entry.session)

    def list(self) -> list[SessionInfo]:
        """All that live, and those that ended and did not say so yet, by kind and name."""
        found = [entry.info() for entry in self._names if entry.session is not None]
        return sorted(found, key=lambda info: (info.kind, info.name))

    async def end(self, name: str, kind: Kind | None = None) -> str:
        """End a session, and what runs in it; returns why not where there is none."""
        entry = self._names.find(name, kind)
        if isinstance(entry, str):
            return entry
        self._names.drop(entry)
        if entry.session is not None:
            await entry.session.end_branch(entry.branch, "it was ended on request")
        return ""

    async def restart(self, name: str, kind: Kind | None = None) -> str:
        """End a session so that the next call that names it starts a fresh one; see `end`."""
        return await self.end(name, kind)

    async def fork(
        self,
        name: str = "main",
        copies: int = 1,
        *,
        names: Sequence[str] | None = None,
        reseed: bool = False,
    ) -> SessionFork:
        """Copy a Python session, between two calls; each copy is a session that goes its own way.

        All of them live in one cell, with its files and limits. `reseed` gives each copy other
        random numbers, which are the same in all of them without it.
        """
        entry = self._names.find(name, "python")
        if isinstance(entry, str):
            return SessionFork(refused=entry)
        async with entry.lock:
            began = time.perf_counter()
            names = names or self._names.free("python", name, copies)
            session, ended = entry.session, entry.how_ended()
            if session is None or ended:
                return SessionFork(refused=f"the session `{name}` has ended: {ended}")
            if hindrance := self._hindrance(names, session):
                return SessionFork(refused=hindrance)
            outcome = await session.fork(entry.branch, len(names), reseed=reseed)
            if isinstance(outcome, str):
                return SessionFork(refused=outcome)
            self._add(entry, names, outcome)
            entry.used = time.monotonic()
            took = round((time.perf_counter() - began) * 1000, 3)
            return SessionFork(
                names=tuple(names), shared_files=outcome.open_files, milliseconds=took
            )

    async def close(self) -> None:
        """End them all, and what runs in them; none is made afterwards."""
        self._closed = True
        for session in tuple(self._living):
            session.end("the controller was closed")
        await asyncio.gather(*(session.gone for session in tuple(self._living)))

    async def _run(
        self, entry: Entry, attempt: Attempt, evidence: Evidence
    ) -> tuple[Report, Enforcement]:
        required = Enforcement(required=attempt.grant.settings.require)
        if ended := entry.how_ended():
            entry.session = None
            return _told(entry, ended), required
        made_of = _made_of(attempt)
        if entry.session is None:
            refusal = await self._make(entry, attempt, made_of)
            if refusal is not None:
                return refusal, required
        elif entry.made_of != made_of:
            return _other_walls(entry), required
        session = entry.session
        if session is None:
            raise AssertionError("it was made above")
        attempt.tell_start(session.enforcement)
        entry.calls += 1
        try:
            report = await session.run(entry.branch, _code(attempt), attempt, evidence)
        except wire.WireError as error:
            return Report(setup=f"the call cannot be sent to its session: {error}"), required
        attempt.tell_end(report)
        return report, session.enforcement

    async def _make(self, entry: Entry, attempt: Attempt, made_of: str) -> Report | None:
        if refusal := await self._make_room():
            return refusal
        self._making += 1
        try:
            with attempt.cancellation.interrupts():
                taken = await self._take(attempt)
        finally:
            self._making -= 1
        if isinstance(taken, Report):
            return taken
        cell, enforcement = taken
        if self._closed:
            cell.close()
            return Report(setup="the controller was closed")
        grace, on_end = self._bounds.grace, self._ended
        entry.session = Session(cell, enforcement, entry.kind, attempt.bounds.limits, grace, on_end)
        entry.branch, entry.made_of = 0, made_of
        entry.made = time.monotonic()
        self._living.add(entry.session)
        return None

    async def _make_room(self) -> Report | None:
        if len(self._living) + self._making < self._bounds.most:
            return None
        idle = [
            (max(entry.used for entry in entries), session)
            for session in self._living
            if (entries := self._names.of(session))
            and not any(entry.lock.locked() for entry in entries)
        ]
        if not idle:
            return Report(
                setup=f"{self._bounds.most} sessions are in use, and there may be no more",
                remedy="wait for a call in one of them to end, or end one",
            )
        _, oldest = min(idle, key=lambda pair: pair[0])
        oldest.end("it was idle for longest when another session needed its place")
        await asyncio.shield(oldest.gone)
        return None

    def _hindrance(self, names: Sequence[str], session: Session) -> str:
        """Why a fork cannot be made; empty where it can."""
        if not names:
            return "a fork makes one copy at least"
        if session.branches + len(names) > self._bounds.branches:
            return f"a session has {self._bounds.branches} branches at most, ended ones not counted"
        if len(set(names)) < len(names) or not all(map(is_name, names)):
            return "the copies need names of letters, digits, `_`, `-` and `.`, all different"
        taken = self._names.taken("python", names)
        return f"there are sessions of these names already: {', '.join(taken)}" if taken else ""

    def _add(self, origin: Entry, names: Sequence[str], outcome: protocol.Forked) -> None:
        for name, branch in zip(names, outcome.copies, strict=True):
            self._names.add(
                Entry(
                    name,
                    "python",
                    session=origin.session,
                    branch=branch,
                    made_of=origin.made_of,
                    forked_from=origin.name,
                )
            )

    def _expire_later(self, session: Session) -> None:
        if timer := self._timers.pop(session, None):
            timer.cancel()
        if not session.gone.done():
            loop = asyncio.get_running_loop()
            self._timers[session] = loop.call_later(self._bounds.idle, self._expire, session)

    def _expire(self, session: Session) -> None:
        # Each end of a call sets the timer anew, so only a call that runs now has been since.
        if not any(entry.lock.locked() for entry in self._names.of(session)):
            session.end(f"nobody used it for {self._bounds.idle:g} s")

    def _ended(self, session: Session) -> None:
        self._living.discard(session)
        if timer := self._timers.pop(session, None):
            timer.cancel()
        self._names.forget_old()


def _made_of(attempt: Attempt) -> str:
    settings, limits = attempt.grant.settings, attempt.bounds.limits
    return canonical_json([settings.model_dump(mode="json"), limits.in_the_cell()])


def _code(attempt: Attempt) -> str:
    definition, arguments = attempt.prepared.definition, attempt.prepared.arguments
    return str(arguments[definition.shell_line or "code"])


def _told(entry: Entry, ended: str) -> Report:
    return Report(
        setup=f"the session `{entry.name}` has ended: {ended}. All that earlier calls made in it "
        "(variables, functions, what they left running) is lost",
        remedy="call again: the next call starts a fresh session of this name; make there again "
        "what you need",
        session=SessionFacts(state="lost", ended=ended),
    )


def _other_walls(entry: Entry) -> Report:
    return Report(
        setup=f"the policy decides on other cell settings or limits for this call than those that "
        f"the session `{entry.name}` was made with, and a cell cannot change them",
        remedy="use another session name, or restart this one: then its state is lost",
    )
