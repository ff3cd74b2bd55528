"""Calls: what a model proposed, and the same once it is validated and digested."""

from typing import Any, Literal

from pydantic import Field

from toolcell.model.base import SCHEMA_VERSION, Frozen
from toolcell.model.tools import ToolDefinition, digest_of


class ToolCall(Frozen):
    """One proposal by a model to use a tool.

    `call_id` is the provider's own id and comes back unchanged. `arguments` may be an
    object or the JSON text that providers send; it is not looked at here.
    """

    v: Literal[1] = SCHEMA_VERSION
    call_id: str = Field(min_length=1)
    name: str
    arguments: dict[str, Any] | str = Field(default_factory=dict)


class PreparedToolCall(Frozen):
    """A call whose tool exists and whose arguments are valid, canonical and digested.

    `digest` covers the tool's name, its input schema, its handler and the canonical
    arguments (defaults filled in): what was approved is what runs, or nothing.
    """

    v: Literal[1] = SCHEMA_VERSION
    call: ToolCall
    definition: ToolDefinition
    arguments: dict[str, Any]
    digest: str

    @classmethod
    def of(
        cls, call: ToolCall, definition: ToolDefinition, arguments: dict[str, Any]
    ) -> "PreparedToolCall":
        """Digest validated arguments together with what they are for."""
        digest = digest_of(
            {
                "v": SCHEMA_VERSION,
                "tool": definition.name,
                "schema": definition.spec.input_schema,
                "handler": definition.handler.model_dump(mode="json"),
                "runs": [definition.isolation, definition.answers, *definition.typed]
                + ([f"session:{definition.session}"] if definition.session else []),
                "arguments": arguments,
            }
        )
        return cls(call=call, definition=definition, arguments=arguments, digest=digest)
