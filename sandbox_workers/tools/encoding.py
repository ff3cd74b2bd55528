"""Encodings: which one a file is in, by its byte-order mark, and text to and from its bytes.

Without a mark a file is UTF-8. Bytes that are not are carried through an edit as they are
(PEP 383), so that what is not touched is not changed.
"""

import codecs
import os
from pathlib import Path
from typing import NamedTuple

from sandbox_workers.tools import ToolError
from sandbox_workers.tools.counting import counted
from sandbox_workers.tools.places import is_binary, opened, refused

MOST_EDITED = 32 * 1024**2
"""Largest file that is changed in memory, in bytes."""


class Encoding(NamedTuple):
    """A codec, and the byte-order mark that a file has for it."""

    codec: str
    mark: bytes = b""

    def __str__(self) -> str:
        name = self.codec.upper().replace("-LE", " LE").replace("-BE", " BE")
        return f"{name} with a byte-order mark" if self.mark else name

    def decode(self, data: bytes, path: str) -> str:
        """Decode what follows the mark; raises ToolError where the way back would lose bytes."""
        try:
            return data.decode(self.codec, "surrogateescape")
        except UnicodeDecodeError as error:
            raise ToolError(f"{path} is not valid {self}, at byte {error.start:,}") from None

    def encode(self, text: str) -> bytes:
        """Return the bytes of a file with this text, its mark first."""
        return self.mark + text.encode(self.codec, "surrogateescape")


UTF8 = Encoding("utf-8")
BYTES = Encoding("latin-1")
"""For what need not be text: each byte is a character."""

# UTF-32 first: its little-endian mark begins with that of UTF-16.
_MARKED = (
    Encoding("utf-32-le", codecs.BOM_UTF32_LE),
    Encoding("utf-32-be", codecs.BOM_UTF32_BE),
    Encoding("utf-16-le", codecs.BOM_UTF16_LE),
    Encoding("utf-16-be", codecs.BOM_UTF16_BE),
    Encoding("utf-8", codecs.BOM_UTF8),
)


def encoding_of(head: bytes) -> Encoding:
    """Return the encoding of a file that begins so."""
    return next((each for each in _MARKED if head.startswith(each.mark)), UTF8)


class TextFile(NamedTuple):
    """The text of a file in memory, and what it takes to write it back as it was."""

    text: str
    encoding: Encoding
    status: os.stat_result


def load(place: Path, path: str, encoding: Encoding | None = None) -> TextFile:
    """Read a file to change it, by its own encoding if none is given.

    Raises ToolError where it is no text, or too large.
    """
    with opened(place, path) as file:
        status = os.fstat(file.fileno())
        if status.st_size > MOST_EDITED:
            raise ToolError(
                f"{path} has {status.st_size:,} bytes; files of more than {MOST_EDITED:,} are not "
                "changed in memory",
                "change it with the shell or python tool",
            )
        try:
            data = file.read(MOST_EDITED)
        except OSError as error:
            raise refused(path, error) from None
    encoding = encoding or encoding_of(data)
    data = data[len(encoding.mark) :]
    if encoding.codec == "utf-8" and is_binary(data):
        raise ToolError(f"{path} is binary ({counted(status.st_size, 'byte')}), not text")
    return TextFile(encoding.decode(data, path), encoding, status)


def line_ending(text: str) -> str:
    r"""Return "\r\n" where every line ends so, "\n" where none does, "" where it is mixed."""
    both, all_ = text.count("\r\n"), text.count("\n")
    if both == 0:
        return "\n"
    return "\r\n" if both == all_ else ""


def shown(text: str) -> str:
    """Return text that the codec of replies can carry: bytes that are no text become U+FFFD."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
