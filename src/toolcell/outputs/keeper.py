"""The keeper: puts what the results of one call cannot show into the store.

Writing takes a thread of its own kind, because a disk may be slow and the event loop has the
deadlines of other calls to keep.
"""

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeVar

from toolcell.model import Kept
from toolcell.outputs.store import OutputStore
from toolcell.outputs.stored import Kind, Stored
from toolcell.outputs.writer import OutputWriter
from toolcell.redaction import Redactor, no_redaction

T_co = TypeVar("T_co", covariant=True)

writing = ThreadPoolExecutor(4, thread_name_prefix="toolcell-outputs")
"""The threads in which outputs are written."""


class _NotHere(Exception):  # noqa: N818  # caught below: the work is done in a thread then
    """Something is to be kept, in the event loop."""


@dataclass(frozen=True, slots=True)
class Keeper:
    """Keeps outputs of one call, for a run and a workspace.

    `cut` says that the call did not end its streams itself.
    """

    store: OutputStore
    call_id: str = ""
    tool_name: str = ""
    redactor: Redactor = no_redaction
    kept_for: Mapping[str, str] = field(default_factory=dict)
    cut: bool = False

    def begin(self, kind: Kind, name: str = "", media_type: str = "") -> OutputWriter:
        """Begin an output of the call; artifacts are kept as they are."""
        return self.store.begin(
            kind,
            call_id=self.call_id,
            tool_name=self.tool_name,
            name=name,
            media_type=media_type,
            redactor=no_redaction if kind == "artifact" else self.redactor,
            **self.kept_for,
        )

    def keep(self, kind: Kind, data: bytes) -> Kept:
        """Keep an output that is whole; for a thread."""
        writer = self.begin(kind)
        writer.write(data)
        return kept(writer.close(cut=self.cut and kind != "value"))


class Makes(Protocol[T_co]):
    """What makes something, and gives `keep` what it leaves out."""

    def __call__(self, *, keep: Callable[[Kind, bytes], Kept]) -> T_co:
        """Make it."""
        ...


async def with_keeper(make: Makes[T_co], keeper: Keeper) -> T_co:
    """Make something that may have to keep outputs: here if it has not, otherwise in a thread."""
    try:
        return make(keep=_not_here)
    except _NotHere:
        in_thread = partial(make, keep=keeper.keep)
        return await asyncio.get_running_loop().run_in_executor(writing, in_thread)


def kept(stored: Stored) -> Kept:
    """Say where an output is kept."""
    return Kept(handle=stored.handle, size=stored.size, sha256=stored.sha256, lost=stored.lost)


def _not_here(kind: Kind, data: bytes) -> Kept:
    raise _NotHere
