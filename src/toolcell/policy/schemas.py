"""What an input schema says of arguments: which there are, which are paths, what the defaults are.

Nested arguments are named with dots; a list is looked through, as if each element stood alone.
"""

from collections.abc import Iterator
from typing import Any

from toolcell.model import ToolDefinition

_PATH_FORMATS = ("path", "file-path", "directory-path")
_DEEPEST = 12  # a schema may refer to itself
_CHOICES = ("anyOf", "oneOf", "allOf")

NOTHING: Any = object()
"""What an argument is that is not there."""

Schema = dict[str, Any]


def values_at(arguments: Any, keys: list[str]) -> Iterator[Any]:
    """Return all values of a dotted name, lists looked through; none where it is not there."""
    if isinstance(arguments, list):
        for element in arguments:
            yield from values_at(element, keys)
    elif not keys:
        yield arguments
    elif isinstance(arguments, dict) and keys[0] in arguments:
        yield from values_at(arguments[keys[0]], keys[1:])


def path_arguments(definition: ToolDefinition) -> list[str]:
    """Name the arguments of a tool that are paths, as it says or its input schema does."""
    root = definition.spec.input_schema
    return list(dict.fromkeys([*definition.paths, *_paths(root, root, "", _DEEPEST)]))


def has_argument(definition: ToolDefinition, name: str) -> bool:
    """Whether a dotted name can be an argument of a tool."""
    return _has(definition.spec.input_schema, definition.spec.input_schema, name.split("."))


def default_of(definition: ToolDefinition, name: str) -> Any:
    """Return what a tool takes for an argument that is not given, or NOTHING."""
    properties = definition.spec.input_schema.get("properties") or {}
    schema = properties.get(name)
    return schema.get("default", NOTHING) if isinstance(schema, dict) else NOTHING


def type_of(definition: ToolDefinition, name: str) -> str | None:
    """Return the one JSON type of an argument, or None where it has several, or none is said."""
    properties = definition.spec.input_schema.get("properties") or {}
    schema = properties.get(name)
    kind = schema.get("type") if isinstance(schema, dict) else None
    return kind if isinstance(kind, str) else None


def _paths(schema: Any, root: Schema, name: str, depth: int) -> Iterator[str]:
    for each in _forms(schema, root, depth):
        if name and each.get("format") in _PATH_FORMATS:
            yield name
        for key, inner in (each.get("properties") or {}).items():
            yield from _paths(inner, root, f"{name}.{key}" if name else key, depth - 1)


def _has(schema: Any, root: Schema, keys: list[str]) -> bool:
    if not keys:
        return True
    return any(_takes(each, root, keys) for each in _forms(schema, root, _DEEPEST))


def _takes(schema: Schema, root: Schema, keys: list[str]) -> bool:
    properties = schema.get("properties") or {}
    if keys[0] in properties:
        return _has(properties[keys[0]], root, keys[1:])
    # An open object takes what it does not list; a schema of another type has no keys.
    kind = schema.get("type", "object")
    return bool(schema.get("additionalProperties", True)) and "object" in (
        kind if isinstance(kind, list) else [kind]
    )


def _forms(schema: Any, root: Schema, depth: int) -> Iterator[Schema]:
    """The schemas that a value may have to fit: references followed, choices and items taken."""
    if not isinstance(schema, dict) or depth <= 0:
        return
    if isinstance(reference := schema.get("$ref"), str):
        yield from _forms(_resolved(reference, root), root, depth - 1)
    is_choice = any(key in schema for key in (*_CHOICES, "$ref"))
    if not is_choice or "properties" in schema:
        yield schema
    for key in _CHOICES:
        for each in schema.get(key) or ():
            yield from _forms(each, root, depth - 1)
    items = schema.get("items")
    for each in items if isinstance(items, list) else [items, *(schema.get("prefixItems") or ())]:
        yield from _forms(each, root, depth - 1)


def _resolved(reference: str, root: Schema) -> Any:
    found: Any = root
    for part in reference.removeprefix("#").strip("/").split("/") if reference != "#" else ():
        key = part.replace("~1", "/").replace("~0", "~")
        found = found.get(key) if isinstance(found, dict) else None
    return found
