"""Claims of `toolcell.cells.workspace`: one project may be lent, the machine may not."""

import os
from pathlib import Path

import pytest

from toolcell.cells.workspace import is_shared, resolve_workspace
from toolcell.errors import WorkspaceError


@pytest.mark.parametrize("place", ["/", "/tmp", "/etc", "/usr", "/proc", "/proc/self", "/dev/shm"])
def test_a_workspace_that_is_the_machine_is_refused(home, place):
    with pytest.raises(WorkspaceError):
        resolve_workspace(Path(place))


def test_the_home_directory_is_refused_as_a_workspace_also_through_a_link(home, tmp_path):
    (tmp_path / "link").symlink_to(home)
    for place in (home, tmp_path / "link", home / ".ssh" / ".."):
        with pytest.raises(WorkspaceError, match="use a directory below it"):
            resolve_workspace(place)


def test_a_workspace_that_holds_the_home_directory_is_refused(home, tmp_path):
    for place in (home.parent, tmp_path):
        with pytest.raises(WorkspaceError, match="use a directory below it"):
            resolve_workspace(place)


def test_a_workspace_that_is_missing_or_a_file_is_refused_in_words(home):
    (home / "file").touch()
    for place in (home / "nowhere", home / "file"):
        with pytest.raises(WorkspaceError, match="is not a directory"):
            resolve_workspace(place)
    with pytest.raises(WorkspaceError, match="none was given"):
        resolve_workspace(None)


def test_a_workspace_is_resolved_to_its_real_place(workspace, home):
    (home / "link").symlink_to(workspace)
    for place in (workspace, home / "link", workspace / ".." / "project"):
        assert resolve_workspace(place) == workspace


@pytest.mark.parametrize("missing", ["HOME", None])
def test_a_user_without_a_home_directory_can_lend_a_workspace(workspace, monkeypatch, missing):
    if missing:
        monkeypatch.delenv(missing)
    assert resolve_workspace(workspace) == workspace


def test_a_directory_with_the_bit_of_a_group_is_shared_but_for_roots_group(workspace, monkeypatch):
    found = workspace.stat()
    assert not is_shared(workspace)
    assert not is_shared(None)
    for group, shared in ((1234, True), (0, False)):
        fields = list(found)
        fields[0], fields[5] = found.st_mode | 0o2000, group
        monkeypatch.setattr(Path, "stat", lambda self, f=fields, **_: os.stat_result(f))
        assert is_shared(workspace) is shared
