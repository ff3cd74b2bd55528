"""ToolPolicy: what a policy says, as a value: sets of tools, rules, the cell, limits, the rest."""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from itertools import combinations
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from toolcell.errors import PolicyError
from toolcell.model import Action, Budget, CellSettings, Limits, PolicyDecision, digest_of
from toolcell.model.base import Frozen
from toolcell.policy.complaints import explain_python
from toolcell.policy.rules import Rule
from toolcell.policy.tables import Approvals, Breaker, Redaction

STRICTEST_FIRST = (Action.DENY, Action.ASK, Action.ALLOW)
_VERB = {Action.ALLOW: "allows", Action.ASK: "asks about", Action.DENY: "denies"}


def _contradiction(where: str, words: str) -> PydanticCustomError:
    """An error of the whole policy that still knows which key of a file to point at."""
    return PydanticCustomError("contradiction", "{words}", {"words": words, "where": where})


def _with_reasons(value: Any) -> Any:
    """Take ["name", ...] as well as {name = "reason"}; a name in a list has no reason yet."""
    if isinstance(value, dict):
        return value
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ValueError('expected a list of tool names, or a table of name = "reason"')
    names = list(value)
    if not all(isinstance(name, str) for name in names):
        raise ValueError("expected tool names, each a string")
    return dict.fromkeys(names, "")


Patterns = Annotated[dict[str, str], BeforeValidator(_with_reasons)]


class _Checked(type(Frozen)):  # type: ignore[misc]  # the metaclass of models, which has no name
    """Says what is wrong with a policy that is written in Python in the words for files.

    Only where the class is called: validation as such, as of a file, gives its own error.
    """

    def __call__(cls, *args: Any, **keys: Any) -> Any:
        try:
            return super().__call__(*args, **keys)
        except ValidationError as error:
            raise PolicyError(explain_python(error, list(cls.model_fields))) from None


class ToolPolicy(Frozen, metaclass=_Checked):
    """What is allowed, asked about and denied; what the cell must be; the limits on a call.

    `allow`, `ask` and `deny` map tool names or globs to reasons; a list of names will
    do. The same entry in two of them raises PolicyError, as does whatever else is wrong. `rules`
    look into calls. Where several match, deny wins over ask and ask over allow; where none does,
    `default` decides.
    `on_ask = "deny"` is for where nobody can be asked. `layers` are policies that only tighten
    this one; of them, one that is not `decides` has no opinion on what none of its rules match.
    `sources` are the file that it was read from and those that this one extends.
    """

    name: str = "policy"
    default: Literal["deny", "ask"] = "deny"
    on_ask: Literal["ask", "deny"] = "ask"
    allow: Patterns = Field(default_factory=dict)
    ask: Patterns = Field(default_factory=dict)
    deny: Patterns = Field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    cell: CellSettings = CellSettings()
    limits: Limits = Limits()
    redact: Redaction = Redaction()
    breaker: Breaker = Breaker()
    approvals: Approvals = Approvals()
    budget: Budget = Budget()
    layers: tuple["ToolPolicy", ...] = ()
    decides: bool = True
    source: str | None = Field(default=None, exclude=True)
    sources: tuple[str, ...] = Field(default=(), exclude=True, repr=False)
    places: dict[str, str] = Field(default_factory=dict, exclude=True, repr=False)

    if TYPE_CHECKING:
        # What may be written, which is more than what is kept.
        def __init__(
            self,
            *,
            name: str = ...,
            default: Literal["deny", "ask"] = ...,
            on_ask: Literal["ask", "deny"] = ...,
            allow: Iterable[str] | Mapping[str, str] = ...,
            ask: Iterable[str] | Mapping[str, str] = ...,
            deny: Iterable[str] | Mapping[str, str] = ...,
            rules: Iterable[Rule | Mapping[str, Any]] = ...,
            cell: CellSettings | Mapping[str, Any] = ...,
            limits: Limits | Mapping[str, Any] = ...,
            redact: Redaction | Mapping[str, Any] = ...,
            breaker: Breaker | Mapping[str, Any] = ...,
            approvals: Approvals | Mapping[str, Any] = ...,
            budget: Budget | Mapping[str, Any] = ...,
            layers: Iterable["ToolPolicy"] = ...,
            decides: bool = ...,
            source: str | None = ...,
            sources: Iterable[str] = ...,
            places: Mapping[str, str] = ...,
        ) -> None: ...

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> "ToolPolicy":
        for first, second in combinations(STRICTEST_FIRST, 2):
            both = sorted(set(self.patterns(first)) & set(self.patterns(second)))
            if both:
                raise _contradiction(
                    f"tools.{first}.{both[0]}",
                    f"{both[0]!r} stands in both `{second}` and `{first}`; keep one",
                )
        ids = [rule.id for rule in self.rules]
        for place, rule_id in enumerate(ids):
            if rule_id in ids[:place]:
                raise _contradiction(f"rule.{place}.id", f"two rules have the id {rule_id!r}")
        if self.cell.network == "host" and "network" in self.cell.require:
            raise _contradiction(
                "cell.network",
                'network = "host" gives up what `require` holds, which is "network" too unless '
                "the policy says otherwise; write require = [...] without it",
            )
        if self.cell.isolation == "none" and self.cell.require:
            raise _contradiction(
                "cell.isolation",
                'isolation = "none" gives up every wall, and `require` still holds some (it has '
                "a default); write require = []",
            )
        return self

    @property
    def version(self) -> str:
        """A digest of everything that the policy says; approvals are bound to it.

        Computed each time: a cache would be carried along by `model_copy`.
        """
        return digest_of(self.model_dump(mode="json"))

    def changed(self, **tables: dict[str, Any]) -> "ToolPolicy":
        """Return a policy with some keys of its tables replaced, checked like any other."""
        document = self.model_dump(mode="json")
        for table, changes in tables.items():
            document[table] |= changes
        # Rules and layers as they are: a dump has defaults where nothing was said.
        kept = {"rules": self.rules, "layers": self.layers}
        told = {"source": self.source, "sources": self.sources, "places": self.places}
        return ToolPolicy.model_validate(document | kept | told)

    def all_rules(self) -> list[Rule]:
        """Return the rules, those of the three sets first, with ids such as "allow:shell"."""
        by_name = [
            Rule.model_construct(
                id=f"{action}:{pattern}", tool=(pattern,), decision=action, reason=reason
            )
            for action in STRICTEST_FIRST
            for pattern, reason in self.patterns(action).items()
        ]
        return [*by_name, *self.rules]

    def by_name(self, tool_name: str) -> PolicyDecision:
        """Decide by a tool's name alone, as the three sets do; rules look further into calls."""
        for rule in self.all_rules()[: len(self.deny) + len(self.ask) + len(self.allow)]:
            if rule.decision and fnmatchcase(tool_name, rule.tool[0]):
                return PolicyDecision(
                    action=rule.decision, rule_id=rule.id, reason=self.reason_of(rule)
                )
        return PolicyDecision(
            action=Action(self.default),
            rule_id="default",
            reason=f"no rule of the {self.name} policy names {tool_name}, and its default is "
            f"{self.default}",
        )

    def reason_of(self, rule: Rule) -> str:
        """Return a rule's reason, or words for a rule that gives none."""
        if rule.reason or rule.decision is None:
            return rule.reason
        name = rule.id.partition(":")[2] or f"it by rule {rule.id}"
        return f"the {self.name} policy {_VERB[rule.decision]} {name}"

    def place_of(self, rule_id: str) -> str:
        """Return the file and line of a rule, or the policy's name where there is no file."""
        return self.places.get(rule_id) or self.source or self.name

    def patterns(self, action: Action) -> dict[str, str]:
        """Return the set of one action."""
        return {Action.ALLOW: self.allow, Action.ASK: self.ask, Action.DENY: self.deny}[action]
