"""What every match holds: texts that can be looked for in C before anything else is done."""

from typing import NamedTuple

from sandbox_workers.patterns.nodes import Character, Choice, Node, Repeat, Sequence

_MOST = 32


class Required(NamedTuple):
    """A match holds one of `texts`; `folded` where only its lower-cased form is sure to."""

    texts: tuple[str, ...]
    folded: bool


def required(node: Node) -> Required | None:
    """Return the texts of which every match holds one; None where there are none of use."""
    texts = _best(node)
    if not texts:
        return None
    folded = _has_folded(node)
    if folded:
        texts = tuple(text.lower() for text in texts)
        if not all(text.isascii() for text in texts):
            return None
    return Required(tuple(dict.fromkeys(texts)), folded)


def _best(node: Node) -> tuple[str, ...]:
    match node:
        case Character():
            return (node.literal,) if node.literal else ()
        case Sequence(items):
            return max(_candidates(items), key=_worth, default=())
        case Choice(items):
            branches = [_best(item) for item in items]
            texts = tuple(text for branch in branches for text in branch)
            return texts if all(branches) and len(texts) <= _MOST else ()
        case Repeat(item, low, _):
            return _best(item) if low else ()
        case _:
            return ()


def _candidates(items: tuple[Node, ...]) -> list[tuple[str, ...]]:
    """Return the runs of characters that stand side by side, and what the other items need."""
    found, run = [], ""
    for item in items:
        if isinstance(item, Character) and item.literal:
            run += item.literal
            continue
        found += [(run,), _best(item)]
        run = ""
    return [texts for texts in (*found, (run,)) if all(texts)]


def _worth(texts: tuple[str, ...]) -> tuple[int, int]:
    return (min(map(len, texts), default=0), -len(texts))


def _has_folded(node: Node) -> bool:
    match node:
        case Character():
            return node.folded
        case Sequence(items) | Choice(items):
            return any(map(_has_folded, items))
        case Repeat(item):
            return _has_folded(item)
        case _:
            return False
