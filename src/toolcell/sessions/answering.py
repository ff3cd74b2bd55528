"""The built-in tool `sessions`: what a model may ask of its sessions beside calls in them."""

from typing import Any

from toolcell.declare import ToolError
from toolcell.model import PreparedToolCall
from toolcell.sessions.manager import Sessions
from toolcell.sessions.names import Kind


class SessionsAnswerer:
    """Answers calls of the tool for the sessions of one controller."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def __call__(self, prepared: PreparedToolCall) -> Any:
        """Do what a call asks for; raises ToolError in words for the model."""
        given = prepared.arguments
        name: str = given["session"]
        kind: Kind | None = given["kind"]
        match given["action"]:
            case "list":
                return self._listed()
            case "fork":
                return await self._forked(name, given)
            case action:
                return await self._ended(name, kind, action)

    def _listed(self) -> Any:
        return [
            info.model_dump(mode="json", exclude_defaults=True) for info in self._sessions.list()
        ]

    async def _ended(self, name: str, kind: Kind | None, action: str) -> str:
        refused = await self._sessions.end(name, kind)
        if refused:
            raise ToolError(refused, hint="list the sessions first")
        if action == "restart":
            return f"the session {name} has ended; the next call that names it starts a fresh one"
        return f"the session {name} has ended"

    async def _forked(self, name: str, given: dict[str, Any]) -> Any:
        names, copies, reseed = given["names"], given["copies"], given["reseed"]
        forked = await self._sessions.fork(name, copies, names=names, reseed=reseed)
        if forked.refused:
            raise ToolError(forked.refused, hint="the session goes on; nothing was forked")
        return forked.model_dump(mode="json", exclude_defaults=True)
