"""Patterns: regular expressions that a model wrote, matched in the controller.

The engine is that of Rust's regex crate, by way of jsonschema-rs: its time is linear in the
length of the text, whatever the pattern.
"""

import re

_PLAIN = re.compile(r"[^\\.^$|?*+()\[\]{}]+")


class PatternError(ValueError):
    """The pattern is no regular expression of this engine."""


class Pattern:
    """One pattern."""

    def __init__(self, text: str) -> None:
        """Compile it; raises PatternError."""
        import jsonschema_rs  # not before it is needed: most calls search for nothing

        self.literal = text if _PLAIN.fullmatch(text) else ""
        """The text itself where nothing in it has a meaning."""
        try:
            self._validator = jsonschema_rs.Draft202012Validator(
                {"type": "string", "pattern": text},
                pattern_options=jsonschema_rs.RegexOptions(),
            )
        except (jsonschema_rs.ValidationError, ValueError):
            raise PatternError(
                f"{text[:100]!r} is not a regular expression of the linear engine, which has "
                "neither look-around nor back-references"
            ) from None

    def is_in(self, line: str) -> bool:
        """Whether a line has a match."""
        return self.literal in line if self.literal else self._validator.is_valid(line)

    def place_in(self, line: str) -> int:
        """Return about where the first match in a line ends, which has one."""
        if self.literal:
            return line.find(self.literal) + len(self.literal)
        low, high = 0, len(line)
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.is_in(line[:middle]) else (middle + 1, high)
        return low
