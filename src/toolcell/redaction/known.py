"""Known values: a secret whose text is known, in the forms in which programs print it."""

import base64
import json
import re
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

from toolcell.errors import PolicyError

SHORTEST = 6
"""Least length of a known value, in bytes: a shorter one stands in ordinary text by chance."""

PIECE = 4096
"""A longer form is looked for in pieces of this many bytes, so that a cut leaves less of it."""

_PERCENT = re.compile("%[0-9A-F]{2}")
# What encodeURI, encodeURIComponent, curl and Python leave as it is.
_SAFE = ("", "/", "!'()*", "/!'()*")


def forms(name: str, value: str) -> set[bytes]:
    """Return every text that stands for a value: itself, escaped for JSON or a URL, in base64.

    Base64 is found wherever the value stands in what was encoded (at each of the three
    alignments), as far as it is the value's alone, but not when it is wrapped into lines.
    Raises PolicyError, which names the variable, for a value that is too short.
    """
    raw = value.encode("utf-8", "surrogateescape")
    if len(raw) < SHORTEST:
        raise PolicyError(
            f"the value of {name} cannot be redacted: it has {len(raw)} bytes, and whatever has "
            f"fewer than {SHORTEST} is found in ordinary text too; give {name} a longer value, "
            "or take it out of the policy's list of secrets"
        )
    found = {raw, *_escaped(value), *_percent_encoded(raw), *_base64(raw)}
    return {piece for form in found for piece in _pieces(form)}


def _escaped(value: str) -> Iterator[bytes]:
    for ascii_only in (True, False):
        text = json.dumps(value, ensure_ascii=ascii_only)[1:-1]
        yield text.encode("utf-8", "surrogateescape")


def _percent_encoded(raw: bytes) -> Iterator[bytes]:
    for text in {quote(raw, safe=safe) for safe in _SAFE} | {quote_plus(raw)}:
        yield text.encode()
        yield _PERCENT.sub(lambda found: found[0].lower(), text).encode()


def _base64(raw: bytes) -> Iterator[bytes]:
    whole = base64.b64encode(raw)
    yield from _both_alphabets(whole)
    yield from _both_alphabets(whole.rstrip(b"="))
    for before, foreign in ((0, 0), (1, 2), (2, 3)):
        text = base64.b64encode(bytes(before) + raw)
        its_own = (before + len(raw)) * 8 // 6  # a last digit may be shared with what follows
        yield from _both_alphabets(text[foreign:its_own])


def _both_alphabets(text: bytes) -> Iterator[bytes]:
    yield text
    yield text.translate(bytes.maketrans(b"+/", b"-_"))


def _pieces(form: bytes) -> Iterator[bytes]:
    for start in range(0, len(form) - PIECE, PIECE):
        yield form[start : start + PIECE]
    yield form[-PIECE:]
