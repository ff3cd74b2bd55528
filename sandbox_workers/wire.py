"""Frames: one JSON object behind a four-byte length, the same codec at both ends.

    frame := length (4 bytes, big endian, of the body) body (UTF-8 JSON object)

A peer may be hostile, so decoding is strict: a cap on size and on depth (checked
before the parser recurses), and no NaN or Infinity, no duplicate key, no lone
surrogate, no number that overflows. Everything wrong with a peer's bytes is a
`WireError`; nothing else leaves this module.
"""

import json
import math
import re
from typing import Any

MAX_FRAME = 16 * 1024 * 1024
"""Largest body of a frame, in bytes."""

MAX_REPLY = 8 * 1024 * 1024
"""Largest body of a frame from a worker: the controller's event loop decodes it."""

MAX_DEPTH = 64
"""Deepest nesting of arrays and objects in a document."""

MAX_VALUES = 500_000
"""Most values in a document: each costs many times its text when it is decoded."""

_LENGTH = 4
# Strings are matched first, so that a bracket inside one does not count. The quantifiers
# are possessive and the closing quote optional: no input makes the scan go back.
_STRUCTURE = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")


class WireError(ValueError):
    """A peer's bytes are not a frame or not strict JSON; the message says which rule broke."""


def encode(value: Any) -> bytes:
    """Turn a value into compact UTF-8 JSON; raises WireError where it cannot cross the border."""
    try:
        return json.dumps(
            value, ensure_ascii=False, allow_nan=False, separators=(",", ":")
        ).encode()
    except UnicodeEncodeError:
        raise WireError("a string holds a lone surrogate, which UTF-8 cannot carry") from None
    except RecursionError:
        raise WireError(f"nested deeper than {MAX_DEPTH} levels") from None
    except (TypeError, ValueError) as error:
        raise WireError(f"not JSON: {error}") from None


def decode(data: bytes | str, max_depth: int = MAX_DEPTH) -> Any:
    """Parse strict JSON (RFC 8259, with the limits above); raises WireError."""
    try:
        text = data if isinstance(data, str) else data.decode()
    except UnicodeDecodeError as error:
        raise WireError(f"not UTF-8 at byte {error.start}") from None
    _check_depth(text, max_depth)
    _check_values(text)
    try:
        value = json.loads(
            text,
            object_pairs_hook=_unique,
            parse_constant=_refuse_constant,
            parse_float=_finite,
        )
    except WireError:
        raise
    except RecursionError:
        raise WireError(f"nested deeper than {MAX_DEPTH} levels") from None
    except ValueError as error:
        raise WireError(f"not JSON: {error}") from None
    _check_surrogates(text, value)
    return value


def frame(value: Any, limit: int = MAX_FRAME) -> bytes:
    """Encode a value as one frame; raises WireError if its body is over `limit` bytes."""
    body = encode(value)
    if len(body) > limit:
        raise WireError(f"a frame of {len(body)} bytes, over the limit of {limit}")
    return len(body).to_bytes(_LENGTH, "big") + body


class FrameReader:
    """Bytes in, whole frames out; does no I/O of its own.

    A length over the cap is refused as soon as it is read, so a peer cannot make
    the reader buffer more than one frame.
    """

    def __init__(self, limit: int = MAX_FRAME) -> None:
        self._limit = limit
        self._buffer = bytearray()

    def feed(self, data: bytes) -> None:
        """Append bytes as they were read, of any size."""
        self._buffer += data

    def next(self) -> dict[str, Any] | None:
        """Return the next whole frame, or None until more bytes are fed; raises WireError."""
        if len(self._buffer) < _LENGTH:
            return None
        size = int.from_bytes(self._buffer[:_LENGTH], "big")
        if size > self._limit:
            raise WireError(f"a frame of {size} bytes, over the limit of {self._limit}")
        if len(self._buffer) < _LENGTH + size:
            return None
        body = bytes(self._buffer[_LENGTH : _LENGTH + size])
        del self._buffer[: _LENGTH + size]
        value = decode(body)
        if not isinstance(value, dict):
            raise WireError(f"a frame holds a JSON object, not {type(value).__name__}")
        return value

    def close(self) -> None:
        """Say that the stream ended; raises WireError where it ended inside a frame."""
        if self._buffer:
            raise WireError(f"the stream ended inside a frame, after {len(self._buffer)} bytes")


def _check_depth(text: str, limit: int) -> None:
    if text.count("[") + text.count("{") <= limit:
        return
    depth = 0
    for match in _STRUCTURE.finditer(text):
        mark = match.group()
        if mark in "[{":
            depth += 1
            if depth > limit:
                raise WireError(f"nested deeper than {limit} levels")
        elif mark in "]}":
            depth -= 1


def _check_values(text: str) -> None:
    """Count values by what begins or separates them; looks into strings only where it must."""
    if _marks(text) > MAX_VALUES and _marks(_STRING.sub("", text)) > MAX_VALUES:
        raise WireError(f"more than {MAX_VALUES:,} values")


def _marks(text: str) -> int:
    return text.count(",") + text.count("[") + text.count("{")


def _check_surrogates(text: str, value: Any) -> None:
    # In decoded UTF-8 a surrogate can only come from an escape; a str may hold one raw.
    if "\\u" in text or _SURROGATE.search(text):
        encode(value)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise WireError(f"the key {key!r} stands twice in one object")
            seen.add(key)
    return result


def _refuse_constant(name: str) -> Any:
    raise WireError(f"{name} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise WireError(f"the number {text[:40]} is out of range")
    return value
