"""Files: what a call left behind to be kept, and what it changed in the workspace."""

from collections.abc import Sequence
from typing import Literal

from toolcell.model.base import Frozen

_MOST_TOLD = 30


class Artifact(Frozen):
    """A file that came back with a result: its handle, and what is known of it.

    `name` is what the tool called it, below the outbox or the workspace, made visible: it is
    nobody's path on the host. `size` is in bytes; `sha256` is of what is kept, in hexadecimal.
    """

    handle: str
    name: str
    media_type: str
    size: int
    sha256: str


class RefusedArtifact(Frozen):
    """A file that did not come back, and why; the name is empty where it is about all of them."""

    name: str
    reason: str


class FileChange(Frozen):
    """A file of the workspace that is not as it was before the call; sizes are in bytes."""

    path: str
    kind: Literal["added", "changed", "removed"]
    size_before: int | None = None
    size: int | None = None


class LeftFiles(Frozen):
    """What files came of a call: those that came back, those that changed, and what is not told."""

    artifacts: tuple[Artifact, ...] = ()
    refused: tuple[RefusedArtifact, ...] = ()
    changes: tuple[FileChange, ...] = ()
    changes_note: str = ""


def told_size(size: int) -> str:
    """Write a number of bytes with its unit: 1 byte, 2,000 bytes."""
    return f"{size:,} byte{'' if size == 1 else 's'}"


def told_artifacts(artifacts: Sequence[Artifact], refused: Sequence[RefusedArtifact]) -> list[str]:
    """The lines for the model that name artifacts; none where there are none."""
    lines = [f"{a.handle}  {a.name} ({a.media_type}, {told_size(a.size)})" for a in artifacts]
    for each in refused:
        name = f"{each.name} " if each.name else ""
        lines.append(f"{name}did not come back: {each.reason}")
    return _section("artifacts", lines)


def told_changes(changes: Sequence[FileChange], note: str) -> list[str]:
    """The lines for the model that name changed files; none where none are known of."""
    lines = [_told_change(each) for each in changes]
    return _section("changed files", lines, [note] if note else [])


def _told_change(change: FileChange) -> str:
    before = change.size_before
    if change.size is None:
        sizes = told_size(before or 0)
    else:
        sizes = (f"{before:,} -> " if before is not None else "") + told_size(change.size)
    return f"{change.kind} {change.path} ({sizes})"


def _section(title: str, lines: list[str], notes: Sequence[str] = ()) -> list[str]:
    if len(lines) > _MOST_TOLD and not notes:  # a note has the number of all
        notes = [f"... and {len(lines) - _MOST_TOLD:,} more"]
    shown = [*lines[:_MOST_TOLD], *notes]
    return ["\n".join([f"[{title}]", *shown])] if shown else []
