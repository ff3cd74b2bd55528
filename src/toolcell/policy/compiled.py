"""Rules compiled for one tool and one workspace: does a part of a call fit, and how surely?"""

from collections.abc import Iterable

from toolcell.model import Action, ToolDefinition
from toolcell.policy.conditions import ArgumentTest
from toolcell.policy.paths import PathGlobs, Workspace
from toolcell.policy.prefixes import Fit, fit
from toolcell.policy.proposal import Part, Proposal
from toolcell.policy.rules import Rule, is_wild
from toolcell.policy.schemas import default_of, path_arguments


class CompiledRule:
    """One rule, ready to be asked."""

    __slots__ = ("_arguments", "_globs", "_workspace", "narrows", "rule")

    def __init__(self, rule: Rule, workspace: Workspace, definition: ToolDefinition) -> None:
        """Compile for a tool; raises PatternError."""
        paths = path_arguments(definition)
        self.rule = rule
        self.narrows = rule.narrows
        self._workspace = workspace
        self._globs = PathGlobs(rule.writes)
        self._arguments = [
            ArgumentTest(
                name,
                condition,
                workspace,
                is_path=name in paths or name == definition.patch,
                is_patch=name == definition.patch,
                default=default_of(definition, name),
                loose=rule.decision is not Action.ALLOW,
            )
            for name, condition in rule.args.items()
        ]

    def fit(self, part: Part) -> Fit:
        """Compare what the rule says of commands and of writes with one part."""
        if not (self.rule.reads_commands or self.rule.writes):
            return Fit.EXACT
        if part.kind == "command":
            return self._fit_command(part) if self.rule.reads_commands else Fit.NO
        if part.kind == "write":
            return self._fit_write(part) if self.rule.writes else Fit.NO
        # Of a line that cannot be read nobody knows what is in it.
        return Fit.POSSIBLE if part.kind == "unreadable" else Fit.EXACT

    def action(self, found: Fit, proposal: Proposal) -> Action | None:
        """What the rule decides where its parts fit so well, or None."""
        decision = self.rule.decision
        if decision is Action.ALLOW:
            return decision if found is Fit.EXACT and self.holds(proposal, every=True) else None
        return Action.ASK if decision is not None and found is Fit.POSSIBLE else decision

    def holds(self, proposal: Proposal, *, every: bool) -> bool:
        """Whether the arguments fit: in every way of looking at them, or in one."""
        for test in self._arguments:
            if not test.holds(proposal.arguments, every=every):
                return False
        if not self.rule.writes or proposal.line is not None:
            return True
        fits = [self._fit_path(path) for path in proposal.written]
        if every:
            return bool(fits) and min(fits) is Fit.EXACT
        return any(each is not Fit.NO for each in fits)

    def about(self, proposal: Proposal, part: Part) -> Part:
        """Name the file of a patch that the rule is about, where it is the whole call that fits."""
        if part.kind != "call" or not (self.rule.writes and proposal.definition.patch):
            return part
        fitting = (path for path in proposal.written if self._fit_path(path) is not Fit.NO)
        return Part("write", path=next(fitting, None))

    def failing(self, proposal: Proposal) -> list[str]:
        """Say which conditions on arguments do not hold, for explanations."""
        every = self.rule.decision is Action.ALLOW
        found = [test.failing(proposal.arguments, every=every) for test in self._arguments]
        return [each for each in found if each is not None]

    def _fit_command(self, part: Part) -> Fit:
        found = Fit.EXACT
        if self.rule.prefixes:
            found = max(fit(prefix, part.words) for prefix in self.rule.prefixes)
        if self.rule.not_commands:
            found = min(found, self._fit_exception(part))
        return found

    def _fit_exception(self, part: Part) -> Fit:
        if not part.required:  # a wrapper: what it runs is a part of its own
            return Fit.NO
        closest = max(fit(prefix, part.words) for prefix in self.rule.not_commands)
        return {Fit.EXACT: Fit.NO, Fit.NO: Fit.EXACT}.get(closest, Fit.POSSIBLE)

    def _fit_write(self, part: Part) -> Fit:
        found = self._fit_path(part.path)
        if not part.doubt:
            return found
        # It may be that path, or any other.
        return {Fit.EXACT: Fit.LIKELY, Fit.NO: Fit.POSSIBLE}.get(found, found)

    def _fit_path(self, path: str | None) -> Fit:
        views = None if path is None else self._workspace.views(path)
        if views is None:
            return Fit.POSSIBLE
        fits = [self._globs(view) for view in views]
        if str(path).startswith("~"):  # a name that begins so, or somebody's home directory
            return Fit.LIKELY if any(fits) else Fit.POSSIBLE
        if all(fits):
            return Fit.EXACT
        return Fit.LIKELY if any(fits) else Fit.NO


def by_first_word(
    rules: Iterable[CompiledRule],
) -> tuple[dict[str, list[CompiledRule]], list[CompiledRule]]:
    """Sort rules on commands by the program that they name; the second list may concern any."""
    named: dict[str, list[CompiledRule]] = {}
    others: list[CompiledRule] = []
    for rule in rules:
        words = {word for prefix in rule.rule.prefixes for word in prefix[0]}
        if not words or any(map(is_wild, words)):
            others.append(rule)
            continue
        for name in {word.rpartition("/")[2] for word in words}:
            named.setdefault(name, []).append(rule)
    return named, others
