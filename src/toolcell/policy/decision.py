"""ToolPolicy: three sets of tool names and globs, and the strictest that matches decides."""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from itertools import combinations
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from toolcell.errors import PolicyError
from toolcell.model import Action, CellSettings, Limits, PolicyDecision, digest_of
from toolcell.model.base import Frozen

_STRICTEST_FIRST = (Action.DENY, Action.ASK, Action.ALLOW)
_WILD = frozenset("*?[")


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


class ToolPolicy(Frozen):
    """Decides by tool name; carries what the cell must be and the limits on a call.

    `allow`, `ask` and `deny` map tool names or globs to reasons; a list of names will
    do. The same entry in two of them raises ValueError. Where several match, deny wins
    over ask and ask over allow; where none does, `default` decides.
    """

    name: str = "policy"
    default: Literal["deny", "ask"] = "deny"
    allow: Patterns = Field(default_factory=dict)
    ask: Patterns = Field(default_factory=dict)
    deny: Patterns = Field(default_factory=dict)
    cell: CellSettings = CellSettings()
    limits: Limits = Limits()
    source: str | None = Field(default=None, exclude=True)

    if TYPE_CHECKING:
        # What may be written, which is more than what is kept.
        def __init__(
            self,
            *,
            name: str = ...,
            default: Literal["deny", "ask"] = ...,
            allow: Iterable[str] | Mapping[str, str] = ...,
            ask: Iterable[str] | Mapping[str, str] = ...,
            deny: Iterable[str] | Mapping[str, str] = ...,
            cell: CellSettings | Mapping[str, Any] = ...,
            limits: Limits | Mapping[str, Any] = ...,
            source: str | None = ...,
        ) -> None: ...

    @model_validator(mode="after")
    def _disjoint(self) -> "ToolPolicy":
        for first, second in combinations(_STRICTEST_FIRST, 2):
            both = sorted(set(self._patterns(first)) & set(self._patterns(second)))
            if both:
                raise _contradiction(
                    f"tools.{first}.{both[0]}",
                    f"{both[0]!r} stands in both `{second}` and `{first}`; keep one",
                )
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
        return ToolPolicy.model_validate(document | {"source": self.source})

    def decide(self, tool_name: str) -> PolicyDecision:
        """Return the strictest decision that matches a tool's name; never fails."""
        for action in _STRICTEST_FIRST:
            for pattern, reason in self._patterns(action).items():
                if fnmatchcase(tool_name, pattern):
                    return PolicyDecision(
                        action=action,
                        rule_id=f"{action}:{pattern}",
                        reason=reason or f"the {self.name} policy {_VERB[action]} {pattern}",
                    )
        return PolicyDecision(
            action=Action(self.default),
            rule_id="default",
            reason=f"no rule of the {self.name} policy names {tool_name}, and its default is "
            f"{self.default}",
        )

    def check(self, tools: Iterable[str]) -> None:
        """Raise PolicyError where `ask` or `deny` names a tool that is not there.

        A misspelt allow only denies; a misspelt deny would let the real tool through.
        """
        known = sorted(tools)
        for action in (Action.DENY, Action.ASK):
            for pattern in self._patterns(action):
                if not _WILD & set(pattern) and pattern not in known:
                    raise PolicyError(
                        f"{self.source or self.name}: `{action}` names {pattern!r}, which is not "
                        f"a tool here; the tools are {', '.join(known)}"
                    )

    def _patterns(self, action: Action) -> dict[str, str]:
        return {Action.ALLOW: self.allow, Action.ASK: self.ask, Action.DENY: self.deny}[action]


_VERB = {Action.ALLOW: "allows", Action.ASK: "asks about", Action.DENY: "denies"}
