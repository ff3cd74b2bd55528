"""A spec from a function: its signature gives the schema, its docstring the words."""

import inspect
import re
import types
import typing
from collections.abc import Callable
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PydanticSchemaGenerationError,
    PydanticUserError,
    TypeAdapter,
    ValidationError,
    create_model,
)
from pydantic.fields import FieldInfo

from toolcell.declare import Declaration
from toolcell.errors import RegistrationError
from toolcell.model import HandlerRef, ToolAnnotations, ToolDefinition, ToolSpec
from toolcell.registry.origin import locate

_NATIVE = {str, int, float, bool, type(None), Any, dict, list}
_SECTION = re.compile(r"^(args|arguments|parameters|params)\s*:?\s*$", re.IGNORECASE)
_ITEM = re.compile(r"^\s*(?::param\s+)?\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.+)$")
_OTHER_SECTION = re.compile(r"^(returns?|raises|yields?|examples?|notes?)\s*:?\s*$", re.IGNORECASE)


def define(function: Callable[..., Any]) -> ToolDefinition:
    """Make a tool of a typed function; raises RegistrationError where that cannot work."""
    declared: Declaration = getattr(function, "__toolcell__", Declaration())
    name = declared.name or str(getattr(function, "__name__", ""))
    summary, parameter_words = _docstring(function)
    hints = _hints(function)
    model = arguments_model(function, hints, parameter_words)
    inline = declared.isolation == "inline"
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
            handler=_inline_ref(function) if inline else locate(function),
            isolation=declared.isolation,
            timeout=declared.timeout,
            retries=declared.retries,
            idempotent=declared.idempotent,
            typed=not all(_is_native(hint) for key, hint in hints.items() if key != "return"),
            arguments_model=model,
            function=function if inline else None,
        )
    except ValidationError as error:
        raise RegistrationError(_explain(name, error)) from None


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
        hint = hints.get(parameter.name, Any)
        default = ... if parameter.default is parameter.empty else parameter.default
        _check_default(function, parameter.name, hint, default)
        # The alias carries the name: parameters may be called `schema` or `_x`, fields may not.
        info = Field(default, alias=parameter.name, description=words.get(parameter.name))
        fields[f"argument_{position}"] = (hint, info)
    try:
        return create_model(
            f"{function.__name__}_arguments", __config__=ConfigDict(extra="forbid"), **fields
        )
    except (PydanticSchemaGenerationError, PydanticUserError) as error:
        raise RegistrationError(
            f"{function.__name__}: a parameter's type cannot be written in JSON "
            f"({str(error).splitlines()[0]}); use JSON's types, enums, dataclasses or models"
        ) from None


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


def _check_default(function: Callable[..., Any], name: str, hint: Any, default: Any) -> None:
    if default is ... or isinstance(default, FieldInfo):
        return
    try:
        TypeAdapter(hint).validate_python(default)
    except ValidationError:
        raise RegistrationError(
            f"{function.__name__}: the default of `{name}`, {default!r}, does not fit its "
            "annotation; widen the annotation (such as `| None`) or change the default"
        ) from None
    except (PydanticSchemaGenerationError, PydanticUserError):
        return  # the whole model is refused for this annotation, in words of its own


def _is_native(hint: Any) -> bool:
    """Whether JSON's own value is what the handler expects, so that nothing needs building."""
    origin = get_origin(hint)
    if origin is Annotated:
        return _is_native(get_args(hint)[0])
    if origin is Literal:
        return all(isinstance(value, str | int | bool | None) for value in get_args(hint))
    if origin in (Union, types.UnionType, list, dict):
        return all(_is_native(argument) for argument in get_args(hint))
    return hint in _NATIVE


def _output_schema(hint: Any) -> dict[str, Any] | None:
    """The schema of what is returned, where the annotation promises a structure."""
    structured = isinstance(hint, type) and (
        issubclass(hint, BaseModel)
        or hasattr(hint, "__dataclass_fields__")
        or typing.is_typeddict(hint)
    )
    if not structured:
        return None
    schema = TypeAdapter(hint).json_schema(mode="serialization")
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
        # Below `properties` and `$defs` the keys are names, and `title` may be one of them.
        for item in value.values() if key in ("properties", "$defs") else [value]:
            _tidy(item)


def _docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """Split a docstring into the text before its argument list, and words by argument."""
    text = inspect.getdoc(function) or ""
    summary: list[str] = []
    words: dict[str, str] = {}
    inside, current = False, ""
    for line in text.splitlines():
        item = _ITEM.match(line)
        if _SECTION.match(line):
            inside = True
        elif inside and line.strip() and not line.startswith((" ", "\t")):
            inside = False
        if line.startswith(":param") and item:
            words[item.group(1)] = item.group(2).strip()
        elif inside and item:
            current = item.group(1)
            words[current] = item.group(2).strip()
        elif inside and current and line.strip():
            words[current] += " " + line.strip()
        elif not inside and not _OTHER_SECTION.match(line):
            summary.append(line)
        elif not inside:
            break
    return "\n".join(summary).strip(), words


def _explain(name: str, error: ValidationError) -> str:
    first = error.errors()[0]
    if first["loc"][-1:] == ("name",):
        return (
            f"{name!r} cannot be a tool's name: letters, digits, _ and -, 64 at most; "
            'give another with @tool(name="...")'
        )
    where = ".".join(str(part) for part in first["loc"])
    return f"{name}: `{where}` {first['msg'].lower()}"
