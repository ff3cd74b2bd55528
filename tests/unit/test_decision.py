"""Claims of `toolcell.policy.decision`: parts are decided one by one; the strictest wins."""

import subprocess
from pathlib import Path

import pytest

from toolcell import tool
from toolcell.errors import PolicyError
from toolcell.model import Action, HandlerRef, ToolDefinition, ToolSpec
from toolcell.policy import Decider, ToolPolicy, check_policy, load_policy
from toolcell.policy.layers import tighten
from toolcell.policy.proposal import Proposal
from toolcell.registry import ToolRegistry

from .deciding import decide, line, prepared

ALLOW_GIT = {"id": "git", "tool": "shell", "decision": "allow", "commands": ["git status", "ls"]}
ASK_PUSH = {
    "id": "push",
    "tool": "shell",
    "command": ["git", ["push", "fetch"]],
    "decision": "ask",
    "reason": "talks to a remote",
}
DENY_RM = {
    "id": "rm",
    "tool": "shell",
    "command": "rm -rf",
    "decision": "deny",
    "reason": "it deletes",
}


def policy(*rules, **rest):
    return ToolPolicy(**({"rules": rules} | rest))


@pytest.mark.parametrize(
    ("command", "action", "rule"),
    [
        ("git status", "allow", "git"),
        ("git status --short && ls -l", "allow", "git"),
        ("git status; cat x", "deny", "default"),
        ("cat x", "deny", "default"),
        ("git push", "ask", "push"),
        ("git -C sub push origin", "ask", "push"),
        ("git status && git fetch", "ask", "push"),
        ("git push; rm -rf x", "deny", "rm"),
        ("rm -r -f x", "deny", "rm"),
        ("git $X", "ask", "push"),
        ("$X push", "ask", "computed-command"),
        ("./git status", "deny", "default"),
        ("cd sub && if [ -f x ]; then git status; else echo none; fi", "allow", "git"),
        ("echo done", "deny", "default"),
        ("echo $(cat x)", "deny", "default"),
        ("timeout 5 git status", "allow", "git"),
    ],
)
def test_each_command_is_decided_and_the_strictest_wins(command, action, rule):
    decision = line(policy(ALLOW_GIT, ASK_PUSH, DENY_RM), command)
    assert (decision.action, decision.rule_id) == (action, rule), decision.reason


def test_a_decision_on_a_line_tells_the_part_and_the_reason():
    decision = line(policy(ALLOW_GIT, ASK_PUSH), "git status && git push origin main")
    assert decision.reason == "`git push origin main`: talks to a remote"


def test_a_redirection_has_to_be_allowed_as_a_write():
    rules = policy(ALLOW_GIT)
    denied = line(rules, "git status > out.txt")
    assert (denied.action, denied.rule_id) == ("deny", "default")
    assert "writing out.txt" in denied.reason
    writes = {"id": "w", "tool": "shell", "decision": "allow", "writes": ["*.txt"]}
    assert line(policy(ALLOW_GIT, writes), "git status > out.txt").action == "allow"
    assert line(policy(ALLOW_GIT, writes), "git status > out.sh").action == "deny"


def test_what_a_program_is_known_to_write_needs_no_rule_but_can_be_denied():
    copies = {"id": "cp", "tool": "shell", "decision": "allow", "commands": ["cp"]}
    assert line(policy(copies), "cp a b").action == "allow"
    guard = {
        "id": "guard",
        "tool": "shell",
        "writes": "**/.git/**",
        "decision": "deny",
        "reason": "no",
    }
    assert line(policy(copies, guard), "cp a .git/config").rule_id == "guard"
    assert line(policy(copies, guard), "cp a b").action == "allow", "the control"


def test_a_write_to_a_computed_path_may_be_anywhere():
    guard = {"id": "g", "tool": "shell", "writes": ".git/**", "decision": "deny", "reason": "no"}
    decision = line(ToolPolicy(allow=["shell"], rules=[guard]), "echo x > $F")
    assert (decision.action, decision.rule_id) == ("ask", "g")


def test_a_rule_that_is_certain_leaves_alone_what_only_the_run_knows():
    guard = {"id": "g", "tool": "shell", "writes": ".git/**", "decision": "deny", "reason": "no"}
    rules = ToolPolicy(allow=["shell"], rules=[guard | {"certain": True}])
    assert line(rules, "touch $F").action == "allow"
    assert line(rules, "touch .git/x").action == "deny"
    assert line(rules, "$F x").rule_id == "computed-command", (
        "a command is asked about all the same"
    )


@pytest.mark.parametrize("command", ["sort -o out f", "sed -i s/a/b/ out", "find out -delete"])
def test_what_a_program_that_reads_writes_by_an_option_needs_a_rule(command):
    reads = {"id": "r", "tool": "shell", "decision": "allow", "commands": ["sort", "sed", "find"]}
    denied = line(policy(reads), command)
    assert (denied.action, "writing out" in denied.reason) == ("deny", True)
    writes = {"id": "w", "tool": "shell", "decision": "allow", "writes": "out/**"}
    assert line(policy(reads, writes), command).action == "allow"
    assert line(policy(reads), "sort out | sed s/a/b/; find out").action == "allow", "the control"


def test_a_rule_on_writes_holds_for_tools_with_paths_and_not_for_those_that_read(tmp_path):
    guard = {
        "id": "guard",
        "tool": "*_file",
        "writes": ["**/.git/**"],
        "decision": "ask",
        "reason": "hooks run",
    }
    rules = ToolPolicy(allow=["*"], rules=[guard])
    (tmp_path / ".git").mkdir()
    (tmp_path / "alias").symlink_to(".git")
    for path in (".git/hooks/x", "sub/.git/x", "alias/x", "a/../.git/x", f"{tmp_path}/.git/x"):
        decision = decide(rules, "write_file", tmp_path, path=path, content="")
        assert (decision.action, decision.rule_id) == ("ask", "guard"), path
    assert decide(rules, "write_file", tmp_path, path="x", content="").action == "allow"
    assert decide(rules, "read_file", tmp_path, path=".git/config").action == "allow"


def test_an_allow_on_writes_covers_only_paths_that_lead_there(tmp_path):
    docs = {"id": "docs", "tool": "write_file", "writes": "docs/**", "decision": "allow"}
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/out").symlink_to("..")
    rules = policy(docs)
    assert decide(rules, "write_file", tmp_path, path="docs/a", content="").action == "allow"
    for path in ("docs/out/a", "a", "docs/../a", "/etc/passwd"):
        assert decide(rules, "write_file", tmp_path, path=path, content="").action == "deny", path


def test_arguments_can_decide():
    small = {
        "id": "small",
        "tool": "list_files",
        "decision": "allow",
        "args": {"limit": {"max": 9}},
    }
    rules = policy(small)
    assert decide(rules, "list_files", limit=9).action == "allow"
    assert decide(rules, "list_files", limit=10).action == "deny"
    assert decide(rules, "list_files").action == "deny", "the default, 1000, is filled in"


def test_a_line_is_not_read_where_no_rule_looks_into_it():
    assert line(ToolPolicy(allow=["shell"]), "$(((").action == "allow"
    assert line(ToolPolicy(allow=["shell"], rules=[ASK_PUSH]), "$X").action == "ask"


def test_a_tool_that_is_allowed_by_name_and_denied_by_a_rule_is_denied():
    rules = ToolPolicy(allow=["shell"], rules=[DENY_RM])
    assert line(rules, "rm -rf x").action == "deny"
    assert line(rules, "rm x").action == "allow", "the control"


def test_where_nobody_can_be_asked_what_would_ask_is_denied():
    rules = ToolPolicy(allow=["shell"], rules=[ASK_PUSH], on_ask="deny")
    decision = line(rules, "git push")
    assert decision.action == "deny"
    assert "talks to a remote" in decision.reason
    assert "nobody is there" in decision.reason


def test_all_rules_that_may_match_narrow_the_cell():
    rules = ToolPolicy(
        allow=["shell"],
        rules=[
            {"id": "n", "tool": "*", "cell": {"network": "none"}},
            {"id": "l", "tool": "shell", "command": ["make"], "limits": {"wall": "5s"}},
            {"id": "w", "tool": "shell", "command": ["x*"], "cell": {"workspace": "ro"}},
        ],
        cell={"network": "host", "require": []},
        limits={"wall": 60, "memory": "1GiB"},
    )
    decision = line(rules, "make -j")
    assert (decision.cell.network, decision.limits.wall) == ("none", 5)
    assert decision.limits.memory == 2**30
    assert decision.cell.workspace == "rw"
    assert line(rules, "true").limits.wall == 60, "the control"
    assert line(rules, "true && $PROGRAM").limits.wall == 5, "it may be make"


def test_a_rule_cannot_give_more_than_the_policy():
    rules = ToolPolicy(
        allow=["shell"],
        rules=[{"id": "x", "tool": "*", "cell": {"workspace": "ro"}, "limits": {"wall": "1h"}}],
        cell={"workspace": "none"},
        limits={"wall": 5},
    )
    decision = line(rules, "true")
    assert (decision.cell.workspace, decision.limits.wall) == ("none", 5)


def test_directories_that_two_rules_leave_writable_are_those_of_both():
    def narrowed(first, second):
        rules = ToolPolicy(
            allow=["shell"],
            rules=[
                {"id": "a", "tool": "*", "cell": {"writable": first}},
                {"id": "b", "tool": "*", "cell": {"writable": second}},
            ],
        )
        cell = line(rules, "true").cell
        return cell.workspace, cell.writable

    assert narrowed(["build", "docs"], ["docs/api", "src"]) == ("rw", ("docs/api",))
    assert narrowed(["build"], ["builds"]) == ("ro", ())


@tool(paths=("target",), shell_line="line")
def deploy(line: str, target: Path, count: int = 1) -> str:
    """A tool of one's own, with a shell line, a path and a number."""
    return f"{line} {target} {count}"


def test_a_tool_of_ones_own_says_which_arguments_a_policy_can_look_into():
    registry = ToolRegistry([deploy])
    rules = ToolPolicy(allow=["deploy"], rules=[ASK_PUSH | {"tool": "deploy"}])
    check_policy(rules, registry, ToolRegistry.builtin())
    call = prepared("deploy", registry, line="git push", target="x")
    assert Decider(rules).decide(call).rule_id == "push"


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"tool": "shel"}, "names 'shel', which is not a tool here; did you mean 'shell'?"),
        (
            {"tool": "shell", "args": {"comand": "x"}},
            "no argument 'comand'; did you mean 'command'",
        ),
        ({"tool": "echo", "command": "git"}, "echo has no argument that is a line for a shell"),
        ({"tool": "read_file", "writes": "x"}, "read_file has no argument that is a path, or only"),
        ({"tool": "*_file", "args": {"contents": "x"}}, "has no argument 'contents'"),
    ],
)
def test_a_rule_that_can_never_fire_is_an_error(rule, words):
    rules = policy({"id": "r", "decision": "deny", "reason": "no"} | rule)
    with pytest.raises(PolicyError, match=words):
        check_policy(rules, ToolRegistry.builtin())


def test_a_policy_may_speak_of_built_in_tools_that_a_registry_does_not_have():
    registry = ToolRegistry([deploy])
    rules = ToolPolicy(allow=["deploy"], rules=[ASK_PUSH])
    check_policy(rules, registry, ToolRegistry.builtin())
    with pytest.raises(PolicyError, match="names 'shell'"):
        check_policy(rules, registry)


def test_a_bad_regular_expression_of_an_object_is_a_policy_error():
    rule = {"id": "r", "tool": "echo", "decision": "allow", "args": {"text": {"regex": "("}}}
    with pytest.raises(PolicyError, match="rule 'r': '\\(' is not a regular expression"):
        decide(policy(rule), "echo", text="x")


def test_a_prefix_for_a_grant_is_offered_where_one_plain_command_is_asked_about():
    decider = Decider(ToolPolicy(allow=["shell"], rules=[ASK_PUSH]))

    def prefix(command):
        return decider.prefix(prepared("shell", command=command))

    assert prefix("git push origin main") == ("git", "push")
    assert prefix("ls && git push") == ("git", "push")
    assert prefix("git push $X") == ()
    assert prefix("git push && git fetch") == ()
    assert prefix("$X") == ()


def test_a_prefix_covers_a_call_only_where_all_that_is_asked_about_begins_so():
    decider = Decider(ToolPolicy(allow=["shell"], rules=[ASK_PUSH]))

    def covers(command, prefix=("git", "push")):
        return decider.covers(prefix, prepared("shell", command=command))

    assert covers("git push origin other")
    assert covers("ls; git push a; git push b")
    assert not covers("git push a; git fetch")
    assert not covers("git -C x push")
    assert not covers("git push $X")
    assert not covers("$X")
    assert not covers("ls"), "nothing is asked about"
    assert not covers("git push", prefix=("git", "push", "origin"))
    assert not covers("cd ../other && git push")
    assert covers("git push origin main", prefix=("git", "push", "origin"))


def test_a_grant_for_a_program_without_subcommands_is_for_that_very_command():
    asks = [
        rule(id=f"r{n}", tool="shell", command=name, decision="ask")
        for n, name in enumerate(["mkdir", "mv", "./deploy.sh"])
    ]
    decider = Decider(ToolPolicy(allow=["shell"], rules=asks))

    def covers(asked, command):
        prefix = decider.prefix(prepared("shell", command=asked))
        return decider.covers(prefix, prepared("shell", command=command))

    for command in ("mkdir -p build/x", "mv build x", "./deploy.sh staging"):
        assert covers(command, command)
        assert not covers(command, f"{command} ../../y")
    assert not covers("./deploy.sh staging", "cd /tmp/x && ./deploy.sh staging")


@pytest.mark.parametrize(
    "path", ["/proc/self/cwd/.git/x", "/proc/1/root/etc/x", "/dev/fd/3", "/dev/stdin"]
)
def test_a_path_of_another_process_may_lead_anywhere(path, tmp_path):
    guard = rule(tool="write_file", writes="**/.git/**", decision="ask")
    here = rule(id="all", tool="write_file", args={"path": {"under": "."}}, decision="allow")
    rules = policy(guard, here)
    assert decide(rules, "write_file", tmp_path, path=path, content="").rule_id == "r"


@pytest.mark.parametrize(
    "command", ["rm --recursive --force x", "rm -Rf x", "rm -R --force x", "rm --rec -f x"]
)
def test_an_option_in_another_spelling_is_the_same_one(command):
    assert line(policy(DENY_RM), command).rule_id == "rm"
    assert line(ToolPolicy(allow=["shell"], rules=[DENY_RM]), "rm -r x").action == "allow"


def test_an_action_is_never_made_milder_by_another_rule():
    mild = {"id": "m", "tool": "shell", "commands": ["rm", "git"], "decision": "allow"}
    rules = policy(mild, DENY_RM, ASK_PUSH)
    assert [line(rules, c).action for c in ("rm -rf x", "git push", "git log")] == [
        Action.DENY,
        Action.ASK,
        Action.ALLOW,
    ]


def rule(**keys):
    """A rule, with an id and a reason where none is given."""
    keys.setdefault("id", "r")
    if keys.get("decision") in ("ask", "deny"):
        keys.setdefault("reason", "so")
    return keys


def test_a_rule_on_the_whole_call_covers_what_its_line_writes(tmp_path):
    policy = ToolPolicy(allow=["shell"], rules=[rule(tool="shell", command="rm", decision="deny")])
    assert line(policy, "echo a > b", tmp_path).action is Action.ALLOW


def test_a_line_that_cannot_be_read_is_narrowed_by_every_rule_and_denied_by_none():
    policy = ToolPolicy(
        allow=["shell"],
        rules=[
            rule(id="w", tool="shell", writes="x/**", cell={"workspace": "ro"}),
            rule(id="d", tool="shell", command="rm", decision="deny"),
        ],
    )
    decision = line(policy, "echo 'never closed")
    assert (decision.action, decision.rule_id) == (Action.ASK, "unreadable-line")
    assert decision.cell.workspace == "ro"


@pytest.mark.parametrize("rest", ["\nif then", "; echo ${a b}", "; echo $((1 +))"])
def test_what_the_parser_calls_a_syntax_error_is_asked_about_for_bash_runs_what_is_before(
    rest, tmp_path
):
    (tmp_path / ".git").mkdir()
    text = f": > .git/config{rest}"
    decision = line(load_policy("default"), text, tmp_path)
    assert (decision.action, decision.rule_id) == (Action.ASK, "unreadable-line")
    subprocess.run(["bash", "-c", text], cwd=tmp_path, check=False, capture_output=True)
    assert (tmp_path / ".git/config").exists(), "the control: the file is written all the same"


def test_a_line_of_nothing_is_no_write():
    policy = ToolPolicy(allow=["shell"], rules=[rule(tool="shell", writes="**", decision="deny")])
    assert line(policy, "# nothing").action is Action.ALLOW


def test_a_doubt_about_a_command_matters_only_where_rules_look_at_commands():
    policy = ToolPolicy(allow=["shell"], rules=[rule(tool="shell", writes="x", decision="deny")])
    assert line(policy, "PATH=. ls").action is Action.ALLOW


@pytest.mark.parametrize("command", ["touch $X", "PATH=. touch x"])
def test_no_prefix_is_offered_for_and_none_covers_what_is_not_plain(command):
    policy = ToolPolicy(
        allow=["shell"], rules=[rule(tool="shell", command="touch", decision="ask")]
    )
    decider, call = Decider(policy), prepared("shell", command=command)
    assert decider.decide(call).action is Action.ASK
    assert decider.prefix(call) == ()
    assert not decider.covers(("touch",), call)


def test_a_wrapper_is_no_exception_to_not_commands_but_what_it_runs_is():
    policy = ToolPolicy(
        allow=["shell"], rules=[rule(tool="shell", not_commands=["git"], decision="deny")]
    )
    assert line(policy, "env git status").action is Action.ALLOW
    assert line(policy, "env ls").action is Action.DENY


@pytest.mark.parametrize("name", ["pip*", "/usr/bin/pip3"])
def test_a_program_named_by_glob_or_by_path_is_found(name):
    policy = ToolPolicy(
        allow=["shell"], rules=[rule(tool="shell", command=[name, "install"], decision="deny")]
    )
    assert line(policy, "pip3 install x").action is Action.DENY


HERE = rule(tool="write_file", args={"path": {"under": "."}}, decision="allow")


def test_a_link_with_dots_after_it_leads_where_the_kernel_says(tmp_path):
    (tmp_path / "out").symlink_to("/etc")
    policy = ToolPolicy(
        rules=[rule(tool="write_file", args={"path": {"under": "."}}, decision="allow")]
    )
    assert decide(policy, "write_file", tmp_path, path="x", content="").action is Action.ALLOW
    # `out/..` is /, not the workspace.
    assert decide(policy, "write_file", tmp_path, path="out/../x", content="").action is Action.DENY


def test_a_link_that_changed_since_the_last_call_is_followed_anew(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "in")
    policy = ToolPolicy(
        rules=[rule(tool="write_file", args={"path": {"under": "."}}, decision="allow")]
    )
    decider, call = Decider(policy, tmp_path), prepared("write_file", path="link/x", content="")
    assert decider.decide(call).action is Action.ALLOW
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("/etc")
    assert decider.decide(call).action is Action.DENY


def test_a_tool_with_two_paths_may_write_only_where_both_are_allowed(tmp_path):
    schema = {
        "type": "object",
        "properties": {name: {"type": "string", "format": "path"} for name in ("a", "b")},
    }
    both = ToolDefinition(
        spec=ToolSpec(name="both", description="", input_schema=schema),
        handler=HandlerRef(module="m", function="f"),
    )
    policy = ToolPolicy(rules=[rule(tool="both", writes="in/**", decision="allow")])
    registry, decider = ToolRegistry([both]), Decider(policy, tmp_path)
    assert decider.decide(prepared("both", registry, a="in/x", b="in/y")).action is Action.ALLOW
    assert decider.decide(prepared("both", registry, a="in/x", b="out/y")).action is Action.DENY


def test_two_rules_of_one_id_in_two_layers_both_narrow():
    base = ToolPolicy(
        allow=["shell"],
        rules=[rule(id="x", tool="shell", command="make", cell={"network": "none"})],
        cell={"network": "host", "require": []},
    )
    other = rule(id="x", tool="shell", commands=["make", "ls"], limits={"wall": 7})
    policy = tighten(base, ToolPolicy(rules=[other], decides=False))
    decider = Decider(policy)
    for command, network in (("ls", "host"), ("make", "none"), ("ls", "host")):
        decision = decider.decide(prepared("shell", command=command))
        assert (decision.cell.network, decision.limits.wall) == (network, 7), command


def test_a_layer_that_allows_does_not_decide_for_the_policy():
    base = ToolPolicy(rules=[rule(tool="shell", command="git", decision="allow")])
    layer = ToolPolicy(allow=["shell"], decides=False)
    assert line(tighten(base, layer), "echo hi").action is Action.DENY
    assert line(tighten(base, layer), "git status").action is Action.ALLOW, "the control"


@pytest.mark.parametrize("written", ["src/..", "src/../..", "/etc", "..", ""])
def test_a_writable_directory_cannot_lead_out_of_what_it_narrows(written):
    if written == "src/..":
        rules = ToolPolicy(
            allow=["shell"],
            rules=[rule(tool="*", cell={"writable": [written]})],
            cell={"writable": ["src"]},
        )
        assert line(rules, "true").cell.writable == ("src",)
        return
    with pytest.raises(PolicyError):
        ToolPolicy(cell={"writable": [written]})


def test_writable_directories_are_compared_as_what_they_are():
    rules = ToolPolicy(
        allow=["shell"],
        rules=[rule(tool="*", cell={"writable": ["./src/"]})],
        cell={"writable": ["."]},
    )
    cell = line(rules, "true").cell
    assert (cell.workspace, cell.writable) == ("rw", ("src",))


@pytest.mark.parametrize(
    "keys",
    [
        *[{"args": {"text": {key: []}}} for key in ("under", "glob", "not_glob", "one_of")],
        *[{key: []} for key in ("commands", "not_commands", "writes")],
        {"cell": {"writable": []}},
    ],
    ids=str,
)
def test_an_empty_list_is_refused_instead_of_matching_everything(keys):
    with pytest.raises(PolicyError):
        ToolPolicy(rules=[rule(tool="echo", decision="allow") | keys])


@pytest.mark.parametrize(
    "command", ["mkdir -p '~'; echo x > '~/../.git/hooks/x'", "echo x > '~/.git/x'"]
)
def test_a_name_that_begins_with_a_tilde_is_a_name_too(command, tmp_path):
    assert line(load_policy("default"), command, tmp_path).rule_id == "version-control"


NESTED = ToolDefinition(
    spec=ToolSpec(
        name="nested",
        description="",
        input_schema={
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "files": {"type": "array", "items": {"$ref": "#/$defs/file"}},
                "deep": {"type": "array", "items": {"type": "array", "items": {"type": "string"}}},
                "mode": {"type": "string", "default": "fast"},
                "either": {"oneOf": [{"type": "null"}, {"type": "string", "format": "path"}]},
            },
            "$defs": {
                "file": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {"path": {"type": "string", "format": "path"}},
                }
            },
        },
    ),
    handler=HandlerRef(module="m", function="f"),
)


@pytest.mark.parametrize(
    ("keys", "arguments"),
    [
        ({"args": {"files.path": {"under": "/etc"}}}, {"files": [{"path": "/etc/x"}]}),
        ({"args": {"files.path": {"glob": ".git/**"}}}, {"files": [{"path": "./.git/x"}]}),
        ({"writes": "**/.git/**"}, {"files": [{"path": "a"}, {"path": "./.git/x"}]}),
        ({"writes": "**/.git/**"}, {"either": ".git/x"}),
        ({"args": {"deep": {"regex": "/etc/.*"}}}, {"deep": [["a"], ["/etc/x"]]}),
        ({"args": {"deep": {"regex": ".*secret.*"}}}, {"deep": [["true\ncat secret"]]}),
        ({"args": {"mode": "fast"}}, {}),
        ({"args": {"mode": {"not_glob": "slow"}}}, {}),
    ],
)
def test_what_denies_looks_into_lists_objects_and_defaults(keys, arguments, tmp_path):
    policy = ToolPolicy(allow=["*"], rules=[rule(tool="nested", decision="deny") | keys])
    registry = ToolRegistry([NESTED])
    check_policy(policy, registry)
    decider = Decider(policy, tmp_path)
    assert decider.decide(prepared("nested", registry, **arguments)).action is Action.DENY
    harmless = {"files": [{"path": "a"}], "deep": [["a"]], "mode": "slow", "either": "a"}
    assert decider.decide(prepared("nested", registry, **harmless)).action is Action.ALLOW


@pytest.mark.parametrize("name", ["files.paht", "file", "mode.x"])
def test_a_nested_argument_that_is_misspelt_is_an_error(name):
    policy = ToolPolicy(rules=[rule(tool="nested", decision="deny", args={name: "x"})])
    with pytest.raises(PolicyError, match="no argument"):
        check_policy(policy, ToolRegistry([NESTED]))


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("write_file", {"path": {"min": 3}}),
        ("read_file", {"start_line": {"regex": "1.*"}}),
        ("list_files", {"limit": {"glob": "1*"}}),
    ],
)
def test_a_condition_that_no_value_can_meet_is_an_error(tool, args):
    never = rule(tool=tool, decision="deny", args=args)
    with pytest.raises(PolicyError, match="never fits"):
        check_policy(policy(never), ToolRegistry.builtin())
    fits = rule(
        tool="list_files", decision="deny", args={"limit": {"max": 3}, "glob": {"glob": "*"}}
    )
    check_policy(policy(fits), ToolRegistry.builtin())


def test_every_tool_that_a_rule_names_has_its_arguments():
    names = rule(tool=["write_file", "shell"], decision="deny", args={"path": "x"})
    with pytest.raises(PolicyError, match="shell has no argument 'path'"):
        check_policy(policy(names), ToolRegistry.builtin())
    check_policy(policy(names | {"tool": ["write_file", "*"]}), ToolRegistry.builtin())


def test_what_allows_compares_whole_values_strictly():
    keys = {"deep": {"equals": [[1]]}}
    decider = Decider(policy(rule(tool="nested", decision="allow", args=keys)))
    test = decider.layers[0]._compile(Proposal(NESTED, {}, decider.workspace)).on_calls[0]
    assert test.holds(Proposal(NESTED, {"deep": [[1]]}, decider.workspace), every=True)
    assert not test.holds(Proposal(NESTED, {"deep": [[True]]}, decider.workspace), every=True)


@pytest.mark.parametrize("keys", [{"writes": "[z-a]"}, {"args": {"path": {"under": "\0"}}}])
def test_a_pattern_that_is_none_is_found_before_any_call(keys):
    bad = policy(rule(tool="write_file", decision="deny") | keys)
    with pytest.raises(PolicyError, match="rule 'r'"):
        Decider(bad).compile(ToolRegistry.builtin())
