r"""Text as a person may trust it: whatever a terminal would hide, act on or reorder is spelled.

What a screen does not show as it is comes out as `\x1b`, `\u202e` or `\U000e0041`. All else
stays, a backslash too, except where it begins what could be taken for one of these: then it
is `\x5c`. So two different texts never look the same, and `spelled_out` text can be read back:
replace each such sequence, from left to right, by the character that it names.

For a stream that cannot encode some of it, errors="backslashreplace" spells in the same way.
The letters of scripts stay as they are, those that look alike among them, and those that run
from right to left; `runs_leftwards` tells of the latter, which a terminal may reorder.
"""

import json
import re
import unicodedata
from collections.abc import Callable
from typing import Any

_AMBIGUOUS = r"\\(?=x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"
_AT_THE_END = r"[ \t](?=\n|\Z)"
_SUSPECT = re.compile(rf"{_AMBIGUOUS}|{_AT_THE_END}|[^\t\n -~]")
_SUSPECT_IN_A_LINE = re.compile(rf"{_AMBIGUOUS}|{_AT_THE_END}|[^ -~]")
_NOT_ASCII = re.compile(rf"{_AMBIGUOUS}|[^ -~]")
_SUSPECT_IN_JSON = re.compile(r"[^\n -~]")

# Printable by their category, and yet blank: fillers, marks that only join or select, and a
# pattern of no dots. Unicode's Default_Ignorable_Code_Point, less what isprintable() refuses.
_BLANK = frozenset(
    [
        *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0, 0x1D159),
        *(*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)),
    ]
)
_MARKS_ON_A_LETTER = 2
"""So many are left on one letter; more of them reach into the lines above and below."""


def visible(text: str) -> str:
    """Return a text of several lines with all that would not show spelled; tabs stay."""
    return _SUSPECT.sub(_shown, text)


def visible_line(text: str) -> str:
    """Return a text as one line: like `visible`, with line ends and tabs spelled as well."""
    return _SUSPECT_IN_A_LINE.sub(_shown, text)


def spelled_out(text: str) -> str:
    """Return a text with every character outside of ASCII spelled, for those who doubt a letter."""
    return _NOT_ASCII.sub(lambda match: _escape(match[0]), text)


def visible_json(value: Any, indent: int | None = None) -> str:
    """Return a value as JSON in which the same characters are spelled, as JSON spells them."""
    document = json.dumps(value, ensure_ascii=False, indent=indent)
    return _SUSPECT_IN_JSON.sub(lambda match: _shown(match, _escape_for_json), document)


def runs_leftwards(text: str) -> bool:
    """Whether letters run from right to left, so that a terminal may change the order of parts."""
    return not text.isascii() and any(unicodedata.bidirectional(c) in ("R", "AL") for c in text)


def _escape(character: str) -> str:
    number = ord(character)
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _escape_for_json(character: str) -> str:
    return json.dumps(character)[1:-1]


def _shown(match: re.Match[str], escape: Callable[[str], str] = _escape) -> str:
    character = match[0]
    if character.isascii() or not character.isprintable() or ord(character) in _BLANK:
        return escape(character)
    if unicodedata.combining(character) or unicodedata.category(character).startswith("M"):
        return character if _rests_on_a_letter(match) else escape(character)
    return character


def _rests_on_a_letter(match: re.Match[str]) -> bool:
    """Whether a mark belongs to a letter of its script: on ASCII it could cross something out."""
    before = match.string[max(0, match.start() - _MARKS_ON_A_LETTER) : match.start()]
    bases = before.rstrip("".join(c for c in before if unicodedata.category(c).startswith("M")))
    return bool(bases) and not bases[-1].isascii() and bases[-1].isalpha()
