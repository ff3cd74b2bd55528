"""Claims of `toolcell.legible`: clean text, and counts that add up, whatever the bytes are."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcell.legible import clean, clean_text, estimate_tokens, legible, stripped
from toolcell.legible.budget import OutputBudget

UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
PIECES = [
    *[b"\x1b", b"[", b"]", b"P", b"31", b";", b"m", b"K", b"G", b"D", b"C", b"2K", b"\\", b"\x07"],
    *[b"\r", b"\n", b"\b", b"\t", b"\0", b"\x9b", b"\xc2", b"\xc2\x9b", b"\xc2\x9d", b"\xc2\x9c"],
    *[b"ab", "é😀".encode(), b"\xf0\x9f", b"\x94\x91", "\u202e\U000e0041".encode(), b"\x18", b" "],
]
SOUP = st.one_of(st.binary(max_size=200), st.lists(st.sampled_from(PIECES)).map(b"".join))

SHOWN = [
    (b"plain\ttext\n", "plain\ttext\n"),
    (b"\x1b[1;31mred\x1b[0m text\x1b[K\n", "red text\n"),
    (b"\x9b31m", "\ufffd31m"),
    ("\x9b31mred\x9b0m".encode(), "red"),
    (b"\x1b]0;title\x07text", "text"),
    (b"\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\", "link"),
    (b"\x1b]52;c;cm0gLXJmIC8=\x07text", "text"),
    (b"\x1b]52;c;never ended\nnext line", "\nnext line"),
    (b"\x1bPq#0\n~~\x1b\\after", "after"),
    (b"\x1b_Gf=24;AAAA\x1b\\kitty \x1b^pm\x1b\\\x1bXsos\x1b\\end", "kitty end"),
    (b"\x1bktitle\x1b\\screen", "screen"),
    ("\x9dosc\x9ctext \x90dcs\x9c\x85.".encode(), "text ."),
    (b"\x1b(B\x1b7\x1b8\x1b=\x1bM\x1b#8text\x1b", "text"),
    (b"\x1b[38;2;1;2;3mdeep\x1b[m \x1b[?25lhidden\x1b[?25h \x1b[>4;2m", "deep hidden "),
    (b"one\r\ntwo\r\r\nthree", "one\ntwo\nthree"),
    (b" 10%\r 50%\r100%\ndone\n", "100%\ndone\n"),
    (b"downloading file\rdone\n", "doneloading file\n"),
    (b"downloading file\r\x1b[Kdone\n", "done\n"),
    (b"downloading file\x1b[2K\x1b[1Gdone\n", "done\n"),
    (b"wait -\b\\\b|\b \bok\n", "wait ok\n"),
    (b"\x1b[3Dback\x1b[2Dnk\n", "bank\n"),
    (b"ab\x1b[1Ccd\rx\x1b[1Cy\n", "xbyd\n"),
    (b"12345\x1b[3G\x1b[1K\n", "  345\n"),
    (b"N\bNA\bAM\bME\bE\n", "NAME\n"),
    (b"_\bf_\bi_\bl_\be\n", "file\n"),
    (b"a\0b\x01\x0c\n", "a\\x00b\\x01\\x0c\n"),
    (b"bell\x07 shift\x0e\x0f del\x7f\n", "bell shift del\n"),
    ("abc\u202edef\u2066\n".encode(), "abc\\u202edef\\u2066\n"),
    ("hi\U000e0041\U000e0020\U000e0100".encode(), "hi\\U000e0041\\U000e0020\\U000e0100"),
    ("👩‍👩‍👧 é 日本 \u200d\ufe0f\n".encode(), "👩‍👩‍👧 é 日本 \u200d\ufe0f\n"),
    (b"\xc2\x1b[m\x9b31m", "\ufffd31m"),
    (b"progress\r", "progress"),
]


@pytest.mark.parametrize(("data", "text"), SHOWN)
def test_a_stream_is_shown_as_a_terminal_leaves_it_and_without_what_acts_on_one(data, text):
    assert legible(clean(data).text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("old\rmac\rlines\n", "old\\x0dmac\\x0dlines\n"),
        ("windows\r\nlines\r\n", "windows\nlines\n"),
        ("\x1b[31mred\x1b[0m\b", "red\\x08"),
        ("\ud800 alone", "? alone"),
    ],
)
def test_in_a_returned_text_nothing_is_overwritten(text, shown):
    assert clean_text(text) == shown


@given(SOUP, st.booleans())
def test_clean_text_has_no_control_characters_and_no_half_ones(data, terminal):
    made = legible(clean(data, terminal=terminal).text)
    assert not UNSEEN.search(made)
    made.encode()
    if "\ufffd" in made:  # then there was none in the stream either
        assert "\ufffd" in data.decode(errors="replace") or b"\xc2" in data


@given(SOUP, st.booleans())
def test_every_place_in_the_text_has_one_in_the_stream_in_the_same_order(data, terminal):
    for made in (clean(data, terminal=terminal), stripped(data)):
        places = [made.raw_at(at) for at in range(len(made.text) + 1)]
        assert places == sorted(places)
        assert all(0 <= place <= len(data) for place in places)
        assert places[-1] == len(data)
        for at in range(len(made.text)):
            start, end = made.raw_span(at, at + 1)
            assert start < end or not made.text
            assert 0 <= start <= end <= len(data)


@given(SOUP)
def test_lines_are_neither_made_nor_moved(data):
    made = clean(data)
    assert made.text.count(b"\n") <= data.count(b"\n")
    for match in re.finditer(b"\n", made.text):
        assert b"\n" in data[slice(*made.raw_span(match.start(), match.end()))]


@pytest.mark.parametrize(
    "unit", [b"\x1b]", b"\xc2\x9d", b"\x1b[", b"\x1bPx", b"a\r", b"ab\b", b"\x1b[9999999C", b"\0"]
)
def test_the_time_is_in_proportion_to_the_stream(unit):
    data = unit * (256 * 1024 // len(unit))
    assert len(clean(data).text) <= 4 * len(data)
    data = b"x" * 100_000 + unit * (100_000 // len(unit))
    assert len(clean(data).text) <= 5 * len(data)


@pytest.mark.parametrize(
    ("text", "least"), [("", 0), ("hello world", 3), ("0f3a" * 10, 20), ("日本語", 4), ("\n\n", 1)]
)
def test_tokens_are_estimated_rather_too_high(text, least):
    assert least <= estimate_tokens(text) <= max(4, 3 * least)
    budget = OutputBudget(tokens=estimate_tokens(text))
    assert budget.fits(text)
    assert not budget.fits(text + "0 more")


@pytest.mark.parametrize("name", ["bytes", "lines", "tokens", "line_bytes"])
def test_a_budget_below_nothing_is_refused(name):
    with pytest.raises(ValueError, match=f"`{name}` is a number from 0 on, not -1"):
        OutputBudget(**{name: -1})
    assert OutputBudget(**{name: 0})
