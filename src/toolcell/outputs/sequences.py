"""Secrets that an escape sequence goes through, found in bytes that are kept as they came.

They are looked for twice: in the bytes, and in what is left without sequences; what is found
there is redacted with the sequences in it.
"""

from typing import NamedTuple

from toolcell.legible import stripped
from toolcell.legible.characters import without_split_end
from toolcell.legible.sequences import none_in, without
from toolcell.redaction import Redactor, Span, StreamRedactor, merged, outside

# So much is held back at most, for a secret between whose letters sequences stand.
_HELD = 64 * 1024


def through_sequences(redactor: Redactor) -> StreamRedactor:
    """Return a redactor of one stream of bytes that come in pieces."""
    return StreamRedactor(ThroughSequences(redactor))


class _Without(NamedTuple):
    """Some bytes without their sequences, and what was found in them."""

    data: bytes
    text: bytes
    found: list[Span]


class ThroughSequences:
    """Finds what a redactor finds, through sequences as well."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._last = _Without(b"", b"", [])

    def find(self, data: bytes, *, cut: bool = False) -> list[Span]:
        """Find secrets: in order, and apart from each other."""
        found = self._redactor.find(data, cut=cut)
        whole = without_split_end(data)  # the rest of a character may make it a sequence
        if not self._redactor.reach or (whole is data and none_in(data)):
            return found
        text = without(whole)
        self._last = _Without(data, text, self._redactor.find(text, cut=cut))
        if not self._last.found:
            return found
        places = stripped(data)
        through = (
            Span(*places.raw_span(span.start, span.end), span.label) for span in self._last.found
        )
        return merged([*found, *through])

    def settled(self, data: bytes, found: list[Span]) -> int:
        """Return up to where nothing that may follow the data can make a difference."""
        end = self._redactor.settled(data, found)
        if self._last.data is not data:
            return end
        _, text, within = self._last
        certain = self._redactor.settled(text, within)
        if certain < len(text):
            begun = stripped(data).raw_span(certain, certain + 1)[0]
            end = min(end, max(begun, len(data) - _HELD))
        return outside(found, end, max(0, len(data) - self._redactor.reach))
