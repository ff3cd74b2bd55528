"""Explanations: which rule decided a call and why, and which one nearly did."""

from dataclasses import dataclass

from toolcell.model import Action, PolicyDecision, PreparedToolCall
from toolcell.policy.compiled import CompiledRule
from toolcell.policy.decision import Decider, Judgement, Layer, Ruling
from toolcell.policy.prefixes import Fit, matched
from toolcell.policy.proposal import Part, Proposal
from toolcell.policy.rules import Rule

_FEW = 4


@dataclass(frozen=True, slots=True)
class NearMiss:
    """A rule that did not match, where it stands, and what kept it from matching."""

    rule: Rule
    place: str
    because: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """A decision with all the rulings behind it, and the nearest rule that did not match.

    `patched` are the files that a patch names, of a call that brings one.
    """

    decision: PolicyDecision
    place: str
    rulings: tuple[Ruling, ...]
    narrowing: tuple[Rule, ...]
    nearest: NearMiss | None
    patched: tuple[str | None, ...] | None


def explain(decider: Decider, prepared: PreparedToolCall) -> Explanation:
    """Decide a call, and keep what led there."""
    proposal = Proposal.of(prepared, decider.workspace)
    judgement = decider.judge(proposal)
    decision = decider.conclude(judgement)
    misses = [miss for layer in decider.layers for miss in _misses(layer, proposal, judgement)]
    return Explanation(
        decision=decision,
        place=_place(decider, decision.rule_id),
        rulings=tuple(judgement.rulings),
        narrowing=tuple(judgement.narrowing.values()),
        nearest=min(misses, key=lambda miss: miss[0])[1] if misses else None,
        patched=proposal.patched,
    )


def _place(decider: Decider, rule_id: str) -> str:
    for layer in decider.layers:
        if rule_id in layer.policy.places:
            return layer.policy.places[rule_id]
    return ""


def _misses(
    layer: Layer, proposal: Proposal, judgement: Judgement
) -> list[tuple[tuple[int, int], NearMiss]]:
    """The rules for the call's tool that said nothing, with how far each was from it."""
    narrowed = {rule_id for number, rule_id in judgement.narrowing if number == layer.number}
    spoke = {ruling.rule_id for ruling in judgement.rulings} | narrowed
    found = []
    for rule in layer.rules_for(proposal).all():
        because, closeness = _reasons(rule, proposal)
        if rule.rule.id not in spoke and because:
            miss = NearMiss(rule.rule, layer.policy.place_of(rule.rule.id), tuple(because))
            found.append(((len(because), -closeness), miss))
    return found


def _reasons(rule: CompiledRule, proposal: Proposal) -> tuple[list[str], int]:
    because = rule.failing(proposal)
    if rule.rule.reads_commands and proposal.line is not None:
        wanted = [part for part in proposal.parts if part.kind == "command"]
        if missing := _unfit(rule, wanted):
            return [*because, missing], _closeness(rule, wanted)
    if rule.rule.writes:
        fits = [rule.fit(part) for part in proposal.parts if part.kind == "write"]
        fits += [Fit.EXACT for _ in proposal.written if rule.holds(proposal, every=False)]
        if not any(fits):
            because.append(f"it writes nothing that fits {_few(rule.rule.writes)}")
    return because, 0


def _few(texts: tuple[str, ...]) -> str:
    rest = len(texts) - _FEW
    return ", ".join(texts[:_FEW]) + (f" or {rest} more" if rest > 0 else "")


def _unfit(rule: CompiledRule, parts: list[Part]) -> str:
    """Why no command of a line, or to allow not the one that it is closest to, fits a rule."""
    enough = Fit.EXACT if rule.rule.decision is Action.ALLOW else Fit.POSSIBLE
    if any(rule.fit(part) >= enough for part in parts):
        return ""
    prefixes = tuple(" ".join("|".join(each) for each in p) for p in rule.rule.prefixes)
    wanted = _few(prefixes)
    if not wanted:
        return "its commands are all of those that it makes an exception of"
    if not parts:
        return f"the line runs no command, and the rule is about {wanted}"
    closest = max(parts, key=lambda part: _closeness(rule, [part]))
    return f"`{closest}` does not begin with {wanted}"


def _closeness(rule: CompiledRule, parts: list[Part]) -> int:
    counts = [matched(prefix, part.words) for prefix in rule.rule.prefixes for part in parts]
    return max(counts, default=0)
