"""Claims of list_files: everything that is there, named so that nothing misleads, counted."""

import os
import tracemalloc
from pathlib import Path

import pytest

from sandbox_workers.tools import ToolError, walking
from sandbox_workers.tools.listing import list_files
from sandbox_workers.tools.naming import shown


@pytest.fixture(autouse=True)
def workspace(tmp_path, monkeypatch):
    place = tmp_path / "ws"
    (place / "src" / "deep").mkdir(parents=True)
    (place / "empty").mkdir()
    (place / ".git").mkdir()
    (place / ".git/config").touch()
    (place / "src/main.py").write_text("x" * 2048)
    (place / "src/deep/main.py").touch()
    (place / "src.txt").write_text("x")
    (place / ".hidden").touch()
    (place / "src/up").symlink_to("..")
    (place / "out").symlink_to("/etc/passwd")
    os.mkfifo(place / "pipe")
    monkeypatch.chdir(place)
    return place


def paths(answer: str) -> list[str]:
    return [line.split("  ")[0] for line in answer.split("\n")[:-1]]


def test_each_entry_says_what_it_is():
    assert list_files() == (
        "empty/\nout -> /etc/passwd\npipe  (pipe)\nsrc/\nsrc/deep/\nsrc/deep/main.py  0\n"
        "src/main.py  2048\nsrc/up -> ..\nsrc.txt  1\n"
        "[9 entries: 3 files, 3 directories, 2 links, 1 other (+ 1 hidden).]"
    )


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"glob": "*.py"}, ["src/deep/main.py", "src/main.py"]),
        ({"path": "src", "glob": "*/main.*"}, ["src/deep/main.py"]),
        ({"path": "src", "depth": 1}, ["src/deep/", "src/main.py", "src/up -> .."]),
        ({"depth": 1, "glob": "s*"}, ["src/", "src.txt"]),
        ({"glob": ".h*", "hidden": True}, [".hidden"]),
        ({"glob": ".git*", "hidden": True, "ignored": True}, []),
        ({"path": ".git"}, [".git/config"]),
        ({"glob": "*.rs"}, []),
        ({"path": "empty"}, []),
    ],
)
def test_a_listing_can_be_narrowed(options, found):
    assert paths(list_files(**options)) == found


def test_what_is_left_out_is_counted_exactly(workspace):
    assert list_files(limit=2).split("\n")[2:] == [
        "[9 entries: 3 files, 3 directories, 2 links, 1 other (+ 1 hidden). The first 2 are shown, "
        "7 are left out: narrow path, glob or depth, or raise limit.]"
    ]
    (workspace / ".gitignore").write_text("src*\n")
    assert list_files().endswith(" (+ 2 hidden, 2 ignored).]")
    assert list_files(glob="*.rs") == (
        "[Nothing found. Passed over: 2 hidden and 2 ignored entries.]"
    )
    many = workspace / "empty"
    for number in range(300):
        (many / f"{number:03}{'x' * 150}").touch()
    answer = list_files("empty", limit=10_000)
    assert len(answer) < 31_000
    shown_lines = answer.count("\n")
    assert f"The first {shown_lines} are shown, {300 - shown_lines} are left out" in answer


@pytest.mark.parametrize(
    ("path", "glob", "hint"),
    [
        ("src", "src/*.py", "Globs begin at `path`: try glob=*.py."),
        ("src/deep", "src/deep/**/*.py", "try glob=**/*.py."),
        ("src/deep", "./deep/*.py", "try glob=*.py."),
        ("src", "srcs/*.py", ""),
        (".", "none/*.py", ""),
    ],
)
def test_a_glob_that_repeats_the_path_is_told_where_globs_begin(path, glob, hint):
    answer = list_files(path, glob)
    assert answer.startswith("[Nothing found.")
    assert hint in answer
    assert bool(hint) is ("Globs begin" in answer)


def test_a_name_that_is_not_what_it_seems_is_told_apart(workspace):
    names = [
        b"a\nb",
        b"\xe9",
        b"\xc3\xa9",
        b"\xef\xbf\xbd",
        b"x  1",
        b" x",
        b'"',
        b"\\n",
        b"a -> b",
    ]
    names += ["\u202egpj.exe".encode(), "\xa0".encode(), b"\x1b[31m", b"\x7f", b"plain name"]
    for name in names:
        Path(os.fsdecode(bytes(workspace / "empty") + b"/" + name)).touch()
    lines = list_files("empty").split("\n")[:-1]
    assert len(set(lines)) == len(names)
    assert set(lines) == {
        '"empty/a\\nb"  0', '"empty/\\xE9"  0', "empty/é  0", "empty/\ufffd  0", '"empty/x  1"  0',
        "empty/ x  0", '"empty/\\""  0', '"empty/\\\\n"  0', '"empty/a -> b"  0',
        '"empty/\\u202egpj.exe"  0', '"empty/\\u00a0"  0', '"empty/\\u001b[31m"  0',
        '"empty/\\u007f"  0', "empty/plain name  0",
    }  # fmt: skip


def test_quoting_keeps_any_two_names_apart():
    names = ["\udce9", "\\xE9", "é", '"\\xE9"', "\x85", "\\u0085", "\udc85", " ", "\\ "]
    assert len({shown(name) for name in names}) == len(names)
    assert all(shown(name).isprintable() for name in names)


def test_links_are_named_and_never_followed(workspace):
    (workspace / "loop").symlink_to("loop")
    (workspace / "bad\nlink").symlink_to("to\nnowhere")
    answer = list_files()
    assert "loop -> loop\n" in answer
    assert '"bad\\nlink" -> "to\\nnowhere"\n' in answer
    assert paths(list_files(glob="main.py")) == ["src/deep/main.py", "src/main.py"]


def test_a_directory_that_cannot_be_read_is_named(monkeypatch):
    real = os.scandir

    def scandir(path):
        if path in ("src/", "empty/"):
            raise PermissionError
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    answer = list_files()
    assert "src/\nsrc.txt" in answer
    assert answer.endswith("Not readable: empty, src.]")


def test_a_tree_without_end_is_listed_as_far_as_it_goes_and_says_so(workspace, monkeypatch):
    monkeypatch.setattr(walking, "MOST", 5)
    answer = list_files("src", hidden=True)
    assert "Ended after" not in answer, "the control: it has four names"
    answer = list_files(hidden=True)
    assert answer.endswith("Ended after 5 names: numbers are of what was seen until then.]")


def test_a_large_tree_takes_little_memory(workspace):
    for directory in range(15):
        place = workspace / f"d{directory}"
        place.mkdir()
        for number in range(50):
            (place / f"{number}{'n' * 100}").touch()
    list_files(limit=1)
    tracemalloc.start()
    answer = list_files(limit=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "774 entries" in answer
    assert peak < 100_000, "the names of one directory, not of all"


def test_directories_deeper_than_a_path_may_be_are_named(workspace):
    for _ in range(20):
        Path("d" * 250).mkdir()
        os.chdir("d" * 250)
    os.chdir(workspace)
    answer = list_files(limit=1)
    assert "Not readable: ddd" in answer
    assert len(list_files()) < 32_000, "long names do not make the account long"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"path": "src.txt"}, "src.txt is a file, not a directory"),
        ({"path": "none"}, "none does not exist"),
        ({"path": "out"}, "out is outside the workspace"),
        ({"path": ".."}, "is outside the workspace"),
        ({"glob": "[a"}, "`glob` is not a glob: its .* is not closed"),
    ],
)
def test_listing_says_clearly_what_went_wrong(arguments, words):
    with pytest.raises(ToolError, match=words):
        list_files(**arguments)
