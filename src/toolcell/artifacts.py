"""Artifacts: files of a call, kept in the store of outputs under handles of their own.

They are kept as the tool wrote them: to redact an image would break it. Their names are the
tool's as well, so they are shown with all that a screen would hide spelled, and lead nowhere.
"""

import mimetypes
from dataclasses import dataclass

from toolcell.cells.parcels import shown_name
from toolcell.media import media_type
from toolcell.model import Artifact, RefusedArtifact
from toolcell.outputs import Keeper, OutputWriter

_TEXT = "text/plain"
_LEGIBLE = ("text/", "application/json", "application/xml", "image/svg+xml")


@dataclass(frozen=True, slots=True)
class Shelf:
    """Keeps the files of one call, by what keeps its outputs."""

    keeper: Keeper

    def begin(self, name: str) -> "Keeping":
        """Begin to keep a file of some name."""
        return Keeping(self.keeper, shown_name(self.keeper.redactor.text(name)))


class Keeping:
    """One file while it is kept; the type is told by how it begins, of text by its name."""

    def __init__(self, keeper: Keeper, name: str) -> None:
        self._keeper = keeper
        self._name = name
        self._writer: OutputWriter | None = None

    def write(self, data: bytes | memoryview) -> None:
        """Take the next bytes; what goes wrong is told at the end."""
        self._begun(bytes(data)).write(data)

    def close(self) -> Artifact | RefusedArtifact:
        """Keep the file if all of it could be kept."""
        writer = self._begun(b"")
        if writer.lost:
            writer.discard()
            return RefusedArtifact(name=self._name, reason=writer.lost)
        stored = writer.close()
        if stored.lost:
            return RefusedArtifact(name=self._name, reason=stored.lost)
        return Artifact(
            handle=stored.handle,
            name=self._name,
            media_type=stored.media_type,
            size=stored.size,
            sha256=stored.sha256,
        )

    def discard(self) -> None:
        """Forget the file."""
        if self._writer is not None:
            self._writer.discard()

    def _begun(self, beginning: bytes) -> OutputWriter:
        if self._writer is None:
            media_type = type_of(self._name, beginning)
            self._writer = self._keeper.begin("artifact", self._name, media_type)
        return self._writer


def type_of(name: str, beginning: bytes) -> str:
    """The media type: by what a file begins with, and which kind of text it is by its name."""
    kind = media_type(beginning)
    if not kind.startswith(_TEXT):
        return kind
    named, encoding = mimetypes.guess_type(name)
    legible = named is not None and encoding is None and named.startswith(_LEGIBLE)
    return named if named is not None and legible else kind
