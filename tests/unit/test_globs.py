"""Claims of globs: names and paths, any number of directories, braces, and no hanging."""

import pytest

from sandbox_workers.tools.globs import Glob, GlobError, braces


def fits(glob: str, path: str) -> bool:
    return Glob(glob).matches(path, path.rsplit("/", 1)[-1])


@pytest.mark.parametrize(
    ("glob", "yes", "no"),
    [
        ("*", ["a", ".a", "d/a", "a\nb"], []),
        ("**", ["a", "d/e/a"], []),
        ("*.py", ["a.py", "d/e/a.py", ".py"], ["a.pyc", "py", "a.py/b"]),
        ("a?c", ["abc", "d/aéc"], ["ac", "abbc", "a/c"]),
        ("src/*.py", ["src/a.py"], ["a.py", "src/d/a.py", "d/src/a.py"]),
        ("./src/*.py", ["src/a.py"], ["src/d/a.py"]),
        ("/*.py", ["a.py"], ["d/a.py"]),
        ("src/**/*.py", ["src/a.py", "src/d/a.py", "src/d/e/a.py"], ["a.py", "srcs/a.py"]),
        ("**/d/*", ["d/a", "x/d/a", "x/y/d/a"], ["d", "xd/a", "d/e/a"]),
        ("src/**", ["src/a", "src/d/a"], ["src", "srcs/a"]),
        ("src/", ["src/a", "src/d/a"], ["src", "a"]),
        ("a/**/b/**/c", ["a/b/c", "a/x/b/y/z/c"], ["a/c", "b/c", "a/b", "a/xb/c"]),
        ("**/**/a", ["a", "d/a", "d/e/a"], ["b"]),
        ("a**b", ["ab", "axxb"], ["a/b"]),
        ("*.{ts,tsx}", ["a.ts", "d/a.tsx"], ["a.t", "a.{ts,tsx}"]),
        ("{src,lib}/**/*.{c,h}", ["src/a.c", "lib/d/a.h"], ["a.c", "lib/a.py"]),
        ("{a,b{c,d}}", ["a", "bc", "bd"], ["b", "b{c,d}"]),
        ("{a}", ["{a}"], ["a"]),
        ("{a,", ["{a,"], ["a"]),
        (r"\{a,b\}", ["{a,b}"], ["a"]),
        ("x{,y}", ["x", "xy"], ["x,"]),
        ("[ab]*", ["ax", "b"], ["cx"]),
        ("[!ab]", ["c"], ["a", "/"]),
        ("[^ab]", ["c"], ["a"]),
        ("[]]", ["]"], ["["]),
        ("[!]]", ["a"], ["]"]),
        ("[a-c,]", ["b", ","], ["-", "d"]),
        ("{[,],x}", [",", "x"], ["[", "]"]),
        ("[a-]", ["a", "-"], ["b"]),
        (r"[\]\\]", ["]", "\\"], ["a"]),
        ("[[:digit:]x]", ["1", "x"], [":", "d"]),
        ("x[./]y", ["x.y"], ["x/y"]),
        (r"\*", ["*"], ["a"]),
        ("a+(b)|c.", ["a+(b)|c."], ["aab"]),
    ],
)
def test_a_glob_is_for_names_or_paths(glob, yes, no):
    assert [path for path in yes if not fits(glob, path)] == []
    assert [path for path in no if fits(glob, path)] == []


@pytest.mark.parametrize(
    ("glob", "words"),
    [
        ("[a", "not closed"),
        ("a\\", "ends in a backslash"),
        ("[[:no:]]", "is not a class"),
        ("{a,b}" * 9, "more than 200"),
        ("{" * 300 + ",}" * 300, "more than 200"),
    ],
)
def test_what_is_no_glob_is_refused_in_words(glob, words):
    with pytest.raises(GlobError, match=words):
        Glob(glob)


def test_braces_are_written_out_once_each():
    assert sorted(braces("{a,b}{c,d}")) == ["ac", "ad", "bc", "bd"]


@pytest.mark.parametrize(
    ("glob", "path"),
    [
        ("*a" * 60 + "b", "a" * 250),
        ("**/*a*a*a*a/" * 20 + "b", "/".join(["aaaaaaaa"] * 400)),
        ("**/a/" * 60 + "b", "a/" * 1500 + "a"),
        ("*[ab]?" * 40 + "!", "ab" * 120),
    ],
)
def test_globs_of_many_stars_end(glob, path):
    """Each of these takes a matcher that goes back to every star longer than anyone waits."""
    assert not fits(glob, path)
