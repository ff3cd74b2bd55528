"""Values: redaction of text, and of JSON values part by part."""

import json
from typing import Any

from toolcell.redaction.finder import Finder, mark

_DEEPEST = 200
_LARGEST = 4096  # in bits: longer numbers cost more than their text
_TOO_DEEP = "[redacted: nested too deeply]"


def redact_text(finder: Finder, text: str, *, cut: bool = False) -> str:
    """Redact text; of text that was `cut`, also an end that may be a part of a secret."""
    data = encode(text)
    found = finder.find(data, cut=cut)
    return mark(data, found).decode("utf-8", "surrogatepass") if found else text


def redact_value(finder: Finder, value: Any) -> Any:
    """Redact a JSON value: its texts, its keys, and the numbers that are known values.

    A key is read together with its text, as some tokens are known by their key only. Keys
    that become the same are told apart by a number.
    """
    try:
        text = encode(json.dumps(value, ensure_ascii=False))
    except (TypeError, ValueError, RecursionError):  # more than JSON, or deeper
        return _Walk(finder).value(value, _DEEPEST)
    there = finder.among(text)
    return _Walk(there).value(value, _DEEPEST) if there.reach else value


def encode(text: str) -> bytes:
    """Encode any text; lone surrogates too."""
    return text.encode("utf-8", "surrogatepass")


class _Walk:
    """One way through one value."""

    def __init__(self, finder: Finder) -> None:
        self._finder = finder
        self._keys: dict[Any, Any] = {}  # many objects have the same

    def value(self, value: Any, levels: int) -> Any:
        if isinstance(value, str):
            return redact_text(self._finder, value)
        if isinstance(value, int) and not isinstance(value, bool):
            return self._number(value)
        if not isinstance(value, dict | list | tuple):
            return value
        if levels == 0:
            return _TOO_DEEP
        if isinstance(value, dict):
            return self._items(value, levels - 1)
        return [self.value(item, levels - 1) for item in value]

    def _number(self, number: int) -> Any:
        if not self._finder.knows_values or number.bit_length() > _LARGEST:
            return number
        digits = str(number)
        text = redact_text(self._finder, digits)
        return number if text == digits else text

    def _items(self, items: dict[Any, Any], levels: int) -> dict[Any, Any]:
        made: dict[Any, Any] = {}
        times: dict[Any, int] = {}
        for key, item in items.items():
            name = self._key(key)
            if name != key:
                times[name] = times.get(name, 0) + 1
                name = f"{name} ({times[name]})" if times[name] > 1 else name
            made[name] = self._under(key, item, levels)
        return made

    def _key(self, key: Any) -> Any:
        if key not in self._keys:
            self._keys[key] = redact_text(self._finder, key) if isinstance(key, str) else key
        return self._keys[key]

    def _under(self, key: Any, item: Any, levels: int) -> Any:
        """Redact what stands under a key."""
        if not isinstance(key, str) or not isinstance(item, str):
            return self.value(item, levels)
        data = encode(f"{key}={item}")
        found = self._finder.find(data)
        if not found:
            return item
        start = len(encode(key)) + 1
        spans = [span._replace(start=max(span.start, start)) for span in found if span.end > start]
        return mark(data, spans)[start:].decode("utf-8", "surrogatepass")
