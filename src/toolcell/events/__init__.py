"""Events: their record, and where they are kept."""

import errno
import os
import stat
import threading
from pathlib import Path

from toolcell.events.record import Event, EventKind, EventSink, no_events

__all__ = ["Event", "EventKind", "EventSink", "JsonlSink", "no_events"]


class JsonlSink:
    """Appends events to a file, one JSON object a line, readable by its owner only."""

    def __init__(self, path: str | Path) -> None:
        """Open or create the file; raises OSError, also where it is a link or no regular file.

        Keep it outside the workspace, or give its path to the controller as `protected`.
        """
        self.path = Path(path).absolute()
        # A link here may be a tool's, and lead to any file of the controller's user.
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._fd = os.open(path, flags | os.O_NONBLOCK, 0o600)
        if not stat.S_ISREG(os.fstat(self._fd).st_mode):
            os.close(self._fd)
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        os.fchmod(self._fd, 0o600)  # it may have been there, open to others
        self._lock = threading.Lock()

    def __call__(self, event: Event) -> None:
        """Append one line; raises OSError, for one where the disk is full."""
        line = event.model_dump_json().encode() + b"\n"
        with self._lock:
            before = os.fstat(self._fd).st_size
            written = os.write(self._fd, line)
            if written != len(line):
                os.ftruncate(self._fd, before)  # half a line would spoil the next one too
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)
