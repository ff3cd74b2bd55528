"""Claims of the package's front door: every name resolves, and a tool's module pays for little."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import toolcell


@pytest.mark.parametrize("name", toolcell.__all__)
def test_every_exported_name_resolves(name):
    assert getattr(toolcell, name) is not None
    assert name in dir(toolcell)


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = toolcell.Nothing


def test_what_type_checkers_see_is_what_is_exported():
    tree = ast.parse(Path(toolcell.__file__).read_text())
    (block,) = [
        node
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    seen = set()
    for node in block.body:
        assert isinstance(node, ast.ImportFrom)
        for alias in node.names:
            assert alias.asname == alias.name  # an explicit re-export
            seen.add((alias.name, node.module))
    homes = {
        (name, f"toolcell.{home}") for home, names in toolcell._HOMES.items() for name in names
    }
    assert seen == homes
    assert set(toolcell.__all__) == {name for name, _ in homes} | {"__version__"}


def test_a_tools_module_imports_neither_pydantic_nor_asyncio():
    code = (
        "import sys, toolcell\n"
        "from toolcell import ToolError, tool\n"
        "print(*sorted({'pydantic', 'asyncio', 'psutil', 'sandbox_workers'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == ""
