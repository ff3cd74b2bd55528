"""python: runs source text as a program of its own would run, in this very process."""

import sys
import types

from sandbox_workers.tools import notebook


def python(code: str) -> None:
    """Run the code as __main__, with the working directory first on the import path."""
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    sys.path.insert(0, "")
    sys.argv = ["-c"]
    notebook.run(code, main.__dict__)
