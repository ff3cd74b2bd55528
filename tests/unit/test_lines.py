"""Claims of `toolcell.shell.lines`: what a line may run and write is found, doubts are told."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.unit.shell_ground import EVASIONS, TABLE, Ground, as_listed, listed, shows_push
from toolcell.shell import lines
from toolcell.shell.facts import Unreadable
from toolcell.shell.lines import Command, Line, Write, read_in_thread, read_line
from toolcell.shell.reading import KNOWN

ENTRIES = [(kind, entry) for kind, entries in TABLE.items() for entry in entries]
EVASIVE = ("hidden", "wrapped", "fetched", "altered", "evaluated", "told")


def doubts(text: str) -> str:
    return "; ".join(command.doubt for command in read_line(text).commands if command.doubt)


def writes(text: str) -> list[str | None]:
    return [write.path for write in read_line(text).writes]


def commands(text: str) -> list[tuple[str | None, ...]]:
    return [command.words for command in read_line(text).commands]


@pytest.mark.parametrize(
    ("kind", "entry"), ENTRIES, ids=[f"{kind}: {entry['text']}" for kind, entry in ENTRIES]
)
def test_a_line_gives_the_facts_that_the_table_lists(kind, entry):
    assert as_listed(read_line(entry["text"])) == listed(entry)


def test_the_table_is_as_large_as_it_should_be():
    assert len(ENTRIES) > 400
    assert len({entry["text"] for _, entry in ENTRIES}) == len(ENTRIES)


@pytest.mark.parametrize("text", [entry["text"] for entry in TABLE["honest"]])
def test_an_honest_line_asks_nobody_for_anything(text):
    line = read_line(text)
    assert not line.unreadable
    assert not [c for c in line.commands if c.doubt or c.words[0] is None]


@pytest.mark.parametrize("text", EVASIONS)
def test_an_evasion_that_reaches_git_push_is_shown(tmp_path, text):
    assert Ground(tmp_path).pushes(text)  # the control: the line does push
    assert shows_push(read_line(text))


def test_the_ground_tells_a_push_from_another_call(tmp_path):
    ground = Ground(tmp_path)
    assert not ground.pushes("git status; echo git push; true git push")
    assert not shows_push(read_line("git status; echo git push; true git push"))
    assert ground.pushes("git push")


def test_commands_come_in_the_order_of_the_text():
    assert commands("a $(b); c | d && e <(f); (g)") == [
        *[("a", None), ("b",), ("c",), ("d",), ("e", None), ("f",), ("g",)]
    ]


def test_quoting_is_undone():
    assert commands(r"""'g'it p"u"sh a\ b "c'd" 'e"f' "" $'g\th' "\$x\y" 1\
2""") == [("git", "push", "a b", "c'd", 'e"f', "", "g\th", r"$x\y", "12")]


@pytest.mark.parametrize(
    "word",
    [
        "$x",
        '"$x"',
        "${x}",
        "$(a)",
        "`a`",
        "$((1))",
        "*",
        "a?c",
        "[ab]",
        "{a,b}",
        "{1..3}",
        "~",
        "~/a",
        "a=~/b",
        "<(a)",
        "@(a|b)",
        '$"a"',
        r"$'\xff'",
        r"$'\u00e9'",
        r"$'a\0b'",
        "a$x",
    ],
)
def test_a_word_that_only_the_run_knows_is_none(word):
    assert commands(f"echo {word} end")[0] == ("echo", None, "end")


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("'*'", "*"),
        (r"\~", "~"),
        ("'{a,b}'", "{a,b}"),
        ("{}", "{}"),
        ("{a}", "{a}"),
        ("[", "["),
        ("HEAD~1", "HEAD~1"),
        ("a=b", "a=b"),
        ("'$x'", "$x"),
        (r"\$x", "$x"),
        ("a#b", "a#b"),
    ],
)
def test_a_word_that_expands_to_nothing_else_is_known(word, text):
    assert commands(f"echo {word} end")[0] == ("echo", text, "end")


PLAIN = st.text("abz019_@%+=:,./-", min_size=1, max_size=6)
OPTIONS = st.sampled_from(
    [
        "-n",
        "-c",
        "-i",
        "-u",
        "-x",
        "-S",
        "-I",
        "-exec",
        "-delete",
        "-o",
        "-C",
        "-v",
        "-e",
        "-p",
        "--help",
        "--output=a",
        "-la",
        "5",
        "A=1",
        "PATH=/x",
        "git",
        "push",
        "sh",
        "xargs",
        "nice",
        "env",
        "eval",
        "trap",
        "a/b",
        "..",
        "/",
        "-",
        "--",
    ]
)


@given(st.sampled_from(sorted(KNOWN)) | PLAIN, st.lists(PLAIN | OPTIONS, max_size=6))
@settings(max_examples=250, deadline=None)
@example("env", ["PATH=/x", "nice", "-n", "5", "git", "push"])
@example("cd", ["-"])
@example("export", ["PATH=/x"])
@example("-", [])
@example("time", ["-p", "git"])
@example("set", ["-k"])
def test_plain_words_give_what_the_parser_gives(first, rest):
    text = " ".join([first, *rest])
    try:
        parsed = lines.parsed(text)
    except Unreadable as error:
        parsed = Line(unreadable=str(error))
    assert read_line(text) == parsed


def test_plain_words_need_no_parser(monkeypatch):
    monkeypatch.setattr(lines, "parse", None)
    assert lines._read("git  push origin/main --x=a,b ") == Line(
        (Command(("git", "push", "origin/main", "--x=a,b")),)
    )
    assert lines._read("nice -n 5 env A=1 make").commands[-1] == Command(("make",))
    with pytest.raises(TypeError):  # the control: other lines do go there
        lines._read("echo $x")


def test_a_line_is_read_once_and_remembered():
    text = "echo remembered | cat"
    read_line(text)
    before = lines._remembered.cache_info()
    assert read_line(text) is read_line(text)
    assert lines._remembered.cache_info().hits == before.hits + 2
    read_line("echo " + "x" * 5000)
    assert lines._remembered.cache_info().currsize == before.currsize


async def test_a_line_can_be_read_beside_other_work():
    assert await read_in_thread("echo a | cat") == read_line("echo a | cat")
    assert await read_in_thread("git push") == read_line("git push")


@pytest.mark.parametrize("text", ["", " ", "\n", "# only a comment", ";", "()", "a;;b", "\\"])
def test_lines_of_nothing_are_read_or_refused(text):
    line = read_line(text)
    assert line.unreadable or commands(text) in ([], [("\\",)])


def test_a_wrapper_with_a_path_of_its_own_is_no_wrapper():
    own, inner = read_line("./env git push").commands
    assert (own.wraps, inner.words) == (False, ("git", "push"))
    assert read_line("/usr/bin/env git push").commands[0].wraps


def test_nested_wrappers_are_looked_through_up_to_a_bound():
    assert commands("nice " * 8 + "git push")[-1] == ("git", "push")
    last = read_line("nice " * 40 + "git push").commands[-1]
    assert last.words == (None,)
    assert "too deeply" in last.doubt


def test_code_inside_code_is_read_up_to_a_bound():
    text = "git push"
    for _ in range(3):
        text = f"bash -c {text!r}" if "'" not in text else 'bash -c "' + text + '"'
    assert read_line(text).commands
    many = "; ".join(f"sh -c 'echo $x {n}'" for n in range(80))
    assert "too much code" in read_line(many).unreadable


def test_a_function_of_the_line_is_looked_through_where_it_surely_is_one():
    assert read_line("greet() { echo hi; }; greet").commands[-1].wraps
    for text in (
        "if x; then greet() { echo hi; }; fi; greet",
        "x && greet() { echo hi; }; greet",
        "greet; greet() { echo hi; }",
        "greet() { echo hi; }; unset -f greet; greet",
        "ls() { echo hi; }; ls",
    ):
        doubted = [c for c in read_line(text).commands if "function" in c.doubt]
        assert doubted, text
        assert not doubted[0].wraps


def test_a_function_is_not_known_to_another_shell():
    assert not read_line("f() { echo; }; bash -c 'f x'").commands[-1].wraps
    assert read_line("f() { echo; }; eval 'f x'").commands[-1].wraps


def test_a_name_set_in_a_loop_casts_doubt_on_the_whole_loop():
    before, inside, after = (
        read_line("ls; while make; do PATH=/x; done; git status").commands[n] for n in range(3)
    )
    assert not before.doubt
    assert "PATH" in inside.doubt
    assert "PATH" in after.doubt


def test_assignments_that_change_nothing_cast_no_doubt():
    assert not doubts("FOO=1; export BAR=2; GIT_AUTHOR_NAME=x git commit; TERM=dumb ls")
    assert "GIT_DIR" in doubts("GIT_DIR=x git status")


def test_the_shell_reads_numbers_without_a_doubt_and_unseen_text_with_one():
    for text in (
        "i=0; while ((i < 3)); do i=$((i + 1)); done",
        "for i in 1 2 3; do echo $((i * 2)); done",
        "n=$(wc -l < f); echo $((n + 1))",
        "if [[ $(git status --porcelain | wc -l) -gt 0 ]]; then make; fi",
        "declare -A m; k=$(cat f); echo ${m[$k]}",
        "echo $((COLUMNS / 2)) ${#x}",
    ):
        assert not doubts(text), text
    for text in (
        "n=$(cat f); echo $((n + 1))",
        "read n; echo $((n + 1))",
        "k=$(cat f); echo ${m[$k]}",
        "if [[ $(cat f) -gt 0 ]]; then make; fi",
        "for i in $(cat f); do echo $((i)); done",
        "for i in *; do echo $((i)); done",
    ):
        assert "may hold" in doubts(text), text


def test_the_directory_of_a_write_is_every_one_that_may_be():
    assert writes("cd a; cd b; echo > f") == ["f", "a/f", "b/f", "a/b/f"]
    assert writes("cd /x; echo > f") == ["f", "/x/f"]
    assert writes("cd; echo > f; echo > /g") == ["f", None, "/g"]
    assert None in writes("for x in " + "; ".join(["a; do cd $x", "cd b; done", "touch f"]))


def test_many_directories_count_as_an_unknown_one():
    text = "; ".join(f"cd d{n}" for n in range(30)) + "; touch f"
    assert None in writes(text)
    assert len(writes(text)) < 40


def test_a_path_that_climbs_out_of_a_directory_keeps_both_spellings():
    assert writes("echo > link/../f") == ["f", "link/../f"]
    assert writes("echo > ../f") == ["../f"]
    assert writes("echo > ././a//f") == ["a/f"]
    assert writes("echo > //etc/x") == ["/etc/x"]


def test_a_write_through_a_link_that_the_line_makes_is_found():
    assert ".git/config" in writes("ln -s .git h; echo > h/config")
    assert ".git/config" in writes("ln -sfn .git h; cd h; echo > config")
    assert "a/.git/x" in writes("ln -s .git a/h; echo > a/h/x")
    assert None in writes("ln -s $x h; echo > h/config")
    assert ".git/config" not in writes("ln -s .git h; echo > other/config")


def test_redirections_say_which_are_by_the_shell():
    assert read_line("tee a > b").writes == (Write("a", implied=True), Write("b"))[::-1]


@pytest.mark.parametrize(
    "text",
    [
        "echo x > /dev/null",
        "echo x >&2",
        "echo 2>&1",
        "echo x > /dev/stderr",
        "echo > /dev/tty",
        "exec 3>&-",
        "echo 3>&1 >/dev/fd/2",
        "echo | tee /dev/null",
        "echo > /proc/self/fd/1",
    ],
)
def test_writing_to_a_stream_is_no_write(text):
    assert writes(text) == []


def test_a_network_path_is_a_doubt_wherever_it_stands():
    for text in (
        "echo > /dev/tcp/h/1",
        "{ a; } > /dev/tcp/h/1",
        "< /dev/udp/h/1",
        "x=1 >/dev/tcp/h/1",
    ):
        assert "network" in doubts(text), text
    assert not doubts("echo > /dev/tcpx")
