"""Claims of edit_file: what stands once is replaced and shown; of what does not, what is near."""

import os
import random
import re
import stat
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox_workers.tools import ToolError
from sandbox_workers.tools.changes import Piece, changed, unified
from sandbox_workers.tools.editing import edit_file
from sandbox_workers.tools.hunks import apply_hunks
from sandbox_workers.tools.patches import read_patch


@pytest.fixture(autouse=True)
def workspace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("f.py").write_text("def f():\n    return 1\n\n\ndef g():\n\treturn 2\n")
    return tmp_path


def refusal(*arguments, **options):
    before = Path(arguments[0]).read_bytes()
    with pytest.raises(ToolError) as caught:
        edit_file(*arguments, **options)
    assert Path(arguments[0]).read_bytes() == before
    return f"{caught.value}\n{caught.value.hint}"


def test_what_stands_once_is_replaced_and_the_diff_returned():
    assert edit_file("f.py", "    return 1\n", "    x = 1\n    return x\n") == (
        "edited f.py\n--- a/f.py\n+++ b/f.py\n@@ -1,5 +1,6 @@\n def f():\n-    return 1\n"
        "+    x = 1\n+    return x\n \n \n def g():\n"
    )
    assert Path("f.py").read_text().startswith("def f():\n    x = 1\n    return x\n\n")


def test_a_piece_of_a_line_is_replaced():
    assert "-    return 1\n+    return 10\n" in edit_file("f.py", "1", "10")


def test_what_stands_several_times_is_told_by_line():
    said = refusal("f.py", "return", "yield")
    assert "old_text stands 2 times in f.py, at lines 2, 6" in said
    assert "replace_all" in said
    assert edit_file("f.py", "return", "yield", replace_all=True).startswith("edited f.py, 2 times")
    assert Path("f.py").read_text() == "def f():\n    yield 1\n\n\ndef g():\n\tyield 2\n"


def test_places_that_overlap_are_several():
    Path("f").write_text("aaa")
    assert "stands 2 times in f, at lines 1, 1" in refusal("f", "aa", "b")
    edit_file("f", "aa", "b", replace_all=True)
    assert Path("f").read_text() == "ba"


@pytest.mark.parametrize(
    ("old", "words"),
    [
        ("    return 2", "line 6: it is indented by 1 tab, not by 4 spaces"),
        ("def  f():", "it differs in the white space between its words"),
        ("DEF F():", "it differs in case only"),
        ("    return 1 \n\n", "it has nothing at its end, not 1 space"),
        (
            "def f():\n    return 3\n",
            "from line 1 on 1 of 2 lines differs, line 2: from column 12 it has '1', not '3'",
        ),
        ("def  g( ):\n  return 2", "but for white space it stands at line 5"),
        ("     2\t    return 1\n", "the line numbers of read_file"),
        ("def f():\\n    return 1", "a backslash and an n"),
        ("    return 1 + 1", "from column 13 it has nothing, not ' + 1'"),
        ("def h(x):", "from column 5 it has 'f', not 'h'; from column 7 it has nothing, not 'x'"),
        (
            "():\n    retur 1\n\n\ndef g",
            "from line 1 on 1 of 5 lines differs, line 2: from column 5",
        ),
        ("def f():\n    return 9\n\n\ndef", "from line 1 on 1 of 5 lines differs, line 2: "),
        ("ef f(x):\n    return 1\n", "line 1: from column 1 it has 'def', not 'ef'; from column 7"),
        ("nothing like it", "no line of it is like one of the file's"),
        ("def g():\n\treturn 2\n\nmore", "the file ends before the text does"),
    ],
)
def test_a_near_miss_is_named_with_its_line_and_difference(old, words):
    said = refusal("f.py", old, "something else")
    assert said.startswith("old_text is not in f.py\n")
    assert words in said


def test_the_lines_of_a_near_miss_are_shown_as_they_are():
    said = refusal("f.py", "    return 2", "x")
    assert "  in the file: '\\treturn 2'\n  in old_text: '    return 2'" in said


def test_an_edit_made_before_is_recognised():
    edit_file("f.py", "def g():", "def another_name():")
    assert "new_text is there already, at line 5" in refusal(
        "f.py", "def g():", "def another_name():"
    )


@pytest.mark.parametrize(
    ("old", "new", "words"), [("", "x", "old_text is empty"), ("x", "x", "are the same")]
)
def test_an_edit_of_nothing_is_refused(old, new, words):
    assert words in refusal("f.py", old, new)


def test_binary_files_are_not_edited():
    Path("b").write_bytes(b"a\0b")
    assert "b is binary (3 bytes), not text" in refusal("b", "a", "c")


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", b"x\r\ny\r\nz\r\nc\r\n"),
        (b"a\r\nb\r\nc\r\n", "a\r\nb", "x\ny", b"x\r\ny\r\nc\r\n"),
        (b"a\r\nb\r\n", "b", "x\ny", b"a\r\nx\r\ny\r\n"),
        (b"a\r\nb", "b", "x\ny", b"a\r\nx\r\ny"),
        (b"a\r\nb\nc\n", "b\nc", "x\ny", b"a\r\nx\ny\n"),
        (b"a\nb\r\nc\r\n", "b\nc", "x\ny", b"a\nx\r\ny\r\n"),
        (b"a\nb\n", "a\n", "x\r\n", b"x\r\nb\n"),
        (b"a\nb\n", "a\r\nb", "x", b"x\n"),
        (b"a\r\n\r\nb\r\n", "\n\n", "\n", b"a\r\nb\r\n"),
        (b"a\rb\n", "a\rb", "c", b"c\n"),
    ],
)
def test_line_endings_do_not_count_and_are_kept(before, old, new, after):
    Path("f").write_bytes(before)
    edit_file("f", old, new)
    assert Path("f").read_bytes() == after


@pytest.mark.parametrize("codec", ["utf-8-sig", "utf-16-le", "utf-16-be", "utf-32-le"])
def test_encoding_mark_and_mode_are_kept(codec):
    mark = "" if codec == "utf-8-sig" else "\ufeff"
    Path("f").write_bytes(f"{mark}one\r\ntwö\r\n".encode(codec))
    Path("f").chmod(0o750)
    edit_file("f", "one\ntwö", "drei\nvier 🎉")
    assert Path("f").read_bytes() == f"{mark}drei\r\nvier 🎉\r\n".encode(codec)
    assert stat.S_IMODE(Path("f").stat().st_mode) == 0o750


def test_bytes_that_are_no_text_stay_as_they_are():
    Path("f").write_bytes(b"caf\xe9 one\n\xff\xfe\n")
    assert "caf\ufffd two" in edit_file("f", "one", "two")
    assert Path("f").read_bytes() == b"caf\xe9 two\n\xff\xfe\n"


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-32-be"])
def test_a_file_that_is_not_what_its_mark_says_is_left_alone(codec):
    Path("f").write_bytes("\ufeffone".encode(codec) + b"\1")
    assert "is not valid UTF-" in refusal("f", "one", "two")


def test_a_long_diff_is_cut_and_counted():
    Path("f").write_text("x\n" * 1000)
    text = edit_file("f", "x", "y", replace_all=True)
    assert "200 times" not in text
    assert "1,000 times" in text
    assert "995 further changes are not in the diff" in text
    assert text.count("-x\n+y\n") == 5
    assert "\n x\n" not in text, "what is changed too is not shown as if it stayed"
    assert Path("f").read_text() == "y\n" * 1000


@pytest.mark.parametrize("places", [4, 5, 6, 43])
@pytest.mark.parametrize("between", ["", " ", "\n", "\nline\n" * 9])
def test_a_diff_shows_a_few_places_and_counts_all(places, between):
    Path("f").write_text(f"old{between}" * places)
    text = edit_file("f", "old", "new", replace_all=True)
    assert f", {places} times" in text
    shown = text.count("-old\n+new\n") if "\n" in between else places
    more = re.search(r"(\d+) further changes? (?:is|are) not in the diff", text)
    assert shown + (int(more[1]) if more else 0) == places
    assert len(text) < 4000


def test_one_large_change_is_shown_in_bounds():
    Path("f").write_text("start\n")
    text = edit_file("f", "start", "\n".join("y" * 250 for _ in range(150)))
    assert len(text) < 10_000
    assert re.search(r"\[\.\.\. \d+ more lines of the diff left out\]", text)


@given(
    st.lists(st.sampled_from(["a", "b", "", "ab "]), max_size=12),
    st.booleans(),
    st.data(),
)
@settings(max_examples=150)
def test_the_diff_that_is_returned_makes_the_text_that_is_written(lines, closed, data):
    text = "\n".join(lines) + ("\n" if closed else "")
    places = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=6)))
    pieces = [
        Piece(start, end, data.draw(st.sampled_from(["", "n", "n\n", "\n", "m\nn"])))
        for start, end in zip(places[::2], places[1::2], strict=False)
    ]
    pieces = [each for each in pieces if text[each.start : each.end] != each.text]
    after = changed(text, pieces)
    diff = unified("f", text, pieces)
    if "@@" not in diff:
        assert text.split("\n")[: len(lines)] == after.split("\n")[: len(lines)]
        return
    (section,) = read_patch(diff)
    applied = apply_hunks(text + ("" if text.endswith("\n") or not text else "\n"), section.hunks)
    assert applied.rejects == []
    assert applied.text.rstrip("\n") == after.rstrip("\n")


@given(
    st.text(st.sampled_from("ab \n\t"), max_size=40),
    st.text(st.sampled_from("ab \n\t"), max_size=8),
)
@settings(max_examples=150)
def test_an_edit_is_exact_or_changes_nothing(text, old):
    place = Path("any")
    place.write_text(text)
    several = text.find(old, text.find(old) + 1) >= 0
    try:
        edit_file("any", old, "new")
    except ToolError:
        assert not old or old not in text or several
        assert place.read_text() == text
    else:
        assert place.read_text() == text.replace(old, "new")


def test_the_search_for_near_misses_is_bounded(workspace):
    """Counted by the steps of the interpreter: no clock is asked."""
    chooser = random.Random(1)
    words = ["alpha", "beta", "gamma", "delta", "return", "value"]
    lines = [" ".join(chooser.choices(words, k=8)) for _ in range(20_000)]
    Path("large").write_text("\n".join(lines))
    old = "\n".join(" ".join(chooser.choices(words, k=8)) for _ in range(500))
    assert "old_text is not in large" in refusal("large", old, "x")
    Path("same").write_text("same line\n" * 20_000)
    assert "old_text is not in same" in refusal("same", "same line\n" * 500 + "another", "x")


def test_another_owner_does_not_lose_a_file_to_an_edit():
    if os.geteuid() != 0:
        pytest.skip("only root gives files away")
    os.chown("f.py", 1234, 2345)
    edit_file("f.py", "1", "3")
    assert (Path("f.py").stat().st_uid, Path("f.py").stat().st_gid) == (1234, 2345)


def test_the_diff_is_one_that_git_applies(workspace):
    Path("copy").write_bytes(Path("f.py").read_bytes())
    diff = edit_file("f.py", "    return 1\n", "    return 3\n").split("\n", 1)[1]
    diff = diff.replace("f.py", "copy")
    subprocess.run(["git", "apply"], input=diff, text=True, check=True, timeout=20)
    assert Path("copy").read_text() == Path("f.py").read_text()
