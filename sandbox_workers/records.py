"""Records: what a session's host says on the standard output of its cell.

    record := kind (1 byte) number (4 bytes) length (4 bytes, of the body) body

Numbers are big endian. The body is output of the call of that number, as the tool wrote it, or
what `outbox` sends of the files that it left, or one JSON object. All of it is one stream in one
order, so that what ends a call comes after all that the call wrote. As with frames, everything
wrong with a peer's bytes is a `WireError`.
"""

import struct
from typing import Any, NamedTuple

from sandbox_workers import wire

STDOUT, STDERR, MESSAGE, FILES = 1, 2, 3, 4

MAX_BODY = 256 * 1024
"""Largest body of a record, in bytes."""

_KINDS = (STDOUT, STDERR, MESSAGE, FILES)
_HEAD = struct.Struct(">BII")


class Record(NamedTuple):
    """One record; `number` is the call's, and 0 for a message."""

    kind: int
    number: int
    body: bytes


def head(kind: int, number: int, length: int) -> bytes:
    """Return what stands before a body."""
    return _HEAD.pack(kind, number, length)


def message(value: dict[str, Any]) -> bytes:
    """Return a whole record that holds a JSON object."""
    body = wire.encode(value)
    return head(MESSAGE, 0, len(body)) + body


class RecordReader:
    """Bytes in, whole records out; does no I/O, and buffers no more than one record."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> None:
        """Append bytes as they were read, of any size."""
        self._buffer += data

    def next(self) -> Record | None:
        """Return the next whole record, or None until more bytes are fed; raises WireError."""
        if len(self._buffer) < _HEAD.size:
            return None
        kind, number, length = _HEAD.unpack_from(self._buffer)
        if kind not in _KINDS or length > MAX_BODY:
            raise wire.WireError(f"no record: kind {kind}, {length} bytes")
        end = _HEAD.size + length
        if len(self._buffer) < end:
            return None
        body = bytes(memoryview(self._buffer)[_HEAD.size : end])
        del self._buffer[:end]
        return Record(kind, number, body)
