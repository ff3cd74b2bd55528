"""What a pattern is made of: five kinds of nodes, and their size.

Greed and captures are not in here: neither changes whether a line matches.
"""

from typing import Literal, NamedTuple

Ranges = tuple[tuple[int, int], ...]


class Character(NamedTuple):
    """One character out of a set: of code points, of word characters or of all others.

    `literal` is the one character that was written, lower-cased where `folded`; empty for a set.
    """

    ranges: Ranges
    word: bool = False
    nonword: bool = False
    negated: bool = False
    literal: str = ""
    folded: bool = False


class Assertion(NamedTuple):
    """A place between characters; `inside` is where no word begins or ends."""

    kind: Literal["start", "end", "boundary", "inside"]


class Sequence(NamedTuple):
    """One after the other; the empty one matches everywhere."""

    items: tuple["Node", ...]


class Choice(NamedTuple):
    """One of several."""

    items: tuple["Node", ...]


class Repeat(NamedTuple):
    """At least `low` times, at most `high`; without end where that is None."""

    item: "Node"
    low: int
    high: int | None


Node = Character | Assertion | Sequence | Choice | Repeat


def size(node: Node) -> int:
    """Count the nodes there are when every repeat is written out."""
    match node:
        case Sequence(items) | Choice(items):
            return 1 + sum(map(size, items))
        case Repeat(item, low, high):
            return 1 + size(item) * max(1, low + 1 if high is None else high)
        case _:
            return 1
