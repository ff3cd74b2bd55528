"""Attributes: what an event of a call becomes on a span.

Names are written out here, because the constants of the GenAI conventions moved from one package
to another; docs/tracing.md says where each name is documented. What a call holds, and words that
may quote it, are content: they are read only where that was opted into.
"""

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

from toolcell.events import Event, EventKind
from toolcell.model import Category, PreparedToolCall, Status, ToolResult

_CONTENT_LIMIT = 16 * 1024  # characters; several attributes carry the same content
_TEXT_LIMIT = 1024
_NAME_LIMIT = 64
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SUCCESSES = (Status.SUCCEEDED, Status.WAITING)
_REFUSALS = (Status.REJECTED, Status.CANCELLED)

_RULE = {"rule_id": "toolcell.rule.id"}
_APPROVAL = {"approval_id": "toolcell.approval.id"}
_DECISION = {"action": "toolcell.decision", "policy": "toolcell.policy.version"}
_ANSWER = {"approved": "toolcell.approval.approved", "state": "toolcell.approval.state"}
_GRANT = {"by": "toolcell.grant.by", "grant_id": "toolcell.grant.id"}
_ALWAYS: dict[EventKind, dict[str, str]] = {
    EventKind.PREPARED: {"digest": "toolcell.call.digest"},
    EventKind.DECIDED: _DECISION | _RULE,
    EventKind.ASKED: _APPROVAL,
    EventKind.ANSWERED: _ANSWER | _APPROVAL,
    EventKind.GRANTED: _GRANT | _RULE | _APPROVAL,
    EventKind.STARTED: {"rung": "toolcell.cell.rung", "attested": "toolcell.cell.attested"},
    EventKind.ENDED: {
        "attempt": "toolcell.attempt",
        "exit": "toolcell.exit",
        "killed": "toolcell.killed",
        "stdout_bytes": "toolcell.stdout.bytes",
        "stderr_bytes": "toolcell.stderr.bytes",
        "cpu_seconds": "toolcell.cpu.seconds",
        "peak_memory": "toolcell.memory.peak",
    },
    EventKind.FINISHED: {
        "status": "toolcell.status",
        "attempts": "toolcell.attempts",
        "return_code": "toolcell.return_code",
        "signal": "toolcell.signal",
        "output_bytes": "toolcell.output.bytes",
        "enforced": "toolcell.cell.enforced",
    },
    EventKind.SETTLED: {"status": "toolcell.status", "output_bytes": "toolcell.output.bytes"},
}
_ON_OPT_IN: dict[EventKind, dict[str, str]] = {
    EventKind.DECIDED: {"reason": "toolcell.decision.reason"},
    EventKind.ANSWERED: {"by": "toolcell.approval.by", "note": "toolcell.approval.note"},
}
_ARGUMENTS = ("gen_ai.tool.call.arguments", "langfuse.observation.input", "input.value")
_OUTPUT = ("langfuse.observation.output", "output.value")

_OWN_WORDS = frozenset(
    {
        *(Category.UNKNOWN_TOOL, Category.OVERLOADED, Category.BUDGET_SPENT),
        *(Category.CELL_SETUP, Category.WORKER_LOST),
        *(Category.APPROVAL_EXPIRED, Category.APPROVAL_SPENT, Category.APPROVAL_MISMATCH),
        *(Category.WALL, Category.CPU, Category.MEMORY, Category.PROCESSES, Category.OUTPUT_LIMIT),
        *(Category.EXIT_CODE, Category.SIGNAL, Category.CANCELLED),
    }
)
"""Categories whose message never quotes arguments, a tool, a person or a policy."""


def identity(event: Event) -> dict[str, Any]:
    """Whose call it is; these attributes stand on its span from the start."""
    found = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": _clip(event.tool_name, _NAME_LIMIT),
        "gen_ai.tool.call.id": _clip(event.call_id, _TEXT_LIMIT),
        "gen_ai.tool.type": "function",
        "langfuse.observation.type": "tool",
        "langsmith.span.kind": "tool",
        "toolcell.run.id": event.run,
        "toolcell.call.key": event.key,
    }
    return {name: value for name, value in found.items() if value}


def span_name(event: Event) -> str:
    """`execute_tool NAME`, without what cannot be the name of a tool."""
    named = _TOOL_NAME.fullmatch(event.tool_name)
    return f"execute_tool {event.tool_name}" if named else "execute_tool"


def attributes_of(event: Event, *, content: bool) -> dict[str, Any]:
    """The attributes that an event tells."""
    names = _ALWAYS.get(event.kind, {}) | (_ON_OPT_IN.get(event.kind, {}) if content else {})
    told = {key: event.data.get(key) for key in names}
    found = {names[key]: _plain(value) for key, value in told.items() if value not in (None, "")}
    if event.kind is EventKind.PREPARED and isinstance(event.about, PreparedToolCall):
        description = event.about.definition.spec.description
        found["gen_ai.tool.description"] = _clip(description, _TEXT_LIMIT)
    return found | (_content(event) if content else {})


def error_type(event: Event) -> str:
    """The category of a call that did not succeed; empty for one that did, or goes on elsewhere."""
    category = event.data.get("category")
    if category:
        return str(category)
    return "" if event.data.get("status") in _SUCCESSES else "_OTHER"


def error_words(event: Event, error: str, *, content: bool) -> str:
    """What went wrong: the message, where it is no content or content was opted into."""
    message = str(event.data.get("message") or "")
    return _clip(message, _TEXT_LIMIT) if message and (content or error in _OWN_WORDS) else error


def level(event: Event) -> str:
    """How bad an error is: a refusal is the policy at work."""
    return "WARNING" if event.data.get("status") in _REFUSALS else "ERROR"


def attempt_failed(event: Event) -> bool:
    """Whether an attempt ended by a kill or with an exit code, at its ENDED."""
    return event.kind is EventKind.ENDED and bool(
        event.data.get("killed") or event.data.get("exit")
    )


def measured(event: Event, error: str, decision: str) -> dict[str, str]:
    """What a duration is counted under: few values, whatever a model makes up."""
    known = error != Category.UNKNOWN_TOOL and _TOOL_NAME.fullmatch(event.tool_name)
    found = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": event.tool_name if known else "_OTHER",
        "gen_ai.tool.type": "function",
        "error.type": error,
        "toolcell.decision": decision,
    }
    return {name: value for name, value in found.items() if value}


def nanoseconds(at: datetime) -> int:
    """Since 1970, in whole numbers: a float of seconds is exact to 200 ns only."""
    return (at - _EPOCH) // timedelta(microseconds=1) * 1000


def _content(event: Event) -> dict[str, str]:
    """Arguments as they were received, output as the model reads it; both are redacted by then."""
    if event.kind is EventKind.RECEIVED and "arguments" in event.data:
        return dict.fromkeys(_ARGUMENTS, _json(event.data["arguments"]))
    if event.kind is not EventKind.FINISHED or not isinstance(event.about, ToolResult):
        return {}
    result = event.about
    if result.error:
        return dict.fromkeys(_OUTPUT, _clip(result.for_llm(), _CONTENT_LIMIT))
    value = result.output if result.structured is None else result.structured
    return dict.fromkeys(("gen_ai.tool.call.result", *_OUTPUT), _json(value))


def _plain(value: Any) -> str | bool | int | float | list[str]:
    """A value as an attribute can hold it."""
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, list | tuple | set | frozenset):
        return [_clip(str(item), _TEXT_LIMIT) for item in value]
    return _clip(str(value), _TEXT_LIMIT)


def _json(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return _clip(text, _CONTENT_LIMIT)


def _clip(text: str, most: int) -> str:
    """Shorten a text; without lone surrogates, for which an exporter would drop its whole batch."""
    short = text if len(text) <= most else f"{text[:most]}... ({len(text):,} characters)"
    return short.encode("utf-8", "replace").decode()
