"""Every value that crosses a border: frozen, validated, JSON both ways."""

from toolcell.model.calls import PreparedToolCall, ToolCall
from toolcell.model.cells import (
    Captured,
    CellSettings,
    Enforcement,
    Guarantee,
    Identity,
    Killed,
    Limits,
    Mount,
    Plan,
    Report,
    Ruleset,
    Usage,
)
from toolcell.model.decisions import Action, ApprovalRequest, ApprovalResponse, PolicyDecision
from toolcell.model.results import (
    STATUS_OF,
    Category,
    ErrorInfo,
    ResultMetadata,
    Status,
    ToolResult,
    Truncation,
)
from toolcell.model.tools import (
    HandlerRef,
    ToolAnnotations,
    ToolDefinition,
    ToolSpec,
    canonical_json,
    digest_of,
)

__all__ = [
    "STATUS_OF",
    "Action",
    "ApprovalRequest",
    "ApprovalResponse",
    "Captured",
    "Category",
    "CellSettings",
    "Enforcement",
    "ErrorInfo",
    "Guarantee",
    "HandlerRef",
    "Identity",
    "Killed",
    "Limits",
    "Mount",
    "Plan",
    "PolicyDecision",
    "PreparedToolCall",
    "Report",
    "ResultMetadata",
    "Ruleset",
    "Status",
    "ToolAnnotations",
    "ToolCall",
    "ToolDefinition",
    "ToolResult",
    "ToolSpec",
    "Truncation",
    "Usage",
    "canonical_json",
    "digest_of",
]
