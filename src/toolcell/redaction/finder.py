"""The finder: where secrets are in some bytes.

Known values are looked for as they are; shapes only where one of their triggers stands. A
marker that was left by an earlier redaction is overlaid first, so that nothing is found in it
or next to it that was not there before: to redact twice is to redact once.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from toolcell.redaction.known import SHORTEST
from toolcell.redaction.shape import LONG, MARKED, WORD_CHARACTERS, Place, Shape

REACH = 16 * 1024
"""Length in bytes up to which a secret is recognised wherever a cut goes through it.

The private key of 16,384 bits, the longest that programs make, has 13,000.
"""


_KINDS = bytes(ord("x" if byte in WORD_CHARACTERS else " ") for byte in range(256))
_LONG = b"x" * LONG
_SPACES = (b" ", b"\t", b"\n", b"\v", b"\f", b"\r")

# What a cut leaves of a known value tells nothing below this length, in bytes.
_TELLING = 4
_CUT_OFF = "cut off"


class Span(NamedTuple):
    """Where a secret is, and what it is."""

    start: int
    end: int
    label: str


class Finder:
    """Finds known values, as pairs of a form and a label, and tokens of some shapes."""

    def __init__(
        self, needles: Iterable[tuple[bytes, str]], triggers: Iterable[tuple[bytes, Shape]]
    ) -> None:
        self._needles = tuple(needles)
        self._triggers = tuple(triggers)
        self._by_place = {
            place: [(trigger, shape) for trigger, shape in self._triggers if shape.place is place]
            for place in Place
        }
        labels = {label for _, label in self._needles} | {s.label for _, s in self._triggers}
        labels.add(_CUT_OFF)
        self._markers = re.compile(b"|".join(re.escape(_marker(label)) for label in sorted(labels)))

    @property
    def reach(self) -> int:
        """How many bytes around a cut to look at, to recognise a secret that it goes through."""
        return REACH if self._needles or self._triggers else 0

    @property
    def knows_values(self) -> bool:
        """Whether it looks for anything but tokens."""
        return bool(self._needles)

    def find(self, data: bytes, *, cut: bool = False) -> list[Span]:
        """Find secrets: in order, and apart from each other.

        Where the data was `cut` at its end, what may be a part of a secret there is one too.
        """
        if len(data) < SHORTEST and not cut:
            return []
        if b"[redacted: " in data:
            data = self._markers.sub(_overlay, data)
        spans = [*self._known(data), *self._shaped(data)]
        if cut:
            spans += self._cut(data)
        return merged(spans) if spans else []

    def settled(self, data: bytes, found: list[Span]) -> int:
        """Return up to where nothing that may follow the data can make a difference.

        `found` is what `find` found in it. Only as far back as `reach`: what began earlier
        is taken as it is.
        """
        recent = max(0, len(data) - self.reach)
        end = data[recent:]
        begun = [*self._unfinished(end, 0, 1), *self._triggers_begun(end, 0)]
        return outside(found, recent + min(begun, default=len(end)), recent)

    def among(self, text: bytes) -> "Finder":
        """Return a finder of only what can be in parts of the text."""
        needles = [needle for needle in self._needles if needle[0] in text]
        less = Finder(needles, self._triggers_in(text.lower()))
        less._markers = self._markers
        return less

    def _known(self, data: bytes) -> Iterator[Span]:
        for needle, label in self._needles:
            if needle not in data:
                continue
            at = data.find(needle)
            while at >= 0:
                yield Span(at, at + len(needle), label)
                at = data.find(needle, at + 1)

    def _shaped(self, data: bytes) -> Iterator[Span]:
        lowered = data.lower()
        for trigger, shape in self._triggers_in(lowered):
            for start, end in shape.found(trigger, data, lowered):
                yield Span(start, end, shape.label)

    def _triggers_in(self, lowered: bytes) -> Iterator[tuple[bytes, Shape]]:
        """Yield the triggers that stand where they may be of a secret."""
        if not self._triggers:
            return
        words = _long_words(lowered)
        anywhere = lowered if words else b""
        looked_at = {Place.WITHIN: words, Place.BESIDE: anywhere, Place.ALONE: lowered}
        for place, text in looked_at.items():
            if text:
                yield from [item for item in self._by_place[place] if item[0] in text]

    def _cut(self, data: bytes) -> Iterator[Span]:
        recent = max(0, len(data) - self.reach)
        for start in self._unfinished(data, recent, _TELLING):
            yield Span(start, len(data), _CUT_OFF)

    def _unfinished(self, data: bytes, start: int, least: int) -> Iterator[int]:
        """Yield where a secret begins that what follows may complete or make longer.

        Of known values, at least `least` bytes are there.
        """
        lowered = data.lower()
        for needle, _ in self._needles:
            yield from _begun(needle, data, start, least)
        word = max(start, *(data.rfind(space, start) for space in _SPACES))
        for trigger, shape in self._triggers:
            begin = word if shape.place is Place.WITHIN else start
            yield from shape.going_on(trigger, data, lowered, begin)

    def _triggers_begun(self, data: bytes, start: int) -> Iterator[int]:
        lowered = data.lower()
        for trigger, _ in self._triggers:
            yield from _begun(trigger, lowered, start, 1)


def _long_words(data: bytes) -> bytes:
    """Return the long words of the data, each once: a flood has the same again and again."""
    kinds = data.translate(_KINDS)
    words = set()
    at = kinds.find(_LONG)
    while at >= 0:
        end = kinds.find(b" ", at)
        words.add(data[at:] if end < 0 else data[at:end])
        at = kinds.find(_LONG, end) if end >= 0 else -1
    return b" ".join(words)


def mark(data: bytes, found: Iterable[Span]) -> bytes:
    """Put `[redacted: WHAT]` in the place of each span."""
    parts = []
    done = 0
    for span in found:
        parts += [data[done : span.start], _marker(span.label)]
        done = span.end
    return b"".join([*parts, data[done:]])


def outside(found: Iterable[Span], at: int, recent: int) -> int:
    """Return a place that is in none of the spans; behind one that begins before `recent`."""
    for span in found:
        if span.start < at < span.end:
            return span.start if span.start >= recent else span.end
    return at


def _marker(label: str) -> bytes:
    return f"[redacted: {label}]".encode()


def _overlay(marker: re.Match[bytes]) -> bytes:
    return bytes([MARKED]) * len(marker[0])


def merged(spans: Iterable[Span]) -> list[Span]:
    """Join what overlaps, named after its longest part, and what follows its own kind."""
    made: list[Span] = []
    longest = 0
    for span in sorted(spans, key=_by_place):
        size = span.end - span.start
        if made and _joins(made[-1], span):
            last = made[-1]
            label = span.label if size > longest else last.label
            made[-1] = Span(last.start, max(last.end, span.end), label)
            longest = max(longest, size)
        else:
            made.append(span)
            longest = size
    return made


def _by_place(span: Span) -> tuple[int, int]:
    return span.start, -span.end


def _joins(last: Span, span: Span) -> bool:
    return span.start < last.end or (span.start == last.end and span.label == last.label)


def _begun(text: bytes, data: bytes, start: int, least: int) -> Iterator[int]:
    """Yield where the data ends with a beginning of the text, the longest, if there is one."""
    first = text[:least]
    at = data.find(first, max(start, len(data) - len(text) + 1))
    while at >= 0:
        if text.startswith(data[at:]):
            yield at
            return
        at = data.find(first, at + 1)
