"""Claims of `toolcell.shell.wrappers` and `.options`: what a wrapper starts is found."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcell.shell.behind import Code, Inner
from toolcell.shell.facts import Unknown
from toolcell.shell.launchers import LAUNCHERS
from toolcell.shell.lines import read_line
from toolcell.shell.options import Spec, read, spec
from toolcell.shell.wrappers import WRAPPERS, look_through

PROGRAM = spec("-abv -n: -i? --all --name: --in-place? --number: --quiet", numbers=True)


def found(*words):
    return read(words, PROGRAM)


def test_a_description_tells_flags_values_and_attached_values_apart():
    assert spec("-ab -n: -i? --all --name: --in? ") == Spec(
        {"a": "", "b": "", "n": ":", "i": "?", "all": "", "name": ":", "in": "?"}
    )


@pytest.mark.parametrize(
    ("words", "options", "operands"),
    [
        (("-a", "x"), [("a", "")], ["x"]),
        (("-ab", "x"), [("a", ""), ("b", "")], ["x"]),
        (("-n", "5", "x"), [("n", "5")], ["x"]),
        (("-n5", "x"), [("n", "5")], ["x"]),
        (("-an5", "x"), [("a", ""), ("n", "5")], ["x"]),
        (("-n", "-a", "x"), [("n", "-a")], ["x"]),
        (("-i", "x"), [("i", "")], ["x"]),
        (("-ix", "y"), [("i", "x")], ["y"]),
        (("--name=v", "x"), [("name", "v")], ["x"]),
        (("--name", "v", "x"), [("name", "v")], ["x"]),
        (("--in-place", "x"), [("in-place", "")], ["x"]),
        (("--nam=v", "x"), [("name", "v")], ["x"]),
        (("--", "-a"), [], ["-a"]),
        (("x", "-a"), [], ["x", "-a"]),
        (("-5", "x"), [("-5", "")], ["x"]),
        (("-",), [], ["-"]),
        (("-n",), [("n", "")], []),
    ],
)
def test_options_are_read_as_programs_read_them(words, options, operands):
    read_ = found(*words)
    assert (read_.options, read_.operands, read_.unknown) == (options, operands, "")


@pytest.mark.parametrize(
    ("words", "unknown"),
    [(("-x", "y"), "-x"), (("-ax",), "-x"), (("--other",), "--other"), (("--n", "1"), "--n")],
)
def test_an_option_that_is_not_known_is_told(words, unknown):
    assert found(*words).unknown == unknown


def test_a_word_of_the_run_ends_the_options():
    read_ = found("-a", Unknown.ANY, "-b")
    assert read_.computed
    assert read_.operands == [Unknown.ANY, "-b"]


def test_options_behind_operands_count_where_programs_permute():
    read_ = read(("x", "-a", "y", "--", "-b"), PROGRAM, permute=True)
    assert (read_.options, read_.operands) == ([("a", "")], ["x", "y", "-b"])


@given(st.lists(st.sampled_from(["-a", "-n", "5", "--name", "--name=x", "x", "--", "-", "-i"])))
def test_no_word_is_lost_between_options_and_operands(words):
    read_ = found(*words)
    joined = Counter(word for word in words if "=" in word)
    kept = len(read_.operands)
    for name, value in read_.options:
        in_one_word = joined[f"--{name}={value}"] > 0
        joined[f"--{name}={value}"] -= 1
        kept += 1 if not value or in_one_word else 2
    ended = ["--"] if "--" in words else []
    assert len(words) - len(ended) <= kept + 1 or read_.unknown


@pytest.mark.parametrize("name", sorted(LAUNCHERS))
def test_every_launcher_starts_the_command_behind_its_options(name):
    launcher = LAUNCHERS[name]
    skipped = ["7"] * launcher.skip
    behind = look_through((*name.split(), *skipped, "git", "push"))
    assert behind is not None
    if launcher.blind:
        assert behind.doubt
        assert behind.inner == (Inner((Unknown.ANY,)),)
    elif launcher.joins:
        assert behind.inner == (Code("git push", f"what {name} is given", "posix"),)
    elif launcher.each:
        assert [code.text for code in behind.inner] == ["git", "push"]
    elif name in ("su", "runuser"):
        assert [code.text for code in behind.inner] == [None]
    else:
        assert behind.inner == (Inner(("git", "push")),)
    assert behind.own == launcher.own


@pytest.mark.parametrize("name", sorted(LAUNCHERS))
def test_no_launcher_passes_over_an_option_that_it_does_not_know(name):
    command = "/usr/bin/time" if name == "time" else name  # not the word of the grammar
    line = read_line(f"{command} --toolcell-never-heard-of-it git push")
    assert line.commands[0].doubt
    assert line.commands[-1].words == (None,)


@pytest.mark.parametrize("name", sorted(WRAPPERS - {"nix-shell", "gdb", "trap", "jobs"}))
def test_no_wrapper_starts_a_computed_command_in_silence(name):
    line = read_line(f"{name} $x git push")
    assert (
        any(c.doubt or c.words[0] is None for c in line.commands) or None in line.commands[0].words
    )


@pytest.mark.parametrize(
    "text",
    ["nice -n $x git push", "timeout $x git push", "flock $x git push", "xargs -n $x git push"],
)
def test_a_value_that_may_be_several_words_casts_doubt_on_what_follows(text):
    pushes = [c for c in read_line(text).commands if c.words[:2] == ("git", "push")]
    assert ["a word before it is only known at run time" in c.doubt for c in pushes] == [True]


def test_what_stands_where_a_command_should_is_no_option():
    assert read_line("chroot / --userspec=x git push").commands[-1].words == (None,)


@pytest.mark.parametrize(
    ("text", "inner"),
    [
        ("find . -exec a {} b{} \\; -o -execdir c {} +", [("a", None, None), ("c", None)]),
        ("find . -exec a", [("a",)]),
        ("xargs -I % a % b%c d", [("a", None, None, "d")]),
        ("xargs -i a {}", [("a", None)]),
        ("xargs --replace=@ a @", [("a", None)]),
        ("parallel -j4 a {} b ::: 1 2", [("a", None, "b")]),
        ("parallel a ::: 1", [("a", None)]),
        ("fd x -x a {/.} -n", [("a", None, "-n")]),
    ],
)
def test_what_is_fed_to_a_command_is_unknown(text, inner):
    assert [c.words for c in read_line(text).commands[1:]] == inner


def test_a_shell_without_code_reads_it():
    for text in ("sh", "bash -s x", "bash -x", "sudo bash", "env sh", "bash /dev/fd/3", "bash -i"):
        last = read_line(text).commands[-1]
        assert last.words == (None,), text
        assert "run time" in last.doubt


def test_a_here_document_is_code_only_for_the_command_that_reads_it():
    assert read_line("bash <<X\ngit push\nX").commands[-1].words == ("git", "push")
    assert read_line("sudo env A=1 bash <<< 'git push'").commands[-1].words == ("git", "push")
    assert read_line("cat <<X\ngit push\nX").commands[-1].words == ("cat",)
    assert read_line("{ bash; } <<< 'git push'").commands[-1].words == (None,)
    assert read_line("bash <<< 'git push' < f").commands[-1].words == (None,)
    assert read_line("bash 3<<< 'git push'").commands[-1].words == (None,)


def test_the_escapes_of_a_here_document_are_undone():
    assert read_line("sh <<X\necho \\$x \\\\\\`\nX").commands[-1].words == ("echo", None, "`")
    assert read_line("sh <<X\necho '\\$x'\nX").commands[-1].words == ("echo", "$x")
    assert read_line("sh <<'X'\necho '\\$x'\nX").commands[-1].words == ("echo", "\\$x")
    assert read_line("sh <<-X\n\t\techo a\n\tX").commands[-1].words == ("echo", "a")


def test_a_foreign_shell_is_believed_in_plain_words_only():
    assert not read_line("zsh -c 'git status'").commands[-1].doubt
    assert "otherwise" in read_line("zsh -c 'git status; =ls'").commands[-1].doubt
    assert "otherwise" in read_line("fish -c 'git (x)'").commands[-1].doubt


def test_wrappers_that_change_who_runs_a_command_need_a_rule_of_their_own():
    for name in ("sudo", "doas", "unshare", "strace", "poetry run"):
        first = read_line(f"{name} git push").commands[0]
        assert not first.wraps
    for name in ("nice", "env", "nohup", "command"):
        assert read_line(f"{name} git push").commands[0].wraps


def test_what_wrappers_write_themselves_is_found():
    assert [w.path for w in read_line("/usr/bin/time -o t strace -o s flock l ls").writes] == [
        *["t", "s", "l"]
    ]
