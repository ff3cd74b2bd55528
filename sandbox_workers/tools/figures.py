"""Figures of matplotlib, saved as images where the code that drew them can have no window.

Nothing here imports matplotlib: a hook waits for the code to import `matplotlib.pyplot`, and
then `show` saves what is open into the outbox. What was not shown is saved after the run.
"""

import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

_PYPLOT = "matplotlib.pyplot"


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
        figure.savefig(_next_place(), format="png")
        pyplot.close(figure)


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
