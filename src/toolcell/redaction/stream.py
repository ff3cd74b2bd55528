"""Streams: the same redaction, however the bytes are cut into pieces."""

from typing import Protocol

from toolcell.redaction.finder import Span, mark

# More than any pattern has between its trigger and its secret, such as the user in a URL.
_CONTEXT = 512


class Finds(Protocol):
    """What finds secrets, and tells up to where it is certain; a `Finder`."""

    def find(self, data: bytes, /, *, cut: bool = False) -> list[Span]:
        """Find secrets: in order, and apart from each other."""
        ...

    def settled(self, data: bytes, found: list[Span], /) -> int:
        """Return up to where nothing that may follow the data can make a difference."""
        ...


class StreamRedactor:
    """Redacts one stream; made by `Redactor.stream`.

    It holds back only an end that may be the beginning of a secret, and at most as much as
    the redactor's `reach`: longer secrets may be shown in part.
    """

    def __init__(self, finder: Finds) -> None:
        self._finder = finder
        self._given = b""  # the last bytes that were given out, as they were
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes; returns what is certain by now of the stream, redacted."""
        self._held += data
        return self._give(closing=False)

    def close(self, *, cut: bool = False) -> bytes:
        """Return the rest, redacted; nothing may be fed afterwards.

        Where the stream was `cut` there, what may be a part of a secret is redacted too.
        """
        return self._give(closing=True, cut=cut)

    def _give(self, *, closing: bool, cut: bool = False) -> bytes:
        data, before = self._given + self._held, len(self._given)
        # What overlaps a secret that was given out already is told again.
        found = [
            span._replace(start=max(span.start, before))
            for span in self._finder.find(data, cut=cut)
            if span.end > before
        ]
        end = len(data) if closing else max(before, self._finder.settled(data, found))
        out = mark(data[:end], [span for span in found if span.end <= end])
        self._given, self._held = data[max(0, end - _CONTEXT) : end], data[end:]
        return out[before:]
