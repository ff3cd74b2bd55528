"""Claims of `toolcell.declare`: a note on a plain function, and nothing else."""

import ast
import dataclasses
import sys
from pathlib import Path

import pytest

from toolcell import declare
from toolcell.declare import Declaration, ToolError, tool


def plain(x: int) -> int:
    return x


def test_a_declared_function_stays_the_plain_function_that_it_was():
    assert tool(plain) is plain
    assert tool(timeout=5)(plain) is plain
    assert plain(3) == 3


def test_bare_and_called_without_options_leave_the_same_note():
    tool(plain)
    bare = plain.__toolcell__
    tool()(plain)
    assert plain.__toolcell__ == bare == Declaration()


def test_a_note_holds_what_was_said_and_cannot_be_changed():
    tool(name="other", timeout=2, idempotent=True)(plain)
    note = plain.__toolcell__
    assert (note.name, note.timeout, note.idempotent, note.isolation) == ("other", 2, True, "cell")
    with pytest.raises(dataclasses.FrozenInstanceError):
        note.isolation = "inline"


def test_an_option_that_does_not_exist_is_an_error_where_it_is_written():
    with pytest.raises(TypeError, match="time_out"):
        tool(time_out=5)
    with pytest.raises(TypeError, match="no option `idempotnt`; did you mean `idempotent`"):
        tool(idempotnt=True)
    with pytest.raises(TypeError, match="takes its options by name, and 'fetch' has none"):
        tool("fetch")


def test_a_tools_own_no_has_a_message_and_a_hint():
    error = ToolError("no such city", hint="try another")
    assert (str(error), error.hint, error.is_tool_error) == ("no such city", "try another", True)
    assert ToolError("no").hint == ""


def test_a_tools_module_pays_for_the_standard_library_only():
    tree = ast.parse(Path(declare.__file__).read_text())
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not any(isinstance(node, ast.Import) for node in ast.walk(tree))
    assert {name.split(".")[0] for name in imported} <= sys.stdlib_module_names
