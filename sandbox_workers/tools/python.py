"""python: runs source text as a program of its own would run, in this very process."""

import builtins
import os
import sys
import types

from sandbox_workers.tools import figures, notebook, surroundings


def python(
    code: str,
    input: str | None = None,  # noqa: A002  # what a model calls it
    directory: str = ".",
    environment: dict[str, str] | None = None,
    *,
    separate: bool = True,
    **_limits: object,  # which the controller keeps
) -> None:
    """Run the code as __main__, with the working directory first on the import path."""
    surroundings.enter(directory, environment or {}, input, separate=separate)
    main = types.ModuleType("__main__")
    main.__file__ = os.path.join(os.getcwd(), notebook.CODE)  # noqa: PTH109, PTH118  # for all calls
    sys.modules["__main__"] = main
    builtins.exit = builtins.quit = sys.exit  # type: ignore[assignment]  # what `site`, which cells do without, has
    sys.path.insert(0, "")
    sys.argv = ["-c"]
    figures.watch()
    try:
        notebook.run(code, main.__dict__)
    finally:
        figures.save_at_end()
