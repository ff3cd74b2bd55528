"""toolcell: every tool call in its own cell.

    from toolcell import ToolCall, ToolController, ToolRegistry

Names are imported when they are first used: a tool's module that needs only `tool` and
`ToolError`, and is imported again in every cell, does not pay for the rest.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # Spelled out for type checkers; a test holds this list and the table below together.
    from toolcell.approvals import ApprovalStore as ApprovalStore
    from toolcell.approvals import PendingApprovals as PendingApprovals
    from toolcell.approvals import Spending as Spending
    from toolcell.approvals import SqliteApprovals as SqliteApprovals
    from toolcell.blocking import BlockingController as BlockingController
    from toolcell.controller import ToolController as ToolController
    from toolcell.declare import ToolError as ToolError
    from toolcell.declare import Waiting as Waiting
    from toolcell.declare import tool as tool
    from toolcell.errors import DuplicateToolError as DuplicateToolError
    from toolcell.errors import GrantError as GrantError
    from toolcell.errors import PolicyError as PolicyError
    from toolcell.errors import RegistrationError as RegistrationError
    from toolcell.errors import SessionError as SessionError
    from toolcell.errors import StoreError as StoreError
    from toolcell.errors import ToolcellError as ToolcellError
    from toolcell.errors import UnknownApprovalError as UnknownApprovalError
    from toolcell.errors import WorkspaceError as WorkspaceError
    from toolcell.events import Event as Event
    from toolcell.events import EventKind as EventKind
    from toolcell.events import EventLog as EventLog
    from toolcell.events import EventReader as EventReader
    from toolcell.grants import Grant as Grant
    from toolcell.grants import RunOptions as RunOptions
    from toolcell.legible import OutputBudget as OutputBudget
    from toolcell.messages import ToolMessage as ToolMessage
    from toolcell.messages import calls_in as calls_in
    from toolcell.messages import inject as inject
    from toolcell.model import Action as Action
    from toolcell.model import Approval as Approval
    from toolcell.model import ApprovalRequest as ApprovalRequest
    from toolcell.model import ApprovalResponse as ApprovalResponse
    from toolcell.model import ApprovalState as ApprovalState
    from toolcell.model import Budget as Budget
    from toolcell.model import Category as Category
    from toolcell.model import CellSettings as CellSettings
    from toolcell.model import Enforcement as Enforcement
    from toolcell.model import ErrorInfo as ErrorInfo
    from toolcell.model import Guarantee as Guarantee
    from toolcell.model import Limits as Limits
    from toolcell.model import PolicyDecision as PolicyDecision
    from toolcell.model import PreparedToolCall as PreparedToolCall
    from toolcell.model import RunGrant as RunGrant
    from toolcell.model import Spent as Spent
    from toolcell.model import Status as Status
    from toolcell.model import ToolCall as ToolCall
    from toolcell.model import ToolDefinition as ToolDefinition
    from toolcell.model import ToolResult as ToolResult
    from toolcell.model import ToolSpec as ToolSpec
    from toolcell.model import Truncation as Truncation
    from toolcell.model import WaitingInfo as WaitingInfo
    from toolcell.outputs import OutputStore as OutputStore
    from toolcell.outputs import no_outputs as no_outputs
    from toolcell.policy import Condition as Condition
    from toolcell.policy import Decider as Decider
    from toolcell.policy import Rule as Rule
    from toolcell.policy import ToolPolicy as ToolPolicy
    from toolcell.policy import load_policy as load_policy
    from toolcell.redaction import Redactor as Redactor
    from toolcell.registry import ToolRegistry as ToolRegistry
    from toolcell.runtime import ToolRuntime as ToolRuntime
    from toolcell.sessions import SessionBounds as SessionBounds
    from toolcell.sessions import SessionFork as SessionFork
    from toolcell.sessions import SessionInfo as SessionInfo
    from toolcell.streaming import Chunk as Chunk
    from toolcell.streaming import OutputStream as OutputStream
    from toolcell.tracing import Tracing as Tracing

__version__ = "0.1.0"

_HOMES = {
    "approvals": ("ApprovalStore", "PendingApprovals", "Spending", "SqliteApprovals"),
    "blocking": ("BlockingController",),
    "controller": ("ToolController",),
    "declare": ("ToolError", "Waiting", "tool"),
    "errors": (
        "DuplicateToolError",
        "GrantError",
        "PolicyError",
        "RegistrationError",
        "SessionError",
        "StoreError",
        "ToolcellError",
        "UnknownApprovalError",
        "WorkspaceError",
    ),
    "grants": ("Grant", "RunOptions"),
    "events": ("Event", "EventKind", "EventLog", "EventReader"),
    "legible": ("OutputBudget",),
    "messages": ("ToolMessage", "calls_in", "inject"),
    "model": (
        "Action",
        "Approval",
        "ApprovalRequest",
        "ApprovalResponse",
        "ApprovalState",
        "Budget",
        "Category",
        "CellSettings",
        "Enforcement",
        "ErrorInfo",
        "Guarantee",
        "Limits",
        "PolicyDecision",
        "PreparedToolCall",
        "RunGrant",
        "Spent",
        "Status",
        "ToolCall",
        "ToolDefinition",
        "ToolResult",
        "ToolSpec",
        "Truncation",
        "WaitingInfo",
    ),
    "outputs": ("OutputStore", "no_outputs"),
    "policy": ("Condition", "Decider", "Rule", "ToolPolicy", "load_policy"),
    "redaction": ("Redactor",),
    "registry": ("ToolRegistry",),
    "runtime": ("ToolRuntime",),
    "streaming": ("Chunk", "OutputStream"),
    "sessions": ("SessionBounds", "SessionFork", "SessionInfo"),
    "tracing": ("Tracing",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = ["__version__", *_HOME_OF]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'toolcell' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"toolcell.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME_OF])
