"""How much `re` might do: an upper bound, known before the search.

`re` tries one way after another, so what it does from one place of a line is bounded by the
number of ways that a pattern can lie from there on. That number is small for most patterns,
grows with a power of the line's length for some (`a.*b.*c`), and has no useful bound where
repeats are nested (`(a+)+`).
"""

import math

from sandbox_workers.patterns.nodes import Character, Choice, Node, Repeat, Sequence


def ways(node: Node, length: int) -> float:
    """Bound the ways in which a node can match from one place of a line of some length."""
    match node:
        case Sequence(items):
            return _finite(math.prod(ways(item, length) for item in items))
        case Choice(items):
            return sum(ways(item, length) for item in items)
        case Repeat(item, low, high):
            return _repeated(ways(item, length), low, high, length)
        case _:
            return 1


def _repeated(once: float, low: int, high: int | None, length: int) -> float:
    if once == 1:
        return 1 + (length if high is None else min(high - low, length))
    if high is None or high * math.log2(once) > 64:
        return math.inf
    return sum(once**times for times in range(low, high + 1))


def _finite(number: float) -> float:
    return number if number < 1e18 else math.inf


def effort(node: Node) -> int:
    """Count the characters that a pattern names: what one way costs, beside the line's length."""
    match node:
        case Character():
            return 1
        case Sequence(items) | Choice(items):
            return max(1, sum(map(effort, items)))
        case Repeat(item, low, high):
            return effort(item) * max(1, low if high is None else high)
        case _:
            return 1
