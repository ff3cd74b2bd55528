"""Checks of a policy against the tools that are there: a rule that can never fire is an error."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase

from toolcell.errors import PolicyError
from toolcell.model import ToolDefinition
from toolcell.policy.document import ToolPolicy
from toolcell.policy.rules import Rule, is_wild
from toolcell.policy.schemas import has_argument, path_arguments, type_of


def check_policy(
    policy: ToolPolicy, tools: Iterable[ToolDefinition], known: Iterable[ToolDefinition] = ()
) -> None:
    """Raise PolicyError, with file and line, for rules that name what is not there.

    `known` are further tools that a policy may speak of without having them: the built-in
    ones, so that a policy can serve a registry that holds only some.
    """
    there = {each.name: each for each in (*known, *tools)}
    problems = [
        f"{each.place_of(rule.id)}: {problem}"
        for each in (policy, *policy.layers)
        for rule in each.all_rules()
        for problem in _problems(rule, there)
    ]
    if problems:
        raise PolicyError("\n".join(problems))


def _problems(rule: Rule, there: dict[str, ToolDefinition]) -> list[str]:
    found = [
        f"{_where(rule)} names {pattern!r}, which is not a tool here; {_meant(pattern, there)}"
        for pattern in rule.tool
        if not is_wild(pattern) and pattern not in there
    ]
    if found:
        return found
    matched = [
        each for name, each in there.items() if any(fnmatchcase(name, glob) for glob in rule.tool)
    ]
    if not matched:  # a glob, of tools that may still come
        return []
    for name in rule.args:
        # A tool that the rule names has to have it; of those that a glob matches, one.
        without = [each for each in matched if not has_argument(each, name)]
        named = [each for each in without if each.name in rule.tool]
        if named or without == matched:
            found.append(_no_argument(rule, name, named or matched))
        else:
            found += _misfits(rule, name, [each for each in matched if each not in without])
    if rule.reads_commands and not any(each.shell_line for each in matched):
        found.append(
            f"{_where(rule)} looks at commands, and {_names(matched)} has no argument that is a "
            "line for a shell"
        )
    if rule.writes and not any(_writes(each) for each in matched):
        found.append(
            f"{_where(rule)} looks at what is written, and {_names(matched)} has no argument "
            "that is a path, or only reads"
        )
    return found


def _where(rule: Rule) -> str:
    action, colon, _ = rule.id.partition(":")
    return f"`{action}`" if colon else f"rule {rule.id!r}"


def _meant(name: str, there: dict[str, ToolDefinition]) -> str:
    close = get_close_matches(name, there, 1)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"the tools are {', '.join(sorted(there))}"


_OF_TEXT = ("regex", "glob", "not_glob", "under")
_OF_NUMBERS = ("min", "max")


def _misfits(rule: Rule, name: str, tools: Sequence[ToolDefinition]) -> list[str]:
    """Conditions that no value of an argument's type can meet, in any of the tools."""
    types = {type_of(each, name) for each in tools}
    said = rule.args[name].model_fields_set
    numbers, texts = types <= {"integer", "number"}, types == {"string"}
    wrong = [key for key in _OF_TEXT if key in said and (numbers or types == {"boolean"})]
    wrong += [key for key in _OF_NUMBERS if key in said and (texts or types == {"boolean"})]
    kind = " or ".join(sorted(filter(None, types)))
    return [f"{_where(rule)}: `{key}` never fits {name!r}, which is a {kind}" for key in wrong]


def _no_argument(rule: Rule, name: str, matched: Sequence[ToolDefinition]) -> str:
    arguments = sorted(
        {each for tool in matched for each in tool.spec.input_schema.get("properties") or {}}
    )
    close = get_close_matches(name, arguments, 1)
    meant = f"did you mean {close[0]!r}?" if close else f"it takes {', '.join(arguments)}"
    return f"{_where(rule)}: {_names(matched)} has no argument {name!r}; {meant}"


def _writes(tool: ToolDefinition) -> bool:
    paths = path_arguments(tool) and not tool.spec.annotations.read_only
    return bool(tool.shell_line or tool.patch or paths)


def _names(tools: Sequence[ToolDefinition]) -> str:
    return ", ".join(sorted(each.name for each in tools))
