"""What init sends behind its account: the files of the outbox (see `sandbox_workers.outbox`).

A protocol without I/O of its own: bytes come as they were read, and go on to whoever keeps the
files. A file counts when all of its bytes have come. Whose size and names these are nobody
trusts: what is kept is measured by who keeps it.
"""

from typing import Protocol

from sandbox_workers import wire
from toolcell.model import Artifact, RefusedArtifact
from toolcell.visible import visible_line

_LONGEST_LINE = 64 * 1024
_LONGEST_NAME = 200  # characters


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
    """The files of one call, as they come; without a shelf nothing is kept."""

    def __init__(self, shelf: Shelf | None) -> None:
        self.artifacts: list[Artifact] = []
        self.refused: list[RefusedArtifact] = []
        self._shelf = shelf
        self._line = bytearray()
        self._file: Receiving | None = None
        self._name = ""
        self._left = 0
        self._ended = False

    def feed(self, data: bytes) -> None:
        """Take bytes as they were read, of any size."""
        view = memoryview(data)
        while view and not self._ended:
            view = self._take_content(view) if self._left else self._take_line(view)

    def finish(self) -> None:
        """Say that no more will come."""
        if self._ended:
            return
        if self._file is not None:
            self._file.discard()
            self._refuse(self._name, "it did not come whole")
        self._break_off("the cell ended before all of its files had come")

    def _take_content(self, view: memoryview) -> memoryview:
        piece = view[: self._left]
        if self._file is not None:
            self._file.write(piece)
        self._left -= len(piece)
        if not self._left:
            self._keep()
        return view[len(piece) :]

    def _take_line(self, view: memoryview) -> memoryview:
        data = bytes(view)
        head, found, rest = data.partition(b"\n")
        self._line += head
        if len(self._line) > _LONGEST_LINE:
            self._break_off("what the cell told of them cannot be read")
        elif found:
            line, self._line = bytes(self._line), bytearray()
            self._take_entry(line)
        return memoryview(rest)

    def _take_entry(self, line: bytes) -> None:
        try:
            entry = wire.decode(line)
        except wire.WireError as error:
            self._break_off(f"what the cell told of them cannot be read: {error}")
            return
        match entry:
            case {"name": str(name), "size": int(size)}:
                self._name, self._left = name, size
                self._file = self._shelf.begin(name) if self._shelf else None
                if not size:
                    self._keep()
            case {"name": str(name), "refused": str(reason)}:
                self._refuse(name, reason)
            case {"more": int(count)}:
                self._refuse("", f"{count} more were refused")
            case {"end": True}:
                self._ended = True
            case _:
                self._break_off("what the cell told of them cannot be read")

    def _keep(self) -> None:
        if self._file is None:
            self._refuse(self._name, "nothing keeps artifacts here")
            return
        kept, self._file = self._file.close(), None
        if isinstance(kept, Artifact):
            self.artifacts.append(kept)
        else:
            self.refused.append(kept)

    def _break_off(self, reason: str) -> None:
        self._ended = True
        self._refuse("", reason)

    def _refuse(self, name: str, reason: str) -> None:
        self.refused.append(RefusedArtifact(name=shown_name(name), reason=reason))


def shown_name(name: str) -> str:
    """A file's name as it may be shown: spelled where it would hide, and not too long."""
    shown = visible_line(name)
    # The end tells most of a name.
    return shown if len(shown) <= _LONGEST_NAME else f"...{shown[3 - _LONGEST_NAME :]}"
