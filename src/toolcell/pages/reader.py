"""The reader: answers `read_output`, in a thread, for the calls of one workspace."""

from typing import Any

from toolcell.declare import ToolError
from toolcell.errors import UnknownOutputError
from toolcell.legible import OutputBudget
from toolcell.media import is_binary
from toolcell.model import PreparedToolCall
from toolcell.outputs import OpenOutput, OutputStore
from toolcell.pages.lines import Lines
from toolcell.pages.page import Room, page_of_bytes, page_of_lines
from toolcell.pages.pattern import Pattern, PatternError
from toolcell.pages.search import Patience, Unfinished, page_of_matches
from toolcell.pages.threads import in_daemon

_BEGINNING = 64 * 1024
_MATCHES = 200


class OutputReader:
    """Reads outputs of one workspace, a page at a time."""

    def __init__(self, store: OutputStore, workspace: str, budget: OutputBudget) -> None:
        self._store = store
        self._workspace = workspace
        self._budget = budget

    async def __call__(self, prepared: PreparedToolCall) -> str:
        """Answer one call."""
        patience = Patience()
        try:
            return await in_daemon(lambda: self.page(prepared.arguments, patience))
        finally:
            patience.stop.set()  # at its deadline, or cancelled: nobody waits for it any more

    def page(self, arguments: dict[str, Any], patience: Patience | None = None) -> str:
        """Return the page that was asked for; raises ToolError where there is none."""
        given = {name: value for name, value in arguments.items() if value is not None}
        handle = given["handle"]
        try:
            with self._store.opened(handle, self._workspace) as output:
                return self._within_budget(output, given, patience or Patience())
        except UnknownOutputError as error:
            raise ToolError(str(error), "run the call again to have its output") from None
        except PatternError as error:
            raise ToolError(str(error)) from None
        except Unfinished as end:
            raise ToolError(
                f"the search took too long: it came to byte {end.byte:,}, without a match",
                "search for plain text with `literal`, or with a simpler pattern, or read that "
                "part by `start_byte`",
            ) from None

    def _within_budget(self, output: OpenOutput, given: dict[str, Any], patience: Patience) -> str:
        budget = self._budget
        while True:
            text = _page(output, given, Room.of(budget), patience.anew())
            smaller = budget.smaller(text)
            if self._budget.fits(text) or Room.of(smaller).size == Room.of(budget).size:
                return text
            budget = smaller


def _page(output: OpenOutput, given: dict[str, Any], room: Room, patience: Patience) -> str:
    lines, stored = Lines(output), output.stored
    if is_binary(output.read(0, _BEGINNING)):
        return (
            f"[binary, {stored.size:,} bytes, not shown: {stored.media_type}; "
            f"sha256 {stored.sha256}]"
        )
    in_bytes = "start_byte" in given or "end_byte" in given
    in_lines = "start_line" in given or "end_line" in given
    if in_bytes and (in_lines or "search" in given):
        raise ToolError("bytes were asked for together with lines or a search; ask for one")
    if in_bytes:
        start, end = given.get("start_byte", 0), given.get("end_byte")
        _in_order("end_byte", start + 1, end)
        return page_of_bytes(lines, stored, start, end, room)
    first, last = given.get("start_line", 1), given.get("end_line")
    _in_order("end_line", first, last)
    if "search" in given:
        pattern = Pattern(given["search"], literal=given.get("literal", False))
        limit = given.get("limit", _MATCHES)
        return page_of_matches(lines, stored, pattern, first, last, room, limit, patience)
    return page_of_lines(lines, stored, first, last, room)


def _in_order(name: str, start: int, end: int | None) -> None:
    if end is not None and end < start:
        raise ToolError(f"{name} comes before the start")
