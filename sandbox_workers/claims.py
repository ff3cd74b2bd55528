"""Claims: what a worker says of an exception, in words that the wire can carry.

The launcher imports this module: it has to work where no file can be opened any more.
"""

import errno

_MESSAGE_CAP = 4000
_LIMITS = {
    errno.ENOSPC: "disk",
    errno.EDQUOT: "disk",
    errno.EFBIG: "disk",
    errno.EMFILE: "open_files",
}


def limit_of(error: BaseException) -> str | None:
    """Which limit an exception tells of, if it is one of the system's own words for that."""
    if isinstance(error, MemoryError):
        return "memory"
    return _LIMITS.get(error.errno or 0) if isinstance(error, OSError) else None


def words(value: object) -> str:
    """Text that JSON can carry, and not too much of it; __str__ may be the tool's own code."""
    try:
        text = str(value)
    except BaseException:  # noqa: BLE001  # __str__ of the tool's own
        text = f"a {type(value).__name__} that cannot be shown"
    return text[:_MESSAGE_CAP].encode(errors="replace").decode()
