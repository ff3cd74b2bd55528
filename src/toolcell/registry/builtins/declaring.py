"""What the declarations of the built-in tools share: shapes of arguments, and kinds of effects."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from toolcell.model import HandlerRef, ToolAnnotations, ToolDefinition, ToolSpec
from toolcell.registry.signature import schema_of

_HANDLERS = "sandbox_workers.tools"
READS = ToolAnnotations(read_only=True, idempotent=True, open_world=False)
WRITES = ToolAnnotations(read_only=False, destructive=True, open_world=False)
REPLACES = WRITES.model_copy(update={"idempotent": True})

PathInWorkspace = Annotated[
    str, Field(min_length=1, description="Path inside the workspace, absolute or relative to it.")
]


class Arguments(BaseModel):
    """The arguments of one tool; others are refused."""

    model_config = ConfigDict(extra="forbid")


def declare(
    name: str,
    model: type[BaseModel],
    module: str,
    description: str,
    annotations: ToolAnnotations,
    **options: Any,
) -> ToolDefinition:
    """Define a tool whose handler is the function of its name, in a module of the workers' tools.

    A module with a dot in its name is one of toolcell's own, which answers the call itself.
    """
    options.setdefault("paths", ("path",) if "path" in model.model_fields else ())
    return ToolDefinition(
        spec=ToolSpec(
            name=name,
            description=description,
            input_schema=schema_of(model),
            annotations=annotations,
        ),
        handler=HandlerRef(
            module=module if "." in module else f"{_HANDLERS}.{module}", function=name
        ),
        idempotent=bool(annotations.idempotent),
        arguments_model=model,
        **options,
    )
