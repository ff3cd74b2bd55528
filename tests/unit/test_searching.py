"""Claims of search_text: grep's answers, exact numbers, and the same with and without ripgrep."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sandbox_workers.patterns.matching import Matcher, Pace
from sandbox_workers.patterns.parser import parse
from sandbox_workers.tools import ToolError, excerpts, pieces, ripgrep, scan
from sandbox_workers.tools.searching import search_text
from tests.unit.test_patterns import PATTERNS

PROJECT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def workspace(tmp_path, monkeypatch):
    """A few files, and no ripgrep."""
    place = tmp_path / "ws"
    (place / "src").mkdir(parents=True)
    (place / "a.txt").write_text("one\ntwo\nthree\nfour\nfive\ntwo\n")
    (place / "src/main.py").write_text("import os\nprint('two')\n")
    (place / "binary").write_bytes(b"two\n\0\1")
    (place / "empty").touch()
    (place / ".hidden").write_text("two\n")
    (place / "link").symlink_to("a.txt")
    os.mkfifo(place / "pipe")
    monkeypatch.chdir(place)
    monkeypatch.setenv("PATH", str(tmp_path / "no-programs"))
    return place


@pytest.fixture
def with_ripgrep(monkeypatch):
    """Switch ripgrep on, for whatever little there is to search."""
    place = Path(sys.executable).parent
    if not (place / "rg").exists():
        pytest.skip("there is no ripgrep beside the interpreter")
    monkeypatch.setattr(scan, "NOT_WORTH_STARTING", -1)
    runs = []
    real = ripgrep._run
    monkeypatch.setattr(ripgrep, "_run", lambda *call: runs.append(real(*call)) or runs[-1])

    def both(*arguments, **options):
        without = search_text(*arguments, **options)
        with monkeypatch.context() as patched:
            patched.setenv("PATH", str(place))
            found = search_text(*arguments, **options)
        assert runs[-1][0] in (ripgrep.FOUND, ripgrep.NOT_FOUND), runs[-1]
        return without, found

    return both


def summary(answer: str) -> str:
    return answer.split("\n")[-1]


def lines(answer: str) -> list[str]:
    return answer.split("\n")[:-1]


def test_matches_come_as_grep_writes_them():
    assert search_text("t[w]o") == (
        "a.txt:2:two\na.txt:6:two\nsrc/main.py:2:print('two')\n"
        "[3 matching lines in 2 of 3 files searched. Not searched: 1 binary file.]"
    )
    assert search_text("nothing") == (
        "[No line matches in 3 files searched. Not searched: 1 binary file. "
        "Passed over: 1 hidden entry.]"
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"glob": "*.rs"}, "[No file is there that the glob fits. Passed over: 1 hidden entry.]"),
        ({"path": "src", "glob": "src/*.py"}, "[No file is there that the glob fits. Globs begin "
         "at `path`: try glob=*.py.]"),
        ({"path": "binary"}, "[No text file to search. Not searched: 1 binary file.]"),
        ({"path": "empty"}, "[No line matches in 1 file searched.]"),
    ],
)  # fmt: skip
def test_that_nothing_was_searched_is_told_from_that_nothing_matches(options, said):
    assert search_text("two", **options) == said


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"path": "a.txt"}, ["a.txt:2:two", "a.txt:6:two"]),
        ({"path": "src"}, ["src/main.py:2:print('two')"]),
        ({"glob": "*.py"}, ["src/main.py:2:print('two')"]),
        ({"path": ".hidden"}, [".hidden:1:two"]),
        ({"glob": ".*", "hidden": True}, [".hidden:1:two"]),
        ({"path": "link"}, ["a.txt:2:two", "a.txt:6:two"]),
        ({"path": "binary"}, []),
        ({"path": "empty"}, []),
    ],
)
def test_a_search_can_be_narrowed(options, found):
    assert lines(search_text("two", **options)) == found


def test_case_and_literal_are_options():
    assert lines(search_text("TWO", "a.txt")) == []
    assert len(lines(search_text("TWO", "a.txt", ignore_case=True))) == 2
    assert lines(search_text("('two')", literal=True)) == ["src/main.py:2:print('two')"]
    assert lines(search_text("('TWO')", literal=True, ignore_case=True)) != []


@pytest.mark.parametrize("before", [0, 1, 2, 9])
@pytest.mark.parametrize("after", [0, 1, 3])
@pytest.mark.parametrize("pattern", ["two", "one|three", "five|two", "o", "e$"])
@pytest.mark.parametrize("piece", [pieces.PIECE, 1, 9])
def test_lines_around_are_those_that_grep_shows(monkeypatch, before, after, pattern, piece):
    monkeypatch.setattr(pieces, "FIRST", piece)
    monkeypatch.setattr(pieces, "PIECE", piece)
    around = [f"-B{before}", f"-A{after}"] if before or after else []  # even 0 prints --
    options = ["-nHE", *around, "-e", pattern]
    done = subprocess.run(["/usr/bin/grep", *options, "a.txt"], capture_output=True, text=True)
    assert lines(search_text(pattern, "a.txt", before=before, after=after)) == (
        done.stdout.splitlines()
    )


def test_groups_of_several_files_are_kept_apart():
    assert lines(search_text("two|import", before=1))[:4] == [
        "a.txt-1-one", "a.txt:2:two", "--", "a.txt-5-five",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "pattern", [r"def [a-z_]+\(self", r"\bimport\b", "e$", r"[A-Z]{3,}", "raise|yield", r"é|ü|→"]
)
def test_a_real_repository_is_searched_as_git_grep_does(monkeypatch, pattern):
    monkeypatch.chdir(PROJECT)
    done = subprocess.run(
        ["/usr/bin/git", "grep", "-nIE", "--untracked", "-e", pattern, "--", "src", "docs"],
        capture_output=True, text=True, env={"LANG": "C.UTF-8"},
    )  # fmt: skip
    expected = {tuple(line.split(":", 2)[:2]) for line in done.stdout.splitlines()}
    monkeypatch.setattr(excerpts, "ROOM", 1 << 30)
    found = [search_text(pattern, path, hidden=True, limit=10**6) for path in ("docs", "src")]
    assert [tuple(line.split(":", 2)[:2]) for answer in found for line in lines(answer)] == (
        sorted(expected, key=lambda place: (place[0].split("/"), int(place[1])))
    )


def test_what_is_left_out_is_counted_exactly(workspace):
    assert summary(search_text("two", limit=1)).startswith(
        "[3 matching lines in 2 of 3 files searched. The first 1 is shown, 2 are left out: "
    )
    (workspace / "many").write_text(f"{'x' * 300}\n" * 1000)
    answer = search_text("x", "many", limit=10_000)
    assert len(answer) < 31_000
    number = len(lines(answer))
    assert f"The first {number} are shown, {1000 - number:,} are left out" in answer
    assert summary(search_text("x", "many", limit=5, after=2)).count("995 are left out") == 1


def test_a_long_line_is_cut_around_its_match(workspace):
    (workspace / "long").write_text(f"{'a' * 5000}needle{'b' * 5000}\nneedle{'c' * 5000}\n")
    first, second = lines(search_text("needle", "long"))
    assert first == (
        f"long:1:[4,800 characters] … {'a' * 200}needle{'b' * 194} … [4,806 more characters]"
    )
    assert second == f"long:2:needle{'c' * 394} … [4,606 more characters]"
    (found,) = lines(search_text("(e+d*)+l", "long", limit=1))
    assert "needle" in found


def test_lines_are_counted_as_editors_and_grep_count_them(workspace):
    for mark in ("\f", "\x85", "\u2028", "\r"):
        (workspace / "marked").write_bytes(f"one{mark}still one\ntwo".encode())
        assert lines(search_text("two", "marked")) == ["marked:2:two"]


def test_ends_of_lines_are_found_whoever_wrote_the_file(workspace):
    (workspace / "dos").write_bytes(b"\xef\xbb\xbfusing System;\r\nclass A { }\r\n\r\n")
    assert lines(search_text("^using System;$", "dos")) == ["dos:1:using System;"]
    assert lines(search_text("[^;]$", "dos")) == ["dos:2:class A { }"]
    assert lines(search_text("^$", "dos")) == ["dos:3:"]


def test_bytes_that_are_not_utf8_hide_nothing(workspace):
    (workspace / "latin").write_bytes(b"caf\xe9 one\ncaf\xe9\xe9 two\n")
    assert lines(search_text("^caf. one", "latin")) == ["latin:1:caf\ufffd one"]
    assert lines(search_text("^caf[^a]{2} ", "latin")) == ["latin:2:caf\ufffd\ufffd two"]


def test_names_that_mislead_are_quoted(workspace):
    (workspace / "a\nb:1:x").write_text("needle")
    assert lines(search_text("needle")) == ['"a\\nb:1:x":1:needle']


def test_a_file_that_cannot_be_read_is_named(monkeypatch):
    real = os.open

    def refuse(path, *arguments):
        if path == "a.txt":
            raise PermissionError
        return real(path, *arguments)

    monkeypatch.setattr(os, "open", refuse)
    assert "in 1 of 2 files searched" in (answer := summary(search_text("two")))
    assert "Not readable: a.txt." in answer


def test_what_is_too_much_to_read_is_named(workspace, monkeypatch):
    monkeypatch.setattr(scan, "MOST_BYTES", dict.fromkeys(Pace, 100))
    (workspace / "big").write_text("two\n" * 30)
    answer = summary(search_text("two"))
    assert "3 matching lines in 2 of 3 files searched." in answer
    assert "reads 0 MiB at most: 1 file (big)." in answer
    (workspace / "movie").write_bytes(b"\0" * 1000)
    assert "Not searched: 2 binary files." in summary(search_text("two"))


def test_bytes_of_binary_files_are_not_counted(workspace, monkeypatch):
    monkeypatch.setattr(scan, "MOST_BYTES", dict.fromkeys(Pace, 50))
    monkeypatch.setattr(scan, "_BATCH", 1)
    (workspace / "a.bin").write_bytes(b"\0" * 45)
    assert summary(search_text("two", glob="a.*")).startswith("[2 matching lines in 1 of 1 file")


@pytest.mark.parametrize(
    ("pattern", "pace"),
    [
        (r"def \w+", Pace.FAST),
        ("(foo|bar)+", Pace.FAST),
        (r"\w+\(", Pace.MIDDLING),
        ("[a-z].*[0-9].*", Pace.MIDDLING),
        (r"(\w|o\w)+$", Pace.SLOW),
    ],
)
def test_a_search_reads_as_much_as_its_pattern_lets_it_in_time(pattern, pace):
    matcher = Matcher(parse(pattern))
    assert matcher.pace is pace
    assert scan.MOST_BYTES[Pace.SLOW] < scan.MOST_BYTES[Pace.MIDDLING] < scan.MOST_BYTES[Pace.FAST]


def test_a_line_of_more_than_any_reader_holds_ends_the_search_of_its_file(workspace, monkeypatch):
    monkeypatch.setattr(pieces, "FIRST", 100)
    monkeypatch.setattr(pieces, "PIECE", 100)
    monkeypatch.setattr(pieces, "LONGEST_LINE", 1000)
    (workspace / "long").write_text("two\n" + "x" * 5000 + "\ntwo\n")
    answer = search_text("two", "long")
    assert lines(answer) == ["long:1:two"]
    assert "Searched only up to a very long line: long." in answer


def test_ripgrep_hides_no_line_that_is_not_read(workspace, monkeypatch, with_ripgrep):
    for module in (pieces, scan):
        monkeypatch.setattr(module, "LONGEST_LINE", 1000)
    monkeypatch.setattr(pieces, "FIRST", 100)
    monkeypatch.setattr(pieces, "PIECE", 100)
    (workspace / "long").write_text("x" * 5000 + "\ntwo\n")
    without, found = with_ripgrep("[n][o][n][e]")
    assert "very long line: long." in found
    assert found == without


def test_a_pipe_in_place_of_a_file_is_not_waited_for(workspace, monkeypatch):
    walk = scan.Scan.files

    def swapped(self, paths):
        listed = list(paths)
        (workspace / "a.txt").unlink()
        os.mkfifo(workspace / "a.txt")
        walk(self, listed)

    monkeypatch.setattr(scan.Scan, "files", swapped)
    assert "Not readable: a.txt." in search_text("two")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"pattern": "("}, "`pattern` cannot be used: at character 1: this group is not closed"),
        ({"pattern": r"(a)\1"}, "backreferences"),
        ({"pattern": "x", "path": "none"}, "none does not exist"),
        ({"pattern": "x", "path": "../secret"}, "outside the workspace"),
        ({"pattern": "x", "path": "pipe"}, "not a regular file"),
        ({"pattern": "x", "glob": "[a"}, "`glob` is not a glob"),
    ],
)
def test_searching_says_clearly_what_went_wrong(arguments, words):
    with pytest.raises(ToolError, match=words) as caught:
        search_text(**arguments)
    assert caught.value.hint or "outside" not in words


HARD = [
    "two", r"\btwo\b", "^using", "System;$", r"^\W", r"\s", "(?i)STRASSE|straße", ".é", "^caf.$",
    "[^a-z ]{4}", r"\D\d", "^$", "", "x{400}", "(a+)+$", r"[\w-]+\.\w+", "-e", "\\x00", "\ufeff",
    "(?i)k", r"(?:\r|t)$", "[[:upper:]]", "日本", r"\.",
]  # fmt: skip


@pytest.mark.parametrize("pattern", HARD)
def test_ripgrep_changes_no_answer(workspace, with_ripgrep, pattern):
    fill_with_hard_files(workspace)
    for options in ({}, {"ignore_case": True}, {"before": 1, "hidden": True, "ignored": True}):
        without, found = with_ripgrep(pattern, **options)
        assert found == without


@given(pattern=PATTERNS, contents=st.lists(st.binary(max_size=12), min_size=1, max_size=4))
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_ripgrep_changes_no_answer_whatever_is_searched(workspace, with_ripgrep, pattern, contents):
    for number, content in enumerate(contents):
        (workspace / f"f{number}").write_bytes(content + b"\nab -\xe9a \xc3\xa9\r\n")
    without, found = with_ripgrep(pattern)
    assert found == without


def test_ripgrep_narrows_a_real_repository(monkeypatch, with_ripgrep):
    monkeypatch.chdir(PROJECT)
    read = []
    real = scan.pieces
    monkeypatch.setattr(scan, "pieces", lambda path: read.append(path) or real(path))
    without, found = with_ripgrep("[j][q][x]", "tests")
    assert found == without
    assert lines(found) == []
    assert len(read) == len(set(read)) > 100, "all were read without it, and none again with it"


@pytest.mark.parametrize(
    ("code", "output"), [(2, b""), (0, b""), (1, b"./a.txt\0"), (-9, b"./a.txt\0")]
)
def test_where_ripgrep_fails_all_files_are_read(monkeypatch, code, output):
    monkeypatch.setattr(scan, "NOT_WORTH_STARTING", -1)
    expected = search_text("two")
    monkeypatch.setattr(ripgrep, "installed", lambda: "/usr/bin/rg")
    monkeypatch.setattr(ripgrep, "_run", lambda *_: (code, output))
    assert search_text("two") == expected
    monkeypatch.setattr(ripgrep, "_run", lambda *_: (0, b"./a.txt\0"))
    assert search_text("two") != expected, "the control: it is believed where it succeeds"


def test_a_ripgrep_that_cannot_be_started_is_done_without(workspace, monkeypatch):
    monkeypatch.setattr(scan, "NOT_WORTH_STARTING", -1)
    expected = search_text("two")
    (workspace.parent / "no-programs").mkdir()
    (workspace.parent / "no-programs/rg").write_text("#!/no/such/interpreter\n")
    (workspace.parent / "no-programs/rg").chmod(0o755)
    assert ripgrep.installed()
    assert search_text("two") == expected


def fill_with_hard_files(place: Path) -> None:
    contents = {
        "dos": b"\xef\xbb\xbfusing System;\r\n\r\nlast\r\n",
        "latin": b"caf\xe9\ncaf\xe9 - \xff\xfe\n",
        "utf8": "straße STRASSE\nnaïve ꙮ 日本 e\u0301 x²\nK\n".encode(),
        "utf16": "two\n".encode("utf-16"),
        "late-nul": b"two\n" * 3000 + b"\0\ntwo\n",
        "-dash": b"two",
        "new\nline": b"two words\n",
        "ends": b"a\r\r\n\n\nt\r",
        "long": b"x" * 5000 + b"two" + b"y" * 500,
        "spaces": "a\u2003b\x1cc\x0bd\n".encode(),
        ".ignore": b"ignored\n",
        "ignored": b"two\n",
    }
    for name, content in contents.items():
        (place / name).write_bytes(content)
    (place / os.fsdecode(b"\xff")).write_bytes(b"two\n")
