"""What list_files and search_text share: the size of an answer, and words for what is not in it."""

from collections.abc import Sequence

from sandbox_workers.tools import ToolError
from sandbox_workers.tools.counting import counted
from sandbox_workers.tools.globs import Glob, GlobError
from sandbox_workers.tools.naming import shown
from sandbox_workers.tools.walking import Walk

ROOM = 28_000
"""Bytes of an answer: less than a model is shown of any output, so that nothing is cut again."""
_NAMED = 5
_LENGTH = 200


def glob_of(text: str) -> Glob:
    """Return the glob that a model wrote; raises ToolError where it is none."""
    try:
        return Glob(text)
    except GlobError as error:
        raise ToolError(f"`glob` is not a glob: {error}", "an example: src/**/*.{ts,tsx}") from None


def named(paths: Sequence[str]) -> str:
    """Name some paths, and say how many more there are."""
    more = f" and {len(paths) - _NAMED:,} more" if len(paths) > _NAMED else ""
    names = [shown(path[:_LENGTH]) + "…" * (len(path) > _LENGTH) for path in paths[:_NAMED]]
    return ", ".join(names) + more


def left_out(shown: int, total: int) -> str:
    """Say how many of all are shown, and how many are not."""
    are = ["is" if number == 1 else "are" for number in (shown, total - shown)]
    return f"The first {shown:,} {are[0]} shown, {total - shown:,} {are[1]} left out"


def glob_of_its_own(base: str, glob: str) -> list[str]:
    """Say that a glob begins at `path`, where it repeats that or its last name."""
    written = glob.removeprefix("./")
    for start in (base, base.rpartition("/")[2]):
        if written.startswith(f"{start}/"):
            return [f"Globs begin at `path`: try glob={written[len(start) + 1 :]}."]
    return []


def hidden_and_ignored(walk: Walk) -> list[str]:
    """Count what a walk passed over because nobody asked for it: 2 hidden, 1 ignored."""
    kinds = ((walk.hidden, "hidden"), (walk.ignored, "ignored"))
    return [f"{number:,} {kind}" for number, kind in kinds if number]


def passed_over(walk: Walk, *, found: bool) -> list[str]:
    """Say what a walk did not give, a sentence for each cause.

    What nobody asked for is told only where nothing was found: it may be what was meant.
    """
    told = []
    if not found and (kinds := hidden_and_ignored(walk)):
        entries = "entry" if walk.hidden + walk.ignored == 1 else "entries"
        told.append(f"Passed over: {' and '.join(kinds)} {entries}.")
    if walk.unreadable:
        told.append(f"Not readable: {named(walk.unreadable)}.")
    if not walk.complete:
        told.append(
            f"Ended after {counted(walk.seen, 'name')}: numbers are of what was seen until then."
        )
    return told


def account(*sentences: str) -> str:
    """Return the last line of an answer, which is not part of what was found."""
    return f"[{' '.join(sentences)}]"
