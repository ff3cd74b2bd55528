"""One line as a terminal would show it in the end: progress, overstrikes and spinners.

A cursor goes through the line and writes over what is there. Each character takes one place,
wide ones too: it is text for a reader, not a screen.
"""

import re

from toolcell.legible.sequences import SEQUENCE, spelled

_MOVE = re.compile(rb"(?:\x1b\[|\xc2\x9b)(?P<number>[0-9]{0,9})[0-9]*(?P<what>[CDGK])")


def rendered(line: bytes) -> bytes:
    """Return what stays of a line, without its end; blanks that only erase are dropped."""
    screen = _Line()
    at = 0
    for match in SEQUENCE.finditer(line):
        screen.write(line[at : match.start()])
        screen.act(match)
        at = match.end()
    screen.write(line[at:])
    return "".join(screen.cells).rstrip(" ").encode("utf-8", "surrogateescape")


class _Line:
    """The places of a line, and the one that is written next."""

    def __init__(self) -> None:
        self.cells: list[str] = []
        self._at = 0

    def write(self, data: bytes) -> None:
        if data:
            self._put([*data.decode("utf-8", "surrogateescape")])

    def act(self, match: re.Match[bytes]) -> None:
        """Do what a sequence asks for."""
        sequence = match[0]
        if sequence == b"\r":
            self._at = 0
        elif sequence == b"\b":
            self._at = max(0, self._at - 1)
        elif move := _MOVE.fullmatch(sequence):
            self._move(move["what"], int(move["number"] or 0))
        elif match["spelled"] is not None:
            self._put([spelled(sequence).decode()])

    def _put(self, characters: list[str]) -> None:
        # As many places are replaced as are there: nothing behind them has to move.
        self.cells[self._at : self._at + len(characters)] = characters
        self._at += len(characters)

    def _move(self, what: bytes, number: int) -> None:
        end = len(self.cells)
        if what == b"C":
            self._at = min(end, self._at + max(1, number))
        elif what == b"D":
            self._at = max(0, self._at - max(1, number))
        elif what == b"G":
            self._at = min(end, max(1, number) - 1)
        elif number == 0:  # erase to the end of the line
            del self.cells[self._at :]
        else:  # 1: up to the cursor, 2: all of it
            last = self._at if number == 1 else end
            self.cells[:last] = " " * last
            if number != 1:
                del self.cells[self._at :]
