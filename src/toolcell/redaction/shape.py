"""A shape: how one kind of secret is recognised.

Each shape has triggers, literal text that is always in it and is fast to look for. Only
where one stands is the pattern tried, and it is tried exactly there. Nearly all shapes need a
long word, too, which most text has few of: ordinary text costs little. No pattern can go back
over what it has read: a run of characters either ends it or is taken whole (possessive, or
followed by nothing that a part of it could satisfy).
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

LONG = 20
"""Length of a long word, in bytes."""

WORD_CHARACTERS = frozenset(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+/=.~%:"
)

# A marker that redaction left is overlaid with this byte, which UTF-8 does not have, and no
# pattern takes it for the beginning, the end or a part of anything.
MARKED = 0xFF
LEFT = rb"(?:(?<![A-Za-z0-9\xff])|(?<=\\[nrt]))"
RIGHT = rb"(?![A-Za-z0-9\xff])"

# What may still become a longer match when more text comes.
WORD = re.compile(rb"\S*+\Z")
CREDENTIAL = re.compile(rb"[ \t%]*+[A-Za-z0-9._~+/=-]*+\Z")
LINE = re.compile(rb"(?:\S*+[ \t]++){0,4}+\S*+\Z")


class Place(Enum):
    """Where the triggers of a shape stand."""

    WITHIN = "in a long word, which is the secret"
    BESIDE = "anywhere; the secret is a long word or several"
    ALONE = "anywhere; the secret may be short"


@dataclass(frozen=True, slots=True)
class Shape:
    """One kind of secret.

    `triggers` are in lower case. `pattern` matches where a trigger begins; the secret is its
    group where it has one, otherwise all that it matched. `is_real` tells secrets from
    placeholders. `goes_on` matches what follows a trigger for as long as the match could
    become longer.
    """

    label: str
    triggers: tuple[bytes, ...]
    place: Place
    pattern: re.Pattern[bytes]
    is_real: Callable[[bytes], bool]
    goes_on: re.Pattern[bytes]

    def found(self, trigger: bytes, data: bytes, lowered: bytes) -> Iterator[tuple[int, int]]:
        """Yield where secrets of this shape are that begin with one of the triggers."""
        at = lowered.find(trigger)
        while at >= 0:
            match = self.pattern.match(data, at)
            if match is not None and self.is_real(match[match.re.groups]):
                yield match.span(match.re.groups)
            # Nothing in a placeholder is real either, and to read it again would take long.
            at = lowered.find(trigger, match.end() if match is not None else at + 1)

    def going_on(self, trigger: bytes, data: bytes, lowered: bytes, start: int) -> Iterator[int]:
        """Yield the first place, if any, from which a match may reach beyond the data."""
        at = lowered.find(trigger, start)
        while at >= 0:
            if self.goes_on.match(data, at + len(trigger)):
                yield at
                return
            at = lowered.find(trigger, at + 1)


def varied(secret: bytes) -> bool:
    """Whether it has as many different characters as chance gives; `xxxxxxxx` has not."""
    return len(set(secret)) >= 8


def shape(
    label: str,
    *triggers: bytes,
    pattern: bytes,
    place: Place = Place.WITHIN,
    is_real: Callable[[bytes], bool] = varied,
    goes_on: re.Pattern[bytes] = WORD,
) -> Shape:
    """Make a shape; `pattern` is compiled."""
    return Shape(label, triggers, place, re.compile(pattern), is_real, goes_on)


def prefixed(label: str, *prefixes: bytes, then: bytes) -> Shape:
    """Make the shape of a token that begins with its issuer's own mark."""
    either = b"|".join(re.escape(prefix) for prefix in prefixes)
    mark = max(map(len, prefixes))
    return shape(
        label,
        *dict.fromkeys(prefix.lower() for prefix in prefixes),
        pattern=LEFT + b"(?:" + either + b")" + then,
        is_real=lambda token: varied(token[mark:]),
    )
