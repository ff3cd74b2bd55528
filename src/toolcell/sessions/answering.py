"""The built-in tool `sessions`: what a model may ask of its sessions beside calls in them."""

from typing import Any

from toolcell.declare import ToolError
from toolcell.errors import SessionError
from toolcell.model import PreparedToolCall
from toolcell.sessions.manager import Sessions
from toolcell.sessions.names import Kind, SessionInfo


class SessionsAnswerer:
    """Answers calls of the tool for the sessions of one controller."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def __call__(self, prepared: PreparedToolCall) -> str:
        """Do what a call asks for; raises ToolError in words for the model."""
        given = prepared.arguments
        name: str = given["session"]
        kind: Kind | None = given["kind"]
        try:
            match given["action"]:
                case "list":
                    return self._listed()
                case "fork":
                    return await self._forked(name, given)
                case action:
                    return await self._ended(name, kind, action)
        except SessionError as error:
            raise ToolError(str(error)) from None

    def _listed(self) -> str:
        return "\n".join(map(_line, self._sessions.list())) or "there are no sessions"

    async def _ended(self, name: str, kind: Kind | None, action: str) -> str:
        await self._sessions.end(name, kind)
        if action == "restart":
            return f"the session {name} has ended; the next call that names it starts a fresh one"
        return f"the session {name} has ended"

    async def _forked(self, name: str, given: dict[str, Any]) -> str:
        names, copies, reseed = given["names"], given["copies"], given["reseed"]
        forked = await self._sessions.fork(name, copies, names=names, reseed=reseed)
        text = ", ".join(forked.names)
        if forked.shared_files:
            text += f"\nopen for writing in all of them: {', '.join(forked.shared_files)}"
        return text


def _line(info: SessionInfo) -> str:
    """One session on a line: main (python): idle 12 s, 4 calls."""
    state = f"idle {info.idle:.0f} s" if info.state == "idle" else info.state
    if info.ended:
        return f"{info.name} ({info.kind}): {state}: {info.ended}"
    calls = "1 call" if info.calls == 1 else f"{info.calls} calls"
    origin = f", forked from {info.forked_from}" if info.forked_from else ""
    return f"{info.name} ({info.kind}): {state}, {calls}{origin}"
