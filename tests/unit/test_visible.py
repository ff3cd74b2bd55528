"""Claims of `toolcell.visible`: nothing hides, nothing moves, and no two texts look the same."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcell.visible import runs_leftwards, spelled_out, visible, visible_json, visible_line

_SPELLED = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8}))")

any_text = st.text(st.characters(codec=None, exclude_categories=[]))
tricky = st.text(st.sampled_from("\\xuU0e12a \t\n\x1b\u202e\u0301\u0338éא\ufeff\U000e0041\ud800"))


def read_back(text):
    """What was spelled, as this module's description tells to read it."""
    return _SPELLED.sub(lambda match: chr(int(match[1] or match[2] or match[3], 16)), text)


@pytest.mark.parametrize("show", [visible, visible_line, spelled_out])
@given(text=any_text | tricky)
def test_every_text_can_be_read_back_so_no_two_look_the_same(show, text):
    assert read_back(show(text)) == text


@given(any_text | tricky)
def test_only_what_prints_comes_out_and_line_ends_and_tabs(text):
    assert all(c.isprintable() or c in "\n\t" for c in visible(text))
    assert visible_line(text).isprintable()
    assert spelled_out(text).isascii()


@given(any_text | tricky)
def test_json_stays_the_same_value_and_shows_what_hides(text):
    value = {"a": [text, 1, None], text: text}
    for indent in (None, 2):
        shown = visible_json(value, indent)
        assert json.loads(shown) == value
        assert shown.replace("\n", "").isprintable()


HIDDEN = {
    "escape": "\x1b",
    "backspace": "\b",
    "carriage return": "\r",
    "delete": "\x7f",
    "one-byte CSI": "\x9b",
    "next line": "\x85",
    "soft hyphen": "\u00ad",
    "no-break space": "\u00a0",
    "combining grapheme joiner": "\u034f",
    "Arabic letter mark": "\u061c",
    "Hangul filler": "\u115f",
    "Mongolian vowel separator": "\u180e",
    "zero width space": "\u200b",
    "zero width joiner": "\u200d",
    "left-to-right mark": "\u200e",
    "right-to-left mark": "\u200f",
    "line separator": "\u2028",
    "paragraph separator": "\u2029",
    "right-to-left override": "\u202e",
    "word joiner": "\u2060",
    "first strong isolate": "\u2068",
    "ideographic space": "\u3000",
    "Braille blank": "\u2800",
    "halfwidth filler": "\uffa0",
    "variation selector": "\ufe0f",
    "byte order mark": "\ufeff",
    "private use": "\ue000",
    "lone surrogate": "\udc80",
    "tag": "\U000e0041",
    "another variation selector": "\U000e0100",
    "stroke through an ASCII letter": "\u0338",
}


@pytest.mark.parametrize("name", HIDDEN)
def test_it_is_spelled(name):
    for show in (visible, visible_line, spelled_out):
        shown = show(f"rm{HIDDEN[name]}x")
        assert shown.isascii()
        assert read_back(shown) == f"rm{HIDDEN[name]}x"
        assert shown != f"rm{HIDDEN[name]}x"


@pytest.mark.parametrize(
    "text",
    [
        "git log --format='%h\\n' | grep '\\.py$' \\\n\t&& echo \\\\done",
        "naïve café",
        "日本語のテキスト",
        "नमस्ते दुनिया",
        "สวัสดี",
        "שלום עולם",
        "🙂 → ✓",
    ],
)
def test_ordinary_text_stays_as_it_is(text):
    assert visible(text) == text


def test_a_backslash_is_spelled_only_where_it_could_deceive():
    assert visible(r"printf '\u202e' \x1B \n \\ \u12") == r"printf '\x5cu202e' \x5cx1B \n \\ \u12"
    assert visible("printf '\u202e'") == r"printf '\u202e'"


def test_spaces_at_the_end_of_a_line_show():
    assert visible("a  \nb\t\n c ") == "a \\x20\nb\\x09\n c\\x20"


def test_a_line_stays_one():
    assert visible_line("a\nb\tc") == "a\\x0ab\\x09c"


def test_marks_are_left_on_letters_of_their_script_and_do_not_pile_up():
    pile = "ก" + "\u0e49" * 20
    shown = visible(pile)
    assert shown.startswith("ก\u0e49\u0e49\\u0e49")
    assert visible("\u0301a") == "\\u0301a"
    assert visible("e\u0301") == "e\\u0301"


def test_letters_from_right_to_left_are_told_of():
    assert runs_leftwards("echo שלום")
    assert runs_leftwards("سلام")
    assert not runs_leftwards("echo naïve 日本 \u202e")
    assert spelled_out("rm א") == "rm \\u05d0"
