"""Claims of `toolcell.shell.around`: what stands around a line is read as if the line said it."""

import pytest

from toolcell.policy import Decider, ToolPolicy
from toolcell.policy.explanation import explain
from toolcell.shell import Around, read_line

from .deciding import decide, prepared

POLICY = ToolPolicy(
    name="test",
    rules=[
        {
            "id": "runs",
            "tool": "shell",
            "command": [["bash", "echo", "cat", "xargs", "tee", "make", "pytest"]],
            "decision": "allow",
            "reason": "harmless",
        },
        {
            "id": "git",
            "tool": "shell",
            "command": ["git", ["status", "log"]],
            "decision": "allow",
            "reason": "it looks",
        },
        {
            "id": "writes",
            "tool": "shell",
            "writes": ["src/**"],
            "decision": "allow",
            "reason": "sources",
        },
    ],
)


def action(workspace, command, **around):
    return decide(POLICY, "shell", workspace, command=command, **around).action


VARIABLES = {
    "PATH": "./evil",
    "LD_PRELOAD": "./evil.so",
    "LD_LIBRARY_PATH": ".",
    "BASH_ENV": "./evil",
    "ENV": "./evil",
    "IFS": "/",
    "PS4": "$(evil)",
    "SHELLOPTS": "xtrace",
    "HOME": ".",
    "GIT_SSH_COMMAND": "evil",
    "GIT_EXTERNAL_DIFF": "evil",
    "GIT_CONFIG_COUNT": "1",
    "GIT_PAGER": "evil",
    "PAGER": "evil",
    "EDITOR": "evil",
    "PYTHONPATH": ".",
    "NODE_OPTIONS": "--require ./evil",
    "BASH_FUNC_git": "() { evil; }",
    "MAKEFLAGS": "--eval=$(shell evil)",
}


@pytest.mark.attack
@pytest.mark.parametrize("name", VARIABLES)
def test_a_variable_that_can_change_what_runs_is_asked_about(workspace, name):
    assert action(workspace, "git status") == "allow", "the control"
    assert action(workspace, "git status", environment={name: VARIABLES[name]}) == "ask"
    assert action(workspace, f"export {name}='{VARIABLES[name]}'; git status") == "ask"


@pytest.mark.parametrize("line", ["git status", "echo a | cat", "bash -c 'git status'"])
@pytest.mark.parametrize(
    "variables", [{"LANG": "C"}, {"NO_COLOR": "1", "CI": "true"}, {"GIT_PAGER": "cat"}]
)
def test_a_variable_that_changes_nothing_is_not(workspace, line, variables):
    assert action(workspace, line, environment=variables) == "allow"


@pytest.mark.attack
@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("echo $((x))", "a[$(evil)]"),
        ("bash -c 'echo $((x))'", "a[$(evil)]"),
        ("cat < $x", "/dev/tcp/192.0.2.1/80"),
    ],
)
def test_a_value_that_bash_may_run_or_open_is_asked_about(workspace, line, value):
    assert action(workspace, line, environment={"x": "1"}) == "allow", "the control"
    assert action(workspace, line, environment={"x": value}) == "ask"


@pytest.mark.parametrize("line", ["echo hi > file", "cat a >> sub/file"])
def test_a_relative_write_lies_in_the_directory_of_the_call(workspace, line):
    assert action(workspace, line, directory="src") == "allow"
    assert action(workspace, line, directory="src/") == "allow"
    assert action(workspace, line, directory=str(workspace / "src")) == "allow"
    assert action(workspace, line) == "deny", "the control"
    assert action(workspace, line, directory="lib") == "deny"


@pytest.mark.attack
@pytest.mark.parametrize(
    ("line", "directory"),
    [
        ("echo hi > ../file", "src"),
        ("echo hi > file", "src/../lib"),
        ("echo hi > file", "src/.."),
        ("cd .. && echo hi > file", "src"),
        ("echo hi > file", "-"),
        ("echo hi > file", "~/src"),
    ],
)
def test_no_directory_makes_another_write_look_like_one_that_is_allowed(workspace, line, directory):
    assert action(workspace, "echo hi > src/file") == "allow", "the control"
    assert action(workspace, line, directory=directory) != "allow"


@pytest.mark.parametrize("line", ["git status", "make", "pytest -q"])
def test_a_directory_alone_is_nothing_to_ask_about(workspace, line):
    assert action(workspace, line, directory="src") == "allow"


def test_a_link_in_the_workspace_is_followed_to_where_it_leads(workspace):
    (workspace / "lib").mkdir()
    (workspace / "src").symlink_to("lib")
    assert action(workspace, "echo hi > file", directory="src") != "allow"


@pytest.mark.attack
@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("bash", "evil\n"),
        ("bash", "git push"),
        ("bash -s", "git status; PATH=. git status"),
        ("env bash", "evil"),
        ("bash -", "$(echo evil)"),
        ("xargs git", "push"),
        ("cat | bash", "git status"),
        ("read x; bash", "#evil"),
        ("bash; true", "git status"),
    ],
)
def test_an_input_is_the_script_of_what_reads_its_script_there(workspace, line, text):
    assert action(workspace, line, input=text) != "allow"


@pytest.mark.parametrize(
    ("line", "text"), [("bash", "git status\necho hi"), ("cat", "evil"), ("git status", "evil")]
)
def test_an_input_that_runs_nothing_else_is_not_asked_about(workspace, line, text):
    assert action(workspace, line, input=text) == "allow"


def test_what_is_remembered_of_a_line_is_remembered_with_what_is_around_it():
    bare = read_line("git status")
    assert read_line("git status", Around(variables=(("PATH", "x"),))).commands[-1].doubt
    assert read_line("git status", Around()) == bare
    there, here = (
        read_line("echo a > f", Around(directory=each)).writes[0].path for each in ("a", "b")
    )
    assert (there, here) == ("a/f", "b/f")


def test_an_explanation_names_what_is_around_the_line(workspace):
    call = prepared("shell", command="git status", directory="src", environment={"PATH": "x"})
    found = explain(Decider(POLICY, workspace), call)
    assert "PATH is set" in found.decision.reason
    assert [each.rule_id for each in found.rulings if str(each.part) == "git status"] == [
        "doubtful-command"
    ]


def test_a_rule_can_be_about_what_is_around_a_line(workspace):
    stays = {"id": "stays", "tool": "shell", "command": ["cd"], "decision": "deny", "reason": "no"}
    policy = ToolPolicy(name="test", rules=[*POLICY.rules, stays])
    assert decide(policy, "shell", workspace, command="git status").action == "allow"
    assert decide(policy, "shell", workspace, command="git status", directory="src").rule_id == (
        "stays"
    )


@pytest.mark.parametrize(
    "beside", [{"variables": ["PATH=x"]}, {"variables": {"A": 1}}, {"where": 1}, {"text": []}]
)
def test_what_cannot_be_read_around_a_line_is_asked_about(beside, workspace):
    from toolcell.model import HandlerRef, PreparedToolCall, ToolCall, ToolDefinition, ToolSpec

    tool = ToolDefinition(
        spec=ToolSpec(name="shell", description="", input_schema={}),
        handler=HandlerRef(module="m", function="f"),
        shell_line="line",
        shell_directory="where",
        shell_variables="variables",
        shell_input="text",
    )

    def decided(**arguments):
        call = ToolCall(call_id="1", name="shell", arguments=arguments)
        return Decider(POLICY, workspace).decide(PreparedToolCall.of(call, tool, arguments))

    assert decided(line="git status").action == "allow", "the control"
    assert decided(line="git status", **beside).rule_id == "unreadable-line"


async def test_a_line_that_is_read_ahead_is_read_with_what_is_around_it(workspace):
    decider = Decider(POLICY, workspace)
    call = prepared("shell", command="git  'status'", environment={"PATH": "x"})
    read = await decider.read_ahead(call)
    assert decider.decide(call, read).action == "ask"
