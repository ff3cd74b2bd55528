"""Examples: what a rule's author says that it matches, and does not, checked when it loads."""

import re
from pathlib import Path

from toolcell.model import Action, HandlerRef, ToolDefinition, ToolSpec
from toolcell.policy.compiled import CompiledRule
from toolcell.policy.paths import PatternError, Workspace
from toolcell.policy.prefixes import Fit
from toolcell.policy.proposal import Part, Proposal
from toolcell.policy.rules import Example, Rule

_LINE = "command"
_WORKSPACE = Workspace(Path("/workspace"))


def failing_examples(rule: Rule) -> list[tuple[str, int, str]]:
    """Return the key, the place and what is wrong of each example that does not come true."""
    found = []
    for key, examples in (("match", rule.match), ("not_match", rule.not_match)):
        for place, example in enumerate(examples):
            try:
                problem = _problem(rule, example, wanted=key == "match")
            except PatternError as error:
                return [("args", 0, str(error))]
            if problem:
                found.append((key, place, problem))
    return found


def pattern_problem(rule: Rule) -> str:
    """Return what is wrong with a glob or a regular expression of a rule, or nothing."""
    try:
        CompiledRule(rule, _WORKSPACE, _stand_in(frozenset(rule.args), reads_line=False))
    except PatternError as error:
        return str(error)
    return ""


def _problem(rule: Rule, example: Example, *, wanted: bool) -> str:
    matches = _matches(rule, example)
    if matches is wanted:
        return ""
    return f"the rule does {'not match' if wanted else 'match'} this example: {example!r}"


def _matches(rule: Rule, example: Example) -> bool:
    arguments = {_LINE: example} if isinstance(example, str) else example
    reads_line = isinstance(example, str) or rule.reads_commands
    # Nothing is known of the tool yet: any text may be a path, where the rule takes it for one.
    paths = frozenset() if reads_line else frozenset(map(str, arguments))
    patch = next((name for name, value in arguments.items() if _is_patch(value)), None)
    tool = _stand_in(paths - {patch}, reads_line=reads_line, patch=patch)
    compiled = CompiledRule(rule, _WORKSPACE, tool)
    proposal = Proposal(tool, arguments, _WORKSPACE)
    if not reads_line:
        return compiled.holds(proposal, every=rule.decision is Action.ALLOW)
    fits = [(part, compiled.fit(part)) for part in proposal.parts]
    return compiled.holds(proposal, every=False) and _covers(rule, fits)


def _covers(rule: Rule, fits: list[tuple[Part, Fit]]) -> bool:
    """Whether a line is what the rule is about: a part of it; to allow, all that it asks for."""
    if rule.decision is not Action.ALLOW:
        least = Fit.LIKELY if rule.certain else Fit.POSSIBLE
        return any(found >= least for _, found in fits)
    kind = "write" if rule.writes else "command"
    concerned = [
        found for part, found in fits if part.kind == kind and (part.required or found is Fit.EXACT)
    ]
    return bool(concerned) and all(found is Fit.EXACT for found in concerned)


def _is_patch(value: object) -> bool:
    """Whether an example's argument is a unified diff: by its look, for want of its tool."""
    return (
        isinstance(value, str)
        and re.search(r"^(\+\+\+|diff --git|rename to) ", value, re.M) is not None
    )


def _stand_in(
    paths: frozenset[str], *, reads_line: bool, patch: str | None = None
) -> ToolDefinition:
    return ToolDefinition(
        spec=ToolSpec(name="example", description="", input_schema={}),
        handler=HandlerRef(module="none", function="none"),
        shell_line=_LINE if reads_line else None,
        patch=patch,
        paths=tuple(sorted(paths)),
    )
