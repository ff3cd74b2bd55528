"""The store of outputs: begin one, read one by its handle, list them, remove some."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from toolcell.database import state_directory
from toolcell.errors import StoreError, UnknownOutputError
from toolcell.outputs.directory import Directory
from toolcell.outputs.stored import Kind, Pruned, Stored
from toolcell.outputs.writer import OutputWriter

CAP = 64 * 1024**2
QUOTA = 1024**3
_AT_ONCE = 1024**2


class OpenOutput(NamedTuple):
    """An output that is open for reading."""

    stored: Stored
    fd: int

    def read(self, start: int, size: int) -> bytes:
        """Return at most `size` bytes from `start` on."""
        parts = []
        while size > 0 and (data := os.pread(self.fd, min(size, _AT_ONCE), start)):
            parts.append(data)
            start, size = start + len(data), size - len(data)
        return b"".join(parts)


class OutputStore:
    """Keeps outputs in a directory that only its owner can read.

    Any number of processes use it. Past the quota the oldest outputs go first, never one that is
    being written. A handle opens for the workspace that it was made for.
    """

    def __init__(
        self, directory: str | Path | None = None, *, cap: int = CAP, quota: int = QUOTA
    ) -> None:
        """Name the directory, by default `outputs` in the state directory; nothing is touched yet.

        `cap` bounds one output and `quota` all of them, in bytes.
        """
        place = Path(directory).expanduser() if directory else state_directory() / "outputs"
        self.path = place.absolute()
        self._directory = Directory(self.path, quota)
        self._cap = cap

    def begin(self, kind: Kind, **facts: Any) -> OutputWriter:
        """Begin an output; takes what `OutputWriter` does."""
        return OutputWriter(self._directory, self._cap, kind, **facts)

    def get(self, handle: str, workspace: str | None = None) -> Stored:
        """Return what is known of an output; raises UnknownOutputError.

        With a `workspace`, an output of another one is as if it were not there.
        """
        stored = self._described(handle)
        if stored is None or workspace not in (None, stored.workspace):
            raise UnknownOutputError(
                f"there is no output {handle[:40]!r} here: it was never kept, has been removed to "
                "make room for later ones, or belongs to another workspace"
            )
        return stored

    @contextmanager
    def opened(self, handle: str, workspace: str | None = None) -> Iterator[OpenOutput]:
        """Open an output for reading; it stays whole even if it is removed meanwhile.

        Raises as `get` does, and StoreError where the file cannot be read.
        """
        stored = self.get(handle, workspace)
        try:
            with self._directory.opened(handle) as fd:
                yield OpenOutput(stored, fd)
        except FileNotFoundError:  # removed this moment
            raise UnknownOutputError(f"{handle} was removed just now") from None
        except OSError as error:
            raise StoreError(f"{self.path / handle} cannot be read: {error.strerror}") from error

    def read(
        self, handle: str, start: int = 0, size: int | None = None, *, workspace: str | None = None
    ) -> bytes:
        """Return at most `size` bytes from `start` on, all if not given; raises as `opened`."""
        with self.opened(handle, workspace) as output:
            return output.read(start, output.stored.size if size is None else size)

    def list(self) -> list[Stored]:
        """Return what is kept, the oldest first."""
        return sorted(self._all(), key=lambda stored: (stored.created, stored.handle))

    def prune(
        self,
        *,
        older_than: timedelta | None = None,
        keep_bytes: int | None = None,
        handles: Iterable[str] = (),
        everything: bool = False,
    ) -> Pruned:
        """Remove outputs: the older ones, the oldest until the rest fits, those named, or all.

        What is being written stays. What dead processes left half written goes in any case.
        """
        now, named = datetime.now(UTC), set(handles)
        kept = self.list()
        going = [
            stored
            for stored in kept
            if everything
            or stored.handle in named
            or (older_than is not None and now - stored.created > older_than)
        ]
        if keep_bytes is not None:
            staying = [stored for stored in kept if stored not in going]
            over = sum(stored.size for stored in staying) - keep_bytes
            for stored in staying:
                if over <= 0:
                    break
                going.append(stored)
                over -= stored.size
        return self._removed(going)

    def _removed(self, going: Iterable[Stored]) -> Pruned:
        gone = []
        try:
            for stored in going:
                self._directory.remove(stored.handle)
                gone.append(stored)
            self._directory.sweep()
        except OSError as error:
            raise StoreError(f"{self.path} cannot be cleared: {error.strerror}") from error
        return Pruned(
            handles=tuple(stored.handle for stored in gone),
            size=sum(stored.size for stored in gone),
        )

    def _all(self) -> Iterable[Stored]:
        try:
            entries = self._directory.entries()
        except OSError as error:
            raise StoreError(f"{self.path} cannot be read: {error.strerror}") from error
        for entry in entries:
            stored = self._described(entry.handle) if entry.finished else None
            if stored is not None:
                yield stored

    def _described(self, handle: str) -> Stored | None:
        try:
            text = self._directory.description(handle)
        except OSError as error:
            raise StoreError(f"{self.path} cannot be read: {error.strerror}") from error
        with suppress(ValidationError):  # edited into something else
            return Stored.model_validate_json(text) if text is not None else None
        return None


no_outputs = OutputStore("/dev/null", cap=0)
"""Keeps nothing; results say so."""
