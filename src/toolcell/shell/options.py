"""Options of programs, read as getopt_long(3) reads them, from a short description of each."""

import re
from collections import deque
from dataclasses import dataclass, field

from toolcell.shell.facts import Unknown, Word, Words

FLAG, VALUE, ATTACHED = "", ":", "?"
_NUMBER = re.compile(r"[-+]?\d+")


@dataclass(frozen=True, slots=True)
class Spec:
    """What a program takes: each option by its letter or long name, and how it takes a value.

    `numbers` says that -5 is an option too, `plus` that a + begins options as well.
    """

    kinds: dict[str, str] = field(default_factory=dict)
    numbers: bool = False
    plus: bool = False


def spec(text: str, *, numbers: bool = False, plus: bool = False) -> Spec:
    """Compile a description: `-v -o: -i? --output: --in-place?`.

    A colon: the option takes a value, a question mark: it may have one, attached to it.
    Flags of one letter can be written together: `-vx`.
    """
    kinds = {}
    for each in text.split():
        name = each.rstrip(":?")
        kind = each[len(name) :]
        if name.startswith("--"):
            kinds[name[2:]] = kind
        elif kind:
            kinds[name[1:]] = kind
        else:
            kinds |= dict.fromkeys(name[1:], FLAG)
    return Spec(kinds, numbers, plus)


def shortened(names: str) -> str:
    """Return a pattern for long options, whole or cut short as getopt_long(3) takes them.

    A name with a bar, `list|ed-x`, is not cut at the bar or before it, where another option
    stands.
    """
    cuts = []
    for each in names.split():
        least, bar, _ = each.partition("|")
        name = each.replace("|", "")
        cuts += [name[:end] for end in range(len(name), len(least) if bar else 0, -1)]
    return f"--(?:{'|'.join(cuts)})(?![^=])"


@dataclass(slots=True)
class Found:
    """The options of one command, in their order, and what is left.

    `unknown` is the first option that the description does not have, "" if all are known;
    what follows it may be its value. `computed` says that a word which only the run knows
    stands where an option might.
    """

    options: list[tuple[str, Word]] = field(default_factory=list)
    operands: list[Word] = field(default_factory=list)
    unknown: str = ""
    computed: bool = False

    def has(self, *names: str) -> bool:
        """Whether one of the options is given."""
        return any(name in names for name, _ in self.options)

    def values(self, *names: str) -> list[Word]:
        """The values of an option under all its names, in their order."""
        return [value for name, value in self.options if name in names]


def read(words: Words, given: Spec, *, permute: bool = False) -> Found:
    """Split the words behind a command; `permute`: options may stand behind operands too."""
    found, rest = Found(), deque(words)
    while rest:
        word = rest.popleft()
        if isinstance(word, Unknown):
            found.computed = True
        elif word == "--":
            found.operands += rest
            break
        elif _is_option(word, given):
            _take(word, rest, given, found)
            continue
        found.operands.append(word)
        if not permute:
            found.operands += rest
            break
    return found


def _is_option(word: str, given: Spec) -> bool:
    return len(word) > 1 and (word[0] == "-" or (given.plus and word[0] == "+"))


def _take(word: str, rest: deque[Word], given: Spec, found: Found) -> None:
    if word.startswith("--"):
        _take_long(word[2:], rest, given, found)
    elif given.numbers and _NUMBER.fullmatch(word):
        found.options.append((word, ""))
    else:
        _take_letters(word, rest, given, found)


def _take_long(word: str, rest: deque[Word], given: Spec, found: Found) -> None:
    name, equals, value = word.partition("=")
    known = _full_name(name, given)
    if known is None:
        found.unknown = found.unknown or f"--{name}"
    elif equals:
        found.options.append((known, value))
    elif given.kinds[known] == VALUE:
        found.options.append((known, rest.popleft() if rest else ""))
    else:
        found.options.append((known, ""))


def _full_name(name: str, given: Spec) -> str | None:
    """A long option may be shortened as long as it is clear which is meant."""
    if name in given.kinds and len(name) > 1:
        return name
    longer = [each for each in given.kinds if len(each) > 1 and each.startswith(name)]
    return longer[0] if len(longer) == 1 else None


def _take_letters(word: str, rest: deque[Word], given: Spec, found: Found) -> None:
    """Take `-xzf FILE`, `-n5`: a letter that has a value ends the cluster."""
    for place, letter in enumerate(word[1:], 2):
        kind = given.kinds.get(letter)
        if kind is None:
            found.unknown = found.unknown or f"{word[0]}{letter}"
            return
        if kind == FLAG:
            found.options.append((letter, ""))
            continue
        value: Word = word[place:]
        if kind == VALUE and not value:
            value = rest.popleft() if rest else ""
        found.options.append((letter, value))
        return


def valued(words: Words, pattern: str) -> list[Word]:
    """The values of options that match a pattern, attached or in the next word."""
    values: list[Word] = []
    for place, word in enumerate(words[1:], 1):
        match = re.fullmatch(rf"(?:{pattern})(=?)(.*)", word) if isinstance(word, str) else None
        if match is None:
            continue
        attached = match[match.lastindex or 0]
        values += [attached] if attached else words[place + 1 : place + 2]
    return values
