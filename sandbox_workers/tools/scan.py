"""One search over many files: what it reads, what it found, and what it did not look at."""

import os
from collections.abc import Iterable, Iterator, Sequence

from sandbox_workers.patterns.matching import Pace
from sandbox_workers.patterns.nodes import Node
from sandbox_workers.tools import ripgrep
from sandbox_workers.tools.answering import left_out, named
from sandbox_workers.tools.counting import counted
from sandbox_workers.tools.excerpts import Excerpt, Page
from sandbox_workers.tools.pieces import (
    LONGEST_LINE,
    BinaryFileError,
    LongLineError,
    is_text,
    pieces,
    text_of,
)

# What one search reads, so that it ends in a few seconds.
MOST_BYTES = {Pace.FAST: 1 << 30, Pace.MIDDLING: 256 << 20, Pace.SLOW: 64 << 20}
# What is read in less time than ripgrep takes to start.
NOT_WORTH_STARTING = 2 << 20
# Bytes of names, and of files, given to one run of ripgrep. The kernel takes 2 MiB of arguments.
_BATCH_OF_NAMES = 256 << 10
_BATCH = 64 << 20


class Scan:
    """Looks through files for one pattern and fills a page with what it finds.

    `offered` counts the files that it was given, `matches` the lines that it found in them.
    """

    def __init__(self, node: Node, page: Page) -> None:
        self._node, self._page = node, page
        self._most = MOST_BYTES[page.matcher.pace]
        self._left = self._most
        self.offered = self.matches = 0
        self._matching = self._searched = self._binary = 0
        self._unreadable: list[str] = []
        self._unread: list[str] = []
        self._in_part: list[str] = []
        # Files that can hold a line which is not read: whether they do is told with ripgrep too.
        self._long: list[str] = []

    def files(self, paths: Iterable[str]) -> None:
        """Search files in their order."""
        program = ripgrep.installed()
        for batch, size in self._batches(paths):
            self._searched += len(batch)
            worth: Sequence[str] = batch
            if program and size > NOT_WORTH_STARTING:
                worth = ripgrep.worth_reading(program, self._node, batch)
            wanted = {*worth, *self._long}
            for path in batch:
                if path in wanted:
                    self._file(path)

    def _batches(self, paths: Iterable[str]) -> Iterator[tuple[list[str], int]]:
        """Put files together as many as one run of ripgrep takes; leaves out what is too much."""
        batch: list[str] = []
        size = names = 0
        for path in paths:
            self.offered += 1
            length = self._length(path)
            if length is None:
                continue
            batch.append(path)
            size, names = size + length, names + len(path) + 3
            if names > _BATCH_OF_NAMES or size > _BATCH:
                yield batch, size
                batch, size, names = [], 0, 0
        yield batch, size

    def _length(self, path: str) -> int | None:
        """Return a file's size, if the search may still read as much; notes it where not."""
        try:
            length = os.lstat(path).st_size
        except OSError:  # gone since it was listed, as is a file that a moment later had not been
            return None
        if length > self._left:
            self._refuse(path)
            return None
        self._left -= length
        if length > LONGEST_LINE:
            self._long.append(path)
        return length

    def _refuse(self, path: str) -> None:
        try:
            text = is_text(path)
        except OSError:
            self._unreadable.append(path)
            return
        if text:
            self._unread.append(path)
        else:
            self._binary += 1

    def _file(self, path: str) -> None:
        excerpt = Excerpt(self._page, path)
        try:
            self._pieces(path, excerpt)
        except BinaryFileError as error:
            self._binary += 1
            self._searched -= 1
            self._left += error.size
        except LongLineError:
            self._in_part.append(path)
        except OSError:
            self._unreadable.append(path)
            self._searched -= 1
        self.matches += excerpt.matches
        self._matching += bool(excerpt.matches)

    def _pieces(self, path: str, excerpt: Excerpt) -> None:
        matcher = self._page.matcher
        first = True
        for data, last in pieces(path):
            possible = matcher.may_match(data)
            if possible or excerpt.owes or not last:
                text = text_of(data, first=first)
                excerpt.piece(text, matcher.lines(text) if possible else ())
            first = False

    def summary(self) -> list[str]:
        """Say how much was found, and what was left out or not looked at."""
        shown, total = self._page.matches, self.matches
        searched = counted(self._searched, "file")
        if not self.offered:
            told = ["No file is there that the glob fits."]
        elif not self._searched:
            told = ["No text file to search."]
        elif not total:
            told = [f"No line matches in {searched} searched."]
        else:
            lines = counted(total, "matching line")
            told = [f"{lines} in {self._matching:,} of {searched} searched."]
        if shown < total:
            told.append(f"{left_out(shown, total)}: narrow pattern, path or glob, or raise limit.")
        return told + self._not_searched()

    def _not_searched(self) -> list[str]:
        told = []
        if self._binary:
            told.append(f"Not searched: {counted(self._binary, 'binary file')}.")
        if self._unreadable:
            told.append(f"Not readable: {named(self._unreadable)}.")
        if self._unread:
            number = counted(len(self._unread), "file")
            told.append(
                f"Not searched, because one search reads {self._most >> 20:,} MiB at most: "
                f"{number} ({named(self._unread)})."
            )
        if self._in_part:
            told.append(f"Searched only up to a very long line: {named(self._in_part)}.")
        return told
