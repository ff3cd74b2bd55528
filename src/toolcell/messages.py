"""Messages: calls out of a provider's message, and results into a history.

Two shapes: `openai` (chat completions: `tool_calls`, and one `tool` message a result)
and `anthropic` (`tool_use` blocks, and `tool_result` blocks in the next user message).
A tool's output goes in as the content of a result and nowhere else: it is data, never
an instruction.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

from toolcell.model import ToolCall, ToolResult
from toolcell.model.base import Frozen

Provider = Literal["openai", "anthropic"]
Message = dict[str, Any]


class ToolMessage(Frozen):
    """A result in one provider's shape: a whole message (openai) or a content block (anthropic)."""

    provider: Provider
    body: Message

    @classmethod
    def of(cls, result: ToolResult, provider: Provider) -> "ToolMessage":
        """Write a result as the provider's model reads it."""
        return cls(provider=provider, body=_SHAPES[provider].body(result))


def calls_in(message: Message, provider: Provider) -> list[ToolCall]:
    """Return the calls that an assistant's message proposes, in its order, arguments as sent."""
    return _SHAPES[provider].calls(message)


def inject(history: Sequence[Message], result: ToolResult, provider: Provider) -> list[Message]:
    """Return a new history that holds the result right after the message that asked for it.

    Results of parallel calls stand in the order of the calls, whichever ends first. The
    messages given are not changed. Raises ValueError where no message asks for this
    call, or its result is there already.
    """
    shape = _SHAPES[provider]
    for index in range(len(history) - 1, -1, -1):
        order = [call.call_id for call in shape.calls(history[index])]
        if result.call_id in order:
            return shape.place(list(history), index, order, shape.body(result))
    raise ValueError(f"no message of the history asks for the call {result.call_id!r}")


class _Shape(NamedTuple):
    calls: Callable[[Message], list[ToolCall]]
    body: Callable[[ToolResult], Message]
    place: Callable[[list[Message], int, list[str], Message], list[Message]]


def _openai_calls(message: Message) -> list[ToolCall]:
    if message.get("role") != "assistant":
        return []
    return [
        ToolCall(
            call_id=call["id"],
            name=call["function"]["name"],
            arguments=call["function"]["arguments"],
        )
        for call in message.get("tool_calls") or []
    ]


def _openai_body(result: ToolResult) -> Message:
    return {"role": "tool", "tool_call_id": result.call_id, "content": result.for_llm()}


def _openai_place(
    history: list[Message], index: int, order: list[str], body: Message
) -> list[Message]:
    end = index + 1
    while end < len(history) and history[end].get("role") == "tool":
        end += 1
    answers = _in_order(history[index + 1 : end], body, order, "tool_call_id")
    return history[: index + 1] + answers + history[end:]


def _anthropic_calls(message: Message) -> list[ToolCall]:
    content = message.get("content")
    if message.get("role") != "assistant" or not isinstance(content, list):
        return []
    return [
        ToolCall(call_id=block["id"], name=block["name"], arguments=block["input"])
        for block in content
        if block.get("type") == "tool_use"
    ]


def _anthropic_body(result: ToolResult) -> Message:
    return {
        "type": "tool_result",
        "tool_use_id": result.call_id,
        "content": result.for_llm(),
        "is_error": result.error is not None,
    }


def _anthropic_place(
    history: list[Message], index: int, order: list[str], body: Message
) -> list[Message]:
    following = history[index + 1] if index + 1 < len(history) else {}
    content = following.get("content")
    blocks = content if isinstance(content, list) else []
    results = [block for block in blocks if block.get("type") == "tool_result"]
    answers = _in_order(results, body, order, "tool_use_id")
    if not results:
        return [*history[: index + 1], {"role": "user", "content": answers}, *history[index + 1 :]]
    # Results come first in the message, whatever else a person said there.
    rest = [block for block in blocks if block.get("type") != "tool_result"]
    return [
        *history[: index + 1],
        following | {"content": answers + rest},
        *history[index + 2 :],
    ]


def _in_order(present: list[Message], body: Message, order: list[str], key: str) -> list[Message]:
    if any(answer[key] == body[key] for answer in present):
        raise ValueError(f"the result of the call {body[key]!r} is in the history already")
    return sorted([*present, body], key=lambda answer: order.index(answer[key]))


_SHAPES = {
    "openai": _Shape(_openai_calls, _openai_body, _openai_place),
    "anthropic": _Shape(_anthropic_calls, _anthropic_body, _anthropic_place),
}
