"""Claims of `sandbox_workers.session.shell`: what a bash that is driven keeps, and survives."""

import pytest

from sandbox_workers.session.shell import quoted

from .hosting import Host


@pytest.fixture
def shell(tmp_path):
    made = Host("shell", tmp_path)
    yield made
    made.close()


def interrupted(shell, code, started):
    """Run a line that does not end by itself, and interrupt it once it has begun."""
    call = shell.begin(f"echo {started}; {code}")
    shell.written(call, started.encode())
    return shell.interrupt(call)


def test_what_one_call_made_is_there_in_the_next(shell, tmp_path):
    (tmp_path / "sub").mkdir()
    shell("cd sub; X=5; f() { echo f $X $1; }; alias ll='echo LL'")
    shell("shopt -s extglob; set -o pipefail")
    done = shell('pwd; f a; ll; shopt -q extglob && [[ -o pipefail ]] && echo set; echo "$0"')
    assert done.out == f"{tmp_path}/sub\nf 5 a\nLL\nset\nbash\n"
    assert (done.exit, done.err) == (0, "")


@pytest.mark.parametrize(
    ("line", "code", "error"),
    [
        ("if", 2, "syntax error"),
        ("echo 'unclosed", 2, "matching"),
        ("echo )(", 2, "syntax error"),
        ("false", 1, ""),
        ("nosuch", 127, "command not found"),
        ("set -u; echo $NOPE; echo more", 1, "unbound variable"),
        ("${bad!x}", 1, "bad substitution"),
        ("echo $((1/0))", 1, "division by 0"),
        (": ${NOPE:?must be set}", 1, "must be set"),
        ("readonly R=1; R=2", 1, "readonly"),
        ("return 5", 2, "return"),
        ("kill -INT $$; echo not this", 130, ""),
        ("(exit 9)", 9, ""),
    ],
)
def test_what_fails_in_a_call_ends_only_that_call(shell, line, code, error):
    failed = shell(line)
    assert failed.exit == code
    assert error in failed.err
    assert failed.out == ""
    assert shell("echo $?; X=here; echo $X").out == f"{code}\nhere\n"


def test_what_a_line_changes_of_the_shell_itself_does_not_reach_the_driver(shell):
    shell("printf() { :; }; eval() { :; }; source() { :; }; echo() { builtin echo mine; }")
    assert shell("echo a").out == "mine\n"
    shell("unset -f printf eval source echo; alias printf=false builtin=false; set -xv")
    shell("set +xv; PROMPT_COMMAND='echo prompt'; PS1='$(echo ps)'")
    shell("trap 'echo debug >&2' DEBUG ERR")
    assert shell("trap - DEBUG ERR; true").exit == 0
    shell("exec >/dev/null 2>&1 </dev/null")
    assert shell("echo there").out == "there\n"


def test_text_of_any_kind_reaches_the_shell_as_it_is(shell):
    text = "a!b '\\x41' \\\\ \t\"q\" é $'x\\ny' `echo` % \\'"
    assert shell(f"cat <<'EOF'\n{text}\nEOF").out == f"{text}\n"
    assert shell("cat <<EOF\nno end").out == "no end\n"
    assert "\n" not in quoted("a\nb")
    assert shell("echo " + "x" * 300_000 + " | wc -c").out == "300001\n"


def test_standard_input_is_empty_or_what_the_call_was_given(shell):
    assert shell('read x; echo "$? $x"').out == "1 \n"
    assert shell("cat; echo", stdin=b"given" * 50_000).out == "given" * 50_000 + "\n"


@pytest.mark.parametrize(
    "code",
    [
        "while :; do :; done",
        "while :; do sleep 60; done",
        "sleep 60; echo not this",
        "cat /dev/zero | tr '\\0' a | cat >/dev/null",
        "x=$(sleep 60)",
        "wait; sleep 60 & wait",
    ],
)
def test_an_interrupt_ends_the_whole_line_and_the_state_survives(shell, code):
    shell("X=kept")
    done = interrupted(shell, code, "started")
    assert (done.exit, done.kept) == (130, True)
    assert "not this" not in done.out
    assert shell("echo $X").out == "kept\n"


def test_a_background_job_survives_an_interrupt_and_its_output_is_told_apart(shell, tmp_path):
    (tmp_path / "go").write_text("")
    job = "while [ -e go ]; do sleep 0.01; done; echo of the job; echo err >&2; touch done"
    shell(f"(touch on; {job}) & until [ -e on ]; do sleep 0.01; done")
    interrupted(shell, "sleep 60", "started")
    (tmp_path / "go").unlink()
    done = shell("while ! [ -e done ]; do sleep 0.01; done; echo mine")
    assert done.out == "mine\n"
    assert done.earlier == "of the job\nerr\n"
    assert shell("echo again").earlier == ""


@pytest.mark.parametrize(
    ("line", "code"), [("exit 3", 3), ("set -e; false", 1), ("exec true", 0), ("kill -9 $$", -9)]
)
def test_what_ends_the_shell_ends_the_session_and_says_how(shell, line, code):
    done = shell(f"echo before; {line}; echo after")
    assert (done.out, done.kept, done.exit) == ("before\n", False, code)
    assert shell.process.wait(timeout=5) == 0, "the host ends with its last executor"


def test_a_line_that_ignores_the_interrupt_is_interrupted_with_all_it_started_again(shell):
    call = shell.begin("trap '' INT; echo on; read x < <(sleep 0.2; echo y); echo end")
    shell.written(call, b"on")
    for again in (False, True):
        shell.send(shell.dialogue.interrupt(call, again=again))
    assert "end" in shell.end_of(call).out
    assert shell("trap - INT; echo next").out == "next\n"


def test_a_shell_that_does_not_report_as_it_was_told_to_is_ended(shell):
    done = shell("builtin() { command printf 'junk\\n'; }")
    assert not done.kept
    assert "does not report" in done.end.why
