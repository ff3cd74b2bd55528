"""Values that unit tests start from; each test changes what its claim is about."""

from pathlib import Path
from typing import Any

from toolcell.arguments import validate
from toolcell.cells.capabilities import Capabilities
from toolcell.cells.plan import make_plan
from toolcell.declare import tool
from toolcell.model import (
    CellSettings,
    Guarantee,
    HandlerRef,
    Limits,
    Mount,
    Plan,
    PolicyDecision,
    PreparedToolCall,
    ToolCall,
    ToolDefinition,
    ToolResult,
    ToolSpec,
)
from toolcell.registry import define

ASK = PolicyDecision(action="ask", rule_id="ask:greet", reason="a person decides")
_ALL = dict.fromkeys(Guarantee, "a wall")
HERE = Capabilities(7, {"full": _ALL, "landlock": _ALL, "none": {}}, {})


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


def plan(
    workspace: Path | None,
    settings: CellSettings | None = None,
    capabilities: Capabilities = HERE,
    **rest: Any,
) -> Plan:
    """Plan a cell on a machine that has every wall."""
    return make_plan(settings or CellSettings(), Limits(), workspace, capabilities, **rest)


def mounts(made: Plan) -> dict[str, Mount]:
    """The mounts of a plan by where the cell sees them."""
    return {mount.target: mount for mount in made.mounts}


def shown(made: Plan, place: Path) -> Mount | None:
    """The mount through which a cell would see a place, if it sees it."""
    found = mounts(made)
    return next((found[str(p)] for p in (place, *place.parents) if str(p) in found), None)
