"""Where a function can be found again: in the cell it is imported, never sent.

A function without an importable name is refused here, at registration, rather than in
the cell at the first call.
"""

import ast
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

from toolcell.errors import RegistrationError
from toolcell.model import HandlerRef

_REMEDY = (
    "move it to the top level of a .py file and register it from there, "
    'or declare it @tool(isolation="inline") if it is trusted host code'
)


def locate(function: Callable[..., Any]) -> HandlerRef:
    """Name a function for the cell; raises RegistrationError with the remedy where it cannot be."""
    qualname = getattr(function, "__qualname__", "")
    module = getattr(function, "__module__", "") or ""
    if not qualname:
        raise RegistrationError(f"{function!r} is not a function; {_REMEDY}")
    if "<lambda>" in qualname:
        raise RegistrationError(f"a lambda has no name to import in a cell; {_REMEDY}")
    if "<locals>" in qualname:
        raise RegistrationError(
            f"{qualname} is defined inside a function, so a cell cannot import it; {_REMEDY}"
        )
    loaded = sys.modules.get(module)
    file = getattr(loaded, "__file__", None)
    if loaded is None or (module == "__main__" and not _is_script(file)):
        raise RegistrationError(
            f"{qualname} lives in a notebook cell or an interactive session, which a cell "
            f"cannot import; {_REMEDY}"
        )
    if module == "__main__" and qualname.split(".")[0] not in _top_level(Path(file or "")):
        raise RegistrationError(
            f"{qualname} is not defined at the top level of {file}, where a cell that imports it "
            'finds it; move it above `if __name__ == "__main__":`'
        )
    if _look_up(loaded, qualname) is not function:
        raise RegistrationError(
            f"{module}.{qualname} is not the function that was registered (it was wrapped "
            f"or replaced), so a cell would run another one; {_REMEDY}"
        )
    if file is None:
        return HandlerRef(module=module, function=qualname)
    return _with_code(module, qualname, Path(file).resolve())


def _is_script(file: str | None) -> bool:
    return file is not None and Path(file).suffix == ".py" and Path(file).is_file()


def _top_level(file: Path) -> set[str]:
    """The functions and classes that a script defines whenever it is imported."""
    definitions = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    body = ast.parse(file.read_bytes()).body
    return {node.name for node in body if isinstance(node, definitions)}


def _look_up(module: Any, qualname: str) -> Any:
    for name in qualname.split("."):
        module = getattr(module, name, None)
    return module


def _with_code(module: str, qualname: str, file: Path) -> HandlerRef:
    script = module == "__main__"
    depth = 0 if script else module.count(".")
    package = file.name == "__init__.py"
    root = file.parents[depth + 1 if package else depth]
    if _part_of_interpreter(root):
        return HandlerRef(module=module, function=qualname)
    return HandlerRef(
        module=file.stem if script else module,
        function=qualname,
        file=str(file) if script else None,
        root=str(root),
        code=tuple(_importable(root)),
    )


def _part_of_interpreter(root: Path) -> bool:
    """Whether every cell sees this directory anyway: the prefixes and the standard library."""
    prefixes = {sys.prefix, sys.base_prefix, sysconfig.get_path("stdlib")}
    return any(root.is_relative_to(Path(prefix).resolve()) for prefix in prefixes)


def _importable(root: Path) -> list[str]:
    """The Python parts of a directory: its .py files and packages, and nothing else.

    A project also holds .env, .git and keys; those stay outside.
    """
    return sorted(
        str(entry)
        for entry in root.iterdir()
        if not entry.is_symlink()
        and ((entry.suffix == ".py" and entry.is_file()) or (entry / "__init__.py").is_file())
    )
