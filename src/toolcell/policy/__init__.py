"""Policy: who may call what, and what the cell must be. Deny by default."""

from toolcell.policy.check import check_policy
from toolcell.policy.decision import Decider
from toolcell.policy.document import ToolPolicy
from toolcell.policy.file import load_policy, shipped_policies
from toolcell.policy.rules import Condition, Rule

__all__ = [
    "Condition",
    "Decider",
    "Rule",
    "ToolPolicy",
    "check_policy",
    "load_policy",
    "shipped_policies",
]
