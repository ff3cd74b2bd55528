"""Claims of the policy on sessions: an earlier call may have changed what a line means."""

import pytest

from toolcell.policy import Decider, ToolPolicy, load_policy
from toolcell.registry import ToolRegistry

from .deciding import decide
from .samples import prepared

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


class Told:
    """A session under the default policy: what is decided of each line after the other."""

    def __init__(self, policy="default", tool="shell_session"):
        self.decider, self.tool = Decider(load_policy(policy)), tool
        self.definition = ToolRegistry.builtin().resolve(tool)

    def __call__(self, line, session="main"):
        around = {"session": session} if self.tool == "shell_session" else {}
        return self.decider.decide(prepared(self.definition, command=line, **around)).action


@pytest.mark.attack
@pytest.mark.parametrize(
    "lines",
    [
        ["cd .git/hooks"],
        ["cd .git", "cd hooks"],
        ["cd sub; cd ../.git && ls"],
        ["pushd .git/hooks"],
        ["cd .git/hooks", "cd -", "cd /nowhere"],
    ],
)
def test_a_relative_write_is_looked_at_from_where_the_session_was_told_to_go(lines):
    write = "printf '#!/bin/sh' > pre-commit; chmod +x pre-commit"
    told = Told()
    assert told(write) == "allow", "the control"
    assert [told(line) for line in lines] == ["allow"] * len(lines)
    assert told(write) == "ask"
    assert told(write, "another") == "allow"
    assert told("echo > /tmp/pre-commit") == "allow"
    assert told("ls; make test") == "allow"
    alone = Told(tool="shell")
    assert [alone(line) for line in (*lines, write)] == ["allow"] * (len(lines) + 1)


def test_a_session_in_an_honest_directory_is_not_asked_about():
    told = Told()
    for line in ("cd src", "echo x > a.txt", "cd ..", "cd docs/sub && make > log", "cp a b"):
        assert told(line) == "allow"


def test_of_many_directories_the_latest_are_kept():
    told = Told()
    told("cd .git")
    for number in range(20):
        told(f"cd /somewhere/{number}")
    told("cd /x/.git")
    assert told("> config") == "ask"
    assert (
        len(told.decider._visited.of(prepared(told.definition, command="x", session="main"))) <= 16
    )
