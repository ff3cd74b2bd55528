"""Claims of list_files and search_text: they see the workspace, and say clearly what went wrong."""

import os

import pytest

from sandbox_workers.tools import ToolError
from sandbox_workers.tools.files import list_files, search_text


@pytest.fixture(autouse=True)
def workspace(tmp_path, monkeypatch):
    place = tmp_path / "ws"
    (place / "src" / ".git").mkdir(parents=True)
    files = {
        "a.txt": "one\ntwo\nthree\n",
        "src/main.py": "import os\nprint('two')\n",
        "src/.git/config": "two",
        "empty": "",
        "bom.txt": "\ufefftwo\n",
    }
    for name, text in files.items():
        (place / name).write_text(text)
    (place / "binary").write_bytes(b"two\n\0\1")
    (tmp_path / "secret").write_text("two")
    (place / "out").symlink_to(tmp_path / "secret")
    (place / "up").symlink_to(tmp_path)
    (place / "inner").symlink_to("a.txt")
    (place / "dangling").symlink_to("nowhere")
    os.mkfifo(place / "pipe")
    monkeypatch.chdir(place)
    return place


@pytest.mark.parametrize("mark", ["\f", "\x85", "\u2028"], ids=ascii)
def test_lines_are_counted_as_editors_and_grep_count_them(workspace, mark):
    (workspace / "marked").write_text(f"one{mark}still one\ntwo\n")
    (found,) = search_text("two", "marked")["matches"]
    assert (found["line"], found["text"]) == (2, "two")


def test_listing_passes_over_links_pipes_and_version_control():
    assert set(list_files()["files"]) == {"a.txt", "binary", "bom.txt", "empty", "src/main.py"}


def test_files_are_listed_in_sorted_order(workspace):
    (workspace / "src" / "z.txt").touch()
    (workspace / "z.txt").touch()
    names = list_files(glob="*.*")["files"]
    assert names == ["a.txt", "bom.txt", "src/main.py", "src/z.txt", "z.txt"]


@pytest.mark.parametrize(
    ("glob", "files"),
    [("*.py", ["src/main.py"]), ("src/*", ["src/main.py"]), ("a.*", ["a.txt"]), ("*.rs", [])],
)
def test_globs_match_the_name_or_the_path(glob, files):
    assert list_files(glob=glob)["files"] == files
    assert search_text("", glob=glob)["files_searched"] == len(files)


def test_a_long_listing_is_cut_and_counted():
    listed = list_files(limit=2)
    assert (len(listed["files"]), listed["total"], listed["left_out"]) == (2, 5, 3)


@pytest.mark.parametrize(
    ("path", "words"),
    [("a.txt", "a.txt is a file, not a directory"), ("none", "does not exist"), ("up", "outside")],
)
def test_listing_says_clearly_what_went_wrong(path, words):
    with pytest.raises(ToolError, match=words):
        list_files(path)


def test_a_search_gives_file_line_and_text_and_passes_over_binary():
    found = search_text("t[w]o")
    assert {(match["file"], match["line"], match["text"]) for match in found["matches"]} >= {
        ("a.txt", 2, "two"),
        ("src/main.py", 2, "print('two')"),
    }
    assert {match["file"] for match in found["matches"]} == {"a.txt", "src/main.py", "bom.txt"}
    assert search_text("two", "a.txt")["total"] == 1


def test_a_search_with_many_matches_is_cut_and_counted(workspace):
    (workspace / "many").write_text("x" * 1000 + "\n" + "x\n" * 99)
    found = search_text("x", "many", limit=3)
    assert (len(found["matches"]), found["total"], found["left_out"]) == (3, 100, 97)
    assert len(found["matches"][0]["text"]) == 500


@pytest.mark.parametrize(
    ("pattern", "path", "words"),
    [
        ("(", ".", "`pattern` is not a regular expression"),
        ("x", "none", "does not exist"),
        ("x", "../secret", "outside the workspace"),
        ("x", "pipe", "not a regular file"),
    ],
)
def test_searching_says_clearly_what_went_wrong(pattern, path, words):
    with pytest.raises(ToolError, match=words):
        search_text(pattern, path)
