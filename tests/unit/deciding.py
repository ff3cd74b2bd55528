"""Short ways to decide calls by a policy, for the tests of policies."""

from pathlib import Path
from typing import Any

from toolcell.model import PolicyDecision, PreparedToolCall, ToolCall
from toolcell.policy import Decider, ToolPolicy
from toolcell.registry import ToolRegistry
from toolcell.runtime import ToolRuntime


def prepared(tool: str, registry: ToolRegistry | None = None, **arguments: Any) -> PreparedToolCall:
    """A prepared call of a built-in tool, or of one of a registry."""
    runtime = ToolRuntime(registry or ToolRegistry.builtin())
    found = runtime.prepare(ToolCall(call_id="1", name=tool, arguments=arguments))
    assert isinstance(found, PreparedToolCall), found
    return found


def decide(
    policy: ToolPolicy, tool: str, workspace: Path | None = None, **arguments: Any
) -> PolicyDecision:
    """What a policy decides of a call of a built-in tool."""
    return Decider(policy, workspace).decide(prepared(tool, **arguments))


def line(policy: ToolPolicy, command: str, workspace: Path | None = None) -> PolicyDecision:
    """What a policy decides of a shell line."""
    return decide(policy, "shell", workspace, command=command)
