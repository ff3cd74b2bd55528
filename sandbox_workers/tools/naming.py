"""Names as a model should see them: one line each, and no two of them alike.

A name is any bytes but NUL and the slash. One with characters that nobody sees or that break
the line, with bytes that are not UTF-8, or with what could be taken for this quoting, is put
in quotes and written with escapes: \\xE9 is a byte, \\u202e a character.
"""

_ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def shown(path: str) -> str:
    """Return a path as it stands, or quoted where it would mislead."""
    plain = path.isprintable() and not set('"\\') & set(path)
    if plain and path == path.strip() and "  " not in path and " -> " not in path:
        return path
    return f'"{"".join(map(_escaped, path))}"'


def _escaped(character: str) -> str:
    code = ord(character)
    if character in _ESCAPES:
        return _ESCAPES[character]
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02X}"
    if character.isprintable():
        return character
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
