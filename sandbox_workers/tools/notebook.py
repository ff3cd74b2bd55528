"""Source text run as a cell of a notebook is: in a namespace, and its last value shown.

What it raises passes through; `sandbox_workers.tracebacks` shows it with the lines of the text.
"""

import _ast
from types import CodeType
from typing import Any

from sandbox_workers import tracebacks
from sandbox_workers.tools import values

CODE = "<code>"
"""The file name that tracebacks give the text."""

_AWAITS = 0x2000  # ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, without the pages of ast
_CO_COROUTINE = 0x80  # inspect.CO_COROUTINE
_WRITES = ("write", "write_text", "write_bytes")


def run(source: str, namespace: dict[str, Any], name: str = CODE) -> None:
    """Run the text; print the value of a last expression, unless it is None or kept silent.

    A semicolon at its end keeps it silent, and so is what was written by `write`: its count would
    stand in the middle of the output. What awaits outside of a function runs in a loop of its own.
    """
    tracebacks.remember(name, source)
    body, last = _compiled(source, name)
    _evaluated(body, namespace)
    if last is not None:
        value = _evaluated(last, namespace)
        if value is not None:
            print(values.shown(value))


def _evaluated(code: CodeType, namespace: dict[str, Any]) -> Any:
    value = eval(code, namespace)  # noqa: S307  # what this is for
    if code.co_flags & _CO_COROUTINE:
        import asyncio  # late: few programs await, and each cell would pay

        return asyncio.run(value)
    return value


def _compiled(source: str, name: str) -> tuple[CodeType, CodeType | None]:
    """The text without its last expression, and that."""
    tree = compile(source, name, "exec", _ast.PyCF_ONLY_AST | _AWAITS, dont_inherit=True)
    if not isinstance(tree, _ast.Module):
        raise AssertionError("a module is compiled to a module")
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, _ast.Expr) or _is_silent(source, last):
        return compile(source, name, "exec", _AWAITS, dont_inherit=True), None
    tree.body.pop()
    body = compile(tree, name, "exec", _AWAITS, dont_inherit=True)
    expression = _ast.Expression(last.value)
    return body, compile(expression, name, "eval", _AWAITS, dont_inherit=True)


def _is_silent(source: str, last: _ast.Expr) -> bool:
    match last.value:
        case _ast.Call(func=_ast.Attribute(attr=name)) if name in _WRITES:
            return True
    line = source.encode().splitlines()[(last.end_lineno or 1) - 1]
    return line[last.end_col_offset or 0 :].lstrip().startswith(b";")
