"""python: runs source text as a program of its own would run, in this very process."""

import sys
import types

from sandbox_workers import handlers

_NAME = "<code>"


def python(code: str) -> None:
    """Run the code as __main__, with the working directory first on the import path."""
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    sys.path.insert(0, "")
    sys.argv = ["-c"]
    handlers.sources[_NAME] = (len(code), None, code.splitlines(keepends=True), _NAME)
    exec(compile(code, _NAME, "exec"), main.__dict__)  # noqa: S102  # what this tool is for
