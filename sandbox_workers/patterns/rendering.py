r"""Nodes as source for an engine: exactly for `re`, and as an upper bound for ripgrep.

Python's source means what the nodes mean, on text whose bytes that are not UTF-8 are lone
surrogates (surrogateescape). Every class leaves the line feed out, so that no match leaves its
line and a whole file can be searched at once.

ripgrep's source matches at least the lines that the nodes match: it only says which files to
read. Word boundaries fall away, because its words are not Python's; outside ASCII a class that
is more than a list of code points takes every character, and every byte of a broken one.
"""

import re

from sandbox_workers.patterns.nodes import Assertion, Character, Choice, Node, Repeat, Sequence

_PYTHON = {"start": "^", "end": "$", "boundary": r"\b", "inside": r"(?!\b)"}
_RIPGREP = {"start": r"(?:^\x{FEFF}?)", "end": r"(?:\r?$)", "boundary": "", "inside": ""}
_BEYOND_ASCII = r"[^\x00-\x7F]|(?-u:[\x80-\xFF])"
_SURROGATES = (0xD800, 0xDFFF)


def for_python(node: Node) -> str:
    """Return source for `re`, to be compiled with MULTILINE and no other flag."""
    match node:
        case Character():
            return python_class(node)
        case Assertion(kind):
            return _PYTHON[kind]
        case Sequence(items):
            return "".join(map(for_python, items)) or "(?:)"
        case Choice(items):
            return f"(?:{'|'.join(map(for_python, items))})"
        case Repeat(item, low, high):
            return f"(?:{for_python(item)}){_braces(low, high)}"


def for_ripgrep(node: Node) -> str:
    """Return source for ripgrep that matches every line which the nodes match."""
    match node:
        case Character():
            return _ripgrep_class(node)
        case Assertion(kind):
            return _RIPGREP[kind]
        case Sequence(items):
            return "".join(map(for_ripgrep, items))
        case Choice(items):
            return f"(?:{'|'.join(map(for_ripgrep, items))})"
        case Repeat(item, low, high):
            return f"(?:{for_ripgrep(item)}){_braces(low, high)}"


def python_class(node: Character) -> str:
    """Return source for `re` that matches one character of the set."""
    if node.literal and not node.folded:
        return re.escape(node.literal)
    if node == Character((), negated=True):
        return "."
    body = r"\w" * node.word + r"\W" * node.nonword
    body += "".join(_python_range(low, high) for low, high in node.ranges)
    if node.negated:
        return rf"[^\n{body}]"
    return rf"(?!\n)[{body}]" if node.nonword else f"[{body}]"


def _python_range(low: int, high: int) -> str:
    return _python_code(low) if low == high else f"{_python_code(low)}-{_python_code(high)}"


def _python_code(code: int) -> str:
    if chr(code).isascii() and chr(code).isalnum():
        return chr(code)
    return f"\\x{code:02x}" if code < 0x100 else f"\\U{code:08x}"


def _ripgrep_class(node: Character) -> str:
    listed = not (node.negated or node.word or node.nonword)
    low, high = _SURROGATES
    if listed and not any(first <= high and low <= last for first, last in node.ranges):
        codes = "".join(rf"\x{{{first:X}}}-\x{{{last:X}}}" for first, last in node.ranges)
        return f"[{codes}]"
    belongs = re.compile(python_class(node)).fullmatch
    codes = "".join(rf"\x{{{code:X}}}" for code in range(128) if belongs(chr(code)))
    return f"(?:{f'[{codes}]|' if codes else ''}{_BEYOND_ASCII})"


def _braces(low: int, high: int | None) -> str:
    return f"{{{low},{'' if high is None else high}}}"
