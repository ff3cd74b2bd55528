"""The keeper: puts what the results of one call cannot show into the store.

Writing takes a thread of its own kind, because a disk may be slow and the event loop has the
deadlines of other calls to keep.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from toolcell.model import Kept
from toolcell.outputs.store import OutputStore
from toolcell.outputs.stored import Kind, Stored
from toolcell.outputs.writer import OutputWriter
from toolcell.redaction import Redactor, no_redaction

T = TypeVar("T")

writing = ThreadPoolExecutor(4, thread_name_prefix="toolcell-outputs")
"""The threads in which outputs are written and read."""


class _NotHere(Exception):  # noqa: N818  # caught below: the work is done in a thread then
    """Something is to be kept, in the event loop."""


@dataclass(frozen=True, slots=True)
class Keeper:
    """Keeps outputs of one call; `cut` says that it did not end its streams itself."""

    store: OutputStore
    call_id: str = ""
    tool_name: str = ""
    run: str = ""
    workspace: str = ""
    redactor: Redactor = no_redaction
    cut: bool = False

    def begin(self, kind: Kind) -> OutputWriter:
        """Begin an output of the call."""
        return self.store.begin(
            kind,
            call_id=self.call_id,
            tool_name=self.tool_name,
            run=self.run,
            workspace=self.workspace,
            redactor=self.redactor,
        )

    def keep(self, kind: Kind, data: bytes) -> Kept:
        """Keep an output that is whole; for a thread."""
        writer = self.begin(kind)
        writer.write(data)
        return kept(writer.close(cut=self.cut and kind != "value"))


async def with_keeper(
    make: Callable[[Callable[[Kind, bytes], Kept] | None], T], keeper: Keeper | None
) -> T:
    """Make something that may have to keep outputs: here if it has not, otherwise in a thread."""
    if keeper is None:
        return make(None)
    try:
        return make(_not_here)
    except _NotHere:
        return await asyncio.get_running_loop().run_in_executor(writing, make, keeper.keep)


def kept(stored: Stored) -> Kept:
    """Say where an output is kept."""
    return Kept(handle=stored.handle, size=stored.size, sha256=stored.sha256, lost=stored.lost)


def _not_here(kind: Kind, data: bytes) -> Kept:
    raise _NotHere
