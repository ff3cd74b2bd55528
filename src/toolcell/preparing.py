"""Preparing: from what a model proposed to a call that could run, or to why it cannot."""

from typing import Any

from toolcell import rejections
from toolcell.arguments import InvalidArguments, check_schema, validate
from toolcell.bounds import check_limits
from toolcell.errors import RegistrationError
from toolcell.model import PreparedToolCall, ToolDefinition, ToolResult
from toolcell.normalizer import Origin, refused
from toolcell.registry import ToolRegistry


def check_tools(registry: ToolRegistry) -> None:
    """Raise RegistrationError for a tool that no call could be prepared of, or settled."""
    for definition in registry:
        check_schema(definition)
        _check_poll(registry, definition)


def _check_poll(registry: ToolRegistry, definition: ToolDefinition) -> None:
    poll = definition.poll and registry.resolve(definition.poll)
    if definition.poll and not poll:
        raise RegistrationError(
            f"{definition.name} is asked for by {definition.poll!r}, which is not a tool here; "
            "register it before the controller is made"
        )
    if poll and not _takes(poll.spec.input_schema, "handle"):
        raise RegistrationError(
            f"{definition.name} is asked for by {poll.name}, which has to take a `handle`"
        )


def _takes(schema: dict[str, Any], name: str) -> bool:
    return name in schema.get("properties", {}) or schema.get("additionalProperties", True) is True


def prepare(registry: ToolRegistry, origin: Origin) -> PreparedToolCall | ToolResult:
    """Resolve the tool and validate the arguments; has no side effect."""
    call = origin.call
    definition = registry.resolve(call.name)
    if definition is None:
        return refused(origin, rejections.unknown_tool(call.name, registry.list()))
    try:
        _check_poll(registry, definition)
        arguments = validate(definition, call.arguments)
        check_limits(definition, arguments)
    except InvalidArguments as error:
        return refused(origin, rejections.invalid(str(error)))
    except RegistrationError as error:  # registered after the runtime was made
        return refused(origin, rejections.unusable_tool(str(error)))
    return PreparedToolCall.of(call, definition, arguments)
