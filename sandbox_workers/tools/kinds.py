"""Kinds of files that are no text: named by how they begin, images with their size in pixels."""

import re
import struct
from typing import BinaryIO

SNIFF = 8192
"""How much of a file's beginning is looked at, in bytes."""

_MOST_SEGMENTS = 1000

# What a file begins with, at which place. Longer and surer marks come first.
_MARKS: tuple[tuple[int, bytes, str], ...] = (
    (0, b"\x89PNG\r\n\x1a\n", "PNG image"),
    (0, b"\xff\xd8\xff", "JPEG image"),
    (0, b"GIF87a", "GIF image"),
    (0, b"GIF89a", "GIF image"),
    (8, b"WEBP", "WebP image"),
    (0, b"II*\0", "TIFF image"),
    (0, b"MM\0*", "TIFF image"),
    (0, b"\0\0\1\0", "icon"),
    (0, b"8BPS", "Photoshop image"),
    (4, b"ftypavif", "AVIF image"),
    (4, b"ftyphei", "HEIF image"),
    (4, b"ftypmif1", "HEIF image"),
    (4, b"ftypM4A", "MPEG-4 audio"),
    (4, b"ftyp", "MPEG-4 video"),
    (8, b"WAVE", "WAV audio"),
    (8, b"AVI ", "AVI video"),
    (0, b"ID3", "MP3 audio"),
    (0, b"\xff\xfb", "MP3 audio"),
    (0, b"\xff\xf3", "MP3 audio"),
    (0, b"\xff\xf2", "MP3 audio"),
    (0, b"OggS", "Ogg media"),
    (0, b"fLaC", "FLAC audio"),
    (0, b"\x1a\x45\xdf\xa3", "Matroska or WebM video"),
    (0, b"%PDF-", "PDF document"),
    (0, b"PK\3\4", "zip archive, or a document or package made as one"),
    (0, b"PK\5\6", "zip archive without members"),
    (0, b"\x1f\x8b", "gzip data"),
    (0, b"BZh", "bzip2 data"),
    (0, b"\xfd7zXZ\0", "xz data"),
    (0, b"\x28\xb5\x2f\xfd", "zstd data"),
    (0, b"\x04\x22\x4d\x18", "lz4 data"),
    (0, b"7z\xbc\xaf\x27\x1c", "7-zip archive"),
    (0, b"Rar!\x1a\x07", "RAR archive"),
    (257, b"ustar", "tar archive"),
    (0, b"!<arch>\n", "ar archive"),
    (0, b"\x7fELF", "ELF executable or library"),
    (0, b"MZ", "Windows executable or library"),
    (0, b"\xcf\xfa\xed\xfe", "Mach-O executable or library"),
    (0, b"\0asm", "WebAssembly module"),
    (0, b"\xca\xfe\xba\xbe", "Java class"),
    (0, b"dex\n", "Dalvik executable"),
    (0, b"SQLite format 3\0", "SQLite database"),
    (0, b"PAR1", "Parquet table"),
    (0, b"ARROW1", "Arrow table"),
    (0, b"\x89HDF\r\n\x1a\n", "HDF5 data"),
    (0, b"\x93NUMPY", "NumPy array"),
    (0, b"PACK", "git pack"),
    (0, b"DIRC", "git index"),
    (0, b"wOFF", "WOFF font"),
    (0, b"wOF2", "WOFF2 font"),
    (0, b"\0\1\0\0\0", "TrueType font"),
    (0, b"OTTO", "OpenType font"),
)
_ALWAYS = (b"%PDF-", b"!<arch>\n")
_SVG = re.compile(
    r"\s*(?:<\?xml[^>]*>\s*|<!--.{0,2000}?-->\s*|<!DOCTYPE[^>]*>\s*)*<svg\b([^>]*)>", re.S
)
_ATTRIBUTE = re.compile(r'\b(width|height|viewBox)\s*=\s*["\']([^"\']*)["\']')


def binary_kind(head: bytes, file: BinaryIO) -> str:
    """Name a file that is no text, with an image's dimensions; "" for what may be text."""
    kind = _marked(head)
    if not kind:
        return "binary data" if b"\0" in head else ""
    size = _dimensions(kind, head, file)
    return f"{kind}, {size[0]} x {size[1]} pixels" if size else kind


def svg_size(head: str) -> str:
    """Name an SVG image, which is text, with its dimensions; "" for any other text."""
    found = _SVG.match(head)
    if found is None:
        return ""
    given = dict(_ATTRIBUTE.findall(found[1]))
    box = given.get("viewBox", "").replace(",", " ").split()
    if "width" in given and "height" in given:
        return f"SVG image, {given['width'][:20]} x {given['height'][:20]}"
    return f"SVG image, view box {' '.join(box)[:80]}" if box else "SVG image"


def _marked(head: bytes) -> str:
    for place, mark, kind in _MARKS:
        if head.startswith(mark, place) and (
            b"\0" in head or not mark.isascii() or mark in _ALWAYS
        ):
            return kind
    if head[:2] == b"BM" and head[14:18] in _BITMAP_HEADERS:
        return "BMP image"
    return ""


_BITMAP_HEADERS = {struct.pack("<I", size) for size in (12, 40, 52, 56, 64, 108, 124)}


def _dimensions(kind: str, head: bytes, file: BinaryIO) -> tuple[int, int] | None:
    try:
        if kind == "JPEG image":
            return _jpeg(file)
        reader = _READERS.get(kind)
        return reader(head) if reader else None
    except (struct.error, IndexError, OSError):  # it ends before it says so
        return None


def _png(head: bytes) -> tuple[int, int]:
    width, height = struct.unpack_from(">II", head, 16)
    return width, height


def _gif(head: bytes) -> tuple[int, int]:
    width, height = struct.unpack_from("<HH", head, 6)
    return width, height


def _bmp(head: bytes) -> tuple[int, int]:
    old = head[14:18] == b"\x0c\0\0\0"
    width, height = struct.unpack_from("<HH" if old else "<ii", head, 18)
    return width, abs(height)  # negative where the rows go from top to bottom


def _webp(head: bytes) -> tuple[int, int] | None:
    form = head[12:16]
    if form == b"VP8X":
        return (
            int.from_bytes(head[24:27], "little") + 1,
            int.from_bytes(head[27:30], "little") + 1,
        )
    if form == b"VP8L":
        bits = struct.unpack_from("<I", head, 21)[0]
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if form == b"VP8 ":
        width, height = struct.unpack_from("<HH", head, 26)
        return width & 0x3FFF, height & 0x3FFF
    return None


_READERS = {"PNG image": _png, "GIF image": _gif, "BMP image": _bmp, "WebP image": _webp}
# Start-of-frame segments; C4, C8 and CC are tables that share their numbers.
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


def _jpeg(file: BinaryIO) -> tuple[int, int] | None:
    place = 2
    for _ in range(_MOST_SEGMENTS):
        file.seek(place)
        segment = file.read(9)
        if segment[0] != 0xFF:
            return None
        if segment[1] == 0xFF:  # padding
            place += 1
            continue
        if segment[1] in _FRAMES:
            height, width = struct.unpack_from(">HH", segment, 5)
            return width, height
        place += 2 + int(struct.unpack_from(">H", segment, 2)[0])
    return None
