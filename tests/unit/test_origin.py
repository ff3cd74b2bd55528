"""Claims of `toolcell.registry.origin`: where a cell finds a function, and what it has to see."""

import importlib
import sys
import sysconfig
import textwrap
from pathlib import Path

import pytest

from toolcell.errors import RegistrationError
from toolcell.registry.origin import locate

from . import sample_tools

_FUNCTION = "def f(x: int) -> int:\n    return x\n"


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A directory on the import path, with more in it than code."""
    monkeypatch.syspath_prepend(tmp_path)
    package = tmp_path / "origin_package" / "inner"
    package.mkdir(parents=True)
    for place in (package.parent, package):
        (place / "__init__.py").write_text(_FUNCTION)
    (package / "deep.py").write_text(_FUNCTION)
    (tmp_path / "origin_module.py").write_text(_FUNCTION)
    for name in (".env", "data.json", "key.pem"):
        (tmp_path / name).touch()
    for name in (".git", "no_package"):
        (tmp_path / name).mkdir()
    (tmp_path / "no_package" / "script.py").touch()
    (tmp_path / "link.py").symlink_to("/etc/passwd")
    (tmp_path / "directory.py").mkdir()
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("origin_")]:
        del sys.modules[name]


def imported(name):
    return importlib.import_module(name).f


@pytest.mark.parametrize(
    "module",
    ["origin_module", "origin_package", "origin_package.inner", "origin_package.inner.deep"],
)
def test_a_module_at_any_depth_is_found_from_the_root_of_its_import(project, module):
    handler = locate(imported(module))
    assert (handler.module, handler.function, handler.file) == (module, "f", None)
    assert handler.root == str(project)


def test_a_cell_sees_the_python_beside_a_tool_and_nothing_else(project):
    code = [Path(path).name for path in locate(imported("origin_module")).code]
    assert code == ["origin_module.py", "origin_package"]
    assert {".env", ".git", "key.pem", "link.py"} < {path.name for path in project.iterdir()}, (
        "the control"
    )


def test_a_module_that_every_cell_has_brings_no_code_along():
    for function in (textwrap.dedent, pytest.raises):
        handler = locate(function)
        assert (handler.root, handler.code) == (None, ())
    assert locate(sample_tools.add).code, "the control"


def test_a_function_of_a_built_in_module_is_named_without_a_file():
    handler = locate(sys.exc_info)
    assert (handler.module, handler.function, handler.root) == ("sys", "exc_info", None)


def test_a_module_below_a_link_is_lent_at_its_real_place(project, tmp_path_factory, monkeypatch):
    link = tmp_path_factory.mktemp("links") / "link"
    link.symlink_to(project)
    monkeypatch.syspath_prepend(link)
    handler = locate(imported("origin_package.inner.deep"))
    assert handler.root == str(project)


def test_what_has_no_name_is_no_function():
    with pytest.raises(RegistrationError, match="is not a function; move it"):
        locate(sample_tools.CallableObject())


def test_a_function_whose_module_is_gone_is_refused(project, monkeypatch):
    function = imported("origin_module")
    monkeypatch.delitem(sys.modules, "origin_module")
    with pytest.raises(RegistrationError, match="interactive session"):
        locate(function)


def test_the_standard_library_is_a_part_of_the_interpreter():
    assert locate(sysconfig.get_path).root is None
