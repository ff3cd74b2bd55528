"""A progress bar on stderr, where stderr is a terminal; otherwise nothing."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def progress(path: Path) -> Iterator[Callable[[], None]]:
    """Yield a function to call after each result."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("calls", total=_count(path))
        yield lambda: bar.advance(task)


def _count(path: Path) -> int | None:
    """How many calls a file holds; None for what can be read only once."""
    if not path.is_file():
        return None
    with path.open("rb") as file:
        return sum(1 for line in file if line.strip())
