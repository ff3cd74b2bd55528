"""Text files in pieces of whole lines, so that a file of any size is searched in bounded memory."""

import os
import stat
from collections.abc import Iterator

from sandbox_workers.tools.places import is_binary

PIECE = 8 << 20
LONGEST_LINE = 32 << 20
# Enough for most files, and little for one that is binary.
FIRST = 256 << 10


class BinaryFileError(Exception):
    """The file holds a NUL near its beginning: it is no text. `size` is its length in bytes."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size


class LongLineError(Exception):
    """A line is longer than is read; what follows it in its file is not searched."""


def pieces(path: str) -> Iterator[tuple[bytes, bool]]:
    """Give what a regular file holds when it is opened, and of each piece whether it is the last.

    Raises OSError and the errors above.
    """
    file = _opened(path)
    try:
        size = left = os.fstat(file).st_size
        held, wanted = b"", FIRST
        while left and (data := os.read(file, min(wanted, left))):
            if left == size and is_binary(data):
                raise BinaryFileError(size)
            left -= len(data)
            wanted = PIECE
            data = held + data if held else data
            end = data.rfind(b"\n") + 1 if left else len(data)
            held = data[end:]
            if len(held) > LONGEST_LINE:
                raise LongLineError
            if end:
                yield (data, not left) if end == len(data) else (data[:end], False)
        if held:  # it has become shorter meanwhile
            yield held, True
    finally:
        os.close(file)


def is_text(path: str) -> bool:
    """Say whether a regular file begins as a text does; raises OSError."""
    file = _opened(path)
    try:
        return not is_binary(os.read(file, FIRST))
    finally:
        os.close(file)


def text_of(data: bytes, *, first: bool) -> str:
    """Decode a piece: a byte that is not UTF-8 is one lone surrogate, CR LF ends a line.

    A byte-order mark before the `first` piece is no part of the text.
    """
    if b"\r\n" in data:
        data = data.replace(b"\r\n", b"\n")
    text = data.decode(errors="surrogateescape")
    return text.removeprefix("\ufeff") if first else text


def _opened(path: str) -> int:
    # Neither a link nor a pipe that took the place of the file since it was listed.
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(f"{path} is not a regular file any more")
    return file
