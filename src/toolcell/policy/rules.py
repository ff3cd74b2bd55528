"""Rules as they are written: what a call must look like, what then happens, and examples.

A rule that allows has to fit a call wholly; a rule that asks or denies applies where it
may fit. A rule without a decision only narrows the cell of what it may fit.
"""

import re
from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StrictFloat, StrictInt, model_validator
from pydantic_core import PydanticCustomError

from toolcell.model import Action, CellSettings, Limits
from toolcell.model.base import Frozen
from toolcell.model.cells import WorkspaceDirectory


def _as_list(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


def _as_prefix(value: Any) -> Any:
    """Take "git push" for ["git", "push"], and each element for a list of alternatives."""
    if isinstance(value, str):
        value = value.split()
    if not isinstance(value, Iterable):
        return value
    return [(part,) if isinstance(part, str) else part for part in value]


Text = Annotated[str, Field(min_length=1)]
# A list that is written and empty would match everything, or nothing: it is refused.
Texts = Annotated[tuple[Text, ...], BeforeValidator(_as_list), Field(min_length=1)]


def _is_word(text: str) -> str:
    """Refuse what no word of a command can be, so that no rule waits for it in vain."""
    if found := _OPERATORS.search(text):
        raise ValueError(
            f"{text!r} is no word of a command: {found[0]!r} is the shell's. A prefix is the start "
            "of one command; write one for each, because lines are taken apart"
        )
    return text


_OPERATORS = re.compile(r"[;&|<>`$()\s]")
Word = Annotated[Text, AfterValidator(_is_word)]
Alternatives = Annotated[tuple[Word, ...], Field(min_length=1)]
Prefix = Annotated[tuple[Alternatives, ...], BeforeValidator(_as_prefix), Field(min_length=1)]
Prefixes = Annotated[tuple[Prefix, ...], BeforeValidator(_as_list), Field(min_length=1)]
Number = StrictInt | Annotated[StrictFloat, Field(allow_inf_nan=False)]
RuleId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]


def _as_condition(value: Any) -> Any:
    """Take a plain value for {equals = value}, a list for {one_of = list}."""
    if isinstance(value, dict | Condition):
        return value
    return {"one_of": value} if isinstance(value, list | tuple) else {"equals": value}


class Condition(Frozen):
    """What one argument must be; all that is given has to hold.

    `regex` has to match the whole text, and is matched in time linear to it (no
    look-around, no back-references). `min` and `max` belong to the range. `under` names
    directories; a path counts as under one by where it really leads. In `glob` and
    `not_glob`, `*` stays within a directory and `**` does not; an argument whose schema says
    that it is a path is compared by where it leads, relative to the workspace where inside.
    """

    equals: Any = None
    one_of: Annotated[tuple[Any, ...], Field(min_length=1)] | None = None
    regex: str | None = None
    min: Number | None = None
    max: Number | None = None
    under: Texts = ()
    glob: Texts = ()
    not_glob: Texts = ()

    @model_validator(mode="after")
    def _says_something(self) -> "Condition":
        if not self.model_fields_set:
            raise ValueError("an empty condition would match anything; say equals, one_of, ...")
        return self


class CellNarrowing(Frozen):
    """What a rule takes away from the cell of a call; `writable` as in the policy's [cell]."""

    network: Literal["none"] | None = None
    workspace: Literal["ro", "none"] | None = None
    writable: Annotated[
        tuple[WorkspaceDirectory, ...], BeforeValidator(_as_list), Field(min_length=1)
    ] = ()


Example = str | dict[str, Any]


class Rule(Frozen):
    """One [[rule]] of a policy.

    `tool` are names or globs. `args` maps arguments (nested ones with dots) to conditions.
    `command` is the start of a command of a shell line, each element a word or a list of
    alternatives, and `commands` are several; `not_commands` are what the command must not be.
    `writes` are globs of paths that the call writes: redirections of a shell line, operands of
    programs known to write, path arguments of tools that are not read-only. A rule that asks
    or denies and is `certain` leaves alone what only the run will show (`$X`). `cell` and
    `limits` narrow the cell. `match` and `not_match` are examples, checked when a file is
    loaded: shell lines, or tables of arguments.
    """

    id: RuleId
    tool: Texts
    decision: Action | None = None
    reason: str = ""
    args: dict[str, Annotated[Condition, BeforeValidator(_as_condition)]] = Field(
        default_factory=dict
    )
    command: Prefix | None = None
    commands: Prefixes = ()
    not_commands: Prefixes = ()
    writes: Texts = ()
    certain: bool = False
    cell: CellNarrowing = CellNarrowing()
    limits: Limits | None = None
    match: Annotated[tuple[Example, ...], BeforeValidator(_as_list)] = ()
    not_match: Annotated[tuple[Example, ...], BeforeValidator(_as_list)] = ()

    @model_validator(mode="after")
    def _makes_sense(self) -> "Rule":
        if self.decision in (Action.ASK, Action.DENY) and not self.reason.strip():
            raise _in("reason", f"is missing: a rule with decision {self.decision} says why")
        if self.decision is None and not self.narrows:
            raise _in("decision", "is missing: write allow, ask or deny, or narrow the cell")
        if self.reads_commands and self.writes:
            raise _in("writes", "looks at files, and the rule looks at commands; make two rules")
        return self

    @property
    def prefixes(self) -> tuple[Prefix, ...]:
        """`command` and `commands` together."""
        return (*((self.command,) if self.command else ()), *self.commands)

    @property
    def reads_commands(self) -> bool:
        """Whether it looks at the commands of a shell line."""
        return bool(self.command or self.commands or self.not_commands)

    @property
    def narrows(self) -> bool:
        """Whether it takes something away from the cell."""
        return bool(self.cell.model_fields_set or (self.limits and self.limits.model_fields_set))


def is_wild(name: str) -> bool:
    """Whether a name is a glob."""
    return not {"*", "?", "["}.isdisjoint(name)


def _in(key: str, words: str) -> PydanticCustomError:
    return PydanticCustomError("in_rule", "{words}", {"key": key, "words": words})


def narrow_cell(cell: CellSettings, narrowing: CellNarrowing) -> CellSettings:
    """Return settings with what a rule takes away; never gives anything back."""
    update: dict[str, Any] = {}
    if narrowing.network == "none":
        update["network"] = "none"
    if narrowing.workspace and _LENT[narrowing.workspace] < _LENT[cell.workspace]:
        update["workspace"] = narrowing.workspace
    if narrowing.writable:
        update["writable"] = _within(cell.writable, narrowing.writable)
        if not update["writable"] and cell.workspace == "rw":
            update["workspace"] = "ro"  # they have no directory in common
    return cell.model_copy(update=update) if update else cell


_LENT = {"none": 0, "ro": 1, "rw": 2}


def _within(outer: tuple[str, ...], inner: tuple[str, ...]) -> tuple[str, ...]:
    """The directories that both lists leave writable; no list is the whole workspace."""
    if not outer:
        return inner
    both = [place for place in inner if any(_is_below(place, other) for other in outer)]
    both += [place for place in outer if any(_is_below(place, other) for other in inner)]
    return tuple(dict.fromkeys(both))


def _is_below(place: str, directory: str) -> bool:
    return directory in (".", place) or place.startswith(f"{directory}/")


def narrow_limits(limits: Limits, other: Limits | None) -> Limits:
    """Return the smaller of each limit that the other one names."""
    if other is None:
        return limits
    update = {
        name: value
        for name in other.model_fields_set
        if (value := getattr(other, name)) < getattr(limits, name)
    }
    return limits.model_copy(update=update) if update else limits
