"""Sets of characters: what stands behind an escape or a name, and the cases of a letter."""

from sandbox_workers.patterns.nodes import Character, Choice, Node, Ranges

LAST = 0x10FFFF
_LINE_FEED = 10
# Nothing above has an upper or lower case (Unicode 16).
_LAST_CASED = 0x1E943

_DIGITS: Ranges = ((0x30, 0x39),)
# Unicode's White_Space, without the line feed. `re` and ripgrep differ over U+001C to U+001F.
_SPACES: Ranges = (
    *((9, 9), (11, 13), (0x20, 0x20), (0x85, 0x85), (0xA0, 0xA0), (0x1680, 0x1680)),
    *((0x2000, 0x200A), (0x2028, 0x2029), (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000)),
)
_UPPER, _LOWER = (0x41, 0x5A), (0x61, 0x7A)
_PUNCTUATION = ((0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E))

POSIX: dict[str, Ranges] = {
    "alnum": (*_DIGITS, _UPPER, _LOWER),
    "alpha": (_UPPER, _LOWER),
    "blank": ((9, 9), (0x20, 0x20)),
    "cntrl": ((0, 9), (11, 0x1F), (0x7F, 0x7F)),
    "digit": _DIGITS,
    "graph": ((0x21, 0x7E),),
    "lower": (_LOWER,),
    "print": ((0x20, 0x7E),),
    "punct": _PUNCTUATION,
    "space": ((9, 9), (11, 13), (0x20, 0x20)),
    "upper": (_UPPER,),
    "word": (*_DIGITS, _UPPER, (0x5F, 0x5F), _LOWER),
    "xdigit": (*_DIGITS, (0x41, 0x46), (0x61, 0x66)),
}


def complement(ranges: Ranges) -> Ranges:
    """Return every other code point, but for the line feed."""
    found, start = [], 0
    for low, high in sorted((*ranges, (_LINE_FEED, _LINE_FEED))):
        if low > start:
            found.append((start, low - 1))
        start = max(start, high + 1)
    return (*found, (start, LAST)) if start <= LAST else tuple(found)


SETS: dict[str, Character] = {
    "d": Character(_DIGITS),
    "D": Character(complement(_DIGITS)),
    "s": Character(_SPACES),
    "S": Character(complement(_SPACES)),
    "w": Character((), word=True),
    "W": Character((), nonword=True),
}
ANY = Character((), negated=True)


def letter(character: str, *, fold: bool) -> Character:
    """Return the node of one character that was written."""
    code = ord(character)
    if not fold:
        return Character(((code, code),), literal=character)
    ranges = folded(((code, code),))
    return Character(ranges, literal=character.lower() if character.isascii() else "", folded=True)


def folded(ranges: Ranges) -> Ranges:
    """Add the upper and the lower case of each character, where those are one character."""
    codes = {
        ord(other)
        for low, high in ranges
        for code in range(low, min(high, _LAST_CASED) + 1)
        for other in (chr(code).lower(), chr(code).upper())
        if len(other) == 1 and not low <= ord(other) <= high
    }
    return (*ranges, *((code, code) for code in sorted(codes)))


def united(characters: list[Character]) -> Character:
    """Return the set of all characters of some sets, none of them negated."""
    return Character(
        tuple(pair for character in characters for pair in character.ranges),
        word=any(character.word for character in characters),
        nonword=any(character.nonword for character in characters),
    )


def merged(items: list[Node]) -> Node:
    """Return a choice, as one set where each of its items is a set: a|b is [ab]."""
    if len(items) == 1:
        return items[0]
    characters = [item for item in items if isinstance(item, Character) and not item.negated]
    return united(characters) if len(characters) == len(items) else Choice(tuple(items))
