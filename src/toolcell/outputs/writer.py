"""One output while it is written: redacted, counted, up to its cap.

Nothing that goes wrong with the disk is raised: the call's own result must not be lost over it.
What is not kept is counted, and `Stored.lost` says why.
"""

import hashlib
import os
import threading
from contextlib import suppress
from datetime import UTC, datetime

from toolcell.media import media_type
from toolcell.outputs.directory import Directory
from toolcell.outputs.sequences import through_sequences
from toolcell.outputs.stored import Kind, Stored, new_handle
from toolcell.redaction import Redactor, no_redaction

_BEGINNING = 64 * 1024
# So that what redaction makes of it takes little memory.
_PIECE = 256 * 1024


class OutputWriter:
    """Writes one output; made by `OutputStore.begin`. For any thread."""

    def __init__(
        self,
        directory: Directory,
        cap: int,
        kind: Kind,
        *,
        call_id: str = "",
        tool_name: str = "",
        run: str = "",
        workspace: str = "",
        name: str = "",
        media_type: str = "",
        redactor: Redactor = no_redaction,
    ) -> None:
        """Choose a handle; no file is made before something is written."""
        self.handle = new_handle(kind)
        self.total_bytes = 0
        self.total_lines = 0
        self.size = 0
        self.lost = "" if cap else "outputs are not kept here"
        self._directory = directory
        self._cap = cap
        self._facts = {
            "kind": kind,
            "call_id": redactor.text(call_id),
            "tool_name": redactor.text(tool_name),
            "run": run,
            "workspace": workspace,
            "name": redactor.text(name),
        }
        self._created = datetime.now(UTC)
        self._media_type = media_type
        self._redactor = through_sequences(redactor) if redactor.reach else None
        self._beginning = b""
        self._digest = hashlib.sha256()
        self._fd = -1
        self._closed = False
        self._lock = threading.RLock()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Take the next bytes; what is not kept is counted."""
        view = memoryview(data)
        with self._lock:
            for start in range(0, len(view), _PIECE):
                piece = bytes(view[start : start + _PIECE])
                self.pass_over(len(piece), piece.count(b"\n"))
                if not self.lost and not self._closed:
                    self._keep(self._redactor.feed(piece) if self._redactor else piece)

    def pass_over(self, size: int, lines: int) -> None:
        """Count bytes that are not kept, where something is `lost` already."""
        self.total_bytes += size
        self.total_lines += lines

    def close(self, *, cut: bool = False) -> Stored:
        """Finish; of what was `cut` at its end, an end that may be part of a secret is hidden.

        Doing it twice does nothing. Where nothing could be kept, `size` is 0 and `lost` says why,
        and the handle leads nowhere.
        """
        with self._lock:
            if self._redactor and not self._closed and not self.lost:
                self._keep(self._redactor.close(cut=cut))
            if self._fd >= 0:
                self._finish()
            self._closed = True
            return self._stored()

    def discard(self) -> None:
        """Forget what was written; the handle leads nowhere."""
        with self._lock:
            if self._fd >= 0:
                with suppress(OSError):  # a sweep will remove it
                    self._directory.remove(self.handle)
                self._release()
            self._closed = True
            self.size = 0

    def _finish(self) -> None:
        try:
            self._directory.finish(self.handle, self._stored().model_dump_json())
        except OSError as error:
            self._fail(error)
            self.discard()
        else:
            self._release()

    def _release(self) -> None:
        os.close(self._fd)
        self._fd = -1

    def _keep(self, data: bytes) -> None:
        if len(data) > self._cap - self.size:
            data = data[: self._cap - self.size]
            self.lost = f"one output is kept up to {self._cap:,} bytes"
        self._digest.update(data)
        if len(self._beginning) < _BEGINNING:
            self._beginning += data[: _BEGINNING - len(self._beginning)]
        try:
            self._put(memoryview(data))
        except OSError as error:
            self._fail(error)

    def _put(self, data: memoryview) -> None:
        while data:
            room = self._directory.room(len(data))
            if not room:
                self.lost = "the outputs that are being written take all the room there is"
                return
            if self._fd < 0:
                self._fd = self._directory.create(self.handle)
            written = os.write(self._fd, data[:room])
            self.size += written
            data = data[written:]

    def _fail(self, error: OSError) -> None:
        self.lost = f"{self._directory.path} cannot be written: {error.strerror or error}"

    def _stored(self) -> Stored:
        return Stored(
            handle=self.handle,
            created=self._created,
            media_type=self._media_type or media_type(self._beginning),
            size=self.size,
            total_bytes=self.total_bytes,
            total_lines=self.total_lines,
            sha256=self._digest.hexdigest(),
            lost=self.lost,
            **self._facts,
        )
