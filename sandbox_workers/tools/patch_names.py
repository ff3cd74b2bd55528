"""Names of files as a patch holds them: quoted or not, with git's prefixes or without.

What is done here, the trusted side does by itself (`toolcell.policy.patches`): whatever name comes
out of it here has to be among those that a policy was asked about.
"""

import re

_OCTAL = re.compile(rb'\\([0-7]{3}|[abtnvfr"\\])')
_ESCAPES = {b"a": 7, b"b": 8, b"t": 9, b"n": 10, b"v": 11, b"f": 12, b"r": 13, b'"': 34, b"\\": 92}
# What git puts before the old and the new name: of a diff, of one read backwards, and of those
# between the commit, the index, the work tree and other objects (`diff.mnemonicPrefix`).
_PREFIXES = ("ab", "ba", "iw", "wi", "ci", "ic", "cw", "wc", "ow", "wo", "12")


NO_FILE = "/dev/null"
"""What stands for the file in a pair of names that is not there."""


def unquoted(text: str) -> str | None:
    """Return the name that stands on a line, as git or diff wrote it; None where it is none."""
    if not text.startswith('"'):
        name, tab, _ = text.partition("\t")
        return name if tab else name.rstrip()
    end = _closing(text)
    if end < 0 or text[end + 1 : end + 2] not in ("", "\t"):
        return None
    return _unescaped(text[1:end])


def _closing(text: str) -> int:
    found = re.match(r'"(?:[^"\\]|\\.)*"', text)
    return found.end() - 1 if found else -1


def _unescaped(text: str) -> str | None:
    raw = text.encode("utf-8", "surrogatepass")
    if b"\\" in _OCTAL.sub(b"", raw):
        return None
    plain = _OCTAL.sub(_byte, raw)
    try:
        return plain.decode()
    except UnicodeDecodeError:
        return None


def _byte(found: re.Match[bytes]) -> bytes:
    code = found[1]
    return bytes([_ESCAPES[code] if code in _ESCAPES else int(code, 8) & 0xFF])


def prefixes_of(names: str) -> str:
    """The letters before the two names of a `diff --git` line, such as "ab"; "" where none are."""
    for first, second in map(tuple, _PREFIXES):
        starts = names.startswith((f"{first}/", f'"{first}/'))
        if starts and (f" {second}/" in names or f' "{second}/' in names):
            return first + second
    return ""


def without_prefixes(
    old: str | None, new: str | None, prefixes: str
) -> tuple[str | None, str | None]:
    """Take git's prefixes off a pair of names, where both have them, or one alone is there."""
    for first, second in map(tuple, [prefixes] if prefixes else _PREFIXES):
        if old and new and old.startswith(f"{first}/") and new.startswith(f"{second}/"):
            return old[2:], new[2:]
    if old and not new:
        return _without(old, prefixes[:1] or "a"), new
    if new and not old:
        return old, _without(new, prefixes[1:] or "b")
    return old, new


def _without(name: str, letter: str) -> str:
    return name.removeprefix(f"{letter}/")


def git_name(names: str) -> str | None:
    """The one name that both halves of a `diff --git` line are; None where they are two."""
    old: str | None
    new: str | None
    if names.startswith('"'):
        end = _closing(names)
        if names[end + 1 : end + 2] != " ":
            return None
        old, new = unquoted(names[: end + 1]), unquoted(names[end + 2 :])
    else:
        # A name may hold spaces, but the same name twice is cut in its very middle.
        names = names.rstrip()
        middle = len(names) // 2
        if names[middle : middle + 1] != " ":
            return None
        old, new = names[:middle], names[middle + 1 :]
    old, new = without_prefixes(old, new, prefixes_of(names))
    return old if old == new and old != NO_FILE else None
