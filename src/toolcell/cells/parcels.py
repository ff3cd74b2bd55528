"""What init sends behind its account: the files of the outbox (see `sandbox_workers.outbox`).

A protocol without I/O of its own: bytes come as they were read, and go on to whoever keeps the
files, who writes to a disk: so it is for a thread (see `arriving`). A file counts when all of its
bytes have come. In a session the tool's own code can say all of this, so nothing of it is
trusted: sizes and numbers are held to the limits, and what is kept is measured by who keeps it.
"""

from typing import Protocol

from sandbox_workers import wire
from toolcell.model import Artifact, Limits, RefusedArtifact
from toolcell.visible import visible_line

# What `outbox` keeps to, with room to spare: five names in one another, written as JSON.
_LONGEST_LINE = 16 * 1024
_LONGEST_PATH = 5 * 256  # characters
_LONGEST_REASON = 400
_MOST_REFUSED = 64
_MOST_MORE = 1_000_000_000
_LONGEST_NAME = 200  # characters of it that are shown


class Receiving(Protocol):
    """A file while it comes."""

    def write(self, data: memoryview, /) -> None:
        """Take the next bytes."""
        ...

    def close(self) -> Artifact | RefusedArtifact:
        """Keep it, or say why that cannot be."""
        ...

    def discard(self) -> None:
        """Forget it."""
        ...


class Shelf(Protocol):
    """Who keeps files."""

    def begin(self, name: str, /) -> Receiving:
        """Begin to keep one; never raises."""
        ...


class Parcels:
    """The files of one call, as they come; without a shelf nothing is kept.

    Who sends is held to the limits, which it knows: what goes past them, or is no entry of the
    protocol, is a `problem`, and ends it all.
    """

    def __init__(self, shelf: Shelf | None, limits: Limits) -> None:
        self.artifacts: list[Artifact] = []
        self.refused: list[RefusedArtifact] = []
        self.problem = ""
        self._shelf = shelf
        self._limits = limits
        self._line = bytearray()
        self._file: Receiving | None = None
        self._name = ""
        self._left = 0
        self._files = self._total = self._refusals = 0
        self._ended = False

    def feed(self, data: bytes | bytearray) -> None:
        """Take bytes as they were read, of any size; each turn of the loop takes some."""
        at = 0
        while at < len(data) and not self.problem:
            at = self._take_content(data, at) if self._left else self._take_line(data, at)

    def finish(self) -> None:
        """Say that no more will come."""
        if self._ended:
            return
        if self._file is not None:
            self._file.discard()
            self._file = None
            self._refuse(self._name, "it did not come whole")
        self._ended = True
        self._refuse("", "the cell ended before all of its files had come")

    def _take_content(self, data: bytes | bytearray, at: int) -> int:
        piece = memoryview(data)[at : at + self._left]
        if self._file is not None:
            self._file.write(piece)
        self._left -= len(piece)
        if not self._left:
            self._keep()
        return at + len(piece)

    def _take_line(self, data: bytes | bytearray, at: int) -> int:
        if self._ended:
            self._break_off("something came behind its end")
            return len(data)
        longest = at + _LONGEST_LINE + 1 - len(self._line)
        end = data.find(b"\n", at, longest)
        self._line += data[at : longest if end < 0 else end]
        if len(self._line) > _LONGEST_LINE:
            self._break_off("an entry is too long")
        elif end >= 0:
            line, self._line = bytes(self._line), bytearray()
            self._take_entry(line)
            return end + 1
        return len(data)

    def _take_entry(self, line: bytes) -> None:
        try:
            entry = wire.decode(line)
        except wire.WireError as error:
            self._break_off(str(error))
            return
        match entry:
            case {"name": str(name), "size": int(size), **more} if not more:
                self._begin(name, size)
            case {"name": str(name), "refused": str(reason), **more} if not more:
                self._take_refusal(name, reason)
            case {"more": int(count), **more} if not more:
                self._take_refusal("", f"{count} more were refused", count)
            case {"end": True, **more} if not more:
                self._ended = True
            case _:
                self._break_off("an entry of no known form")

    def _begin(self, name: str, size: int) -> None:
        limits = self._limits
        self._files, self._total = self._files + 1, self._total + size
        if not (0 <= size <= limits.artifact_size and name and _is_path(name)):
            self._break_off("a file that cannot be one")
        elif self._files > limits.artifacts or self._total > limits.artifact_total:
            self._break_off("more than one call may have")
        else:
            self._name, self._left = name, size
            self._file = self._shelf.begin(name) if self._shelf else None
            if not size:
                self._keep()

    def _take_refusal(self, name: str, reason: str, count: int = 1) -> None:
        self._refusals += 1
        if self._refusals > _MOST_REFUSED or not 0 < count <= _MOST_MORE:
            self._break_off("more were refused than there can be")
        elif not _is_path(name) or len(reason) > _LONGEST_REASON:
            self._break_off("a refusal that cannot be one")
        else:
            self._refuse(name, visible_line(reason))

    def _keep(self) -> None:
        if self._file is None:
            self._refuse(self._name, "nothing keeps artifacts here")
            return
        kept, self._file = self._file.close(), None
        if isinstance(kept, Artifact):
            self.artifacts.append(kept)
        else:
            self.refused.append(kept)

    def _break_off(self, why: str) -> None:
        self._ended, self.problem = True, f"what the cell told of its files cannot be read: {why}"
        self._refuse("", self.problem)

    def _refuse(self, name: str, reason: str) -> None:
        self.refused.append(RefusedArtifact(name=shown_name(name), reason=reason))


def _is_path(name: str) -> bool:
    return len(name) <= _LONGEST_PATH and "\0" not in name


def shown_name(name: str) -> str:
    """A file's name as it may be shown: spelled where it would hide, and not too long."""
    shown = visible_line(name)
    # The end tells most of a name.
    return shown if len(shown) <= _LONGEST_NAME else f"...{shown[3 - _LONGEST_NAME :]}"
