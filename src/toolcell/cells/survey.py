"""The survey of a workspace around one call: what changed, and the files that its tool declared.

    look (before) ··· the call runs ··· look (after) -> LeftFiles

Only a writable workspace is looked at, and only where the policy asks for changes or the tool
declares artifacts. To look takes time and may meet anything, so threads of its own do it. What
another call changes in the same workspace at the same time cannot be told apart.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from toolcell.cells import declared
from toolcell.cells.listing import Listing, Mark, changes, listed
from toolcell.cells.parcels import Shelf
from toolcell.model import CellSettings, LeftFiles, Limits, ToolDefinition

T = TypeVar("T")
_looking = ThreadPoolExecutor(4, thread_name_prefix="toolcell-survey")


@dataclass(slots=True)
class Survey:
    """What was there before a call."""

    workspace: Path
    globs: tuple[str, ...]
    listing: Listing | None
    marks: dict[str, Mark]

    @classmethod
    async def begin(
        cls, workspace: Path, settings: CellSettings, definition: ToolDefinition
    ) -> "Survey":
        """Look at a workspace before a call."""

        def look() -> Survey:
            listing = listed(workspace) if settings.report_changes else None
            marks = declared.found(workspace, definition.artifacts)
            return cls(workspace, definition.artifacts, listing, marks)

        return await _in_thread(look)

    async def end(self, left: LeftFiles, shelf: Shelf, limits: Limits) -> LeftFiles:
        """Look again, and add what came of the call to what is known of it."""
        return await _in_thread(lambda: self._compared(left, shelf, limits))

    def _compared(self, left: LeftFiles, shelf: Shelf, limits: Limits) -> LeftFiles:
        if self.listing is not None:
            told, note = changes(self.listing, listed(self.workspace))
            left = left.model_copy(update={"changes": told, "changes_note": note})
        new = declared.found(self.workspace, self.globs)
        paths = [path for path, mark in new.items() if self.marks.get(path) != mark]
        return declared.collected(self.workspace, sorted(paths), shelf, limits, left)


def is_asked_for(settings: CellSettings, definition: ToolDefinition) -> bool:
    """Whether anybody wants to know, and anything can come of a call."""
    return settings.workspace == "rw" and bool(settings.report_changes or definition.artifacts)


async def _in_thread(work: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(_looking, work)
