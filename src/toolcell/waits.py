"""Waits: calls whose tools answered that they are not done, until a later call settles them.

A call is found by the tool that is asked for it and the handle, as it was shown, that this tool
takes; whoever asks, the host or the model. They are kept in memory, the newest so many: a handle
that is not known makes an ordinary call, and settles nothing.
"""

from collections import OrderedDict

from toolcell.errors import ToolcellError
from toolcell.model import PreparedToolCall, Status, ToolCall, ToolResult
from toolcell.normalizer import Origin

_MOST = 1000
_MOST_ALIKE = 100  # of one handle, which a tool may give to every call

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
            self._keep(_following(result), waiting)
            return []
        return self._calls.pop(asked, []) if _settles(result) else []

    def _keep(self, key: Key, calls: list[Origin]) -> None:
        if not all(key):
            return
        there = self._calls.setdefault(key, [])
        there.extend(calls)
        del there[:-_MOST_ALIKE]
        self._calls.move_to_end(key)
        if len(self._calls) > _MOST:
            self._calls.popitem(last=False)


def polling(result: ToolResult, number: int) -> ToolCall:
    """Return the call that asks for one that waits; raises ToolcellError where it does not."""
    waiting = result.waiting
    if waiting is None or waiting.poll is None:
        what = f"is {result.status}" if waiting is None else "names no tool to ask for it"
        raise ToolcellError(f"the call {result.call_id} cannot be polled: it {what}")
    return ToolCall(
        call_id=f"{result.call_id}/poll-{number}",
        name=waiting.poll,
        arguments={"handle": waiting.handle},
    )


def _asked(prepared: PreparedToolCall) -> Key:
    """What a call asks for, if it asks for another one at all."""
    handle = prepared.arguments.get("handle")
    return prepared.definition.name, handle if isinstance(handle, str) else ""


def _following(result: ToolResult) -> Key:
    """Whom to ask next, and by which handle; empty where no tool is asked."""
    waiting = result.waiting
    return (waiting.poll, waiting.handle) if waiting and waiting.poll else ("", "")


def _settles(result: ToolResult) -> bool:
    """Whether a result is an end: of one that did not run, or was cut short, nothing is known."""
    ended = result.status in (Status.SUCCEEDED, Status.FAILED)
    return ended and result.source != "controller"
