"""Claims of `toolcell.parser.parser` and the walk: a line that cannot be read is never let pass."""

import subprocess
import sys
from importlib import metadata

import pytest

from tests.unit.shell_ground import BASH
from toolcell.shell import lines, parser
from toolcell.shell.facts import Unreadable
from toolcell.shell.lines import read_line
from toolcell.shell.nodes import check


@pytest.fixture(autouse=True)
def forget():
    """What one test makes of the parser is not remembered for the next."""
    caches = (lines._remembered, parser.program)
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


def pretend(monkeypatch, tmp_path, script):
    """Put a program of our own in the parser's place."""
    program = tmp_path / "shfmt"
    program.write_text(f"#!{sys.executable} -IS\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setattr(parser, "program", lambda: str(program))
    return program


def test_the_parser_is_the_one_that_its_package_installs(monkeypatch, tmp_path):
    evil = tmp_path / "shfmt"
    evil.write_text(f"#!/bin/sh\necho > {tmp_path}/started\n")
    evil.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert read_line("echo $x").commands
    assert not (tmp_path / "started").exists()
    files = [str(file.locate()) for file in metadata.files("shfmt-py") or []]
    assert any(file.endswith("/shfmt") for file in files)
    subprocess.run(["shfmt"], check=True)  # the control: PATH does lead to the other
    assert (tmp_path / "started").exists()


def test_without_the_parser_every_line_that_needs_it_is_unreadable(monkeypatch):
    monkeypatch.setattr(parser, "_candidates", list)
    line = read_line("echo $x")
    assert "pip install shfmt-py" in line.unreadable
    assert not line.commands
    assert read_line("git push").commands  # plain words do without
    monkeypatch.undo()
    assert read_line("echo $x").commands  # and its absence is not remembered


def test_a_package_without_its_program_is_the_same_as_none(monkeypatch):
    def absent(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "files", absent)
    monkeypatch.setattr(parser.sysconfig, "get_path", lambda name: "/nonexistent")
    assert "pip install shfmt-py" in read_line("echo $x").unreadable


def test_a_parser_that_cannot_be_started_is_named(monkeypatch, tmp_path):
    program = pretend(monkeypatch, tmp_path, "")
    program.write_text("#!/nonexistent/interpreter\n")
    assert "cannot be started" in read_line("echo $x").unreadable


def test_a_parser_that_takes_too_long_is_ended(monkeypatch, tmp_path):
    pretend(monkeypatch, tmp_path, "import time; time.sleep(600)")
    monkeypatch.setattr(parser, "SECONDS", 0.2)
    assert "took longer" in read_line("echo $x").unreadable
    monkeypatch.undo()
    assert read_line("echo $x").commands  # being late is not remembered either


def test_a_parser_that_answers_without_end_is_ended(monkeypatch, tmp_path):
    pretend(monkeypatch, tmp_path, "while True: print('x' * 1000)")
    monkeypatch.setattr(parser, "MAX_TREE", 5000)
    assert "too large" in read_line("echo $x").unreadable


@pytest.mark.parametrize(
    "answer", ["", "[]", "null", '"x"', "{", '{"Type": "File"', "[" * 100_000, "NaN", "{}", "nan"]
)
def test_an_answer_that_is_no_tree_is_unreadable_or_empty(monkeypatch, tmp_path, answer):
    pretend(monkeypatch, tmp_path, f"print({answer!r})")
    line = read_line("echo $x")
    assert line.unreadable or answer == "{}"
    assert not line.commands


@pytest.mark.parametrize(
    ("tree", "named"),
    [
        ({"Stmts": [{"Cmd": {"Type": "FancyLoop"}}]}, "FancyLoop"),
        ({"Stmts": [{"Cmd": {"Type": "Word", "Parts": []}}]}, "Word"),
        ({"Stmts": [{"Hidden": [{"Cmd": {"Type": "CallExpr"}}]}]}, "Hidden"),
        ({"Stmts": [{"Cmd": {"Type": "CallExpr", "Also": []}}]}, "Also"),
        ({"Stmts": [], "More": {"Cmd": {}}}, "More"),
        ({"Stmts": [{"Coprocess": True}]}, "Coprocess"),
        ({"Stmts": [{"Redirs": [{"Op": 63, "Word": {"Parts": []}}]}]}, "too old"),
        ({"Stmts": [{"Cmd": {"Type": "TimeClause", "Stmt": {"Disown": True}}}]}, "Disown"),
        ({"Stmts": [{"Cmd": {"Type": "FuncDecl", "Body": {}}}]}, "FuncDecl without Name"),
        ({"Stmts": [{"Cmd": {"Type": "BinaryCmd", "Op": "&&", "X": {}}}]}, "without Y"),
    ],
)
def test_what_a_newer_parser_may_say_is_not_passed_over(monkeypatch, tree, named):
    monkeypatch.setattr(lines, "parse", lambda text: {"Type": "File", **tree})
    assert named in read_line("echo $x").unreadable


def test_positions_are_no_fields_of_their_own():
    position = {"Offset": 1, "Line": 1, "Col": 1}
    assert check({"Type": "Block", "Lbrace": position}, "Block")
    with pytest.raises(Unreadable):
        check({"Type": "Block", "Lbrace": {**position, "Cmd": {}}}, "Block")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("echo 'a", "not valid bash"),
        ("if x; then", "not valid bash"),
        ("echo $x \0", "NUL"),
        ("echo $x \ud800", "surrogate"),
        ("echo $x\r\nls", "carriage return"),
        ("echo $x " + "a" * 70_000, "64 KiB"),
        ("echo $x " + "\u00e9" * 40_000, "64 KiB"),
        ("$(" * 400 + ")" * 400, "too large"),
        ("( " * 300 + "a" + ")" * 300, "deep"),
        ("{ " * 5000 + "a" + "; }" * 5000, ""),
        ("echo " + "$((" * 2000 + "1" + "))" * 2000, ""),
        ("echo " + '"${x:-' * 3000 + '}"' * 3000, ""),
        ("`" * 3001, ""),
        ("x=" + "${" * 9000, ""),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) else "",
)
def test_a_line_that_cannot_be_read_says_why(text, why):
    line = read_line(text)
    assert line.unreadable
    assert why in line.unreadable
    assert not line.commands


def test_a_long_line_of_many_commands_is_read():
    assert len(read_line(" && ".join(["a $x"] * 150)).commands) == 150
    assert len(read_line("\n".join(["a $x"] * 2000)).commands) == 2000


LARGE = [
    "nice " * 12_000 + "x",
    "env " + "-S " * 15_000,
    "env " + "-S '-S -S' " * 4_000,
    "ln -s " + " ".join(f"a{n}" for n in range(8_000)) + " d; touch " + "h " * 1_000,
    "fd " + "-x a " * 12_000,
    "tar " + "-cf " * 12_000,
    "sqlite3 x '" + " \n" * 30_000 + "'",
    "mysql '" + "; " * 30_000 + "'",
    "cmake '-D" + "COMMAND" * 8_000 + "'",
    "awk '" + "x/" * 30_000 + "'",
    "sed '" + "p;" * 30_000 + "'",
    "sed 's" + "a\\" * 20_000 + "'",
    "".join(f"x{n}=x{n + 1};" for n in range(1_000)) + "((x0)); ls",
    "PATH=x; a;" * 800,
    ";".join(f"LD_{n}=x; a" for n in range(500)),
    "".join(f"cd d{n}; touch x;" for n in range(300)),
]


@pytest.mark.timeout(30)  # each takes well under a second; a square of its length would not
@pytest.mark.parametrize("text", LARGE, ids=lambda text: text[:12])
def test_a_large_line_is_read_in_the_time_that_its_length_allows(text):
    line = read_line(text)
    assert not line.unreadable
    assert line.commands
    assert len(line.commands) < 2000


def test_the_doubts_of_a_command_stay_few_enough_to_be_read():
    last = read_line(";".join(f"LD_{n}=x" for n in range(500)) + "; ls").commands[-1]
    assert "LD_0 is set" in last.doubt
    assert "many variables" in last.doubt
    assert len(last.doubt) < 1000


DIFFERENT = [
    # what the parser reads as one command, bash reads as two
    ("echo a # b\\\necho b", "b"),
    ("let x=1&echo b", "b"),
    ("!(echo b)", "b"),
    ("time -- echo b", "b"),
    ("echo b >&- 2>&1; echo>&-b; echo b", "b"),
    ("echo >& '$(echo b >&2)'", "b"),
]


@pytest.mark.parametrize(("text", "said"), DIFFERENT)
def test_where_bash_and_the_parser_differ_a_person_is_asked(tmp_path, text, said):
    done = subprocess.run([BASH, "-c", text], capture_output=True, cwd=tmp_path, text=True)
    assert said in (done.stdout + done.stderr).split() + [p.name for p in tmp_path.iterdir()]
    line = read_line(text)
    assert line.unreadable or any(c.doubt or c.words[0] is None for c in line.commands)


def test_code_that_cannot_be_read_leaves_the_rest_of_the_line_readable():
    line = read_line("git push; sh -c 'if'; rm x")
    assert not line.unreadable
    assert [c.words[0] for c in line.commands] == ["git", "sh", None, "rm"]
    assert "cannot be read" in line.commands[2].doubt


def test_code_that_cannot_be_read_leaves_nothing_behind_for_what_follows():
    broken = "; ".join(["sh -c 'while x; do $(($y z)); done'"] * 20)
    line = read_line(f"ls; {broken}; PATH=/x; env nice git push")
    assert line.commands[0].doubt == ""
    assert line.commands[-1].words == ("git", "push")


@pytest.mark.parametrize(
    "text",
    [
        "cat <<E\na\\\nb\nE",
        "cat <<E\n${x:-\nE\n}\nE",
        'echo "$\\\n(a)"',
        "echo $(\\\n(a))",
    ],
)
def test_a_line_whose_end_bash_may_see_elsewhere_is_unreadable(text):
    assert read_line(text).unreadable


@pytest.mark.parametrize(
    "text",
    [
        "cat <<'E'\na\\\nb\nE",
        'cat <<"E"\n${x:-\nE',
        "cat <<E\na\\\\\nb $x\nE",
        "cat <<-E\n\ta\n\tE",
        "make \\\n  -j4 && cat <<E\na\nE",
        "echo $(\\\n a)",
    ],
)
def test_a_line_continued_where_nothing_hangs_on_it_is_read(text):
    assert not read_line(text).unreadable


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("echo \"${x:-'$(a)'}\"", False),
        ("cat <<E\n${x:-'`a`'}\nE", False),
        ("echo \"${x:-'b'}\"", True),
        ("echo '$(a)' ${x:-'$(a)'}", True),
        ("echo \"$(echo '$(a)')\"", True),
        ("echo \"it's\" '\"' ", True),
    ],
)
def test_single_quotes_inside_double_quotes_keep_nothing_from_running(text, seen):
    assert (None not in [command.words[0] for command in read_line(text).commands]) is seen
