"""Complaints: what pydantic found in a policy, in words; in a file, with the line."""

from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

from toolcell.model import Budget, CellSettings, Limits
from toolcell.policy.locate import Lines
from toolcell.policy.rules import CellNarrowing, Condition, Rule
from toolcell.policy.tables import Approvals, Breaker, Redaction

_TOP = ["version", "extends", "default", "on_ask", "tools", "cell", "limits", "redact"]
_KEYS = {
    "": [*_TOP, "breaker", "approvals", "budget", "rule", "test"],
    "tools": ["allow", "ask", "deny"],
    "cell": list(CellSettings.model_fields),
    "limits": list(Limits.model_fields),
    "redact": list(Redaction.model_fields),
    "breaker": list(Breaker.model_fields),
    "approvals": list(Approvals.model_fields),
    "budget": list(Budget.model_fields),
    "rule": list(Rule.model_fields),
    "rule.args": list(Condition.model_fields),
    "rule.cell": list(CellNarrowing.model_fields),
    "rule.limits": list(Limits.model_fields),
    "test": ["tool", "arguments", "command", "decision", "rule"],
}
_DURATIONS = ("wall", "grace", "cpu", "lifetime", "grants", "seconds")
# What pydantic adds to a place for the alternatives of a union.
_KINDS = ("int", "float", "constrained-str", "str", "function-after[_is_word(), str]")
_EXPECTED = {
    "model_type": "expected a table",
    "dict_type": "expected a table",
    "tuple_type": "expected a list",
    "string_type": "expected text in quotes",
    "int_type": "expected a whole number",
    "float_type": "expected a number",
    "string_too_short": "is empty",
    "too_short": "is empty",
}


def explain(error: ValidationError, lines: Lines, source: str) -> str:
    """Write all that is wrong with a file, a line each."""
    complaints = []
    for item in error.errors(include_url=False):
        path = _path(item)
        where = f"{source}:{lines.of(tuple(path))}" if path else source
        complaints.append(f"{where}: {_problem(item, path, _KEYS)}")
    return "\n".join(dict.fromkeys(complaints))


def explain_python(error: ValidationError, fields: list[str]) -> str:
    """Write all that is wrong with a ToolPolicy of these fields, a line each."""
    rules = {f"rules{key[4:]}": names for key, names in _KEYS.items() if key.startswith("rule")}
    keys = {"": fields} | {key: _KEYS[key] for key in _KEYS if key in fields} | rules
    found = error.errors(include_url=False)
    complaints = [f"ToolPolicy: {_problem(item, _path(item), keys)}" for item in found]
    return "\n".join(dict.fromkeys(complaints))


def _path(item: Any) -> list[str | int]:
    path = [part for part in item["loc"] if part not in _KINDS]
    if item["type"] == "contradiction":
        return _split(item["ctx"]["where"])
    return [*path, item["ctx"]["key"]] if item["type"] == "in_rule" else path


def _split(where: str) -> list[str | int]:
    parts = where.split(".", 2)
    return [int(part) if part.isdigit() else part for part in parts]


def _problem(item: Any, path: list[str | int], keys: dict[str, list[str]]) -> str:
    key = _named(path)
    if item["type"] == "extra_forbidden":
        return f"unknown key `{key}`{_suggestion(path, keys)}"
    if item["type"] == "missing":
        return f"`{key}` is missing" + (" (write version = 1)" if key == "version" else "")
    if item["type"] == "contradiction":
        return str(item["msg"])
    message = _EXPECTED.get(item["type"]) or item["msg"].removeprefix("Value error, ")
    if path and path[-1] in _DURATIONS and item["type"] == "float_type":
        message = 'expected a duration such as "30s", or a number of seconds'
    message = message.replace("Input should be", "expected").replace(
        "String should match pattern", "does not fit"
    )
    return f"`{key}`: {message}" if key else message


def _named(path: list[str | int]) -> str:
    """A key as a person would name it: `rule[2].reason`, the second rule's."""
    out = ""
    for part in path:
        out += f"[{part + 1}]" if isinstance(part, int) else f".{part}" if out else part
    return out


def _suggestion(path: list[str | int], keys: dict[str, list[str]]) -> str:
    """What an unknown key may have been meant to be: a neighbour's name, or another table's."""
    names = [part for part in path if isinstance(part, str)]
    table, name = ".".join(names[:-1]), names[-1]
    if table.startswith(("rule.args", "rules.args")):
        table = ".".join(table.split(".")[:2])
    if close := get_close_matches(name, keys.get(table, []), 1):
        return f"; did you mean `{close[0]}`?"
    homes = [place for place, names in keys.items() if name in names and place]
    return f"; it belongs under [{homes[0]}]" if homes else ""
