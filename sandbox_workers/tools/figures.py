"""Figures of matplotlib, saved as images where the code that drew them can have no window.

Nothing here imports matplotlib: a hook waits for the code to import `matplotlib.pyplot`, and
then `show` saves what is open into the outbox. What was not shown is saved after the run.

A figure that cannot be drawn changes nothing of how the run ended, and is not met again in the
next one: whatever drawing raises, it is told in a line, and the figure is closed.
"""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

_PYPLOT = "matplotlib.pyplot"
_WORDS = 300


def watch() -> None:
    """Make `show` save from now on; once in a process."""
    os.environ.setdefault("MPLBACKEND", "Agg")
    pyplot = sys.modules.get(_PYPLOT)
    if pyplot is None:
        sys.meta_path.insert(0, _Hook())
    else:
        _take_over(pyplot)


def save() -> None:
    """Save every open figure as a PNG in the outbox, and close it; nothing without matplotlib."""
    pyplot: Any = sys.modules.get(_PYPLOT)
    if pyplot is None or not hasattr(pyplot, "get_fignums"):  # its import may have failed
        return
    for number in pyplot.get_fignums():
        figure = pyplot.figure(number)
        try:
            _drawn(figure)
        finally:
            pyplot.close(figure)


def save_at_end() -> None:
    """Save what was not shown, after a run that has ended as it did."""
    try:
        save()
    except BaseException as error:  # noqa: BLE001  # what draws may be the tool's own
        _tell("the figures were not saved", error)


def _drawn(figure: Any) -> None:
    place = _next_place()
    try:
        figure.savefig(place, format="png")
    except Exception as error:  # noqa: BLE001  # as a text that is no formula
        with suppress(OSError):
            os.unlink(place)  # noqa: PTH108  # a part of an image
        _tell(f"{place.rpartition('/')[2]} was not saved", error)


def _tell(what: str, error: BaseException) -> None:
    try:
        why = " ".join(str(error).split())[:_WORDS]
    except BaseException:  # noqa: BLE001  # __str__ is the tool's own as well
        why = ""
    line = f"[{what}: {type(error).__name__}{': ' if why else ''}{why}]\n"
    with suppress(OSError):  # the tool may have closed it
        os.write(2, line.encode(errors="backslashreplace"))


def _next_place() -> str:
    outbox = os.environ["TOOLCELL_OUTBOX"]
    number = 1
    while os.path.lexists(place := f"{outbox}/figure-{number}.png"):
        number += 1
    return place


def _take_over(pyplot: Any) -> None:
    def show(*_: object, **__: object) -> None:
        save()

    pyplot.show = show


class _Hook:
    """Finds `matplotlib.pyplot` as the import system does, and changes it once it is loaded."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Answer for that one module (PEP 451)."""
        if name != _PYPLOT:
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                load(module)
                _take_over(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
