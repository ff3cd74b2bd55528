"""Claims of `toolcell.cells.lending`: what is lent, and what stays as the controller reads it."""

import sys
from pathlib import Path

import pytest

import sandbox_workers
import toolcell
from toolcell.cells import lending
from toolcell.errors import CellRefused, ImportPathWarning
from toolcell.model import CellSettings

from .samples import mounts, plan, shown


def test_the_home_directory_and_what_lies_beside_the_workspace_are_not_there(workspace, home):
    made = plan(workspace)
    (home / "other").mkdir()
    assert shown(made, workspace / "file").target == str(workspace)
    for place in (home, home / ".ssh", home / "other", home.parent):
        assert shown(made, place) is None


@pytest.mark.parametrize(("setting", "writable"), [("rw", True), ("ro", False)])
def test_the_workspace_is_at_its_real_path_as_the_policy_says(workspace, setting, writable):
    link = workspace.parent / "link"
    link.symlink_to(workspace)
    made = plan(link, CellSettings(workspace=setting))
    assert mounts(made)[str(workspace)].writable is writable
    assert mounts(made)[str(workspace)].owned
    assert made.directory == str(workspace)


def test_without_a_workspace_nothing_is_writable(workspace):
    for place in (workspace, None):
        made = plan(place, CellSettings(workspace="none"))
        assert not any(mount.writable for mount in made.mounts)
        assert shown(made, workspace) is None
        assert made.directory == "/tmp"


def test_only_the_workspace_is_writable(workspace):
    made = plan(workspace)
    assert [mount.target for mount in made.mounts if mount.writable] == [str(workspace)]


def test_the_interpreter_and_both_packages_are_there_read_only(workspace):
    made = plan(workspace)
    places = [Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).resolve()]
    places += [Path(package.__file__).parent for package in (toolcell, sandbox_workers)]
    for place in places:
        assert shown(made, place.resolve()).writable is False
    for package in (toolcell, sandbox_workers):
        assert str(Path(package.__file__).parent.parent) in made.python_path


def test_a_virtual_environment_inside_the_workspace_stays_read_only_and_pinned(
    workspace, monkeypatch
):
    venv = workspace / "deep" / "er" / ".venv"
    (venv / "bin").mkdir(parents=True)
    monkeypatch.setattr(sys, "prefix", str(venv))
    found = mounts(plan(workspace))
    assert found[str(venv)].writable is False
    # A mount point cannot be renamed, so its parents cannot be moved away from under it.
    assert found[str(workspace / "deep")].writable
    assert found[str(workspace / "deep" / "er")].writable
    read_only = plan(workspace, CellSettings(workspace="ro"))
    assert not any(mount.writable for mount in read_only.mounts)


def test_the_policy_file_inside_the_workspace_is_protected(workspace):
    policy = workspace / "conf" / "policy.toml"
    policy.parent.mkdir()
    policy.touch()
    made = plan(workspace, protected=[str(policy)])
    assert mounts(made)[str(policy)].writable is False
    assert mounts(made)[str(policy.parent)].writable
    assert shown(made, workspace / "conf" / "other").writable


def test_a_protected_file_outside_the_workspace_is_not_lent(workspace, home):
    policy = home / "policy.toml"
    policy.touch()
    assert shown(plan(workspace, protected=[str(policy)]), policy) is None


def test_a_protected_link_in_the_workspace_is_refused_by_its_name(workspace, home):
    (home / "policy.toml").touch()
    link = workspace / "policy.toml"
    link.symlink_to(home / "policy.toml")
    with pytest.raises(CellRefused, match=f"the link {link} in the workspace") as caught:
        plan(workspace, protected=[str(link)])
    assert "name the file itself" in caught.value.remedy


def test_what_the_controller_imported_from_the_workspace_is_read_only(workspace, monkeypatch):
    (workspace / "pkg").mkdir()
    for name in ("pkg/__init__.py", "pkg/deep.py", "alone.py", "free.py"):
        (workspace / name).touch()
    for name, file in {"pkg.deep": "pkg/deep.py", "alone": "alone.py"}.items():
        module = type(sys)(name)
        module.__file__ = str(workspace / file)
        monkeypatch.setitem(sys.modules, name, module)
    made = plan(workspace)
    for name in ("pkg/deep.py", "pkg/__pycache__", "alone.py", "__pycache__/alone.pyc"):
        assert shown(made, workspace / name).writable is False
    assert shown(made, workspace / "free.py").writable


def test_a_program_that_was_read_from_a_pipe_is_no_file_to_be_kept(workspace, monkeypatch):
    monkeypatch.chdir(workspace)
    module = type(sys)("piped")
    monkeypatch.setitem(sys.modules, "piped", module)
    module.__file__ = "<stdin>"
    assert not [name for name in mounts(plan(workspace)) if "<stdin>" in name]
    module.__file__ = str(workspace / "gone.py")  # the control: a file, which vanished
    with pytest.raises(CellRefused, match="is not there any more"):
        plan(workspace)


def test_code_of_tools_is_lent_read_only_and_nothing_beside_it(workspace, home):
    code = home / "tools" / "mine.py"
    code.parent.mkdir()
    code.touch()
    made = plan(workspace, code=[str(code)])
    assert mounts(made)[str(code)].writable is False
    assert shown(made, code.parent / ".env") is None


def test_read_lends_read_only_also_inside_the_workspace(workspace, home):
    for place in (home / "data", workspace / "fixed"):
        place.mkdir()
    made = plan(workspace, CellSettings(read=("~/data", str(workspace / "fixed"))))
    assert shown(made, home / "data" / "x").writable is False
    assert shown(made, workspace / "fixed" / "x").writable is False


@pytest.mark.parametrize("place", ["/no/such/place", "~nosuchuser/x"])
def test_read_of_what_is_not_there_is_refused_with_the_remedy(workspace, place):
    with pytest.raises(CellRefused, match=f"{place} is .* does not exist; correct `read`"):
        plan(workspace, CellSettings(read=(place,)))


def test_a_cache_of_compiled_code_that_is_a_link_is_refused(workspace, home, monkeypatch):
    (workspace / "alone.py").touch()
    (workspace / "__pycache__").symlink_to(home)
    module = type(sys)("alone")
    module.__file__ = str(workspace / "alone.py")
    monkeypatch.setitem(sys.modules, "alone", module)
    with pytest.raises(CellRefused, match="__pycache__ is a symbolic link"):
        plan(workspace)


def test_passwords_of_package_indexes_beside_the_interpreter_are_hidden(tmp_path, monkeypatch):
    for prefix in ("venv", "base"):
        (tmp_path / prefix).mkdir()
        monkeypatch.setattr(sys, "prefix" if prefix == "venv" else "base_prefix", tmp_path / prefix)
    assert lending.hidden_files() == []
    (tmp_path / "venv" / "pip.conf").touch()
    (tmp_path / "base" / "pip.conf").symlink_to(tmp_path / "venv" / "pip.conf")
    assert set(lending.hidden_files()) == {str(tmp_path / "venv" / "pip.conf")}


@pytest.mark.parametrize(("setting", "warned"), [("rw", True), ("ro", False), ("none", False)])
def test_a_workspace_that_this_program_imports_from_is_warned_of(
    workspace, monkeypatch, setting, warned
):
    monkeypatch.setattr(sys, "path", [str(workspace), *sys.path])
    made = CellSettings(workspace=setting)
    if warned:
        with pytest.warns(ImportPathWarning, match="start Python with -P"):
            plan(workspace, made)
    else:
        plan(workspace, made)


def test_what_comes_after_the_standard_library_is_not_warned_of(workspace, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, str(workspace)])
    plan(workspace)
