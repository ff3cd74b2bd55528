"""A spec from a function: its signature gives the schema, its docstring the words."""

import inspect
import re
import types
import typing
from collections.abc import Callable
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PydanticUserError,
    TypeAdapter,
    ValidationError,
    create_model,
)
from pydantic.fields import FieldInfo
from pydantic_core import PydanticSerializationError, PydanticUndefined, to_jsonable_python

from toolcell.declare import Declaration
from toolcell.errors import RegistrationError
from toolcell.model import HandlerRef, ToolAnnotations, ToolDefinition, ToolSpec, canonical_json
from toolcell.registry.origin import locate

_NATIVE = {str, int, float, bool, type(None), Any, dict, list}
_ARGUMENTS = ("args", "arguments", "parameters", "params")
_SECTION = re.compile(
    r"^(args|arguments|parameters|params|returns?|raises|yields?|examples?|notes?)\s*:?\s*$",
    re.IGNORECASE,
)
_RULE = re.compile(r"^\s*-{3,}\s*$")
_SPHINX = re.compile(r"^\s*:param\s+(?:[^:]+\s)?\*{0,2}(\w+)\s*:\s*(.*)$")
_ITEM = re.compile(r"^\s*\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")


def define(function: Callable[..., Any]) -> ToolDefinition:
    """Make a tool of a typed function; raises RegistrationError where that cannot work."""
    declared: Declaration = getattr(function, "__toolcell__", Declaration())
    inline = declared.isolation == "inline"
    if not (inspect.isfunction(function) or inspect.ismethod(function)):
        raise RegistrationError(f"{function!r} is not a function; write one that calls it")
    handler = _inline_ref(function) if inline else locate(function)
    name = declared.name or function.__name__
    summary, parameter_words = _docstring(function)
    hints = _hints(function)
    model = arguments_model(function, hints, parameter_words)
    _check_named(name, declared, hints)
    try:
        return ToolDefinition(
            spec=ToolSpec(
                name=name,
                description=declared.description or summary or f"Call {name}.",
                input_schema=schema_of(model),
                output_schema=_output_schema(hints.get("return")),
                annotations=ToolAnnotations(
                    read_only=declared.read_only,
                    destructive=declared.destructive,
                    idempotent=declared.idempotent or None,
                ),
            ),
            handler=handler,
            isolation=declared.isolation,
            timeout=declared.timeout,
            retries=declared.retries,
            idempotent=declared.idempotent,
            shell_line=declared.shell_line,
            paths=declared.paths,
            limit_arguments=dict(declared.limit_arguments),
            poll=declared.poll,
            shell_directory=declared.shell_directory,
            shell_variables=declared.shell_variables,
            shell_input=declared.shell_input,
            artifacts=declared.artifacts,
            typed=tuple(
                name for name, hint in hints.items() if name != "return" and not _is_native(hint)
            ),
            arguments_model=model,
            function=function if inline else None,
        )
    except ValidationError as error:
        raise RegistrationError(_explain(name, error)) from None


def _check_named(name: str, declared: Declaration, hints: dict[str, Any]) -> None:
    for named in (
        *declared.paths,
        *declared.limit_arguments,
        *filter(None, [declared.shell_line, declared.shell_directory]),
        *filter(None, [declared.shell_variables, declared.shell_input]),
    ):
        if named not in hints or named == "return":
            raise RegistrationError(
                f"{name}: @tool names {named!r}, which is not one of its annotated parameters"
            )


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON Schema of an arguments model: closed objects, no generated titles."""
    schema = model.model_json_schema()
    _tidy(schema)
    return schema


def arguments_model(
    function: Callable[..., Any], hints: dict[str, Any], words: dict[str, str]
) -> type[BaseModel]:
    """Build the pydantic model that a call's arguments have to fit."""
    fields: dict[str, Any] = {}
    for position, parameter in enumerate(inspect.signature(function).parameters.values()):
        _check_parameter(function, parameter)
        hint, default, description = _field(hints.get(parameter.name, Any), parameter.default)
        _check_default(function, parameter.name, hint, default)
        # The alias carries the name: parameters may be called `schema` or `_x`, fields may not.
        info = Field(
            default,
            alias=parameter.name,
            description=words.get(parameter.name) or description,
        )
        fields[f"argument_{position}"] = (hint, info)
    try:
        model = create_model(
            f"{function.__name__}_arguments", __config__=ConfigDict(extra="forbid"), **fields
        )
        schema_of(model)
    except PydanticUserError as error:  # also what has no JSON Schema, such as a callable
        raise RegistrationError(
            f"{function.__name__}: a parameter's type cannot be written in JSON "
            f"({str(error).splitlines()[0]}); use JSON's types, enums, dataclasses or models"
        ) from None
    return model


def _inline_ref(function: Callable[..., Any]) -> HandlerRef:
    return HandlerRef(
        module=getattr(function, "__module__", "") or "?",
        function=getattr(function, "__qualname__", type(function).__name__),
    )


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        raise RegistrationError(
            f"the annotations of {getattr(function, '__name__', function)!r} cannot be "
            f"resolved: {error}"
        ) from None


def _check_parameter(function: Callable[..., Any], parameter: inspect.Parameter) -> None:
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        raise RegistrationError(
            f"{function.__name__} takes *{parameter.name}, which no schema can describe; "
            "name each argument"
        )
    if parameter.kind is parameter.POSITIONAL_ONLY:
        raise RegistrationError(
            f"{function.__name__}: `{parameter.name}` is positional-only, and calls name their "
            "arguments; remove the `/` from the signature"
        )


def _field(hint: Any, default: Any) -> tuple[Any, Any, str | None]:
    """Take `x: int = 5` and `x: int = Field(5, ge=1)` alike: annotation, default, description."""
    if default is inspect.Parameter.empty:
        return hint, ..., None
    if not isinstance(default, FieldInfo):
        return hint, default, None
    for constraint in default.metadata:
        hint = Annotated[hint, constraint]
    value = default.get_default(call_default_factory=True)
    return hint, ... if value is PydanticUndefined else value, default.description


def _check_default(function: Callable[..., Any], name: str, hint: Any, default: Any) -> None:
    if default is ...:
        return
    try:
        adapter = TypeAdapter(hint)
        adapter.validate_python(default)
        again = adapter.validate_json(canonical_json(to_jsonable_python(default)), extra="forbid")
        if again != default:  # as with a secret, whose JSON is asterisks
            raise ValueError(f"{default!r} is not what its JSON says")
    except PydanticUserError:
        return  # the whole model is refused for this annotation, in words of its own
    except (PydanticSerializationError, ValueError):
        raise RegistrationError(
            f"{function.__name__}: the default of `{name}`, {default!r}, does not fit its "
            "annotation or JSON; widen the annotation (such as `| None`) or change the default"
        ) from None


def _is_native(hint: Any) -> bool:
    """Whether JSON's own value is what the handler expects, so that nothing needs building."""
    origin = get_origin(hint)
    if origin is Annotated:
        # What else stands there may change the value, such as by stripping spaces.
        return _is_native(get_args(hint)[0]) and not _changes(get_args(hint)[1:])
    if origin is Literal:
        return all(isinstance(value, str | int | bool | None) for value in get_args(hint))
    if origin is dict:
        return get_args(hint)[0] is str and _is_native(get_args(hint)[1])
    if origin in (Union, types.UnionType, list):
        return all(_is_native(argument) for argument in get_args(hint))
    return hint in _NATIVE


def _changes(metadata: tuple[Any, ...]) -> bool:
    return any(
        not isinstance(item, FieldInfo | str | annotated_types.BaseMetadata) for item in metadata
    )


def _output_schema(hint: Any) -> dict[str, Any] | None:
    """The schema of what is returned, where the annotation promises a structure."""
    structured = isinstance(hint, type) and (
        issubclass(hint, BaseModel)
        or hasattr(hint, "__dataclass_fields__")
        or typing.is_typeddict(hint)
    )
    if not structured:
        return None
    try:
        schema = TypeAdapter(hint).json_schema(mode="serialization")
    except PydanticUserError:
        return None  # nothing can be promised of what is returned; it may still be JSON
    _tidy(schema)
    return schema


def _tidy(node: Any) -> None:
    if isinstance(node, list):
        for item in node:
            _tidy(item)
    if not isinstance(node, dict):
        return
    if isinstance(node.get("title"), str):
        del node["title"]
    if node.get("type") == "object" and "properties" in node:
        node.setdefault("additionalProperties", False)
    for key, value in node.items():
        if key in ("default", "const", "enum", "examples"):
            continue  # data, whatever its keys are called
        # Below `properties` and `$defs` the keys are names, and `title` may be one of them.
        for item in value.values() if key in ("properties", "$defs") else [value]:
            _tidy(item)


def _docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """Split a docstring into the text before its sections, and words by argument.

    Takes the forms of Google (`x: words`), NumPy (`x : type`, words below) and Sphinx
    (`:param x: words`).
    """
    summary: list[str] = []
    words: dict[str, str] = {}
    section = current = before = ""
    for line in (inspect.getdoc(function) or "").splitlines():
        text = line.strip()
        if heading := _SECTION.match(line):
            section, current = heading.group(1).lower(), ""
        elif item := _SPHINX.match(line):
            words[item.group(1)] = item.group(2)
        elif not section:
            summary.append(line)
        elif section in _ARGUMENTS and not _RULE.match(line):
            item = _ITEM.match(line)
            if item and (current == "" or _indent(line) <= _indent(before)):
                current, before = item.group(1), line
                words[current] = "" if " : " in line else item.group(2)
            elif current and text:
                words[current] = f"{words[current]} {text}".strip()
    return "\n".join(summary).strip(), words


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _explain(name: str, error: ValidationError) -> str:
    first = error.errors()[0]
    if first["loc"][-1:] == ("name",):
        return (
            f"{name!r} cannot be a tool's name: letters, digits, _ and -, 64 at most; "
            'give another with @tool(name="...")'
        )
    message = first["msg"].removeprefix("Value error, ")
    where = ".".join(str(part) for part in first["loc"])
    return f"{name}: `{where}` {message[0].lower()}{message[1:]}" if where else f"{name}: {message}"
