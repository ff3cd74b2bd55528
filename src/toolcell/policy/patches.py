"""Patches as a policy sees them: all the files that a unified diff names.

The tool that applies a patch reads it again in its cell. It takes a file's name from a `---` line
directly followed by a `+++` line, from `rename` and `copy` lines, and from a `diff --git` line that
holds one name twice. All of those are seen here, wherever they stand, and more: what only
looks like such a line, a name of which one line of the pair is missing, an `Index:` line. A name
that cannot be read is one that only the run knows.
"""

import re
from collections.abc import Iterator
from itertools import islice

_LINE = re.compile(
    r"^(diff --git |--- |\+\+\+ |(?:rename|copy) (?:from|to) |Index: )([^\n]*)$", re.MULTILINE
)
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"(?:\t.*)?', re.DOTALL)
_ESCAPE = re.compile(r'\\(?:([0-7]{3})|([abtnvfr"\\])|)')
_LETTERS = dict(zip("abtnvfr", "\a\b\t\n\v\f\r", strict=True))
# Before the old and the new name: as git writes them, and as it does with its mnemonic prefixes.
_PAIRS = ("ab", "ba", "iw", "wi", "ci", "ic", "cw", "wc", "ow", "wo", "12")
_NOTHING = "/dev/null"
_MOST_NAMES = 5000

Name = str | None


def files_named(patch: str) -> tuple[Name, ...]:
    """Return the files that a patch may write, None for a name that cannot be read.

    Of more names than the tool would take nothing is known: each costs a look at the disk.
    """
    found = list(islice(_names(patch), _MOST_NAMES))
    return tuple(dict.fromkeys(found)) if len(found) < _MOST_NAMES else (None,)


def _names(patch: str) -> Iterator[Name]:
    prefixes, old, behind = "", "", -1
    for found in _LINE.finditer(patch):
        kind, rest = found[1], found[2].removesuffix("\r")
        if kind == "diff --git ":
            prefixes = _prefixes(rest)
            yield from _of_git(rest, prefixes)
        elif kind == "--- ":
            if behind >= 0:
                yield from _alone(old)
            old, behind = rest, found.end() + 1
        elif kind == "+++ " and behind == found.start():
            yield from _pair(_name(old), _name(rest), prefixes)
            behind = -1
        elif kind == "+++ ":
            yield from _alone(rest)
        else:
            yield _name(rest)
    if behind >= 0:
        yield from _alone(old)


def _name(text: str) -> Name:
    """Read one name; None where it is none."""
    if not text.startswith('"'):
        name, tab, _ = text.partition("\t")
        return (name if tab else name.rstrip()) or None
    found = _QUOTED.fullmatch(text)
    return (_unescaped(found[1]) or None) if found else None


def _unescaped(text: str) -> Name:
    """Undo the quoting of C, in which git writes a byte as three octal digits."""
    parts, end = bytearray(), 0
    try:
        for found in _ESCAPE.finditer(text):
            parts += text[end : found.start()].encode()
            if found[1]:
                parts.append(int(found[1], 8) & 0xFF)
            elif found[2]:
                parts += _LETTERS.get(found[2], found[2]).encode()
            else:
                return None
            end = found.end()
        return (parts + text[end:].encode()).decode()
    except UnicodeError:
        return None


def _pair(old: Name, new: Name, prefixes: str) -> Iterator[Name]:
    """The names of a `---` and a `+++` line, without what git puts before both."""
    if old is None or new is None:
        yield None
    for first, second in map(tuple, (prefixes,) if prefixes else _PAIRS):
        if old and new and old.startswith(f"{first}/") and new.startswith(f"{second}/"):
            yield old[2:] or None
            yield new[2:] or None
            return
    if new == _NOTHING and old:
        old = old.removeprefix(f"{prefixes[:1] or 'a'}/")
    elif old == _NOTHING and new:
        new = new.removeprefix(f"{prefixes[1:] or 'b'}/")
    yield from (each or None for each in (old, new) if each != _NOTHING)


def _alone(text: str) -> Iterator[Name]:
    """A name without its other half: a program may take it as it is, or without a prefix."""
    name = _name(text)
    if name == _NOTHING:
        return
    yield name
    if name is not None and name[1:2] == "/":
        yield name[2:] or None


def _prefixes(names: str) -> str:
    for first, second in map(tuple, _PAIRS):
        if re.match(f'"?{first}/', names) and re.search(f' "?{second}/', names):
            return first + second
    return ""


def _of_git(names: str, prefixes: str) -> Iterator[Name]:
    """The name that both halves of the line are; a line of two names has others that tell them."""
    if names.startswith('"'):
        found = re.match(r'("(?:[^"\\]|\\.)*") (.*)', names, re.DOTALL)
        if found is None:
            yield None
            return
        left, right = _name(found[1]), _name(found[2])
    else:
        left, space, right = _halves(names.rstrip())
        if space != " ":
            return
    both = {*_pair(left, right, prefixes)}
    if len(both) == 1:
        yield from both


def _halves(text: str) -> tuple[str, str, str]:
    middle = len(text) // 2
    return text[:middle], text[middle : middle + 1], text[middle + 1 :]
