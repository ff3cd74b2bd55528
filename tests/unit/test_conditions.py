"""Claims of `toolcell.policy.conditions` and `paths`: sure to allow, possible to ask or deny."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from toolcell.policy.conditions import ArgumentTest, PatternError, linear_regex
from toolcell.policy.paths import PathGlobs, Under, View, Workspace, glob_pattern
from toolcell.policy.rules import Condition


@pytest.fixture
def place(tmp_path):
    """A workspace with a link to .git, one out of it, and one that goes nowhere."""
    inside = tmp_path / "workspace"
    (inside / ".git").mkdir(parents=True)
    (inside / "src").mkdir()
    (tmp_path / "outside").mkdir()
    (inside / "innocent").symlink_to(".git")
    (inside / "src/out").symlink_to(tmp_path / "outside")
    (inside / "gone").symlink_to(tmp_path / "never")
    (tmp_path / "work").symlink_to(inside)
    (tmp_path / "workspace-evil").mkdir()
    return Workspace(inside)


def compiled(condition, workspace, *, is_path=False):
    return ArgumentTest("a", Condition(**condition), workspace, is_path=is_path)


@pytest.mark.parametrize(
    ("condition", "yes", "no"),
    [
        ({"equals": 1}, [1, 1.0], [True, "1", 2, None]),
        ({"equals": True}, [True], [1, "true", False]),
        ({"equals": None}, [None], [0, "", False]),
        ({"one_of": ["a", 2]}, ["a", 2], ["b", True, "2"]),
        ({"regex": "a+|b"}, ["a", "aaa", "b"], ["ab", "xa", "a\n", "", 1]),
        ({"min": 2, "max": 4}, [2, 3.5, 4], [1.9, 5, "3", True]),
        ({"glob": "*.txt"}, ["a.txt", ".txt"], ["a/b.txt", "a.txt\n", "a.tx", 3]),
        ({"glob": ["a*", "b?"]}, ["abc", "bx"], ["b", "bxx"]),
        ({"not_glob": "*secret*"}, ["a"], ["my secrets", 5]),
    ],
)
def test_a_condition_holds_for_what_fits_and_nothing_else(place, condition, yes, no):
    test = compiled(condition, place)
    for value in yes:
        assert test.holds({"a": value}, every=True), value
    for value in no:
        assert not test.holds({"a": value}, every=True), value
    assert not test.holds({}, every=False), "an argument that is not there fits nothing"


def test_a_nested_argument_is_named_with_dots(place):
    test = ArgumentTest("a.b", Condition(equals=1), place, is_path=False)
    assert test.holds({"a": {"b": 1}}, every=True)
    assert not test.holds({"a": 1}, every=True)


def test_of_a_list_all_have_to_fit_to_allow_and_one_to_deny(place):
    test = compiled({"one_of": ["x", "y"]}, place)
    assert test.holds({"a": ["x", "y"]}, every=True)
    assert not test.holds({"a": ["x", "z"]}, every=True)
    assert test.holds({"a": ["x", "z"]}, every=False)
    assert not test.holds({"a": []}, every=True)


@pytest.mark.parametrize(
    ("path", "surely", "maybe"),
    [
        ("src/a.py", True, True),
        ("src", True, True),
        ("./src//x/../a.py", True, True),
        ("src/../.git/config", False, False),
        ("../workspace/src/a", True, True),
        ("src-evil/a", False, False),
        ("/etc/passwd", False, False),
        ("src/out/secret", False, True),
        ("src/out", False, True),
        ("src\0/x", False, True),
        ("~/src/x", False, True),
        ("src/" + "x" * 5000, False, True),
    ],
)
def test_under_is_where_a_path_really_leads(place, path, surely, maybe):
    test = compiled({"under": "src"}, place, is_path=True)
    assert test.holds({"a": path}, every=True) is surely
    assert test.holds({"a": path}, every=False) is maybe


def test_a_directory_is_not_under_one_whose_name_it_only_begins_with(place, tmp_path):
    inside = Under(["."], place)
    assert not any(inside(view) for view in place.views(str(tmp_path / "workspace-evil/x")))
    assert all(inside(view) for view in place.views("x")), "the control"


@pytest.mark.parametrize("path", [".git/hooks/x", "innocent/hooks/x", "a/../.git/hooks/x", ".git"])
def test_a_link_to_a_guarded_directory_is_that_directory(place, path):
    guard = PathGlobs(["**/.git/**"])
    views = place.views(path)
    assert any(guard(view) for view in views)
    assert not any(guard(view) for view in place.views("src/x")), "the control"


def test_a_workspace_may_be_named_by_a_link_to_it(tmp_path, place):
    by_link = Workspace(tmp_path / "work")
    assert by_link.views("src/a") == (
        View(f"{tmp_path}/work/src/a", "src/a"),
        View(f"{tmp_path}/workspace/src/a", "src/a"),
    )
    assert by_link.views(f"{tmp_path}/workspace/src/a")[0].relative == "src/a"


@pytest.mark.parametrize(
    ("glob", "yes", "no"),
    [
        ("*.py", ["a.py"], ["d/a.py", "a.pyc"]),
        ("**/*.py", ["a.py", "d/a.py", "d/e/a.py"], ["apy"]),
        ("src/**", ["src", "src/a", "src/a/b"], ["srcs/a", "a/src"]),
        ("**/.git/**", [".git", ".git/x", "a/.git", "a/b/.git/x"], [".github", "a.git/x"]),
        ("a?c", ["abc"], ["a/c", "ac"]),
        ("[ab]x", ["ax", "bx"], ["cx", "/x"]),
        ("[!ab]x", ["cx"], ["ax", "/x"]),
        ("a.b", ["a.b"], ["axb"]),
        ("./x", ["x"], ["y"]),
        ("a**b", ["ab", "a/x/b"], ["a"]),
    ],
)
def test_a_glob_stays_in_a_directory_unless_it_says_otherwise(glob, yes, no):
    match = glob_pattern(glob)
    assert [text for text in yes if not match(text)] == []
    assert [text for text in no if match(text)] == []


@given(st.text(), st.text())
def test_any_text_can_be_a_glob_or_be_compared_with_one(glob, text):
    glob_pattern(glob)(text)


@pytest.mark.parametrize("pattern", ["(", "a)|(b", "(?=x)", r"(a)\1", "[", "*"])
def test_a_regular_expression_that_no_linear_engine_takes_is_refused(pattern):
    with pytest.raises(PatternError, match="is not a regular expression"):
        linear_regex(pattern)


def test_a_regular_expression_that_hangs_others_takes_linear_time():
    matches = linear_regex("(a+)+b")

    def seconds(length):
        began = time.perf_counter()
        assert not matches("a" * length)
        return time.perf_counter() - began

    seconds(1000)
    # Backtracking would take 2^30 steps for thirty letters; here a thousand times as many are read.
    assert seconds(30_000) < 60


def test_an_empty_condition_is_refused():
    with pytest.raises(ValidationError, match="would match anything"):
        Condition()


def test_a_text_with_directories_is_compared_as_a_path_too(place):
    allowed = compiled({"glob": "docs/**"}, place)
    assert allowed.holds({"a": "docs/x"}, every=True)
    assert not allowed.holds({"a": "docs/../../etc/passwd"}, every=True)
    denied = ArgumentTest("a", Condition(glob=".git/**"), place, is_path=False, loose=True)
    assert denied.holds({"a": "./x/../.git/config"}, every=False)
