"""Names: which session a call means, what is told of each, and of those that ended.

A branch of a session is a session of its own for whoever names it. Python's and the shell's have
names of their own, so that both can have one called `main`.
"""

import asyncio
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from toolcell.model.base import Count, Frozen
from toolcell.sessions.session import Session

Kind = Literal["python", "shell"]
# Not of dots alone, which mean something to who takes a name for a file's.
_NAME = r"\.*[A-Za-z0-9_-][A-Za-z0-9_.-]*"
_LONGEST = 64

_REMEMBERED = 256


@dataclass(frozen=True, slots=True)
class SessionBounds:
    """How many cells sessions may hold at once, how many branches one may have, and for how long.

    `idle` is after how many seconds without a call a session is ended, and `grace` how many
    seconds a call has to heed an interrupt before its session is ended.
    """

    most: int = 8
    branches: int = 64
    idle: float = 900.0
    grace: float = 2.0


class SessionInfo(Frozen):
    """One session as it is listed; times are in seconds."""

    name: str
    kind: Kind
    state: Literal["idle", "running", "ended"]
    calls: Count
    age: float
    idle: float
    forked_from: str = ""
    ended: str = ""


class SessionFork(Frozen):
    """The names of the copies that a fork made.

    `shared_files` are open for writing in all of them, and share the place in the file.
    """

    names: tuple[str, ...]
    shared_files: tuple[str, ...] = ()
    milliseconds: float = 0.0


@dataclass(slots=True, eq=False)
class Entry:
    """What a name stands for: a branch of a session that lives, or one that ended.

    `lost` says how the one before ended, where the call that it ended with has told so.
    """

    name: str
    kind: Kind
    session: Session | None = None
    branch: int = 0
    made_of: str = ""
    forked_from: str = ""
    lost: str = ""
    calls: int = 0
    made: float = field(default_factory=time.monotonic)
    used: float = field(default_factory=time.monotonic)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def how_ended(self) -> str:
        """How it ended; empty while it lives, or where it was never made."""
        return self.session.how_ended(self.branch) if self.session else self.lost

    def info(self) -> SessionInfo:
        """What is told of it."""
        now, ended = time.monotonic(), self.how_ended()
        return SessionInfo(
            name=self.name,
            kind=self.kind,
            state="ended" if ended else "running" if self.lock.locked() else "idle",
            calls=self.calls,
            age=round(now - self.made, 3),
            idle=0.0 if self.lock.locked() else round(now - self.used, 3),
            forked_from=self.forked_from,
            ended=ended,
        )


class Names:
    """The sessions of one controller by kind and name, those that ended until that was told."""

    def __init__(self) -> None:
        self._entries: dict[tuple[Kind, str], Entry] = {}

    def __iter__(self) -> Iterator[Entry]:
        return iter(tuple(self._entries.values()))

    async def held(self, kind: Kind, name: str) -> Entry:
        """What a name stands for, once nobody else uses it; a new entry where it is nothing."""
        while True:
            entry = self._entries.setdefault((kind, name), Entry(name, kind))
            await entry.lock.acquire()
            if self.holds(entry):
                return entry
            entry.lock.release()  # it was ended while this call waited

    def find(self, name: str, kind: Kind | None) -> Entry | str:
        """The one entry that a name means, or why it means none."""
        found = [each for each in self if each.name == name and kind in (None, each.kind)]
        if len(found) == 1:
            return found[0]
        if found:
            return f"both a Python and a shell session are named `{name}`; say which kind is meant"
        known = ", ".join(sorted({each.name for each in self}))
        kinds = f"{kind} session" if kind else "session"
        return f"there is no {kinds} named `{name}`" + (f"; there are {known}" if known else "")

    async def reserved(self, origin: Entry, names: Sequence[str]) -> list[Entry]:
        """Entries for copies of a session, held by who asks until it releases their locks."""
        entries = [Entry(name, origin.kind, forked_from=origin.name) for name in names]
        for entry in entries:
            await entry.lock.acquire()  # at once: nobody else knows of it
            self._entries[entry.kind, entry.name] = entry
        return entries

    def holds(self, entry: Entry) -> bool:
        """Whether its name still stands for this."""
        return self._entries.get((entry.kind, entry.name)) is entry

    def drop(self, entry: Entry) -> None:
        """Let a name stand for nothing, where it still stands for this."""
        if self.holds(entry):
            del self._entries[entry.kind, entry.name]

    def free(self, kind: Kind, name: str, count: int) -> list[str]:
        """Names for copies, such as `main.1`."""
        found: list[str] = []
        number = 0
        while len(found) < count:
            number += 1
            if (kind, f"{name}.{number}") not in self._entries:
                found.append(f"{name}.{number}")
        return found

    def taken(self, kind: Kind, names: Sequence[str]) -> list[str]:
        """Those of these names that stand for something that lives or is being made."""
        entries = [(name, self._entries.get((kind, name))) for name in names]
        return [
            name
            for name, entry in entries
            if entry and (entry.lock.locked() or not entry.how_ended())
        ]

    def of(self, session: Session) -> list[Entry]:
        """The names of a session's branches."""
        return [each for each in self if each.session is session]

    def forget_old(self) -> None:
        """Remember no more of those that ended than some, the latest."""
        ended = [each for each in self if each.how_ended() and not each.lock.locked()]
        for entry in sorted(ended, key=lambda each: each.used)[:-_REMEMBERED]:
            self.drop(entry)


def is_name(text: str) -> bool:
    """Whether a session can have this name."""
    return len(text) <= _LONGEST and re.fullmatch(_NAME, text) is not None
