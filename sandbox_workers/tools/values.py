"""Values as text: what `repr` says, for as long as that is short enough to be read.

A value of any size, depth or recursion takes bounded time and memory, as far as Python's own
containers and texts go; what other objects say of themselves is their own code.
"""

from typing import Any

LONGEST = 30_000
"""Characters of a shown value, about."""

_DEEPEST = 30
_BRACKETS: dict[type, tuple[str, str]] = {
    list: ("[", "]"),
    tuple: ("(", ")"),
    set: ("{", "}"),
    frozenset: ("frozenset({", "})"),
    dict: ("{", "}"),
}


def shown(value: object) -> str:
    """Return the value as `repr` would, and what was left out of it in words."""
    return _Writer().text(value)


class _Writer:
    """Writes one value; `_left` is how many characters more are worth writing."""

    def __init__(self) -> None:
        self._left = LONGEST
        self._inside: list[int] = []

    def text(self, value: object) -> str:
        kind = type(value)
        if kind in _BRACKETS and value:
            return self._container(value)
        if kind in (str, bytes, bytearray):
            return self._spend(_text(value))
        return self._spend(_own_words(value))

    def _container(self, value: Any) -> str:
        opening, closing = _BRACKETS[type(value)]
        if id(value) in self._inside:
            return self._spend(f"{opening}...{closing}")
        if len(self._inside) > _DEEPEST:
            return self._spend(f"{opening}...{closing}")
        self._inside.append(id(value))
        parts = self._parts(value)
        self._inside.pop()
        comma = "," if type(value) is tuple and len(value) == 1 else ""
        return f"{opening}{', '.join(parts)}{comma}{closing}"

    def _parts(self, value: Any) -> list[str]:
        parts: list[str] = []
        for item in value.items() if type(value) is dict else value:
            if self._left <= 0:
                parts.append(f"... {len(value) - len(parts):,} more")
                break
            self._left -= 2
            if type(value) is dict:
                parts.append(f"{self.text(item[0])}: {self.text(item[1])}")
            else:
                parts.append(self.text(item))
        return parts

    def _spend(self, text: str) -> str:
        self._left -= len(text)
        return text


def _text(value: Any) -> str:
    if len(value) <= LONGEST:
        return repr(value)
    unit = "characters" if isinstance(value, str) else "bytes"
    return f"{value[:LONGEST]!r}... ({len(value) - LONGEST:,} of {len(value):,} {unit} left out)"


def _own_words(value: object) -> str:
    """What an object says of itself, at its start and its end; its own code may fail."""
    try:
        text = repr(value)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001  # whatever a __repr__ raises
        return f"<{type(value).__name__} object, whose repr raised {type(error).__name__}>"
    if len(text) <= LONGEST:
        return text
    half = LONGEST // 2
    return f"{text[:half]}\n... ({len(text) - 2 * half:,} characters left out) ...\n{text[-half:]}"
