"""Sessions by name: made at their first call, used one call at a time, ended when nobody does.

A session is made of the settings and limits of its first call's decision, and a later call whose
decision differs in them is not run in it. One that ended says so once: by the call that it ended
with, or else to the next one that names it, which is not run; nothing begins anew in silence.
Where as many cells are in use as there may be, the one that was idle longest makes room; where
none is idle, the call is not run.

Names and places are reserved before anything is waited for: calls and forks come at once.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

from sandbox_workers import wire
from toolcell.attempt import Attempt
from toolcell.cells.captures import Begin
from toolcell.cells.cell import Cell
from toolcell.cells.parcels import Shelf
from toolcell.errors import SessionError
from toolcell.model import Enforcement, Report, SessionFacts, canonical_json
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
from toolcell.timing import Timing, real_time

_ON_REQUEST = "it was ended on request"

Take = Callable[[Attempt], Awaitable[tuple[Cell, Enforcement] | Report]]
"""Takes a ready cell for a call, or reports why there is none."""


class Sessions:
    """The sessions of one controller."""

    def __init__(self, bounds: SessionBounds, take: Take, timing: Timing = real_time) -> None:
        """Keep within bounds; cells come from `take`, and `timing` tells what is left of a call."""
        self._bounds = bounds
        self._take = take
        self._timing = timing
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
            self._leave(entry)

    def list(self) -> list[SessionInfo]:
        """All that live, and those that ended and did not say so yet, by kind and name."""
        found = [entry.info() for entry in self._names if entry.session is not None]
        return sorted(found, key=lambda info: (info.kind, info.name))

    async def end(self, name: str, kind: Kind | None = None) -> None:
        """End a session, and what runs in it; raises SessionError where there is none."""
        entry = self._found(name, kind)
        self._names.drop(entry)
        if entry.session is not None:
            await entry.session.end_branch(entry.branch, _ON_REQUEST)

    async def restart(self, name: str, kind: Kind | None = None) -> None:
        """End a session so that the next call that names it starts a fresh one; see `end`."""
        await self.end(name, kind)

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
        random numbers, which are the same in all of them without it. Raises SessionError where
        that cannot be; the session goes on then.
        """
        origin = self._found(name, "python")
        async with origin.lock:
            began = time.perf_counter()
            session = origin.session
            if session is None or origin.how_ended():
                raise SessionError(f"the session `{name}` has ended: {origin.how_ended()}")
            names = names or self._names.free("python", name, copies)
            self._require_possible(names, session)
            # Before anything is waited for: whoever names one of them from now on waits.
            entries = await self._names.reserved(origin, names)
            try:
                outcome = await session.fork(origin.branch, len(names), reseed=reseed)
                if isinstance(outcome, str):
                    raise SessionError(outcome)
                for entry, branch in zip(entries, outcome.copies, strict=True):
                    entry.session, entry.branch, entry.made_of = session, branch, origin.made_of
            finally:
                for entry in entries:
                    entry.lock.release()
                    self._leave(entry)
                origin.used = time.monotonic()
                self._expire_later(session)
            took = round((time.perf_counter() - began) * 1000, 3)
            return SessionFork(
                names=tuple(names), shared_files=outcome.open_files, milliseconds=took
            )

    async def close(self) -> None:
        """End them all, and what runs in them; none is made afterwards."""
        self._closed = True
        for session in tuple(self._living):
            session.end("the controller was closed", "cancel")
        # Shielded: whoever gives up waiting for it must not make it look like their end.
        await asyncio.gather(*(asyncio.shield(each.gone) for each in tuple(self._living)))

    async def _run(
        self, entry: Entry, attempt: Attempt, evidence: Evidence
    ) -> tuple[Report, Enforcement]:
        required = Enforcement(required=attempt.grant.settings.require)
        if entry.session is not None and (ended := entry.how_ended()):
            entry.session = None
            return _told(entry, ended), required
        note = ""
        if entry.session is None:
            made = await self._make(entry, attempt)
            if isinstance(made, Report):
                return made, required
            note = made
        elif entry.made_of != _made_of(attempt):
            return _other_walls(entry), required
        session = entry.session
        if session is None:
            raise AssertionError("it was made above")
        attempt.tell_start(session.enforcement)
        entry.calls += 1
        try:
            # Waiting for the session has cost nothing of the policy's wall, but of a host's time.
            wall = attempt.left(self._timing.monotonic())
            report = await session.run(entry.branch, _code(attempt), attempt, evidence, wall)
        except wire.WireError as error:
            return Report(setup=f"the call cannot be sent to its session: {error}"), required
        attempt.tell_end(report)
        return _noted(entry, report, note), session.enforcement

    async def _make(self, entry: Entry, attempt: Attempt) -> Report | str:
        """Make a session; returns what is to be said of that."""
        others = any(each.kind == entry.kind and each.session for each in self._names)
        with attempt.cancellation.interrupts():
            ended = await self._reserve()
            if isinstance(ended, Report):
                return ended
            try:
                taken = await self._take(attempt)
            finally:
                self._making -= 1
        if isinstance(taken, Report):
            return taken
        cell, enforcement = taken
        if self._closed or not self._names.holds(entry):
            cell.close()
            if self._closed:
                return Report(setup="the controller was closed")
            return _told(entry, _ON_REQUEST)
        grace, on_end = self._bounds.grace, self._ended
        note = _news(entry, ended, others=others)
        entry.session = Session(cell, enforcement, entry.kind, attempt.bounds.limits, grace, on_end)
        entry.branch, entry.made_of, entry.lost = 0, _made_of(attempt), ""
        entry.calls, entry.made = 0, time.monotonic()
        self._living.add(entry.session)
        return note

    async def _reserve(self) -> Report | Sequence[str]:
        """Reserve a place for one more session; returns the names of those that ended for it."""
        ended: tuple[str, ...] = ()
        while len(self._living) + self._making >= self._bounds.most:
            going = next((each for each in self._living if each.ending), None)
            if going is None:
                going = self._idle_longest()
                if going is None:
                    return _all_in_use(self._bounds.most)
                ended += tuple(entry.name for entry in self._names.of(going))
                going.end("it was idle for longest when another session needed its place")
            # Who else waited for this may be first: then look again.
            await asyncio.shield(going.gone)
        self._making += 1
        return ended

    def _idle_longest(self) -> Session | None:
        idle = [
            # Where nobody can name it any more, it is the first to go.
            (max((entry.used for entry in entries), default=0.0), session)
            for session in self._living
            for entries in [self._names.of(session)]
            if not any(entry.lock.locked() for entry in entries)
        ]
        return min(idle, key=lambda pair: pair[0])[1] if idle else None

    def _found(self, name: str, kind: Kind | None) -> Entry:
        entry = self._names.find(name, kind)
        if isinstance(entry, str):
            raise SessionError(entry)
        return entry

    def _require_possible(self, names: Sequence[str], session: Session) -> None:
        """Raise where a fork cannot be made."""
        if not names:
            raise SessionError("a fork makes one copy at least")
        if session.places + len(names) > self._bounds.branches:
            most = self._bounds.branches
            raise SessionError(f"a session has {most} branches at most, ended ones not counted")
        if len(set(names)) < len(names) or not all(map(is_name, names)):
            raise SessionError(
                "the copies need names of letters, digits, `_`, `-` and `.`, all different"
            )
        if taken := self._names.taken("python", names):
            raise SessionError(f"there are sessions of these names already: {', '.join(taken)}")

    def _leave(self, entry: Entry) -> None:
        """Nobody uses an entry any more, for now; what has no name any more goes."""
        if entry.session is None:
            if not entry.lost:
                self._names.drop(entry)
            self._names.forget_old()
        elif self._names.holds(entry):
            self._expire_later(entry.session)
        else:  # a copy that was ended before it was made
            entry.session.let_go(entry.branch, _ON_REQUEST)

    def _expire_later(self, session: Session) -> None:
        if timer := self._timers.pop(session, None):
            timer.cancel()
        if not session.gone.done():
            loop = asyncio.get_running_loop()
            self._timers[session] = loop.call_later(self._bounds.idle, self._expire, session)

    def _expire(self, session: Session) -> None:
        # Each end of a call sets the timer anew, so only a call that runs now has been since; it
        # may be of a branch that ends with it, and sets none then.
        if any(entry.lock.locked() for entry in self._names.of(session)):
            self._expire_later(session)
        else:
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


def _noted(entry: Entry, report: Report, note: str) -> Report:
    """Say of a session that it is new, and keep in mind what its call has told of its end."""
    facts = report.session
    if facts is None:
        return report
    if facts.state == "lost":
        entry.session, entry.lost = None, facts.ended
    return report.model_copy(update={"session": facts.model_copy(update={"note": note})})


def _news(entry: Entry, ended: Sequence[str], *, others: bool) -> str:
    """What a model is told of a session that begins; nothing where it can be no surprise."""
    parts = [f"new session {entry.name}"]
    if entry.lost:
        parts = [f"new session: the earlier one ended: {entry.lost}"]
    if ended:
        parts.append(f"ended to make room, as idle for longest: {', '.join(ended)}")
    return "; ".join(parts) if others or entry.lost or ended else ""


def _told(entry: Entry, ended: str) -> Report:
    return Report(
        setup=f"the session `{entry.name}` has ended: {ended}; its state is lost",
        remedy="the next call starts a fresh session of this name",
        session=SessionFacts(state="lost", ended=ended),
    )


def _all_in_use(most: int) -> Report:
    return Report(
        setup=f"{most} sessions are in use, and there may be no more",
        remedy="wait for a call in one of them to end, or end one",
    )


def _other_walls(entry: Entry) -> Report:
    return Report(
        setup=f"the policy decides on other cell settings or limits for this call than those that "
        f"the session `{entry.name}` was made with, and a cell cannot change them",
        remedy="use another session name, or restart this one: then its state is lost",
    )
