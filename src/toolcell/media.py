"""Media types, guessed from how some bytes begin; and whether bytes are text at all."""

import re

_BEGINNINGS: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b\x08", "application/gzip"),
    (b"BZh", "application/x-bzip2"),
    (b"\xfd7zXZ\0", "application/x-xz"),
    (b"\x28\xb5\x2f\xfd", "application/zstd"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"\x7fELF", "application/x-elf"),
    (b"\0asm", "application/wasm"),
    (b"SQLite format 3\0", "application/vnd.sqlite3"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfe", "text/plain; charset=utf-16"),
    (b"\xfe\xff", "text/plain; charset=utf-16"),
    (b"!<arch>\n", "application/x-archive"),
)
_BINARY = "application/octet-stream"
_TEXT = "text/plain; charset=utf-8"

# Below this length bytes are shown as they are, because they cannot fill a page.
_FEW = 256
# Of text in another encoding with Latin letters, fewer bytes than this part are no UTF-8.
_PART = 5
_LOOKED_AT = 64 * 1024
_NO_TEXT = re.compile(rb"[\x00-\x06\x0e-\x1a\x1c-\x1f]")
_HEADER = 64


def media_type(data: bytes) -> str:
    """Guess the type of what begins so."""
    kind = _by_beginning(data)
    return kind or (_BINARY if _is_garbled(data) else _TEXT)


def is_binary(data: bytes) -> bool:
    """Whether what begins so is nothing to read: of a type that is not, or garbled as UTF-8."""
    # A beginning of letters, such as GIF89a, may be that of a sentence.
    certain = _NO_TEXT.search(data[:_HEADER]) is not None and bool(_by_beginning(data))
    return certain or _is_garbled(data)


def _by_beginning(data: bytes) -> str:
    for beginning, kind in _BEGINNINGS:
        if data.startswith(beginning):
            return kind
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return ""


def _is_garbled(data: bytes) -> bool:
    """Whether a fifth of it can be no text in UTF-8."""
    data = data[:_LOOKED_AT]
    if len(data) < _FEW:
        return False
    wrong = len(_NO_TEXT.findall(data))
    if not data.isascii():
        # Each byte that is no part of a character becomes one lone surrogate.
        text = data.decode("utf-8", "surrogateescape")
        wrong += sum(map(text.count, map(chr, range(0xDC80, 0xDD00))))
    return wrong * _PART > len(data)
