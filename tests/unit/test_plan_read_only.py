"""Claims of `toolcell.cells.plan`: what the controller would run or read stays as it is."""

import sys

import pytest

from toolcell.errors import CellRefused
from toolcell.model import CellSettings

from .samples import mounts, plan, shown


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
