"""Arguments: from what a model sent to canonical JSON, or to problems in words it can act on.

Nothing is coerced: "1" is not 1 and 1 is not true. Unknown fields are refused at every
depth. Every problem is named, each with its path.
"""

import json
from functools import lru_cache
from typing import Any

from pydantic import ValidationError

from sandbox_workers import wire
from toolcell.model import ToolDefinition, canonical_json

_SHOWN = 60
_PROBLEMS = 20

_EXPECTED = {
    "string_type": "a string",
    "int_type": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "an array",
    "tuple_type": "an array",
    "set_type": "an array",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "dataclass_type": "an object",
    "none_required": "null",
    "bytes_type": "a string",
}


class InvalidArguments(Exception):  # noqa: N818  # a value for the normalizer, not a fault
    """The arguments do not fit; `problems` are sentences for the model."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


def strict_json(text: str) -> Any:
    """Parse what a model or a file sent as the cell's own pipe does; raises ValueError in words."""
    return wire.decode(text)


def validate(definition: ToolDefinition, raw: dict[str, Any] | str) -> dict[str, Any]:
    """Return canonical arguments, defaults filled in; raises InvalidArguments."""
    value = _decode(raw)
    if definition.arguments_model is None:
        return _by_schema(definition.spec.input_schema, value)
    try:
        model = definition.arguments_model.model_validate_json(
            wire.encode(value), strict=True, extra="forbid"
        )
    except ValidationError as error:
        known = list(definition.spec.input_schema.get("properties", {}))
        raise InvalidArguments(_problems(error, known)) from None
    return model.model_dump(mode="json", by_alias=True)


def _decode(raw: dict[str, Any] | str) -> dict[str, Any]:
    """Bring either form to one strict JSON object: a dict may hold what JSON cannot."""
    try:
        value = wire.decode(raw if isinstance(raw, str) else wire.encode(raw))
    except wire.WireError as error:
        what = str(error).removeprefix("not JSON: ")
        raise InvalidArguments([f"the arguments are not valid JSON: {what}"]) from None
    if not isinstance(value, dict):
        raise InvalidArguments([f"the arguments must be a JSON object, got {_show(value)}"])
    return value


def _by_schema(schema: dict[str, Any], value: dict[str, Any]) -> dict[str, Any]:
    problems = [
        f"{_path(error.instance_path)}: {error.message}"
        for error in _validator(canonical_json(schema)).iter_errors(value)
    ]
    if problems:
        raise InvalidArguments(_cap(problems))
    return value


@lru_cache(maxsize=1024)
def _validator(schema: str) -> Any:
    import jsonschema_rs  # only tools with a schema of their own need it

    # Offline: a remote $ref is an error, not a request. The regex engine is the linear one.
    return jsonschema_rs.validator_for(
        json.loads(schema), offline=True, pattern_options=jsonschema_rs.RegexOptions()
    )


def _problems(error: ValidationError, known: list[str]) -> list[str]:
    problems: dict[str, None] = {}
    for item in error.errors(include_url=False, include_context=True):
        problems.setdefault(_problem(item, known))
    return _cap(list(problems))


def _problem(item: Any, known: list[str]) -> str:
    kind, path = item["type"], _path(item["loc"])
    if kind == "missing":
        return f"{path}: is required"
    if kind == "extra_forbidden":
        takes = ", ".join(f"`{name}`" for name in known) or "no arguments"
        return f"{path}: unknown argument" + (
            f"; the tool takes {takes}" if len(item["loc"]) == 1 else ""
        )
    got = f"got {_show(item['input'])}"
    if kind in _EXPECTED:
        return f"{path}: expected {_EXPECTED[kind]}, {got}"
    if kind in ("literal_error", "enum"):
        return f"{path}: expected {item['ctx']['expected']}, {got}"
    message = item["msg"]
    return f"{path}: {message[0].lower()}{message[1:]}, {got}"


def _path(loc: Any) -> str:
    text = ""
    for part in loc:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return f"`{text}`" if text else "the arguments"


def _show(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"


def _cap(problems: list[str]) -> list[str]:
    more = len(problems) - _PROBLEMS
    return problems[:_PROBLEMS] + ([f"and {more} more problems"] if more > 0 else [])
