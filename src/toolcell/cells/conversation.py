"""The conversation with one worker: a protocol without I/O.

The worker speaks on the reply pipe: it says that its jail is shut, or why not, and
answers one call. Every step that the table does not have is a broken conversation,
told as a value: the peer may be hostile.
"""

from base64 import b64encode
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from sandbox_workers import wire
from toolcell.model import PreparedToolCall, WaitingInfo


class State(StrEnum):
    """Where a conversation stands."""

    MAKING = "making"
    READY = "ready"
    ASKED = "asked"
    ANSWERED = "answered"
    FAILED = "failed"
    BROKEN = "broken"


_NEXT = {
    (State.MAKING, "ready"): State.READY,
    (State.MAKING, "failed"): State.FAILED,
    (State.ASKED, "reply"): State.ANSWERED,
    (State.ASKED, "error"): State.ANSWERED,
    (State.ASKED, "waiting"): State.ANSWERED,
}

_FIELDS: dict[str, dict[str, type]] = {
    "ready": {"type": str},
    "failed": {"type": str, "stage": str, "message": str, "errno": int},
    "reply": {"type": str, "value": object},
    "error": {
        "type": str,
        "kind": str,
        "name": str,
        "message": str,
        "hint": str,
        "retryable": bool,
    },
    "waiting": {"type": str, "state": str, "handle": str, "note": str},
}

EXIT_KINDS = frozenset({"memory", "disk", "open_files", "tool_error"})
"""What any worker may claim of an error: that it met a limit, or could not begin."""

ERROR_KINDS = EXIT_KINDS | {"exception", "bad_reply"}
"""What a worker may claim of an error where it answers by a value."""


class Conversation:
    """What was said on one reply pipe so far."""

    def __init__(self) -> None:
        self._reader = wire.FrameReader(wire.MAX_REPLY)
        self.state = State.MAKING
        self.answer: dict[str, Any] | None = None
        self.problem: str | None = None
        self.bytes_heard = 0
        self._by_exit = False

    def feed(self, data: bytes) -> None:
        """Take bytes as they were read; an empty read says that the pipe ended."""
        if self.state is State.BROKEN:
            return
        self.bytes_heard += len(data) if self.state is not State.MAKING else 0
        try:
            if not data:
                self._reader.close()
                return
            self._reader.feed(data)
            while (message := self._reader.next()) is not None and self._take(message):
                pass
        except wire.WireError as error:
            self._break(str(error))

    def ask(
        self,
        prepared: PreparedToolCall,
        stdin: bytes | None,
        narrowed: Mapping[str, int] = MappingProxyType({}),
    ) -> bytes:
        """Return the one request frame; raises WireError where the call is too large to send.

        `narrowed` are limits that are lower than those that the cell was made with.
        """
        handler = prepared.definition.handler
        frame = wire.frame(
            {
                "type": "call",
                "module": handler.module,
                "file": handler.file,
                "function": handler.function,
                "import_path": [handler.root] if handler.root else [],
                "arguments": prepared.arguments,
                "typed": list(prepared.definition.typed),
                "answers": prepared.definition.answers,
                "stdin": None if stdin is None else b64encode(stdin).decode(),
                "limits": dict(narrowed),
            }
        )
        self.state = State.ASKED
        self._by_exit = prepared.definition.answers == "exit"
        return frame

    def _take(self, message: dict[str, Any]) -> bool:
        """Take one message; whether the conversation goes on."""
        kind = message.get("type")
        if not isinstance(kind, str) or kind not in _FIELDS:
            self._break("a frame of no known type")
            return False
        following = _NEXT.get((self.state, kind))
        if following is None:
            second = "a second answer" if self.state is State.ANSWERED else f"`{kind}` out of turn"
            self._break(second)
        elif not _fits(message, _FIELDS[kind]):
            self._break(f"a `{kind}` frame with wrong fields")
        elif kind == "error" and message["kind"] not in self._kinds():
            self._break("an error of no known kind")
        elif kind == "error" and message["retryable"] and message["kind"] != "tool_error":
            self._break(f"a retryable error of kind {message['kind']}")
        elif kind in ("reply", "waiting") and self._by_exit:
            self._break("a value from a tool that answers by its exit code")
        elif kind == "waiting" and (problem := _unfit(message)):
            self._break(problem)
        else:
            self.state, self.answer = following, message
        return self.state is not State.BROKEN

    def _kinds(self) -> frozenset[str]:
        return EXIT_KINDS if self._by_exit else ERROR_KINDS

    def _break(self, problem: str) -> None:
        self.state, self.answer, self.problem = State.BROKEN, None, problem


def _unfit(waiting: dict[str, str]) -> str:
    """What is wrong with an answer that is waiting; empty where nothing is."""
    try:
        WaitingInfo(state=waiting["state"], handle=waiting["handle"], note=waiting["note"])
    except ValidationError as error:
        return f"a waiting answer whose {error.errors()[0]['loc'][0]} cannot be one"
    return ""


def _fits(message: dict[str, Any], fields: dict[str, type]) -> bool:
    return message.keys() == fields.keys() and all(
        isinstance(message[name], kind) for name, kind in fields.items()
    )
