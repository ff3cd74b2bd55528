"""Truncation: the head and the tail of what was captured, with exact counts between them.

The tail stays because causes stand at the end: a failed build without its last lines
reads like a success. Where it is enough to show long lines in part, nothing else is left out.

First the stream is cleaned, then secrets are found in it, then it is cut: so a secret is found
where an escape sequence goes through it, and none is cut. Where the capture itself has cut, as
much beside it as a secret may have is not shown. Counts are those of the stream as the tool
wrote it. What is not shown is kept, and the page says how to read it.
"""

import hashlib
import json
from collections.abc import Callable
from functools import cached_property
from typing import Literal

from toolcell.legible import OutputBudget, legible
from toolcell.legible.characters import without_split_end, without_split_start
from toolcell.media import is_binary, media_type
from toolcell.model import Captured, Kept, Truncation
from toolcell.normalizer.lines import UNBOUNDED, Room, Shown, Stretch
from toolcell.redaction import Redactor, no_redaction

Keep = Callable[[Literal["stdout", "stderr", "value"], bytes], Kept]
"""Keeps what is not shown in full."""

Page = tuple[str, Truncation | None]


def shorten(
    captured: Captured,
    budget: OutputBudget | int,
    redactor: Redactor = no_redaction,
    *,
    ended: bool = True,
    terminal: bool = True,
    keep: Callable[[bytes], Kept] | None = None,
) -> Page:
    """Return text within the budget, and what of the stream is missing from it.

    A third goes to the head. Cuts fall on line ends where one is near. A redacted secret
    counts with its own length, not with that of the words in its place. A stream that has not
    `ended` by itself may have its last secret in part, which is redacted too. `terminal` says
    that it was written as if to one; `keep` is given what is shown in part and still whole here.
    """
    if not captured.total_bytes:  # as most standard errors are
        return "", None
    budget = OutputBudget.of(budget)
    source = _Source(captured, keep)
    if terminal and is_binary(captured.head):
        return _named(source)
    composed = _Composer(source, redactor, ended=ended, terminal=terminal)
    within = budget
    while True:
        text, cut = composed.page(within)
        if within.bytes == 0 or budget.fits(text):
            return text, cut
        within = within.smaller(text)


def shorten_text(
    text: str,
    budget: OutputBudget | int,
    redactor: Redactor = no_redaction,
    keep: Callable[[bytes], Kept] | None = None,
) -> Page:
    """Shorten text that is whole in memory, such as a returned value."""
    data = text.encode(errors="replace")
    whole = Captured(head=data, total_bytes=len(data), total_lines=data.count(b"\n"))
    return shorten(whole, budget, redactor, terminal=False, keep=keep)


class _Source:
    """What was captured, and where it is kept if not all of it is shown."""

    def __init__(self, captured: Captured, keep: Callable[[bytes], Kept] | None) -> None:
        self.captured = captured
        self._keep = keep

    @cached_property
    def kept(self) -> Kept | None:
        """Where it is kept; asked only where something is left out, because that keeps it."""
        captured = self.captured
        if captured.kept is not None or captured.left_out or self._keep is None:
            return captured.kept
        return self._keep(captured.head + captured.tail)

    def missing(self, size: int, lines: int) -> Truncation:
        return Truncation(
            total_bytes=self.captured.total_bytes,
            total_lines=self.captured.total_lines,
            omitted_bytes=size,
            omitted_lines=lines,
            handle=self.kept.handle if self.kept and self.kept.size else None,
            stored_bytes=self.kept.size if self.kept else 0,
            not_stored=self.kept.lost if self.kept else "",
        )


class _Composer:
    """Composes pages of one stream, the same for any budget but for their length."""

    def __init__(self, source: _Source, redactor: Redactor, *, ended: bool, terminal: bool) -> None:
        captured = source.captured
        self._source = source
        self._whole = captured.left_out == 0
        if self._whole:
            kept = captured.head + captured.tail
            self._head = Stretch(kept, redactor, terminal=terminal, cut=not ended)
            self._tail, self._beyond = self._head, 0
            return
        # The capture itself cut here, between any two bytes. Of a secret there the other part
        # is gone, so what may be one is not shown.
        head, tail = without_split_end(captured.head), without_split_start(captured.tail)
        self._head = Stretch(head, redactor, terminal=terminal, cut=False)
        self._tail = Stretch(tail, redactor, terminal=terminal, cut=not ended)
        self._beyond = redactor.reach

    def page(self, budget: OutputBudget) -> Page:
        lines = UNBOUNDED if budget.lines is None else budget.lines
        head = self._head
        if self._whole:
            if len(head) <= budget.bytes and head.lines <= lines:
                return legible(head.whole()), None
            most = self._most(budget, budget.bytes, head)
            shown = head.first(Room(budget.bytes, lines, most), len(head))
            if shown.edge == len(head) and head.lines > 1:
                return self._folded(shown)
        size = budget.bytes // 3
        third = Room(size, lines // 3, self._most(budget, size, head))
        size = budget.bytes - size
        rest = Room(size, lines - third.lines, self._most(budget, size, self._tail))
        return self._two_parts(third, rest)

    @staticmethod
    def _most(budget: OutputBudget, size: int, stretch: Stretch) -> int:
        """How long a line may be: a few may be as long as there is room for them.

        One alone is never folded, because its two ends are what is shown anyway.
        """
        if stretch.lines <= 1:
            return UNBOUNDED
        return max(budget.line_bytes, size // stretch.lines)

    def _folded(self, shown: Shown) -> Page:
        cut = self._source.missing(shown.folded, shown.folded_lines)
        text, where = legible(shown.text), _where(cut, 1)
        if where:
            before = "" if text.endswith("\n") else "\n"
            text += f"{before}[... long lines are shown in part{where} ...]\n"
        return text, cut

    def _two_parts(self, third: Room, rest: Room) -> Page:
        captured, head, tail = self._source.captured, self._head, self._tail
        first = head.first(third, len(head) - self._beyond)
        last = tail.last(rest, first.edge if self._whole else self._beyond)
        before, lines_before = head.raw(0, first.edge)
        after, lines_after = tail.raw(last.edge, len(tail))
        folded_lines = first.folded_lines + last.folded_lines
        gap = self._source.missing(
            captured.total_bytes - before - after,
            captured.total_lines - lines_before - lines_after,
        )
        marker = _marker(gap, first.text)
        cut = gap.model_copy(
            update={
                "omitted_bytes": gap.omitted_bytes + first.folded + last.folded,
                "omitted_lines": gap.omitted_lines + folded_lines,
            }
        )
        return f"{legible(first.text)}{marker}{legible(last.text)}", cut


def _named(source: _Source) -> Page:
    """Name binary output in the place of it: its size, what it seems to be, its digest."""
    captured = source.captured
    cut = source.missing(captured.total_bytes, captured.total_lines)
    size, digest = cut.stored_bytes, source.kept.sha256 if source.kept else ""
    if captured.left_out == 0:
        data = captured.head + captured.tail
        size, digest = len(data), hashlib.sha256(data).hexdigest()
    kind = media_type(captured.head)
    words = [f"binary output, {captured.total_bytes:,} bytes, not shown: {kind}"]
    if digest:
        part = "" if size >= captured.total_bytes else f" of the first {size:,} bytes"
        words.append(f"sha256{part} {digest}")
    if cut.handle:
        words.append(f"kept as {cut.handle}")
    return f"[{'; '.join(words)}{_not_kept(cut)}]", cut


def _marker(gap: Truncation, head: bytes) -> str:
    before = "" if not head or head.endswith(b"\n") else "\n"
    line = 1 + head.count(b"\n")
    return (
        f"{before}[... {gap.omitted_bytes:,} bytes ({gap.omitted_lines:,} lines) left out"
        f"{_where(gap, line)} ...]\n"
    )


def _where(cut: Truncation, line: int) -> str:
    """Say how to read what is left out, from which line on."""
    if cut.handle is None:
        return _not_kept(cut)
    arguments = json.dumps({"handle": cut.handle, "start_line": line})
    return f"; to read it: read_output {arguments}{_not_kept(cut)}"


def _not_kept(cut: Truncation) -> str:
    if not cut.not_stored:
        return ""
    if cut.handle is None:
        return f"; it could not be kept: {cut.not_stored}"
    return f"; only its first {cut.stored_bytes:,} bytes are kept: {cut.not_stored}"
