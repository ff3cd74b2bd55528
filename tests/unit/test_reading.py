"""Claims of read_file: lines, large files, encodings, and what is named instead of shown."""

import gzip
import io
import os
import re
import sqlite3
import struct
import subprocess
import tracemalloc
import zipfile
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox_workers.tools import ToolError, pages, reading
from sandbox_workers.tools.encoding import UTF8
from sandbox_workers.tools.pages import read_page
from sandbox_workers.tools.reading import read_file
from toolcell.legible import OutputBudget
from toolcell.normalizer.truncation import shorten_text


@pytest.fixture(autouse=True)
def workspace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("one\ntwo\nthree\n")
    return tmp_path


@pytest.mark.parametrize(
    ("start", "end", "text"),
    [
        (1, None, "one\ntwo\nthree\n"),
        (1, 3, "one\ntwo\nthree\n"),
        (2, 2, "two\n[line 2 of 3]\n"),
        (1, 2, "one\ntwo\n[lines 1 to 2 of 3]\n"),
        (3, None, "three\n[line 3 of 3]\n"),
        (2, 99, "two\nthree\n[lines 2 to 3 of 3; end_line=99 is past the end]\n"),
        (1, 99, "one\ntwo\nthree\n[lines 1 to 3 of 3; end_line=99 is past the end]\n"),
    ],
)
def test_lines_count_from_one_with_both_ends_included_and_say_of_how_many(start, end, text):
    assert read_file("a.txt", start, end) == text


def test_of_lines_that_are_not_counted_it_is_said_that_more_follow(monkeypatch):
    monkeypatch.setattr(pages, "MOST_COUNTED", 8)
    monkeypatch.setattr(pages, "_PIECE", 8)
    assert read_file("a.txt", 1, 2) == "one\ntwo\n[lines 1 to 2; more follow]\n"
    assert read_file("a.txt", 1, 3) == "one\ntwo\nthree\n", "the control: here it ends"
    monkeypatch.setattr(reading, "ROOM", 4)
    Path("a.txt").write_text("one\n" * 20)
    assert read_file("a.txt") == "one\n[line 1 of 80 bytes; read on with start_line=2]\n"


def test_lines_have_their_numbers_on_request():
    assert read_file("a.txt", 2, line_numbers=True) == (
        "     2\ttwo\n     3\tthree\n[lines 2 to 3 of 3]\n"
    )


def test_lines_that_are_not_there_are_told():
    with pytest.raises(ToolError, match=r"a\.txt has 3 lines; line 4 is past its end"):
        read_file("a.txt", 4)
    with pytest.raises(ToolError, match="end_line 1 is before start_line 2"):
        read_file("a.txt", 2, 1)


@pytest.mark.parametrize("mark", ["\f", "\x85", "\u2028", "\x0b", "\x1c"], ids=ascii)
def test_lines_are_counted_as_editors_and_grep_count_them(mark):
    Path("marked").write_text(f"one{mark}still one\ntwo\n")
    assert read_file("marked", 2, 2) == "two\n[line 2 of 2]\n"


def test_a_last_line_without_an_end_is_a_line():
    Path("open").write_text("one\ntwo")
    assert read_file("open") == "one\ntwo"
    assert read_file("open", 2) == "two\n[line 2 of 2]\n"


def test_an_empty_file_is_said_to_be_empty():
    Path("empty").touch()
    assert read_file("empty") == "[empty is empty]\n"


def parted(answer):
    """An answer's lines, and the note on its last one."""
    shown, _, note = answer.rstrip("\n").rpartition("\n")
    return f"{shown}\n", note


def test_of_a_large_file_the_start_is_shown_and_how_to_read_on():
    Path("large").write_text("".join(f"line {n}\n" for n in range(1, 60_001)))
    size = Path("large").stat().st_size
    shown, note = parted(read_file("large"))
    last = shown.count("\n")
    how = f"{size:,} bytes; read on with start_line={last + 1}"
    assert note == f"[lines 1 to {last:,} of 60,000 lines, {how}]"
    assert reading.ROOM - 100 < len(shown) <= reading.ROOM
    assert read_file("large", last + 1, last + 1).startswith(f"line {last + 1}\n[line {last + 1:,}")


def test_what_fits_on_a_page_is_shown_whole_and_a_line_more_is_not():
    Path("fits").write_text("x" * 99 + "\n")
    text = Path("fits").read_text() * (reading.ROOM // 100)
    Path("fits").write_text(text)
    assert read_file("fits") == text
    Path("fits").write_text(text + "\n")
    assert parted(read_file("fits")) == (
        text, "[lines 1 to 280 of 281 lines, 28,001 bytes; read on with start_line=281]"
    )  # fmt: skip


def bad_bytes(count):
    return b"".join(b"caf\xe9 %d \xff\xff\n" % n for n in range(count))


GROWING = {
    "text": "".join(f"line {n}\n" for n in range(20_000)).encode(),
    "CRLF": b"\r\n" * 50_000,
    "line ends": b"\n" * 50_000,
    "no UTF-8": bad_bytes(6000),
    "control characters": b"\x01\x02\x7f\n" * 9000,
    "a lone CR": b"a\rb\n" * 9000,
    "what turns the text around": "a\u202eb\n".encode() * 9000,
    "UTF-16": ("\ufeff" + "日本語\n" * 9000).encode("utf-16-le"),
    "UTF-16 that is not": b"\xff\xfe" + "a\n".encode("utf-16-le") * 9000 + b"\0\xd8" * 9000,
}


@pytest.mark.parametrize("numbers", [False, True])
@pytest.mark.parametrize("data", GROWING.values(), ids=GROWING)
def test_pages_join_without_a_gap_and_no_result_cuts_them(data, numbers):
    Path("large").write_bytes(data)
    text = data.decode("utf-16" if data[:2] == b"\xff\xfe" else "utf-8", "replace")
    lines = text.replace("\r\n", "\n").split("\n")
    start, seen = 1, 0
    while start:
        answer = read_file("large", start, line_numbers=numbers)
        assert shorten_text(answer, OutputBudget())[1] is None
        shown, note = parted(answer)
        page = shown.removesuffix("\n").split("\n")
        expected = lines[seen : seen + len(page)]
        if "the start of" in note:
            page, expected = [page[0][:900]], [f"{expected[0]}"[:900]]
        numbered = [f"{n:6}\t{line}" for n, line in enumerate(expected, start)]
        assert [line[:900] for line in page] == [
            line[:900] for line in (numbered if numbers else expected)
        ]
        seen += len(page)
        on = re.search(r"start_line=(\d+)", note)
        assert on is None or int(on[1]) == start + len(page)
        start = int(on[1]) if on else 0
    assert seen == len(lines) - (lines[-1] == "")


def test_a_range_of_a_huge_file_is_read_without_the_rest():
    with Path("huge").open("wb") as file:
        for _ in range(64):
            file.write(b"a line of some length\n" * 50_000)
    tracemalloc.start()
    try:
        assert read_file("huge", 3_000_000, 3_000_001) == (
            "a line of some length\n" * 2 + "[lines 3,000,000 to 3,000,001 of 3,200,000]\n"
        )
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * 1024**2 < Path("huge").stat().st_size


@pytest.mark.parametrize("letter", ["x", "é", "🎉"])
def test_a_line_without_end_is_cut_between_characters(letter):
    Path("long").write_text(letter * 500_000 + "\nnext\n")
    text = read_file("long")
    shown, _, note = text.rstrip("\n").rpartition("\n")
    assert set(shown) == {letter}
    assert reading.ROOM - 4 < len(shown.encode()) <= reading.ROOM
    assert "the start of line 1 of 2 lines" in note
    assert "start_line=2" in note
    assert read_file("long", 2) == "next\n[line 2 of 2]\n"


@pytest.mark.parametrize("name", ["long", "a file's"])
def test_the_command_that_is_named_for_a_long_line_goes_on_where_the_page_ends(name):
    text = "".join(f"{n}é," for n in range(9000))
    Path(name).write_text(f"first\n{text}\n")
    shown, note = parted(read_file(name, 2))
    command = re.search(r"such as: (.*)\]", note)[1]
    more = subprocess.run(["/bin/sh", "-c", command], capture_output=True, check=True, timeout=20)
    joined = shown.removesuffix("\n").encode() + more.stdout.removesuffix(b"\n")
    assert text.encode().startswith(joined)
    assert len(joined) == 2 * len(shown.encode()) - 2


@given(
    st.text(st.sampled_from("ab\né"), max_size=60),
    st.integers(1, 12),
    st.integers(0, 8),
    st.integers(1, 40),
)
def test_a_page_is_what_slicing_the_lines_gives(text, first, length, limit):
    data, last = text.encode(), first + length
    lines = text.splitlines(keepends=True)
    page = read_page(io.BytesIO(data), UTF8, first, last, limit, len(data))
    whole = "".join(lines[first - 1 : last])
    assert page.total == len(lines)
    if len(whole.encode()) <= limit:
        assert (page.text, page.cut) == (whole, False)
    else:
        assert page.cut
        assert whole.startswith(page.text)
        assert page.in_line or page.text.endswith("\n")


@pytest.mark.parametrize("codec", ["utf-8-sig", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_a_byte_order_mark_says_the_encoding_and_is_no_text(codec):
    mark = "" if codec == "utf-8-sig" else "\ufeff"
    Path("marked").write_bytes(f"{mark}one é\ntwo 🎉\n".encode(codec))
    text = read_file("marked")
    assert text.startswith("one é\ntwo 🎉\n[UTF-")
    assert text.endswith("with a byte-order mark]\n")
    assert read_file("marked", 2, 2).startswith("two 🎉\n[")


def test_text_that_is_not_utf8_is_read_and_said_to_be_so():
    Path("latin").write_bytes(b"caf\xe9 \xff\n\xef\xbf\xbd\n")
    assert read_file("latin") == (
        "caf\ufffd \ufffd\n\ufffd\n[2 parts are not valid UTF-8 and shown as \ufffd]\n"
    )


def test_carriage_returns_at_line_ends_are_said_and_not_shown():
    Path("crlf").write_bytes(b"one\r\ntwo\r\n")
    assert read_file("crlf") == "one\ntwo\n[lines end in CRLF, shown as LF]\n"
    Path("mixed").write_bytes(b"one\r\ntwo\n")
    assert read_file("mixed") == "one\ntwo\n[1 of these lines end in CRLF, shown as LF]\n"


def _png(width, height):
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunk = b"IHDR" + head
    return (
        b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + chunk + struct.pack(">I", zlib.crc32(chunk))
    )


def _jpeg(width, height):
    exif = b"\xff\xe1" + struct.pack(">H", 60_002) + b"\0" * 60_000
    frame = b"\xff\xff\xc2" + struct.pack(">HBHHB", 11, 8, height, width, 1) + b"\1\1\0"
    return b"\xff\xd8" + exif + exif + frame + b"\xff\xd9"


def _webp(form, body):
    return (
        b"RIFF"
        + struct.pack("<I", len(body) + 12)
        + b"WEBP"
        + form
        + struct.pack("<I", len(body))
        + body
    )


def _bmp(width, height):
    return b"BM" + b"\0" * 12 + struct.pack("<Iii", 40, width, height) + b"\0" * 28


def _zip():
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        archive.writestr("a", "b")
    return held.getvalue()


BINARY = {
    "PNG image, 640 x 480 pixels": _png(640, 480),
    "JPEG image, 800 x 600 pixels": _jpeg(800, 600),
    "GIF image, 32 x 16 pixels": b"GIF89a" + struct.pack("<HH", 32, 16) + b"\0" * 20,
    "WebP image, 100 x 50 pixels": _webp(b"VP8X", b"\0" * 4 + b"\x63\0\0\x31\0\0"),
    "WebP image, 10 x 20 pixels": _webp(
        b"VP8L", b"\x2f" + struct.pack("<I", 9 | 19 << 14) + b"\0" * 8
    ),
    "WebP image, 7 x 9 pixels": _webp(
        b"VP8 ", b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 7, 9) + b"\0"
    ),
    "BMP image, 5 x 6 pixels": _bmp(5, -6),
    "PDF document": b"%PDF-1.7\n%text only\n",
    "gzip data": gzip.compress(b"x"),
    "zip archive, or a document or package made as one": _zip(),
    "ELF executable or library": b"\x7fELF\x02\x01\x01" + b"\0" * 9,
    "SQLite database": b"SQLite format 3\0" + b"\0" * 80,
    "WebAssembly module": b"\0asm\1\0\0\0",
    "Java class": b"\xca\xfe\xba\xbe\0\0\0\x41",
    "MP3 audio": b"ID3\x04\0\0\0\0\0\0",
    "tar archive": b"name" + b"\0" * 253 + b"ustar\x0000",
    "binary data": b"two\n\0\1",
}


@pytest.mark.parametrize(("kind", "data"), BINARY.items(), ids=BINARY)
def test_what_is_no_text_is_named_with_its_size(kind, data):
    Path("file").write_bytes(data)
    assert read_file("file") == f"[file is not text: {kind}, {len(data):,} bytes]"


@pytest.mark.parametrize("kind", [kind for kind in BINARY if "image" in kind])
def test_an_image_that_is_cut_short_is_named_all_the_same(kind):
    data = BINARY[kind]
    for length in range(14, min(len(data), 64)):
        Path("file").write_bytes(data[:length])
        assert read_file("file").startswith("[file is not text: ")


@given(st.binary(max_size=200), st.sampled_from([b"", *(data[:30] for data in BINARY.values())]))
def test_no_bytes_break_the_reading(data, start):
    Path("any").write_bytes(start + data)
    assert isinstance(read_file("any"), str)


def test_text_that_begins_like_a_format_is_text():
    for text in ("BM is short for bitmap\n", "PACK your bags\n", "MZ\n", "ID3 is a tag\n", "BZh\n"):
        Path("file").write_text(text)
        assert read_file("file") == text


def test_a_real_database_is_named(workspace):
    with sqlite3.connect(workspace / "data.db") as database:
        database.execute("create table t (x)")
    database.close()
    assert "SQLite database" in read_file("data.db")


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ('<svg xmlns="x" width="24" height="12px"><g/></svg>\n', "[SVG image, 24 x 12px]"),
        (
            '<?xml version="1.0"?>\n<!-- a -->\n<svg viewBox="0 0 8 9"/>\n',
            "[SVG image, view box 0 0 8 9]",
        ),
    ],
)
def test_an_svg_image_is_shown_and_named(text, note):
    Path("image.svg").write_text(text)
    assert read_file("image.svg") == f"{text}{note}\n"


def test_a_file_that_may_not_be_read_is_told(workspace):
    Path("closed").write_text("x")
    Path("closed").chmod(0)
    if os.geteuid() == 0:
        pytest.skip("root reads anything")
    with pytest.raises(ToolError, match="permission denied"):
        read_file("closed")
