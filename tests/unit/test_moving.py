"""Claims of move and delete: by the very name, never through a link, and counted."""

import errno
import os
import re
from pathlib import Path

import pytest

from sandbox_workers.tools import ToolError, moving
from sandbox_workers.tools.moving import delete, move


@pytest.fixture(autouse=True)
def workspace(tmp_path, monkeypatch):
    place = tmp_path / "ws"
    (place / "d" / "e").mkdir(parents=True)
    (place / "a.txt").write_text("a")
    (place / "b.txt").write_text("bb")
    (place / "d" / "c.txt").write_text("ccc")
    (place / "d" / "e" / "link").symlink_to(tmp_path / "outside")
    (place / "empty").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "kept").write_text("kept")
    monkeypatch.chdir(place)
    return place


def tree():
    return sorted(str(each) for each in Path().rglob("*"))


def test_a_file_and_a_directory_are_moved():
    assert move("a.txt", "d/new.txt") == "moved a.txt to d/new.txt"
    assert Path("d/new.txt").read_text() == "a"
    move("d", "empty/d")
    assert Path("empty/d/e/link").is_symlink()
    move("b.txt", "x/y/b.txt", parents=True)
    assert Path("x/y/b.txt").read_text() == "bb"


@pytest.mark.parametrize(
    ("source", "destination", "words"),
    [
        ("none", "new", "none does not exist"),
        ("a.txt", "b.txt", "b.txt exists already.*overwrite"),
        ("a.txt", "d", "d is a directory that exists already.*d/a.txt"),
        ("a.txt", "d/", "d/ is a directory that exists already.*d/a.txt"),
        ("a.txt", "a.txt", "are the same"),
        ("a.txt", "d/../a.txt", "are the same"),
        ("d", "d/e/d", "into itself"),
        ("d", "empty", "empty is a directory that exists already"),
        ("a.txt", "none/new", "its directory none does not exist"),
        ("a.txt", "b.txt/new", "b.txt is not a directory"),
        (".", "new", "the workspace itself"),
        ("d/..", "new", "the workspace itself"),
        ("a.txt", ".", "is a directory that exists already"),
        ("a.txt", "x" * 300, "too long"),
    ],
)
def test_a_move_that_cannot_be_is_told_and_changes_nothing(source, destination, words):
    before = tree()
    with pytest.raises(ToolError) as caught:
        move(source, destination)
    said = f"{caught.value} {caught.value.hint}"
    assert re.search(words, said), said
    assert tree() == before


def test_a_file_is_replaced_on_request_and_a_directory_never():
    assert "replaced what was there (2 bytes)" in move("a.txt", "b.txt", overwrite=True)
    assert Path("b.txt").read_text() == "a"
    for source, destination in (("b.txt", "d"), ("d", "b.txt"), ("d", "empty")):
        with pytest.raises(ToolError):
            move(source, destination, overwrite=True)


@pytest.fixture
def two_file_systems(monkeypatch):
    """Let every rename of a name of one's own fail, as between two file systems."""
    real = Path.rename

    def rename(self, target):
        if not self.name.startswith(".toolcell-"):
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        return real(self, target)

    monkeypatch.setattr(Path, "rename", rename)


def test_between_file_systems_it_is_copied_and_then_deleted(two_file_systems):
    Path("a.txt").chmod(0o754)
    move("a.txt", "d/new.txt")
    assert Path("d/new.txt").stat().st_mode & 0o777 == 0o754
    move("d", "empty/d")
    assert Path("empty/d/e/link").readlink().name == "outside"
    assert tree() == [
        "b.txt",
        "empty",
        "empty/d",
        "empty/d/c.txt",
        "empty/d/e",
        "empty/d/e/link",
        "empty/d/new.txt",
    ]


def test_what_cannot_be_copied_is_told_and_stays(two_file_systems):
    os.mkfifo("d/pipe")
    before = tree()
    with pytest.raises(ToolError, match="d to moved: another file system"):
        move("d", "moved")
    assert tree() == before


def test_a_file_a_link_and_an_empty_directory_are_deleted(workspace):
    assert delete("b.txt") == "deleted b.txt (2 bytes)"
    assert delete("d/e/link") == "deleted the link d/e/link, not what it leads to"
    assert delete("d/e/") == "deleted the directory d/e/, which was empty"
    assert (workspace.parent / "outside" / "kept").exists()


def test_a_directory_that_holds_something_is_deleted_on_request_and_counted(workspace):
    with pytest.raises(ToolError, match="d is a directory that holds 2 entries") as caught:
        delete("d")
    assert "`recursive`" in caught.value.hint
    assert Path("d/c.txt").exists()
    said = delete("d", recursive=True)
    assert said.startswith("deleted the directory d (2 files and 1 directory in it, ")
    assert tree() == ["a.txt", "b.txt", "empty"]
    assert (workspace.parent / "outside" / "kept").read_text() == "kept"


@pytest.mark.parametrize("path", [".", "", "d/..", "./"])
def test_the_workspace_itself_is_never_deleted(path):
    before = tree()
    with pytest.raises(ToolError, match="the workspace itself"):
        delete(path, recursive=True)
    assert tree() == before


def test_a_tree_deeper_than_the_stack_is_deleted(workspace):
    at = os.open(".", os.O_RDONLY)
    for _ in range(1200):
        os.mkdir("n", dir_fd=at)
        deeper = os.open("n", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = deeper
    os.close(at)
    assert "1,199 directories in it" in delete("n", recursive=True)
    assert not Path("n").exists()


def test_a_delete_that_stops_half_way_says_what_is_gone(monkeypatch):
    for number in range(5):
        Path(f"d/{number}").touch()
    real = os.unlink

    def unlink(path):
        if str(path).endswith("d/c.txt"):
            raise PermissionError(errno.EPERM, "Operation not permitted", path)
        real(path)

    monkeypatch.setattr(moving.os, "unlink", unlink)
    with pytest.raises(ToolError, match=r"in part: \d files are gone, then d/c.txt: operation not"):
        delete("d", recursive=True)
    assert Path("d/c.txt").exists()
