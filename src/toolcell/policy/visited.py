"""Where sessions have been told to go: their relative writes are looked at from there as well.

`cd .git/hooks` in one call, and `> pre-commit` in the next: what the second one writes is known
only by the first. Every directory that an earlier line of a session may have entered counts until
the end, because whether a `cd` succeeded, or a later one led away again, only the run knows. So
does a name that another session takes over. What a line computes (`cd $X`), and the older ones of
many, are not kept: this finds what is said, as all that reads lines does.
"""

import posixpath
from collections.abc import Iterable

from toolcell.model import PreparedToolCall
from toolcell.shell import Line

_MOST_SESSIONS = 256
_MOST = 16  # directories of one; with each, a line is read once more


class Visited:
    """The directories by session, the latest last."""

    def __init__(self) -> None:
        self._directories: dict[str, dict[str, None]] = {}

    def of(self, prepared: PreparedToolCall) -> tuple[str, ...]:
        """Return where the session of a call may be, besides where it began."""
        name = _session(prepared)
        return tuple(self._directories.get(name, ())) if name is not None else ()

    def note(self, prepared: PreparedToolCall, lines: Iterable[Line]) -> None:
        """Note where a call may go; `lines` are its line, as read from each directory so far."""
        name = _session(prepared)
        entered = [posixpath.normpath(each) for line in lines for each in line.directories if each]
        if name is None or not entered:
            return
        known = self._directories.pop(name, {})
        for each in entered:
            known.pop(each, None)
        known |= dict.fromkeys(each for each in entered if each != ".")
        self._directories[name] = dict.fromkeys(list(known)[-_MOST:])
        if len(self._directories) > _MOST_SESSIONS:
            del self._directories[next(iter(self._directories))]


def _session(prepared: PreparedToolCall) -> str | None:
    name = prepared.arguments.get("session")
    return name if prepared.definition.session == "shell" and isinstance(name, str) else None
