"""Decisions: the rules of a policy, compiled for a workspace, and asked about calls.

    prepared call -> parts (commands, writes, or the call) -> a ruling on each -> the strictest

What cannot be read, and a command that is only known at run time, is asked about: no rule can
have meant it. A command whose words do not say all that it does (a changed PATH, an alias) is
asked about where the policy has rules on commands.

A line that the parser calls a syntax error is asked about as well, whatever the policy allows:
bash reads as it runs, so `: > .git/x` before such a line, or before `${a b}`, has run by then.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from toolcell.errors import PolicyError
from toolcell.model import (
    Action,
    CellSettings,
    Limits,
    PolicyDecision,
    PreparedToolCall,
    ToolDefinition,
)
from toolcell.policy.compiled import CompiledRule, by_first_word
from toolcell.policy.document import ToolPolicy
from toolcell.policy.paths import PatternError, Workspace
from toolcell.policy.prefixes import Fit
from toolcell.policy.proposal import CALL, Part, Proposal
from toolcell.policy.rules import Rule, narrow_cell, narrow_limits
from toolcell.policy.visited import Visited
from toolcell.shell import Line, read_in_thread

_SUBCOMMAND = re.compile(r"[a-z][a-z0-9-]*")
_WITH_SUBCOMMANDS = frozenset(
    [
        *("git", "hg", "svn", "gh", "npm", "pnpm", "yarn", "pip", "pip3", "uv", "poetry", "cargo"),
        *("go", "docker", "podman", "kubectl", "helm", "terraform", "apt", "apt-get", "dnf"),
        *("brew", "systemctl", "aws", "gcloud", "az", "conda", "dotnet", "mvn", "gradle"),
    ]
)
_MOVES = (("cd",), ("pushd",), ("popd",), (None,))
_SHOWN = 200
_STRICTNESS = {Action.ALLOW: 0, Action.ASK: 1, Action.DENY: 2}


@dataclass(frozen=True, slots=True)
class Ruling:
    """What one policy, or layer of one, says of one part."""

    action: Action
    rule_id: str
    reason: str
    part: Part


@dataclass(slots=True)
class Judgement:
    """All that was ruled on a call, and the rules that narrow its cell, by layer and id."""

    rulings: list[Ruling] = field(default_factory=list)
    narrowing: dict[tuple[int, str], Rule] = field(default_factory=dict)

    def strictest(self) -> Ruling:
        """Return the ruling that decides: of those as strict as each other, the first."""
        return max(self.rulings, key=lambda ruling: _STRICTNESS[ruling.action])


class Decider:
    """Decides prepared calls by a policy and the layers that tighten it; for one workspace."""

    def __init__(self, policy: ToolPolicy, workspace: str | Path | None = None) -> None:
        """Take the rules; they are compiled for a tool with its first call, or by `compile`."""
        self.policy = policy
        self.workspace = Workspace(Path(workspace) if workspace is not None else None)
        self.layers = [
            Layer(number, each, self.workspace)
            for number, each in enumerate((policy, *policy.layers))
        ]
        self._visited = Visited()
        self._cells: dict[tuple[tuple[int, str], ...], tuple[CellSettings, Limits]] = {}

    def compile(self, tools: Iterable[ToolDefinition]) -> None:
        """Compile the rules for these tools; raises PolicyError for a pattern that is none."""
        for definition in tools:
            for layer in self.layers:
                layer.rules_for(Proposal(definition, {}, self.workspace))

    def decide(self, prepared: PreparedToolCall, read: Line | None = None) -> PolicyDecision:
        """Decide one call, by what is known before it runs; `read` is what `read_ahead` gave."""
        proposal = self._proposal(prepared, read)
        decision = self.conclude(self.judge(proposal))
        if proposal.definition.session and decision.action is not Action.DENY:
            self._visited.note(prepared, proposal.lines)
        return decision

    def _proposal(self, prepared: PreparedToolCall, read: Line | None = None) -> Proposal:
        return Proposal.of(prepared, self.workspace, read, self._visited.of(prepared))

    def conclude(self, judgement: Judgement) -> PolicyDecision:
        """Make the decision of all that was ruled."""
        ruling = judgement.strictest()
        action, reason = ruling.action, _told(ruling)
        if action is Action.ASK and any(each.policy.on_ask == "deny" for each in self.layers):
            action = Action.DENY
            reason += " (and the policy says that nobody is there to be asked)"
        cell, limits = self._narrowed(judgement.narrowing)
        return PolicyDecision(
            action=action, rule_id=ruling.rule_id, reason=reason, cell=cell, limits=limits
        )

    def judge(self, proposal: Proposal) -> Judgement:
        """Collect what each layer says of each part."""
        judgement = Judgement()
        first, *others = self.layers
        first.judge(proposal, judgement)
        if not judgement.rulings:  # a line of wrappers and builtins, and nothing else
            judgement.rulings.append(first.fallback(proposal, CALL[0]))
        for layer in others:
            layer.judge(proposal, judgement)
        return judgement

    async def read_ahead(self, prepared: PreparedToolCall) -> Line | None:
        """Read a line that a rule looks into, so that other calls go on while the parser works."""
        proposal = self._proposal(prepared)
        line, around = proposal.line, proposal.around
        if (
            line is None
            or around is None
            or not any(layer.rules_for(proposal).reads_line for layer in self.layers)
        ):
            return None
        for other in proposal.arounds_elsewhere:
            await read_in_thread(line, other)  # so that it is known when it is asked for
        return await read_in_thread(line, around)

    def prefix(self, prepared: PreparedToolCall) -> tuple[str, ...]:
        """Return the start of the one command of a line that is asked about, if it is plain.

        It is what a grant for the rest of a run may name: the program and its subcommand, or
        the whole command of a program that has none.
        """
        asked = self._asked(self._proposal(prepared))
        if len(asked) != 1 or asked[0] is None:
            return ()
        return asked[0][:2] if _has_subcommand(asked[0]) else asked[0]

    def covers(self, prefix: tuple[str, ...], prepared: PreparedToolCall) -> bool:
        """Whether all that is asked about in a call are plain commands that a grant is for.

        Of a program with subcommands they begin so; any other command has to be the same one. A
        line that changes the directory makes other commands of them.
        """
        proposal = self._proposal(prepared)
        if any(part.words[:1] in _MOVES for part in proposal.parts):
            return False
        asked = self._asked(proposal)
        length = len(prefix) if _has_subcommand(prefix) else None
        return bool(asked) and all(
            words is not None and words[:length] == prefix for words in asked
        )

    def _asked(self, proposal: Proposal) -> list[tuple[str, ...] | None]:
        """The words of each part that is asked about; None for one that is no plain command."""
        rulings = self.judge(proposal).rulings
        asked = {id(each.part): each.part for each in rulings if each.action is Action.ASK}
        if any(part.kind == "call" for part in asked.values()):  # all that is in its line
            asked = {id(part): part for part in proposal.parts if part.required}
        return [_plain_words(part) for part in asked.values()]

    def _narrowed(self, rules: dict[tuple[int, str], Rule]) -> tuple[CellSettings, Limits]:
        key = tuple(rules)
        if key not in self._cells:
            if len(self._cells) > 1000:
                self._cells.clear()
            cell, limits = self.policy.cell, self.policy.limits
            for rule in rules.values():
                cell = narrow_cell(cell, rule.cell)
                limits = narrow_limits(limits, rule.limits)
            self._cells[key] = (cell, limits)
        return self._cells[key]


@dataclass(slots=True)
class _ForTool:
    """The rules of a layer that can concern one tool."""

    on_calls: list[CompiledRule]
    on_commands: dict[str, list[CompiledRule]]
    on_any_command: list[CompiledRule]
    on_writes: list[CompiledRule]

    @property
    def reads_commands(self) -> bool:
        return bool(self.on_commands or self.on_any_command)

    @property
    def reads_line(self) -> bool:
        return self.reads_commands or bool(self.on_writes)

    def all(self) -> list[CompiledRule]:
        """All of them, each once."""
        named = [rule for rules in self.on_commands.values() for rule in rules]
        return list(dict.fromkeys([*self.on_calls, *named, *self.on_any_command, *self.on_writes]))

    def of(self, part: Part) -> list[CompiledRule]:
        """The rules that may say something of a part."""
        if part.kind == "write":
            return [*self.on_calls, *self.on_writes]
        if part.kind == "call":
            return self.on_calls
        word = part.words[0] if part.words else None
        if word is not None:
            named = self.on_commands.get(word.rpartition("/")[2], [])
        else:
            rules = (rule for rules in self.on_commands.values() for rule in rules)
            named = list(dict.fromkeys(rules))
        unreadable = self.on_writes if part.kind == "unreadable" else []
        return [*self.on_calls, *named, *self.on_any_command, *unreadable]


class Layer:
    """The rules of one policy, without those of the layers that tighten it."""

    def __init__(self, number: int, policy: ToolPolicy, workspace: Workspace) -> None:
        self.number = number
        self.policy = policy
        self._workspace = workspace
        self._for_tool: dict[str, _ForTool] = {}

    def judge(self, proposal: Proposal, judgement: Judgement) -> None:
        """Add what this layer says of each part of a call."""
        rules = self.rules_for(proposal)
        parts = proposal.parts if rules.reads_line and proposal.line is not None else CALL
        for part in parts:
            ruling = self._rule(proposal, part, rules, judgement)
            if ruling is not None:
                judgement.rulings.append(ruling)

    def rules_for(self, proposal: Proposal) -> _ForTool:
        """Return the compiled rules for a call's tool."""
        name = proposal.definition.name
        if name not in self._for_tool:
            self._for_tool[name] = self._compile(proposal)
        return self._for_tool[name]

    def _compile(self, proposal: Proposal) -> _ForTool:
        definition = proposal.definition
        rules = []
        for rule in self.policy.all_rules():
            if any(fnmatchcase(definition.name, each) for each in rule.tool):
                try:
                    rules.append(CompiledRule(rule, self._workspace, definition))
                except PatternError as error:
                    where = self.policy.place_of(rule.id)
                    raise PolicyError(f"{where}: rule {rule.id!r}: {error}") from None
        by_line = definition.shell_line is not None
        on_commands, on_any = by_first_word(each for each in rules if each.rule.reads_commands)
        return _ForTool(
            on_calls=[
                each
                for each in rules
                if not each.rule.reads_commands and not (by_line and each.rule.writes)
            ],
            on_commands=on_commands if by_line else {},
            on_any_command=on_any if by_line else [],
            on_writes=[each for each in rules if each.rule.writes] if by_line else [],
        )

    def _rule(
        self, proposal: Proposal, part: Part, rules: _ForTool, judgement: Judgement
    ) -> Ruling | None:
        best: Ruling | None = None
        unknown = part.kind == "unreadable" or (part.kind == "command" and part.words[0] is None)
        for rule in rules.of(part):
            fit = rule.fit(part)
            if fit is Fit.NO or not rule.holds(proposal, every=False):
                continue
            if rule.narrows:
                judgement.narrowing[self.number, rule.rule.id] = rule.rule
            if fit is Fit.POSSIBLE and (unknown or rule.rule.certain):
                continue  # it could be anything, not just this
            action = rule.action(fit, proposal)
            if action is not None and (
                best is None or _STRICTNESS[action] > _STRICTNESS[best.action]
            ):
                reason = self._reason(rule.rule, fit)
                best = Ruling(action, rule.rule.id, reason, rule.about(proposal, part))
        return _doubted(part, rules, best) or best or self._unmatched(proposal, part)

    def _unmatched(self, proposal: Proposal, part: Part) -> Ruling | None:
        return self.fallback(proposal, part) if part.required and self.policy.decides else None

    def fallback(self, proposal: Proposal, part: Part) -> Ruling:
        """What becomes of a part that no rule matches."""
        what = proposal.definition.name if part.kind == "call" else "it"
        default = self.policy.default
        reason = f"no rule of the {self.policy.name} policy names {what}, and its default is "
        return Ruling(Action(default), "default", reason + default, part)

    def _reason(self, rule: Rule, fit: Fit) -> str:
        said = self.policy.reason_of(rule)
        if fit is Fit.POSSIBLE and rule.decision is not Action.ALLOW:
            return f"it may be what the rule is about: {said}"
        return said


def _doubted(part: Part, rules: _ForTool, best: Ruling | None) -> Ruling | None:
    """Ask about what no rule can have meant, unless one denies it, or asks already."""
    if best is not None and best.action is not Action.ALLOW:
        return None
    if part.kind == "unreadable":
        return Ruling(Action.ASK, "unreadable-line", part.doubt, part)
    if part.kind == "command" and part.words[0] is None:
        why = part.doubt or "which command it runs is only known when it runs"
        return Ruling(Action.ASK, "computed-command", why, part)
    if part.doubt and rules.reads_commands:
        return Ruling(Action.ASK, "doubtful-command", part.doubt, part)
    return None


def _has_subcommand(words: tuple[str, ...]) -> bool:
    return (
        len(words) > 1 and words[0] in _WITH_SUBCOMMANDS and bool(_SUBCOMMAND.fullmatch(words[1]))
    )


def _plain_words(part: Part) -> tuple[str, ...] | None:
    words = tuple(word for word in part.words if word is not None)
    plain = part.kind == "command" and not part.doubt and len(words) == len(part.words)
    return words if plain else None


def _told(ruling: Ruling) -> str:
    """The reason of a decision; of a line, with the part that it is about."""
    if ruling.part.kind in ("command", "write"):
        part = str(ruling.part)
        shown = part if len(part) <= _SHOWN else part[: _SHOWN - 3] + "..."
        return f"`{shown}`: {ruling.reason}"
    return ruling.reason
