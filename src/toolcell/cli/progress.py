"""A progress bar on stderr, where stderr is a terminal; otherwise nothing."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_shown: list[Any] = []  # the bar that is there now; Any, because rich is imported with it


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
        _shown.append(bar)
        try:
            yield lambda: bar.advance(task)
        finally:
            _shown.remove(bar)


@contextmanager
def stepped_aside() -> Iterator[None]:
    """Take the bar from the terminal while somebody is asked there."""
    for bar in _shown:
        bar.stop()
    try:
        yield
    finally:
        for bar in _shown:
            bar.start()


def _count(path: Path) -> int | None:
    """How many calls a file holds; None for what can be read only once."""
    if not path.is_file():
        return None
    with path.open("rb") as file:
        return sum(1 for line in file if line.strip())
