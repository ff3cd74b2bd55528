"""Prefixes of commands: does a simple command begin as a rule says, surely, or might it?

EXACT      word by word, by the same program: enough to allow
LIKELY     but for options in between, or another path to the program: enough to ask or deny
POSSIBLE   if what is only known at run time turns out so: enough to ask
NO
"""

import posixpath
import re
from enum import IntEnum
from fnmatch import fnmatchcase

from toolcell.policy.rules import Prefix

Words = tuple[str | None, ...]

_SYSTEM = ("/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin")
# Options that are another spelling of a letter, where rules are likely to name one.
_RECURSIVE = {"R": "r", "--recursive": "r"}
_SAME = {
    "rm": {**_RECURSIVE, "--force": "f", "--dir": "d"},
    "cp": {**_RECURSIVE, "--force": "f", "--archive": "a"},
    "git": {"--force": "f", "--delete": "d", "--all": "a"},
    "docker": {"--force": "f"},
}
_CLUSTER = re.compile(r"-[A-Za-z]+")
_SHORTEST_ABBREVIATION = 3  # "--f" for --force, as getopt_long(3) takes it


class Fit(IntEnum):
    """How surely a command fits a prefix; the order counts."""

    NO = 0
    POSSIBLE = 1
    LIKELY = 2
    EXACT = 3


def fit(prefix: Prefix, words: Words) -> Fit:
    """Compare the start of a command with a prefix."""
    if _is_exact(prefix, words):
        return Fit.EXACT
    first = _program(prefix[0], words[0])
    if first is Fit.NO:
        return Fit.NO
    rest = _rest(prefix[1:], words[1:], _SAME.get(posixpath.basename(words[0] or ""), {}))
    return min(first, rest)


def matched(prefix: Prefix, words: Words) -> int:
    """Count how many elements of a prefix a command begins with; for explanations."""
    for count in range(len(prefix), 0, -1):
        if fit(prefix[:count], words):
            return count
    return 0


def _is_exact(prefix: Prefix, words: Words) -> bool:
    if len(words) < len(prefix) or words[0] is None:
        return False
    if not any(_is_program(each, words[0]) for each in prefix[0]):
        return False
    return all(
        word is not None and _is_one_of(word, element)
        for element, word in zip(prefix[1:], words[1:], strict=False)
    )


def _is_program(name: str, word: str) -> bool:
    """Whether a word names a program as the rule does: so written, or where systems keep it."""
    if fnmatchcase(word, name):
        # "*" names whatever the system has, not a file of the workspace.
        return "/" not in word or "/" in name
    directory, _, base = word.rpartition("/")
    return directory in _SYSTEM and fnmatchcase(base, name)


def _program(element: tuple[str, ...], word: str | None) -> Fit:
    if word is None:
        return Fit.POSSIBLE
    base = posixpath.basename(word)
    for name in element:
        if fnmatchcase(word, name) or fnmatchcase(base, posixpath.basename(name)):
            return Fit.LIKELY
    return Fit.NO


def _rest(elements: Prefix, words: Words, same: dict[str, str]) -> Fit:
    """Find the elements in order, each behind options that may stand before it.

    An option of a rule may stand anywhere behind the word before it.
    """
    best, position = Fit.LIKELY, 0
    for element in elements:
        if element[0].startswith("-"):
            found = _option(element, words[position:], same)
        else:
            found, position = _word(element, words, position)
        if found is Fit.NO:
            return Fit.NO
        best = min(best, found)
    return best


def _word(element: tuple[str, ...], words: Words, position: int) -> tuple[Fit, int]:
    while position < len(words):
        word = words[position]
        if word is None:
            return Fit.POSSIBLE, position  # it may be any number of words
        if _is_one_of(word, element):
            return Fit.LIKELY, position + 1
        is_value = position > 0 and _takes_value(words[position - 1])
        if not (_is_option(word) or is_value):
            return Fit.NO, position
        position += 1
    return Fit.NO, position


def _option(element: tuple[str, ...], words: Words, same: dict[str, str]) -> Fit:
    given = [word for word in words if word is not None]
    letters = {letter for word in given if _CLUSTER.fullmatch(word) for letter in word[1:]}
    letters |= {
        letter
        for name, letter in same.items()
        if name in letters or any(_is_long(name, word) for word in given)
    }
    for option in element:
        wanted = same.get(option) or (option[1:] if _CLUSTER.fullmatch(option) else "")
        if wanted and {same.get(letter, letter) for letter in wanted} <= letters:
            return Fit.LIKELY
        if any(_is_long(option, word) or fnmatchcase(word, option) for word in given):
            return Fit.LIKELY
    return Fit.POSSIBLE if len(given) < len(words) else Fit.NO


def _is_long(option: str, word: str) -> bool:
    """Whether a word is a long option, with a value or shortened, as programs accept it."""
    name = word.partition("=")[0]
    return (
        option.startswith("--")
        and name.startswith("--")
        and len(name) >= _SHORTEST_ABBREVIATION
        and option.startswith(name)
    )


def _is_one_of(word: str, element: tuple[str, ...]) -> bool:
    return any(fnmatchcase(word, each) for each in element)


def _is_option(word: str) -> bool:
    return word.startswith(("-", "+")) and len(word) > 1


def _takes_value(word: str | None) -> bool:
    return word is not None and _is_option(word) and "=" not in word and word != "--"
