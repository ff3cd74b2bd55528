"""Bytes to text: UTF-8 with replacement, and no cut inside a character."""


def whole_start(data: bytes, limit: int) -> bytes:
    """Return the longest start of at most `limit` bytes that does not cut a character."""
    if len(data) <= limit:
        return data
    end = limit
    # A UTF-8 character is at most four bytes; what looks longer is not UTF-8 anyway.
    while end > max(0, limit - 3) and _continues(data[end]):
        end -= 1
    return data[:end] if not _continues(data[end]) else data[:limit]


def whole_end(data: bytes, limit: int) -> bytes:
    """Return the longest end of at most `limit` bytes that does not cut a character."""
    if len(data) <= limit:
        return data
    return without_split_start(data[len(data) - limit :])


def without_split_start(data: bytes) -> bytes:
    """Drop what is left at the start of a character whose first byte is gone."""
    for start in range(min(4, len(data))):
        if not _continues(data[start]):
            return data[start:]
    # Four in a row are no character of UTF-8; fewer are the rest of one.
    return data if len(data) >= 4 else b""


def without_split_end(data: bytes) -> bytes:
    """Drop the start of a character whose rest is gone from the end."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if not _continues(byte):
            return data[:-back] if _length(byte) > back else data
    return data


def decode(data: bytes) -> str:
    """Decode UTF-8; each invalid sequence becomes U+FFFD."""
    return data.decode("utf-8", errors="replace")


def _continues(byte: int) -> bool:
    return byte & 0xC0 == 0x80


def _length(first: int) -> int:
    if first >= 0xF0:
        return 4
    if first >= 0xE0:
        return 3
    return 2 if first >= 0xC0 else 1
