"""The built-in tools as the model sees them; their handlers live in `sandbox_workers.tools`.

They are declared rather than derived, so that the controller never imports what runs
in a cell.
"""

from toolcell.model import ToolDefinition
from toolcell.registry.builtins import files, outputs, running, search, sessions

__all__ = ["builtin_tools"]


def builtin_tools() -> list[ToolDefinition]:
    """Return the definitions of all built-in tools."""
    return [*running.TOOLS, *files.TOOLS, *search.TOOLS, *outputs.TOOLS, *sessions.TOOLS]
