"""The text of a pattern to its nodes; what is not of the language is refused in words."""

from sandbox_workers.patterns.characters import (
    ANY,
    LAST,
    POSIX,
    SETS,
    complement,
    folded,
    letter,
    merged,
    united,
)
from sandbox_workers.patterns.nodes import (
    Assertion,
    Character,
    Node,
    Ranges,
    Repeat,
    Sequence,
    size,
)
from sandbox_workers.patterns.refusals import ESCAPES, GROUPS, PatternError

MAX_SIZE = 2000
_MAX_DEPTH = 50
_MAX_REPEAT = 1000
_CONTROLS = {"t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a", "e": "\x1b"}
_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}
_HEX = set("0123456789abcdefABCDEF")


def parse(pattern: str, *, fold: bool = False) -> Node:
    """Return the nodes of a regular expression; `fold` is for (?i) at its beginning."""
    return _sized(_Parser(pattern, fold).whole())


def literal(text: str, *, fold: bool = False) -> Node:
    """Return the nodes of a text that is meant as it stands."""
    if "\n" in text:
        raise PatternError("the text holds a line break, and lines are searched one by one")
    return _sized(Sequence(tuple(letter(character, fold=fold) for character in text)))


def _sized(node: Node) -> Node:
    if (nodes := size(node)) > MAX_SIZE:
        raise PatternError(
            f"it is too large: {nodes} parts when its repeats are written out, at most {MAX_SIZE}",
            "use smaller numbers in {}, or * and +",
        )
    return node


class _Parser:
    """Reads from left to right; `fold` is whether (?i) is in force."""

    def __init__(self, text: str, fold: bool) -> None:
        self._text, self._at = text, 0
        self._fold = fold
        self._depth = 0

    def whole(self) -> Node:
        node = self._choice()
        if self._at < len(self._text):
            raise self._error("this ) closes no group", r"write \) for the character")
        return node

    def _choice(self) -> Node:
        items = [self._sequence()]
        while self._take("|"):
            items.append(self._sequence())
        return merged(items)

    def _sequence(self) -> Node:
        items: list[Node] = []
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            items.append(self._repeated(self._atom()))
        return items[0] if len(items) == 1 else Sequence(tuple(items))

    def _repeated(self, node: Node | None) -> Node:
        bounds = self._bounds()
        if bounds is None:
            return Sequence(()) if node is None else node
        if node is None or isinstance(node, Assertion):
            raise self._error("there is nothing to repeat", r"write \ before * + ? for themselves")
        if self._take("+"):
            raise self._error("possessive repeats are not supported")
        self._take("?")  # lazy: a line matches or not, whichever is tried first
        if self._bounds() is not None:
            raise self._error("a repeat is repeated", "put the inner one in a group: (?:a*)*")
        return Repeat(node, *bounds)

    def _bounds(self) -> tuple[int, int | None] | None:
        for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._take(sign):
                return bounds
        return self._braces()

    def _braces(self) -> tuple[int, int | None] | None:
        """Read {2}, {2,}, {,3} or {2,3}; any other brace stands for itself, as in code."""
        end = self._text.find("}", self._at)
        if end < 0 or not self._text.startswith("{", self._at):
            return None
        low, comma, high = self._text[self._at + 1 : end].partition(",")
        numbers = [part for part in (low, high) if part]
        if not numbers or not all(part.isascii() and part.isdigit() for part in numbers):
            return None
        bounds = int(low[:9] or 0), int(high[:9]) if high else None if comma else int(low[:9])
        if max(bounds[0], bounds[1] or 0) > _MAX_REPEAT:
            raise self._error(f"a repeat counts to {_MAX_REPEAT} at most")
        if bounds[1] is not None and bounds[0] > bounds[1]:
            raise self._error("the numbers of this repeat are the wrong way round")
        self._at = end + 1
        return bounds

    def _atom(self) -> Node | None:
        """Read one part; None for what only sets a flag, or a sign that repeats nothing."""
        sign = self._text[self._at]
        if sign in "*+?":
            return None
        self._at += 1
        match sign:
            case "(":
                return self._group()
            case "[":
                return self._class()
            case "\\":
                return self._escape()
            case ".":
                return ANY
            case "^":
                return Assertion("start")
            case "$":
                return Assertion("end")
            case "\n":
                raise self._error(ESCAPES["n"])
        return letter(sign, fold=self._fold)

    def _group(self) -> Node | None:
        fold, opened = self._fold, self._at
        if self._text.startswith("?", self._at) and not self._head():
            return None
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise self._error("its groups are nested too deeply")
        node = self._choice()
        if not self._take(")"):
            self._at = opened
            raise self._error("this group is not closed", r"write \( for the character")
        self._depth -= 1
        self._fold = fold
        return Sequence((node,)) if isinstance(node, Assertion) else node

    def _head(self) -> bool:
        """Read what follows ( up to the content; False for flags that have none."""
        for start, words in GROUPS.items():
            if self._text.startswith(start, self._at):
                raise self._error(words)
        if self._take("?P<") or self._take("?<"):
            end = self._text.find(">", self._at)
            if end < 0 or not self._text[self._at : end].isidentifier():
                raise self._error("the name of this group is not one")
            self._at = end + 1
            return True
        return self._flags()

    def _flags(self) -> bool:
        self._at += 1
        start = self._at
        while self._at < len(self._text) and self._text[self._at] not in ":)":
            self._at += 1
        on, _, off = self._text[start : self._at].partition("-")
        if set(on + off) - set("im") or self._at == len(self._text):
            raise self._error("of flags only (?i) is supported")
        self._fold = (self._fold or "i" in on) and "i" not in off
        self._at += 1
        return self._text[self._at - 1] == ":"

    def _escape(self) -> Node:
        if self._at == len(self._text):
            raise self._error("it ends in a backslash", r"write \\ for the character")
        sign = self._text[self._at]
        if sign in "bB":
            self._at += 1
            return Assertion("boundary" if sign == "b" else "inside")
        if sign in SETS:
            self._at += 1
            return SETS[sign]
        return letter(self._escaped(), fold=self._fold)

    def _escaped(self) -> str:
        sign = self._text[self._at]
        self._at += 1
        if sign in ESCAPES:
            raise self._error(f"\\{sign}: {ESCAPES[sign]}")
        if sign in _CONTROLS:
            return _CONTROLS[sign]
        if sign in _HEX_DIGITS:
            return self._code(_HEX_DIGITS[sign])
        if sign.isascii() and sign.isalnum():
            raise self._error(f"\\{sign} has no meaning here", "drop the backslash")
        return sign

    def _code(self, digits: int) -> str:
        braced = self._take("{")
        end = self._text.find("}", self._at) if braced else self._at + digits
        text = self._text[self._at : max(end, self._at)]
        if not (0 < len(text) <= 8 and (braced or len(text) == digits)) or set(text) - _HEX:
            raise self._error("this is not the number of a character")
        self._at = end + braced
        code = int(text, 16)
        if code > LAST or chr(code) == "\n" or 0xD800 <= code <= 0xDFFF:
            raise self._error("no line holds the character of this number")
        return chr(code)

    def _class(self) -> Character:
        opened = self._at
        negated, first = self._take("^"), True
        found: list[Character] = []
        while first or not self._text.startswith("]", self._at):
            if self._at >= len(self._text):
                self._at = opened
                raise self._error("this class is not closed", r"write \[ for the character")
            found.append(self._member())
            first = False
        self._at += 1
        if negated:
            return united(found)._replace(negated=True)
        return united(found)

    def _member(self) -> Character:
        low = self._element()
        dash = self._text.startswith("-", self._at)
        if not dash or self._text.startswith("-]", self._at) or self._at + 1 >= len(self._text):
            return low
        self._at += 1
        high = self._element()
        if not (low.literal and high.literal) or low.ranges > high.ranges:
            raise self._error(
                "this range is not one", r"write \- for the character, or put it last"
            )
        ranges: Ranges = ((low.ranges[0][0], high.ranges[0][0]),)
        return Character(folded(ranges) if self._fold else ranges)

    def _element(self) -> Character:
        """Read one member of a class; single characters are folded by whoever asked for them."""
        if self._text.startswith("[:", self._at) and (name := self._posix()):
            ranges = POSIX[name.lstrip("^")]
            if name.startswith("^"):
                return Character(complement(ranges))
            return Character(folded(ranges) if self._fold else ranges)
        sign = self._text[self._at]
        self._at += 1
        if sign == "\n":
            raise self._error(ESCAPES["n"])
        if sign != "\\":
            return self._single(sign)
        if self._at == len(self._text):
            raise self._error("it ends in a backslash", r"write \\ for the character")
        sign = self._text[self._at]
        if sign in SETS:
            self._at += 1
            return SETS[sign]
        return self._single(self._escaped())

    def _single(self, character: str) -> Character:
        node = letter(character, fold=False)
        return node._replace(ranges=folded(node.ranges)) if self._fold else node

    def _posix(self) -> str:
        end = self._text.find(":]", self._at + 2)
        name = self._text[self._at + 2 : end] if end >= 0 else ""
        if name.lstrip("^") in POSIX:
            self._at = end + 2
            return name
        if name.isalpha():
            raise self._error(f"[:{name}:] is not a class", f"one of {', '.join(POSIX)}")
        return ""

    def _take(self, text: str) -> bool:
        if self._text.startswith(text, self._at):
            self._at += len(text)
            return True
        return False

    def _error(self, words: str, hint: str = "") -> PatternError:
        return PatternError(f"at character {max(1, self._at)}: {words}", hint)
