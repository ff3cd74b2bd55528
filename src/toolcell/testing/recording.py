"""Recordings: the results of calls that were made for real, to be played again."""

from collections import defaultdict, deque
from pathlib import Path

from toolcell.model import PreparedToolCall, ToolCall, ToolResult, digest_of
from toolcell.model.base import Frozen
from toolcell.testing.script import UnscriptedCallError


class _Recorded(Frozen):
    name: str
    arguments: str
    result: ToolResult


class Recording:
    """Results by the call that they were of: its tool and its arguments.

    recording = Recording.load("calls.jsonl")
    with FakeController(recording, registry=registry) as controller: ...

    Those of the same call are played in the order in which they were added.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self._recorded: list[_Recorded] = []
        self._left: defaultdict[tuple[str, str], deque[ToolResult]] = defaultdict(deque)

    def __len__(self) -> int:
        return len(self._recorded)

    def add(self, prepared: PreparedToolCall | ToolCall, result: ToolResult) -> None:
        """Add the result of a call; the arguments of a `ToolCall` have to be an object."""
        name = prepared.name if isinstance(prepared, ToolCall) else prepared.definition.name
        self._take(_Recorded(name=name, arguments=digest_of(prepared.arguments), result=result))

    def save(self, path: str | Path) -> None:
        """Write them to a file, one a line."""
        lines = "".join(f"{each.model_dump_json()}\n" for each in self._recorded)
        Path(path).write_text(lines, encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> "Recording":
        """Read what `save` wrote."""
        recording = cls()
        for line in Path(path).read_text(encoding="utf-8").splitlines():
            recording._take(_Recorded.model_validate_json(line))
        return recording

    def __call__(self, prepared: PreparedToolCall) -> ToolResult:
        """Return the next result of this call; raises UnscriptedCallError where there is none."""
        name = prepared.definition.name
        left = self._left[name, digest_of(prepared.arguments)]
        if not left:
            raise UnscriptedCallError(f"no result of {name} with {prepared.arguments} was recorded")
        return left.popleft()

    def _take(self, recorded: _Recorded) -> None:
        self._recorded.append(recorded)
        self._left[recorded.name, recorded.arguments].append(recorded.result)
