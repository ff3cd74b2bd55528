"""Which files may come back: plain ones, with one name and a content of their own.

One rule for init, which looks into the outbox, and for the controller, which collects what
tools declare in the workspace.
"""

import os
import stat

OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
"""How to open a file that may not be what it was a moment ago."""

OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

_HOLES = 1024**2  # bytes that a file may count and never have written
_KINDS = [
    (stat.S_ISLNK, "it is a link"),
    (stat.S_ISDIR, "it is a directory"),
    (stat.S_ISFIFO, "it is a pipe"),
    (stat.S_ISSOCK, "it is a socket"),
    (stat.S_ISCHR, "it is a device"),
    (stat.S_ISBLK, "it is a device"),
]


def refusal(found: os.stat_result, largest: int) -> str:
    """Why a file does not come back, in words; "" where it may."""
    for is_kind, words in _KINDS:
        if is_kind(found.st_mode):
            return words
    if found.st_nlink > 1:
        return "it has another name (a hard link)"
    if found.st_size > largest:
        return f"it has {found.st_size:,} bytes, and one artifact may have {largest:,}"
    if found.st_size - found.st_blocks * 512 > _HOLES:
        return f"it is sparse: most of its {found.st_size:,} bytes were never written"
    return ""
