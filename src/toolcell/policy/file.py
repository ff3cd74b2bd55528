"""Policy files: TOML in, a ToolPolicy out, or an error with the file and the line.

version = 1
extends = "default"             # a shipped policy, or a file; what stands here is added

[tools]
allow = ["my_tool"]
[tools.ask]
write_file = "it changes files"

[cell]
workspace = "rw"
[limits]
wall = "30s"

[[rule]]
id = "git-push"
tool = "shell"
command = ["git", ["push", "fetch"]]
decision = "ask"
reason = "talks to a remote"
match = ["git push origin main"]
not_match = ["git status"]
"""

import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError

from toolcell.errors import PolicyError
from toolcell.model import Action, Budget, CellSettings, Limits
from toolcell.model.base import Frozen
from toolcell.policy.complaints import explain
from toolcell.policy.document import STRICTEST_FIRST, Patterns, ToolPolicy
from toolcell.policy.examples import failing_examples, pattern_problem
from toolcell.policy.locate import Lines
from toolcell.policy.rules import Rule
from toolcell.policy.tables import Approvals, Breaker, Redaction

_PACKAGED = Path(__file__).parent.parent / "policies"
_CHECKOUT = Path(__file__).parent.parent.parent.parent / "policies"
_LARGEST = 1024 * 1024


class _Tools(Frozen):
    allow: Patterns = Field(default_factory=dict)
    ask: Patterns = Field(default_factory=dict)
    deny: Patterns = Field(default_factory=dict)


class PolicyTest(Frozen):
    """One [[test]] of a policy: a call, and what has to be decided of it."""

    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    command: str | None = None
    decision: Action
    rule: str | None = None


def _is_one(value: Any) -> Any:
    if type(value) is not int or value != 1:  # true would pass for 1
        raise ValueError(f"this toolcell reads version 1, got {value!r}")
    return value


class PolicyFile(Frozen):
    """The keys of a policy file."""

    version: Annotated[int, BeforeValidator(_is_one)]
    extends: str | None = None
    default: Literal["deny", "ask"] = "deny"
    on_ask: Literal["ask", "deny"] = "ask"
    tools: _Tools = _Tools()
    cell: CellSettings = CellSettings()
    limits: Limits = Limits()
    redact: Redaction = Redaction()
    breaker: Breaker = Breaker()
    approvals: Approvals = Approvals()
    budget: Budget = Budget()
    rule: tuple[Rule, ...] = ()
    test: tuple[PolicyTest, ...] = ()


def shipped_policies() -> dict[str, Path]:
    """Return the policies that ship with toolcell, by name.

    A wheel carries them inside the package; a checkout or an editable install has them
    at the top of the tree. There is one source of each.
    """
    directory = _PACKAGED if _PACKAGED.is_dir() else _CHECKOUT
    return {path.stem: path for path in sorted(directory.glob("*.toml"))}


def meant(name: str) -> str:
    """Ask whether a name was to be that of a shipped policy, where it is close to one."""
    close = get_close_matches(name, shipped_policies(), 1)
    return f"; did you mean {close[0]!r}?" if close else ""


def load_policy(name_or_path: str | Path) -> ToolPolicy:
    """Load a shipped policy by name, or a file by path; raises PolicyError."""
    return _load(_found(name_or_path), ())[0]


def load_tests(name_or_path: str | Path) -> tuple[ToolPolicy, tuple[PolicyTest, ...]]:
    """Load a policy with the tests that its own file holds; raises PolicyError."""
    return _load(_found(name_or_path), ())


def load_layer(path: Path) -> ToolPolicy:
    """Load a file that only tightens other policies; raises PolicyError."""
    policy, _ = _load(path.absolute(), (), layer=True)
    return policy


def parse_policy(text: str, source: str) -> ToolPolicy:
    """Read a policy from TOML text; `source` names it in errors. Raises PolicyError."""
    return _parse(text, source, ())[0]


def _found(name_or_path: str | Path) -> Path:
    return (shipped_policies().get(str(name_or_path)) or Path(name_or_path)).absolute()


def _load(
    path: Path, children: tuple[Path, ...], *, layer: bool = False
) -> tuple[ToolPolicy, tuple[PolicyTest, ...]]:
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
        text = data.decode()
    except FileNotFoundError:
        raise PolicyError(
            f"there is no policy {str(path)!r}: neither a file nor one of the shipped policies "
            f"({', '.join(shipped_policies())}){meant(path.name)}"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise PolicyError(f"{path}: the policy cannot be read: {error}") from None
    if len(data) > _LARGEST:
        raise PolicyError(f"{path}: the policy has more than {_LARGEST:,} bytes")
    return _parse(text, str(path), (*children, path), layer=layer)


def _parse(
    text: str, source: str, files: tuple[Path, ...], *, layer: bool = False
) -> tuple[ToolPolicy, tuple[PolicyTest, ...]]:
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: also numbers of too many digits
        raise PolicyError(f"{source}: not TOML: {error}") from None
    lines = Lines(text)
    try:
        parsed = PolicyFile.model_validate(document)
        _check_rules(parsed, source, lines)
        parent = _parent(parsed, source, lines, files)
        policy = _extended(parent, parsed, source, _places(parsed, source, lines))
    except ValidationError as error:
        raise PolicyError(explain(error, lines, source)) from None
    if layer:
        _check_layer(parsed, source, lines)
        decides = bool({"default", "extends"} & parsed.model_fields_set)
        policy = policy.model_copy(update={"decides": decides})
    return policy, parsed.test


def _check_rules(parsed: PolicyFile, source: str, lines: Lines) -> None:
    problems = []
    for place, rule in enumerate(parsed.rule):
        if problem := pattern_problem(rule):
            where = lines.of(("rule", place, "args" if rule.args else "writes"))
            problems.append(f"{source}:{where}: rule {rule.id!r}: {problem}")
            continue
        for key, number, problem in failing_examples(rule):
            where = lines.of(("rule", place, key, number))
            problems.append(f"{source}:{where}: rule {rule.id!r}: {problem}")
    if problems:
        raise PolicyError("\n".join(problems))


def _check_layer(parsed: PolicyFile, source: str, lines: Lines) -> None:
    """What would add something has no place in a file that only tightens."""
    for key in ("read", "env", "preload"):
        if key in parsed.cell.model_fields_set:
            raise PolicyError(
                f"{source}:{lines.of(('cell', key))}: `cell.{key}` adds to a cell, and this file "
                "only tightens the policy; set it in the policy that you name with --policy"
            )


def _parent(
    parsed: PolicyFile, source: str, lines: Lines, files: tuple[Path, ...]
) -> ToolPolicy | None:
    if parsed.extends is None:
        return None
    where = f"{source}:{lines.of(('extends',))}"
    base = shipped_policies().get(parsed.extends)
    path = base or (Path(source).parent / Path(parsed.extends).expanduser()).absolute()
    if path in files:
        raise PolicyError(f"{where}: the policy extends itself, by way of {path}")
    if base is None and not path.exists():
        raise PolicyError(
            f"{where}: there is no policy {parsed.extends!r}: neither {path} nor one of the "
            f"shipped policies ({', '.join(shipped_policies())}){meant(parsed.extends)}"
        )
    return _load(path, files)[0]


def _extended(
    parent: ToolPolicy | None, parsed: PolicyFile, source: str, places: dict[str, str]
) -> ToolPolicy:
    """Add a file to what it extends: the same tool, rule or key written again replaces it."""
    base = parent or ToolPolicy()
    said = parsed.model_fields_set
    again = {name for action in STRICTEST_FIRST for name in getattr(parsed.tools, action)}
    sets = {
        str(action): {k: v for k, v in base.patterns(action).items() if k not in again}
        | getattr(parsed.tools, action)
        for action in STRICTEST_FIRST
    }
    rules = {rule.id: rule for rule in base.rules}
    merged: dict[str, Any] = {
        "name": Path(source).stem,
        "default": parsed.default if "default" in said else base.default,
        "on_ask": parsed.on_ask if "on_ask" in said else base.on_ask,
        "rules": (*(rules | {rule.id: rule for rule in parsed.rule}).values(),),
        "cell": _merged_cell(base.cell, parsed.cell, Path(source).parent),
        "source": source,
        "sources": (*base.sources, source),
        "places": base.places | places,
    }
    for table in ("limits", "redact", "breaker", "approvals", "budget"):
        new = getattr(parsed, table)
        update = {key: getattr(new, key) for key in new.model_fields_set}
        merged[table] = getattr(base, table).model_copy(update=update)
    if len({rule.id for rule in parsed.rule}) < len(parsed.rule):
        merged["rules"] = parsed.rule  # so that the policy itself complains of the two
    return ToolPolicy.model_validate(merged | sets)


def _merged_cell(base: CellSettings, cell: CellSettings, directory: Path) -> CellSettings:
    """Replace the keys that are written; relative places to read are the file's neighbours."""
    update = {key: getattr(cell, key) for key in cell.model_fields_set}
    if "read" in update:
        update["read"] = tuple(
            place if place.startswith("~") else str(directory / place) for place in cell.read
        )
    if "env" in update:
        update["env"] = base.env | cell.env
    return base.model_copy(update=update)


def _places(parsed: PolicyFile, source: str, lines: Lines) -> dict[str, str]:
    """Where each rule stands, by its id."""
    found = {
        f"{action}:{name}": f"{source}:{lines.of(('tools', str(action), name))}"
        for action in STRICTEST_FIRST
        for name in getattr(parsed.tools, action)
    }
    for place, rule in enumerate(parsed.rule):
        found[rule.id] = f"{source}:{lines.of(('rule', place, 'id'))}"
    return found
