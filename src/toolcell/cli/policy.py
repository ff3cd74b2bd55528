"""`toolcell policy`: check a policy, explain a decision, run its tests, begin one."""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from toolcell.cli.cells import in_words
from toolcell.cli.options import AsJson, Policy, TakesDiff, ToolFile, Workspace
from toolcell.cli.setup import Setup
from toolcell.errors import PolicyError
from toolcell.model import Action, PreparedToolCall, ToolCall, ToolResult
from toolcell.policy import Decider, ToolPolicy, check_policy
from toolcell.policy.explanation import Explanation, explain
from toolcell.policy.file import PolicyTest, load_tests, meant, shipped_policies
from toolcell.policy.layers import PROJECT
from toolcell.registry import ToolRegistry
from toolcell.runtime import ToolRuntime
from toolcell.visible import visible_line

_NAMED = 10

app = typer.Typer(
    help="Check a policy, explain what it decides, run its tests, begin one of your own.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME|FILE", envvar="TOOLCELL_POLICY", help="A shipped policy or a file."
    ),
]


@app.command()
def check(policy: Name = "default", tool_file: ToolFile = None, as_json: AsJson = False) -> None:
    """Read a policy, check its rules, examples and names against the tools, and sum it up.

    The exit code is 2 where something is wrong; each problem has its file and line.
    """
    setup = Setup(policy=policy, tool_file=tool_file)
    loaded, tests = load_tests(policy)
    effective = setup.effective_policy()  # with what tightens it here
    check_policy(effective, setup.registry(), ToolRegistry.builtin())
    if as_json:
        print(json.dumps(loaded.model_dump(mode="json", exclude_defaults=True), indent=2))
        return
    examples = sum(len(rule.match) + len(rule.not_match) for rule in loaded.rules)
    names = len(loaded.allow) + len(loaded.ask) + len(loaded.deny)
    print(
        f"{loaded.source}: good. {_count(names, 'tool entry', 'tool entries')}, "
        f"{_count(len(loaded.rules), 'rule')}, {_count(examples, 'example')} that hold, "
        f"{_count(len(tests), 'test')} (toolcell policy test runs them). What nothing matches: "
        f"{loaded.default}."
    )
    for layer in effective.layers:
        print(f"tightened here by {visible_line(layer.source or layer.name)}")


@app.command(name="explain", cls=TakesDiff)
def explain_call(
    tool: Annotated[str, typer.Argument(help="The tool's name.")],
    arguments: Annotated[
        str,
        typer.Argument(
            help="Its arguments as JSON; for shell, the line will do, for apply_patch a diff."
        ),
    ] = "{}",
    policy: Policy = "default",
    workspace: Workspace = None,
    tool_file: ToolFile = None,
    as_json: AsJson = False,
) -> None:
    """Say what is decided of a call, by which rule and why, and what its cell would be.

    Nothing runs. Example: toolcell policy explain shell 'git push origin main'
    """
    setup = Setup(policy=policy, workspace=workspace, tool_file=tool_file)
    place = setup.usable_workspace()
    effective = setup.effective_policy()
    registry = setup.registry()
    check_policy(effective, registry, ToolRegistry.builtin())
    prepared = _prepared(registry, tool, arguments)
    found = explain(Decider(effective, place), prepared)
    if as_json:
        print(json.dumps(_document(found), indent=2))
        return
    _print_explanation(effective, prepared, found)
    for layer in effective.layers:
        print(f"{'tightened by':14}{visible_line(layer.source or layer.name)}")


@app.command(name="test")
def run_tests(
    policy: Name = "default", tool_file: ToolFile = None, as_json: AsJson = False
) -> None:
    """Run the [[test]] tables of a policy: calls, and what has to be decided of each.

    The exit code is 1 where a decision is another.
    """
    setup = Setup(policy=policy, tool_file=tool_file)
    loaded, tests = load_tests(policy)
    registry = setup.registry()
    check_policy(loaded, registry, ToolRegistry.builtin())
    decider = Decider(loaded, Path.cwd())
    outcomes = [_outcome(registry, decider, each) for each in tests]
    wrong = [each for each in outcomes if not each["passed"]]
    if as_json:
        print(json.dumps(outcomes, indent=2, ensure_ascii=False))
    elif not tests:
        print(
            f"{loaded.source} has no tests. Write some:\n\n"
            '[[test]]\ntool = "shell"\ncommand = "git push"\ndecision = "ask"'
        )
    else:
        for each in wrong:
            print(f"FAILED  {each['call']}: {each['problem']}")
        print(f"{len(outcomes) - len(wrong)} passed, {len(wrong)} failed")
    raise typer.Exit(1 if wrong else 0)


@app.command()
def init(
    file: Annotated[Path, typer.Argument(help="The file to write.")] = Path("policy.toml"),
    extends: Annotated[
        str, typer.Option("--extends", metavar="NAME|FILE", help="The policy to begin from.")
    ] = "default",
) -> None:
    """Begin a policy of your own: a short file that extends a shipped one, with an example."""
    if extends not in shipped_policies() and not Path(extends).is_file():
        raise PolicyError(
            f"there is no policy {extends!r}; the shipped ones are "
            f"{', '.join(shipped_policies())}{meant(extends)}"
        )
    try:
        with file.open("x", encoding="utf-8") as out:
            out.write(_BEGINNING.format(extends=json.dumps(extends)))
    except FileExistsError:
        print(f"toolcell: {file} is there already; nothing was written", file=sys.stderr)
        raise typer.Exit(1) from None
    except OSError as error:
        raise PolicyError(f"{file} cannot be written: {error.strerror}") from None
    if file.name == PROJECT:
        print(f"toolcell: {file} also tightens every call here, whatever policy is named")
    print(
        f"wrote {file}\n  use it      toolcell call --policy {file} TOOL '{{...}}'\n"
        f"  check it    toolcell policy check {file}\n"
        f"  ask it      toolcell policy explain --policy {file} shell 'git push'\n"
        f"  test it     toolcell policy test {file}"
    )


_BEGINNING = """\
# What this policy is for: say it here.

version = 1
extends = {extends}

[tools]
# allow = ["my_tool"]             # tools of your own; names or globs

[[rule]]
id = "git-push"
tool = "shell"
command = ["git", "push"]
decision = "ask"
reason = "it publishes"
match = ["git push origin main"]
not_match = ["git status"]

[[test]]
tool = "shell"
command = "cd sub && git -C . push"
decision = "ask"
"""


def _prepared(registry: ToolRegistry, tool: str, arguments: str) -> PreparedToolCall:
    definition = registry.resolve(tool)
    value: dict[str, Any] | str = arguments
    text = definition and (definition.shell_line or definition.patch)
    if text and not arguments.lstrip().startswith("{"):
        value = {text: arguments}
    prepared = ToolRuntime(registry).prepare(
        ToolCall(call_id="explain", name=tool, arguments=value)
    )
    if isinstance(prepared, ToolResult):
        problem = prepared.error.message if prepared.error else "it cannot be prepared"
        print(f"toolcell: rejected before any rule is asked: {problem}", file=sys.stderr)
        if definition is None and prepared.error:
            print(f"toolcell: {prepared.error.hint}", file=sys.stderr)
        raise typer.Exit(1)
    return prepared


def _print_explanation(policy: ToolPolicy, prepared: PreparedToolCall, found: Explanation) -> None:
    decision = found.decision
    rows = [("decision", f"{decision.action}"), ("why", decision.reason)]
    rows.append(("rule", f"{decision.rule_id} of the {policy.name} policy"))
    if found.place:
        rows.append(("at", found.place))
    if found.patched is not None:
        rows.append(("the patch", _in_words(found.patched)))
    if len(found.rulings) > 1:
        rows += [
            ("part" if place == 0 else "", f"{ruling.action:6} {ruling.part}  ({ruling.rule_id})")
            for place, ruling in enumerate(found.rulings)
        ]
    if decision.action is not Action.DENY and prepared.definition.isolation == "cell":
        rows.append(("cell", in_words(decision.cell, decision.limits)))
    if found.narrowing:
        rows.append(("narrowed by", ", ".join(rule.id for rule in found.narrowing)))
    if found.nearest:
        rule = found.nearest.rule
        effect = rule.decision or "narrows the cell"
        rows.append(("nearest rule", f"{rule.id} ({effect}), {found.nearest.place}"))
        rows += [("", because) for because in found.nearest.because]
    for name, text in rows:
        print(f"{name:14}{visible_line(text)}")


def _in_words(named: tuple[str | None, ...]) -> str:
    if not named:
        return "names no file that a rule could look at; the tool will refuse it"
    names = ["a file whose name cannot be read" if name is None else name for name in named]
    rest = len(names) - _NAMED
    return f"names {', '.join(names[:_NAMED])}" + (f" and {rest} more" if rest > 0 else "")


def _document(found: Explanation) -> dict[str, Any]:
    nearest = found.nearest
    return {
        "decision": found.decision.model_dump(mode="json"),
        "place": found.place,
        "patch_names": found.patched,
        "parts": [
            {"part": str(each.part), "action": each.action, "rule": each.rule_id}
            for each in found.rulings
        ],
        "narrowed_by": [rule.id for rule in found.narrowing],
        "nearest": nearest
        and {"rule": nearest.rule.id, "place": nearest.place, "because": nearest.because},
    }


def _outcome(registry: ToolRegistry, decider: Decider, test: PolicyTest) -> dict[str, Any]:
    definition = registry.resolve(test.tool)
    arguments = dict(test.arguments)
    if test.command is not None:
        arguments[(definition and definition.shell_line) or "command"] = test.command
    call = ToolCall(call_id="test", name=test.tool, arguments=arguments)
    prepared = ToolRuntime(registry).prepare(call)
    shown = test.command if test.command is not None else f"{test.tool} {test.arguments}"
    if isinstance(prepared, ToolResult):
        problem = prepared.error.message if prepared.error else ""
        return {"call": shown, "passed": False, "problem": f"it is no call: {problem}"}
    decision = decider.decide(prepared)
    problems = list(_differences(test, decision.action, decision.rule_id))
    problem = f"{' and '.join(problems)}: {decision.reason}" if problems else ""
    return {"call": shown, "passed": not problems, "problem": problem}


def _differences(test: PolicyTest, action: Action, rule_id: str) -> Iterable[str]:
    if action is not test.decision:
        yield f"expected {test.decision}, got {action} by {rule_id}"
    elif test.rule is not None and test.rule != rule_id:
        yield f"expected rule {test.rule}, got {rule_id}"


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"
