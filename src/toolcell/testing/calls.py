"""The calls that a controller saw, in their order, and what can be asserted of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

from toolcell.events import Event, EventKind
from toolcell.model import PreparedToolCall, ToolResult


@dataclass(slots=True)
class SeenCall:
    """One call: what was proposed, and its result as soon as there is one.

    `arguments` are those that were validated, defaults included, where the call came that far.
    `settled` says how a call that waited ended, by status.
    """

    call_id: str
    name: str
    arguments: Any
    result: ToolResult | None = None
    settled: str | None = None


class Calls(Sequence[SeenCall]):
    """An event sink that keeps the calls of a run in the order in which they were proposed."""

    def __init__(self, unscripted: Sequence[AssertionError] = ()) -> None:
        """Begin with none; `unscripted` is what was raised for calls that no script tells of."""
        self._calls: dict[str, SeenCall] = {}
        self._unscripted = unscripted

    def __call__(self, event: Event) -> None:
        """Take one event."""
        if event.kind is EventKind.RECEIVED:
            seen = SeenCall(event.call_id, event.tool_name, event.data.get("arguments"))
            self._calls[event.key] = seen
        call = self._calls.get(event.key)
        if call is None:
            return
        if isinstance(event.about, PreparedToolCall):
            call.arguments = event.about.arguments
        elif isinstance(event.about, ToolResult):
            call.result = event.about
        elif event.kind is EventKind.SETTLED:
            call.settled = event.data["status"]

    @overload
    def __getitem__(self, index: int) -> SeenCall: ...
    @overload
    def __getitem__(self, index: slice) -> list[SeenCall]: ...
    def __getitem__(self, index: int | slice) -> SeenCall | list[SeenCall]:
        return list(self._calls.values())[index]

    def __len__(self) -> int:
        return len(self._calls)

    def __iter__(self) -> Iterator[SeenCall]:
        return iter(list(self._calls.values()))

    @property
    def names(self) -> list[str]:
        """The names of the tools, in the order of the calls."""
        return [call.name for call in self]

    def of(self, name: str) -> list[SeenCall]:
        """Return the calls of one tool."""
        return [call for call in self if call.name == name]

    def assert_scripted(self) -> None:
        """Fail where a call was made that the script says nothing of; the others begin so, too."""
        if self._unscripted:
            raise self._unscripted[0]

    def assert_called(self, name: str, /, **arguments: Any) -> SeenCall:
        """Return the first call of a tool with these arguments among its own; or fail."""
        self.assert_scripted()
        for call in self.of(name):
            told = call.arguments if isinstance(call.arguments, dict) else {}
            if all(key in told and told[key] == value for key, value in arguments.items()):
                return call
        made = [call.arguments for call in self.of(name)] or f"none; the calls are {self.names}"
        raise AssertionError(f"no call of {name} with {arguments}; of {name} there are: {made}")

    def assert_not_called(self, name: str) -> None:
        """Fail where a tool was called."""
        self.assert_scripted()
        if calls := self.of(name):
            raise AssertionError(f"{name} was called: {[call.arguments for call in calls]}")

    def assert_order(self, *names: str) -> None:
        """Fail where tools were not called in this order; others may be called in between."""
        self.assert_scripted()
        left = iter(self.names)
        for name in names:
            if name not in left:
                raise AssertionError(f"{name} was not called in the order {names}: {self.names}")
