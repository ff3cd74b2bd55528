"""The registry: tools by name. What models see of one never leads to its handler."""

from toolcell.registry.builtins import builtin_tools
from toolcell.registry.catalog import ToolRegistry
from toolcell.registry.signature import define

__all__ = ["ToolRegistry", "builtin_tools", "define"]
