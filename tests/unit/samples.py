"""Values that unit tests start from; each test changes what its claim is about."""

from typing import Any

from toolcell.arguments import validate
from toolcell.declare import tool
from toolcell.model import (
    HandlerRef,
    PolicyDecision,
    PreparedToolCall,
    ToolCall,
    ToolDefinition,
    ToolResult,
    ToolSpec,
)
from toolcell.registry import define

ASK = PolicyDecision(action="ask", rule_id="ask:greet", reason="a person decides")


@tool
def greet(name: str, times: int = 1) -> str:
    """Greet somebody."""
    return f"hello {name}! " * times


def inline(function: Any) -> ToolDefinition:
    """Define any function, a local one too, as a tool."""
    return define(tool(isolation="inline")(function))


def schema_tool(schema: dict[str, Any]) -> ToolDefinition:
    """Define a tool that has a JSON Schema and no Python signature."""
    return ToolDefinition(
        spec=ToolSpec(name="raw", description="A tool of another program.", input_schema=schema),
        handler=HandlerRef(module="m", function="f"),
    )


def prepared(definition: ToolDefinition, **arguments: Any) -> PreparedToolCall:
    """Prepare a call of a tool, as the runtime does."""
    call = ToolCall(call_id="c1", name=definition.name, arguments=arguments)
    return PreparedToolCall.of(call, definition, validate(definition, arguments))


def result(**changes: Any) -> ToolResult:
    """Make a result that succeeded, but for the changes."""
    fields = {"call_id": "c1", "tool_name": "greet", "status": "succeeded", "success": True}
    return ToolResult.model_validate(fields | {"source": "cell"} | changes)
