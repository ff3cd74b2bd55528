"""Claims of `toolcell.cli`: what was mistyped is told in words that lead on."""

import pytest
from typer.testing import CliRunner

from toolcell.cli.app import app
from toolcell.cli.batch import _handle
from toolcell.cli.call import fresh_id
from toolcell.cli.report import print_report
from toolcell.cli.setup import Setup
from toolcell.cli.table import print_table
from toolcell.errors import PolicyError
from toolcell.model import ToolCall

from .samples import result

DIFF = "--- a/src/x.py\n+++ b/src/x.py\n@@ -1 +1 @@\n-a\n+b\n"


@pytest.fixture
def cli(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")

    def run(*words):
        return CliRunner().invoke(app, words)

    return run


def explained(cli, *words):
    done = cli("policy", "explain", *words)
    return done, [line[14:] for line in done.stdout.splitlines() if line.startswith("the patch")]


def test_an_option_of_few_choices_names_them(cli):
    done = cli("run", "--mode", "rx", "--", "true")
    assert "Invalid value for '--mode': 'rx' is not one of 'rw', 'ro', 'none'" in done.stderr
    assert done.exit_code == 2


def test_the_name_of_no_tool_is_answered_with_the_one_that_was_meant(cli):
    done, _ = explained(cli, "ecoh")
    assert "there is no tool named 'ecoh'; did you mean 'echo'?" in done.stderr
    assert "the tools are apply_patch, " in done.stderr


def test_the_name_of_no_policy_is_answered_with_the_one_that_was_meant(cli):
    done, _ = explained(cli, "echo", "--policy", "defualt")
    assert isinstance(done.exception, PolicyError)
    assert str(done.exception).endswith("; did you mean 'default'?")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (['{"patch": "not a patch"}'], "names no file that a rule could look at"),
        (["not a patch"], "names no file that a rule could look at"),
        ([DIFF], "names src/x.py"),
        ([DIFF, "--policy", "ci"], "names src/x.py"),
        (["--policy", "ci", "--", DIFF], "names src/x.py"),
    ],
)
def test_the_files_of_a_patch_are_named_as_they_were_read(cli, arguments, told):
    done, (said,) = explained(cli, "apply_patch", *arguments)
    assert (said.startswith(told), done.exit_code) == (True, 0)


def test_a_patch_that_touches_what_a_rule_is_about_is_told_with_its_files(cli):
    done, (said,) = explained(cli, "apply_patch", DIFF.replace("src/x.py", ".git/config"))
    assert (said, done.stdout.split()[1]) == ("names .git/config", "ask")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"name": "echo"\n', "line 7 is not a call: not JSON: Expecting ',' delimiter at column"),
        ('{"name": "a", "foo": 1}\n', "unknown key `foo`; a call has `call_id`, `name` and"),
    ],
)
async def test_a_line_that_is_no_call_is_told_by_its_number_alone(line, problem):
    made = await _handle(None, 7, line, wait=False)
    assert problem in made.error.message
    assert "line 1" not in made.error.message
    assert "line 2" not in made.error.message


def test_no_two_runs_of_the_command_share_an_id():
    assert len({fresh_id("call") for _ in range(100)}) == 100
    assert fresh_id("run").startswith("run-")


def test_a_report_spells_no_space_of_its_own(capsys, workspace):
    call = ToolCall(call_id="1", name="echo", arguments={"text": "a"})
    print_report(Setup(workspace=workspace), call, result())
    out = capsys.readouterr().out
    assert "allow by allow:echo of the default policy: the default policy allows echo" in out
    assert "\\x" not in out


def test_one_line_more_is_one_line(capsys):
    print_table([result(output="a\nb\n")])
    print_table([result(output="a\nb\nc\n")])
    out = capsys.readouterr().out
    assert "a (and 1 more line)" in out
    assert "a (and 2 more lines)" in out
