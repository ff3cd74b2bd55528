"""Policy: who may call what, and what the cell must be. Deny by default."""

from toolcell.policy.decision import ToolPolicy
from toolcell.policy.file import load_policy, shipped_policies

__all__ = ["ToolPolicy", "load_policy", "shipped_policies"]
