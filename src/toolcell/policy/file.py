"""Policy files: TOML in, a ToolPolicy out, or an error with the file and the line.

version = 1
default = "deny"

[tools]
allow = ["read_*"]
[tools.ask]
write_file = "it changes files"

[cell]
workspace = "rw"
[limits]
wall = "30s"
"""

import re
import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError

from toolcell.errors import PolicyError
from toolcell.model import CellSettings, Limits
from toolcell.model.base import Frozen
from toolcell.policy.decision import Patterns, ToolPolicy

_PACKAGED = Path(__file__).parent.parent / "policies"
_CHECKOUT = Path(__file__).parent.parent.parent.parent / "policies"
_HEADER = re.compile(r"\s*\[\[?\s*([^\]]+?)\s*\]\]?")
_KEY = re.compile(r"""\s*["']?([^\s"'=.]+)["']?\s*[=.]""")


class _Tools(Frozen):
    allow: Patterns = Field(default_factory=dict)
    ask: Patterns = Field(default_factory=dict)
    deny: Patterns = Field(default_factory=dict)


def _is_one(value: Any) -> Any:
    if type(value) is not int or value != 1:  # true would pass for 1
        raise ValueError(f"this toolcell reads version 1, got {value!r}")
    return value


class _PolicyFile(Frozen):
    version: Annotated[int, BeforeValidator(_is_one)]
    default: Literal["deny", "ask"] = "deny"
    tools: _Tools = _Tools()
    cell: CellSettings = CellSettings()
    limits: Limits = Limits()


def shipped_policies() -> dict[str, Path]:
    """Return the policies that ship with toolcell, by name.

    A wheel carries them inside the package; a checkout or an editable install has them
    at the top of the tree. There is one source of each.
    """
    directory = _PACKAGED if _PACKAGED.is_dir() else _CHECKOUT
    return {path.stem: path for path in sorted(directory.glob("*.toml"))}


def load_policy(name_or_path: str | Path) -> ToolPolicy:
    """Load a shipped policy by name, or a file by path; raises PolicyError."""
    shipped = shipped_policies()
    path = (shipped.get(str(name_or_path)) or Path(name_or_path)).absolute()
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise PolicyError(
            f"there is no policy {str(name_or_path)!r}: neither a file nor one of the shipped "
            f"policies ({', '.join(shipped)})"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise PolicyError(f"{path}: the policy cannot be read: {error}") from None
    return parse_policy(text, str(path))


def parse_policy(text: str, source: str) -> ToolPolicy:
    """Read a policy from TOML text; `source` names it in errors. Raises PolicyError."""
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: also numbers of too many digits
        raise PolicyError(f"{source}: not TOML: {error}") from None
    try:
        parsed = _PolicyFile.model_validate(document)
        return ToolPolicy(
            name=Path(source).stem,
            default=parsed.default,
            allow=parsed.tools.allow,
            ask=parsed.tools.ask,
            deny=parsed.tools.deny,
            cell=_from_here(parsed.cell, Path(source).parent),
            limits=parsed.limits,
            source=source,
        )
    except ValidationError as error:
        raise PolicyError(_explain(error, text, source)) from None


def _from_here(cell: CellSettings, directory: Path) -> CellSettings:
    """Take relative places to read as relative to the policy's own directory."""
    read = tuple(place if place.startswith("~") else str(directory / place) for place in cell.read)
    return cell.model_copy(update={"read": read})


def _explain(error: ValidationError, text: str, source: str) -> str:
    lines = []
    for item in error.errors(include_url=False):
        path = [str(part) for part in item["loc"]]
        if item["type"] == "contradiction":
            path = item["ctx"]["where"].split(".", 2)
        where = f"{source}:{_line_of(text, path)}" if path else source
        lines.append(f"{where}: {_problem(item, path)}")
    return "\n".join(lines)


def _problem(item: Any, path: list[str]) -> str:
    key = ".".join(path)
    if item["type"] == "extra_forbidden":
        return f"unknown key `{key}`{_suggestion(path)}"
    if item["type"] == "missing":
        return f"`{key}` is missing" + (" (write version = 1)" if key == "version" else "")
    if item["type"] == "contradiction":
        return str(item["msg"])
    message = _EXPECTED.get(item["type"]) or item["msg"].removeprefix("Value error, ")
    return f"`{key}`: {message}" if key else message


def _suggestion(path: list[str]) -> str:
    """What an unknown key may have been meant to be: a neighbour's name, or another table's."""
    *table, name = path
    here = _KEYS.get(".".join(table), [])
    if close := get_close_matches(name, here, 1):
        return f"; did you mean `{close[0]}`?"
    homes = [place for place, keys in _KEYS.items() if name in keys and place]
    return f"; it belongs under [{homes[0]}]" if homes else ""


_KEYS = {
    "": list(_PolicyFile.model_fields),
    "tools": list(_Tools.model_fields),
    "cell": list(CellSettings.model_fields),
    "limits": list(Limits.model_fields),
}
_EXPECTED = {
    "model_type": "expected a table",
    "dict_type": "expected a table",
    "tuple_type": "expected a list",
    "string_type": "expected text in quotes",
    "int_type": "expected a whole number",
    "float_type": "expected a number",
}


def _line_of(text: str, path: list[str]) -> int:
    """Find the line where a key stands, or the nearest table above it; 1 where neither does."""
    best, found, table = 0, 1, []  # type: int, int, list[str]
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            table = [part.strip().strip("\"'") for part in header.group(1).split(".")]
            here = table
        elif key := _KEY.match(line):
            here = [*table, key.group(1)]
        else:
            continue
        if len(here) > best and here == path[: len(here)]:
            best, found = len(here), number
    return found
