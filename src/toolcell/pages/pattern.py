"""Patterns: regular expressions that a model wrote, matched in the controller.

The engine is that of Rust's regex crate, by way of jsonschema-rs: its time is linear in the
length of the text, whatever the pattern. But it is in proportion to the pattern's states as
well, and nothing stops it: so a pattern may have only so many, and is given little at a time.
"""

import re
from typing import Any

_PLAIN = re.compile(r"[^\\.^$|?*+()\[\]{}]+")
_MOST = 256 * 1024  # bytes of a compiled pattern
_LOOKS = re.compile(r"\(\?<?[=!]|\(\?P=|\\[1-9]|\\k<")
_NOT_PYTHON = re.compile(r"\[\[|--|&&|\|\||~~|\\[pPxuz]")  # warned of, or read otherwise
_INSTEAD = "set `literal` to search for it as it stands"


class PatternError(ValueError):
    """The pattern is no regular expression of this engine."""


class Pattern:
    """One pattern; `literal` takes it as it stands."""

    def __init__(self, text: str, *, literal: bool = False) -> None:
        """Compile it; raises PatternError."""
        self.literal = text if literal or _PLAIN.fullmatch(text) else ""
        """The text itself where nothing in it has a meaning."""
        self._validator = None if self.literal else _compiled(text)

    def is_in(self, text: str) -> bool:
        """Whether a line has a match; of several lines, whether one may have."""
        return self.literal in text if self._validator is None else self._validator.is_valid(text)

    def place_in(self, line: str) -> int:
        """Return about where the first match in a line ends, which has one."""
        if self.literal:
            return line.find(self.literal) + len(self.literal)
        low, high = 0, len(line)
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.is_in(line[:middle]) else (middle + 1, high)
        return low


def _compiled(text: str) -> Any:
    import jsonschema_rs  # not before it is needed: most calls search for nothing

    try:
        return _validator(text, jsonschema_rs.RegexOptions(size_limit=_MOST))
    except (jsonschema_rs.ValidationError, ValueError):
        raise PatternError(f"{text[:100]!r} {_wrong(text)}; {_INSTEAD}") from None


def _validator(text: str, options: Any) -> Any:
    import jsonschema_rs

    # In several lines at once, ^ and $ are those of each.
    return jsonschema_rs.Draft202012Validator(
        {"type": "string", "pattern": f"(?m){text}"}, pattern_options=options
    )


def _wrong(text: str) -> str:
    """Say what is wrong with a pattern; Python's own parser has words for most of it."""
    if _LOOKS.search(text):
        return "has look-around or a back-reference, which the linear engine has not"
    if not _NOT_PYTHON.search(text):
        try:
            re.compile(text)
        except (re.error, OverflowError, RecursionError) as error:
            return f"is not a regular expression: {error}"
    return (
        "is not a regular expression of the linear engine (that of Rust's regex crate), or its "
        "repetitions stand for more than it may have: write lower counts"
    )
