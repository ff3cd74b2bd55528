"""Waits: calls whose tools answered that they are not done, until a later call settles them.

A call is found by the tool that is asked for it and the handle, as it was shown, that this tool
takes; whoever asks, the host or the model. They are kept in memory, the newest so many: a handle
that is not known makes an ordinary call, and settles nothing.
"""

from collections import OrderedDict

from toolcell.model import PreparedToolCall, Status, ToolResult
from toolcell.normalizer import Origin

_MOST = 1000

Key = tuple[str, str]


class Waits:
    """The calls of one run that wait, by who is asked for them and how."""

    def __init__(self) -> None:
        """Begin with none."""
        self._calls: OrderedDict[Key, list[Origin]] = OrderedDict()

    def __len__(self) -> int:
        return sum(map(len, self._calls.values()))

    def note(self, origin: Origin, prepared: PreparedToolCall, result: ToolResult) -> list[Origin]:
        """Take note of a call that ended; returns the calls that it settled, each only once.

        A call that asks for others and is told to wait is none that waits itself: they go on
        waiting, under the handle that it was given.
        """
        asked = _asked(prepared)
        if result.status is Status.WAITING:
            waiting = self._calls.pop(asked, []) if asked in self._calls else [origin]
            self._keep(_following(prepared, result) or asked, waiting)
            return []
        return self._calls.pop(asked, []) if _settles(result) else []

    def _keep(self, key: Key, calls: list[Origin]) -> None:
        if not all(key):
            return  # no tool is asked for it
        self._calls.setdefault(key, []).extend(calls)
        self._calls.move_to_end(key)
        if len(self._calls) > _MOST:
            self._calls.popitem(last=False)


def _asked(prepared: PreparedToolCall) -> Key:
    """What a call asks for, if it asks for another one at all."""
    handle = prepared.arguments.get("handle")
    return prepared.definition.name, handle if isinstance(handle, str) else ""


def _following(prepared: PreparedToolCall, result: ToolResult) -> Key | None:
    """Whom to ask next, and by which handle; a tool that is asked may be asked again."""
    waiting = result.waiting
    if waiting is None:
        return None
    if waiting.poll:
        return waiting.poll, waiting.handle
    asks = "handle" in prepared.arguments
    return (prepared.definition.name, waiting.handle) if asks else ("", "")


def _settles(result: ToolResult) -> bool:
    """Whether a result is an end: of one that did not run, or was cut short, nothing is known."""
    ended = result.status in (Status.SUCCEEDED, Status.FAILED)
    return ended and result.source != "controller"
