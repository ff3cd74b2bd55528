"""Claims of the policy on sessions: an earlier call may have changed what a line means."""

import pytest

from toolcell.policy import ToolPolicy, load_policy

from .deciding import decide

BY_COMMAND = ToolPolicy(
    default="deny",
    rules=[
        {"id": "look", "tool": "shell*", "decision": "allow", "commands": ["git status", "ls"]},
        {"id": "text", "tool": "shell*", "decision": "allow", "writes": ["*.txt", "/data/**"]},
        {"id": "push", "tool": "shell*", "command": "git push", "decision": "deny", "reason": "no"},
    ],
)
BY_WRITES = ToolPolicy(
    default="deny",
    rules=[{"id": "text", "tool": "shell*", "decision": "allow", "writes": ["*.txt", "/data/**"]}],
)


@pytest.mark.parametrize(
    ("line", "alone", "in_session"),
    [
        ("git status", "allow", "ask"),
        ("ls && git status", "allow", "ask"),
        ("ls > out.txt", "allow", "ask"),
        ("git push", "deny", "deny"),
        ("make", "deny", "ask"),
    ],
)
def test_an_allow_by_command_is_only_possible_in_a_session(line, alone, in_session):
    assert decide(BY_COMMAND, "shell", command=line).action == alone
    decision = decide(BY_COMMAND, "shell_session", command=line)
    assert decision.action == in_session
    if in_session == "ask":
        assert "an earlier call of the session" in decision.reason


@pytest.mark.parametrize(
    ("line", "alone", "in_session"),
    [("> out.txt", "allow", "deny"), ("> /data/x", "allow", "allow"), ("> x.sh", "deny", "deny")],
)
def test_an_allow_of_a_relative_write_is_only_possible_in_a_session(line, alone, in_session):
    assert decide(BY_WRITES, "shell", command=line).action == alone
    assert decide(BY_WRITES, "shell_session", command=line).action == in_session


@pytest.mark.parametrize("name", ["default", "ci"])
@pytest.mark.parametrize(
    "line", ["git status; make > log.txt", "cd sub && f() { ls; }", "# nothing"]
)
def test_where_the_whole_tool_is_allowed_sessions_run(name, line):
    assert decide(load_policy(name), "shell_session", command=line).action == "allow"
    assert decide(load_policy(name), "python_session", code=line).action == "allow"


def test_what_is_asked_about_by_its_name_is_asked_about_in_a_session_too():
    decision = decide(load_policy("default"), "shell_session", command="echo x > .git/hooks/post")
    assert (decision.action, decision.rule_id) == ("ask", "version-control")


def test_the_open_policy_gives_sessions_no_network():
    for tool, code in (("shell_session", {"command": "curl x"}), ("python_session", {"code": "x"})):
        assert decide(load_policy("open"), tool, **code).cell.network == "none"


def test_the_strict_policy_asks_about_sessions():
    for tool in ("python_session", "sessions"):
        code = {"code": "1"} if tool == "python_session" else {}
        assert decide(load_policy("strict"), tool, **code).action == "ask"
