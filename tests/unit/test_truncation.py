"""Claims of `toolcell.normalizer.truncation`: exact counts, whatever is shown, folded or kept."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcell.cells.capture import StreamCapture
from toolcell.legible import OutputBudget, clean, legible
from toolcell.model import Captured, Kept
from toolcell.normalizer.truncation import shorten, shorten_text
from toolcell.redaction import Redactor

from .test_legible import PIECES, UNSEEN

SECRET = "correct-horse-battery-staple"
HIDING = Redactor({"KEY": SECRET})
MARKERS = re.compile(
    r"\[\.\.\. [0-9,]+ bytes (?:of this line left out \.\.\.\]|\([0-9,]+ lines\) left out[^\n]*\n)"
    r"|\[\.\.\. long lines [^\n]*\n"
)
SOUP = st.lists(
    st.sampled_from([*PIECES, b"\n", b"word " * 9, b"x" * 90, b"\n\n"]), max_size=60
).map(b"".join)


def captured(data, head=None, tail=0):
    capture = StreamCapture(len(data) if head is None else head, tail)
    capture.feed(data)
    return capture.result()


def keeping(data):
    return Kept(handle="out-kept", size=len(data), sha256="5ha")


def shown_bytes(text):
    return sum(len(part.encode()) for part in MARKERS.split(text))


LINES = "".join(f"line {number:05}\n" for number in range(5000))


def test_lines_are_a_budget_of_their_own():
    text, cut = shorten_text(LINES, OutputBudget(lines=9))
    head, tail = MARKERS.split(text)
    assert (head.count("\n"), tail.count("\n")) == (3, 6)
    assert (cut.omitted_lines, cut.omitted_bytes) == (5000 - 9, (5000 - 9) * 11)


@pytest.mark.parametrize("tokens", [0, 1, 50, 1000, 100_000])
def test_tokens_are_a_budget_of_their_own_and_any_counter_counts_them(tokens):
    def counter(text):
        return len(text.split())

    text, cut = shorten_text(LINES, OutputBudget(bytes=10**6, tokens=tokens, counter=counter))
    assert counter(text) <= max(tokens, 9), "what says that something is left out comes on top"
    assert (cut is None) == (tokens == 100_000)
    if cut:
        assert shown_bytes(text) + cut.omitted_bytes == len(LINES)
        assert tokens < 50 or counter(text) > tokens * 3 // 4


def test_a_counter_that_is_never_content_is_asked_only_so_often():
    asked = []
    shorten_text(LINES, OutputBudget(tokens=10, counter=lambda text: asked.append(1) or 11))
    assert len(asked) < 300


def test_long_lines_are_folded_where_not_all_fits_and_the_short_ones_around_them_stay():
    text = "before\n" + "a" * 20_000 + "z" * 20_000 + "\nafter\n"
    shown, cut = shorten_text(text, OutputBudget(line_bytes=1000))
    assert shown.startswith("before\naaa")
    assert shown.endswith("zzz\nafter\n")
    assert shown_bytes(shown) + cut.omitted_bytes == len(text)
    assert cut.omitted_lines == 0
    assert shorten_text(text, 50_000) == (text, None)


@pytest.mark.parametrize("size", [32_769, 40_000, 262_144, 300_000])
def test_one_line_alone_is_shown_by_its_two_ends(size):
    shown, cut = shorten(captured(b"x" * size, 131_072, 131_072), OutputBudget())
    head, tail = MARKERS.split(shown)
    assert (head.count("x"), tail.count("x")) == (10_922, 21_846)
    assert cut.omitted_bytes == size - 32_768


def test_many_long_lines_are_folded_so_that_more_of_them_are_seen():
    text = "".join(f"{number:03}{'x' * 9996}\n" for number in range(100))
    shown, cut = shorten_text(text, OutputBudget(line_bytes=500))
    assert len(re.findall("^[0-9]{3}x", shown, re.M)) > 60
    assert shown_bytes(shown) + cut.omitted_bytes == len(text) == cut.total_bytes
    assert shown.count("\n") - 1 + cut.omitted_lines == 100


@given(
    st.lists(st.text(st.sampled_from("abcé😀 "), max_size=200), max_size=30).map("\n".join),
    st.integers(0, 900),
    st.integers(0, 30),
    st.integers(0, 200),
)
def test_what_is_shown_and_what_is_left_out_add_up_in_bytes_and_lines(text, size, lines, line):
    budget = OutputBudget(bytes=size, lines=lines, line_bytes=line)
    shown, cut = shorten_text(text, budget)
    if cut is None:
        assert shown == text
        return
    total = len(text.encode())
    assert 0 <= shown_bytes(shown) + cut.omitted_bytes - total <= 1, "a marker's own line end"
    assert "\ufffd" not in shown
    parts = [part for part in MARKERS.split(shown) if part]
    assert all(part.strip("\n") in text for part in parts)


@given(SOUP, st.integers(0, 300), st.integers(0, 300), st.integers(20, 500), st.booleans())
def test_any_bytes_in_any_capture_are_clean_and_counted(data, head, tail, size, ended):
    given = captured(data, head, tail)
    shown, cut = shorten(given, OutputBudget(bytes=size, line_bytes=60), HIDING, ended=ended)
    assert not UNSEEN.search(shown)
    if cut is None:
        assert given.left_out == 0
        assert len(clean(data).text) <= size
        return
    assert given.left_out <= cut.omitted_bytes <= cut.total_bytes == len(data)
    assert 0 <= cut.omitted_lines <= cut.total_lines == data.count(b"\n")


@pytest.mark.parametrize(
    "split", ["\x1b[0m", "\x1b[1;31m", "\x1b]8;;x\x07", "_\b", "\x07", "\x9bK"]
)
@pytest.mark.parametrize("budget", [100, 1000])
def test_a_secret_is_found_where_a_sequence_goes_through_it(split, budget):
    for at in range(1, len(SECRET)):
        data = f"{'.' * 200}\nkey {SECRET[:at]}{split}{SECRET[at:]} end\n".encode()
        shown = shorten(captured(data), budget, HIDING)[0]
        assert SECRET[-6:] not in shown
        assert SECRET[:6] not in shown
        bare = shorten(captured(data), budget)[0]
        assert SECRET in bare, "without a redactor, it shows"


def test_a_secret_that_is_typed_over_another_text_is_found():
    data = f"{'_' * len(SECRET)}\r{SECRET}\n".encode()
    assert shorten(captured(data), 1000, HIDING)[0] == "[redacted: KEY]\n"


def test_the_page_says_where_all_of_it_is_and_from_which_line_to_read_on():
    text, cut = shorten_text(LINES, 300, keep=keeping)
    assert '; to read it: read_output {"handle": "out-kept", "start_line": 10} ...]' in text
    assert text.startswith(LINES[: 9 * 11] + "[...")
    assert (cut.handle, cut.stored_bytes, cut.not_stored) == ("out-kept", len(LINES), "")


def test_the_page_says_what_could_not_be_kept():
    def in_part(data):
        return Kept(handle="out-kept", size=1000, lost="there is no room")

    def not_at_all(data):
        return Kept(handle="out-kept", size=0, lost="the disk is full")

    text, cut = shorten_text(LINES, 300, keep=in_part)
    assert "only its first 1,000 bytes are kept: there is no room" in text
    text, cut = shorten_text(LINES, 300, keep=not_at_all)
    assert "it could not be kept: the disk is full" in text
    assert cut.handle is None
    assert "out-kept" not in text


def test_nothing_is_kept_of_what_is_shown_in_full():
    kept = []
    assert shorten_text("all of it\n", 300, keep=kept.append) == ("all of it\n", None)
    assert kept == []


PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8


@pytest.mark.parametrize("data", [PNG, bytes(range(256)) * 8, b"\x7fELF\2\1\1" + bytes(100)])
def test_binary_output_is_named_and_not_dumped(data):
    text, cut = shorten(captured(data), 10_000, keep=keeping)
    assert text.startswith(f"[binary output, {len(data):,} bytes, not shown: ")
    assert ("image/png" in text) == (data is PNG)
    assert re.search("sha256 [0-9a-f]{64}; kept as out-kept]$", text)
    assert (cut.omitted_bytes, cut.omitted_lines) == (len(data), data.count(b"\n"))


@pytest.mark.parametrize("text", ["GIF89a is a format\n", "BZh\n", "%PDF-1.7 says the header\n"])
def test_a_sentence_about_a_format_is_no_file_of_it(text):
    assert shorten(captured(text.encode()), 1000) == (text, None)


@pytest.mark.parametrize(
    "data",
    [
        "die größe und das maß aller dinge\n".encode("latin-1") * 50,
        "日本語 ключ 🔑\n".encode() * 50,
        b"a\0b\0c\n",
        b"name\0" * 100 + b"longer name of a file\0" * 100,
        b"\x1b[31mred\x1b[0m\n" * 100,
    ],
)
def test_text_with_a_few_odd_bytes_is_shown(data):
    assert "binary output" not in shorten(captured(data), 10_000)[0]


def test_progress_that_was_overwritten_is_one_line():
    data = b"".join(b"\r%3d%%" % done for done in range(101)) + b"\ndone\n"
    assert shorten(captured(data), 300) == ("100%\ndone\n", None)


def test_what_is_cut_is_counted_as_the_tool_wrote_it():
    data = b"\x1b[32mok\x1b[0m a test\r\n" * 1000
    text, cut = shorten(captured(data), 300)
    shown = text.count("ok a test\n")
    assert cut.omitted_lines == 1000 - shown
    assert cut.omitted_bytes == (1000 - shown) * (len(data) // 1000)
    assert legible(clean(data[: len(data) // 1000]).text) == "ok a test\n"


def test_an_empty_stream_has_nothing_to_show():
    assert shorten(Captured(), OutputBudget(bytes=0, lines=0, tokens=0)) == ("", None)
