"""Arguments: from what a model sent to canonical JSON, or to problems in words it can act on.

Nothing is coerced: "1" is not 1 and 1 is not true. Unknown fields are refused at every
depth. Every problem is named, each with its path.
"""

import json
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import to_jsonable_python

from sandbox_workers import wire
from toolcell.errors import RegistrationError
from toolcell.model import ToolDefinition, canonical_json

_SHOWN = 60
_MESSAGE = 300
# The frame that carries a call to its cell nests them some levels deeper.
_DEPTH = wire.MAX_DEPTH - 4
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


UNITS = {"wall": "seconds", "cpu": "seconds", "memory": "bytes", "output": "bytes", "processes": ""}
"""What the number of an argument that narrows a limit counts, by limit."""


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
    value = _decode(raw, definition)
    if definition.arguments_model is None:
        return _by_schema(definition.spec.input_schema, value)
    try:
        model = definition.arguments_model.model_validate_json(
            wire.encode(value), strict=True, extra="forbid"
        )
    except ValidationError as error:
        raise InvalidArguments(_problems(error, value, definition)) from None
    return _canonical(definition, model, value)


def _canonical(
    definition: ToolDefinition, model: BaseModel, sent: dict[str, Any]
) -> dict[str, Any]:
    """Fill in the defaults. Values stay JSON: as validated, or where the cell builds an object
    of one, as sent, because an object's own idea of its JSON may be another.
    """
    canonical = {}
    for field, info in type(model).model_fields.items():
        name = str(info.alias or field)
        if name in sent and name in definition.typed:
            canonical[name] = sent[name]
        else:
            canonical[name] = to_jsonable_python(getattr(model, field))
    return canonical


def _decode(raw: dict[str, Any] | str, definition: ToolDefinition) -> dict[str, Any]:
    """Bring either form to one strict JSON object: a dict may hold what JSON cannot."""
    try:
        text = raw if isinstance(raw, str) else wire.encode(raw)
        value = wire.decode(text, _DEPTH)
    except wire.WireError as error:
        what = str(error).removeprefix("not JSON: ")
        wanted = example(definition.spec.input_schema)
        problem = f"the arguments are not valid JSON: {what}; expected an object such as {wanted}"
        raise InvalidArguments([problem]) from None
    if not isinstance(value, dict):
        wanted = example(definition.spec.input_schema)
        problem = f"the arguments must be a JSON object such as {wanted}, got {_show(value)}"
        raise InvalidArguments([problem])
    return value


def example(schema: dict[str, Any]) -> str:
    """Write a JSON object that has what a schema requires; it shows the form, no useful values."""
    fields = schema.get("properties", {})
    required = schema.get("required", [])[:_FEW]
    values = {name: _EXAMPLES.get(fields.get(name, {}).get("type"), "...") for name in required}
    return json.dumps(values)


_FEW = 5
_EXAMPLES: dict[Any, Any] = {
    "integer": 1,
    "number": 1,
    "boolean": True,
    "array": [],
    "object": {},
    "null": None,
}


def _by_schema(schema: dict[str, Any], value: dict[str, Any]) -> dict[str, Any]:
    problems = [
        f"{_path(error.instance_path)}: {_clip(error.message, _MESSAGE)}"
        for error in _validator(canonical_json(schema)).iter_errors(value)
    ]
    if problems:
        raise InvalidArguments(_cap(problems))
    return value


def check_schema(definition: ToolDefinition) -> None:
    """Raise RegistrationError where a tool's own input schema cannot be used."""
    if definition.arguments_model is None:
        _validator(canonical_json(definition.spec.input_schema))


@lru_cache(maxsize=1024)
def _validator(schema: str) -> Any:
    import jsonschema_rs  # only tools with a schema of their own need it

    try:
        # Offline: a remote $ref is an error, not a request. The regex engine is the linear one.
        return jsonschema_rs.validator_for(
            json.loads(schema), offline=True, pattern_options=jsonschema_rs.RegexOptions()
        )
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError) as error:
        what = _clip(str(error).splitlines()[0], _MESSAGE)
        raise RegistrationError(f"a tool's input schema cannot be used: {what}") from None


def _problems(
    error: ValidationError, sent: dict[str, Any], definition: ToolDefinition
) -> list[str]:
    known = list(definition.spec.input_schema.get("properties", {}))
    counted = {_path([name]): UNITS[of] for name, of in definition.limit_arguments.items()}
    problems: dict[str, None] = {}
    expected: dict[str, list[str]] = {}
    for item in error.errors(include_url=False, include_context=True):
        path = _path(_sent(item["loc"], sent))
        if item["type"] in _EXPECTED:
            # One value, tried as each member of a union: one problem.
            expected.setdefault(path, []).append(_EXPECTED[item["type"]])
            got = f"got {_show(item['input'])}"
            unit = f" ({counted[path]})" if counted.get(path) else ""
            kinds = " or ".join(dict.fromkeys(expected[path]))
            one = f"{path}: expected {kinds}{unit}, {got}"
            problems = {text: None for text in problems if not text.startswith(f"{path}: expected")}
            problems[one] = None
        else:
            problems[_problem(item, path, known)] = None
    return _cap(list(problems))


def _sent(loc: tuple[int | str, ...], value: Any) -> list[int | str]:
    """The part of a location that is a path in what was sent: pydantic adds names of types."""
    path: list[int | str] = []
    for part in loc:
        inside = (isinstance(value, dict) and part in value) or (
            isinstance(value, list) and isinstance(part, int) and part < len(value)
        )
        if inside:
            value = value[part]
            path.append(part)
        elif part is loc[-1] and isinstance(value, dict):
            path.append(part)  # a field that is missing
    return path


def _problem(item: Any, path: str, known: list[str]) -> str:
    kind = item["type"]
    if kind == "missing":
        return f"{path}: is required"
    if kind == "extra_forbidden":
        takes = ", ".join(f"`{name}`" for name in known) or "no arguments"
        return f"{path}: unknown argument" + (
            f"; the tool takes {takes}" if len(item["loc"]) == 1 else ""
        )
    got = f"got {_show(item['input'])}"
    if kind in ("literal_error", "enum"):
        return f"{path}: expected {item['ctx']['expected']}, {got}"
    message = item["msg"]
    return f"{path}: {message[0].lower()}{message[1:]}, {got}"


def _path(loc: Any) -> str:
    text = ""
    for part in loc:
        name = part if isinstance(part, int) else _clip(str(part), _SHOWN)
        text += f"[{name}]" if isinstance(part, int) else f".{name}" if text else str(name)
    return f"`{text}`" if text else "the arguments"


def _show(value: Any) -> str:
    return _clip(json.dumps(value, ensure_ascii=False, default=str), _SHOWN)


def _clip(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text)} characters)"


def _cap(problems: list[str]) -> list[str]:
    more = len(problems) - _PROBLEMS
    rest = f"and {more} more problem{'' if more == 1 else 's'}"
    return problems[:_PROBLEMS] + ([rest] if more > 0 else [])
