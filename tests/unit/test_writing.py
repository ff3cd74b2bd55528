"""Claims of write_file: all at once or not at all, and what it keeps of the file that was there."""

import errno
import os
import stat
import struct
from pathlib import Path

import pytest

from sandbox_workers.tools import ToolError, replacing
from sandbox_workers.tools.encoding import load
from sandbox_workers.tools.writing import write_file


@pytest.fixture(autouse=True)
def workspace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_new_file_is_written_whole():
    assert write_file("new.txt", "é\n") == "created new.txt (3 bytes)"
    assert Path("new.txt").read_bytes() == "é\n".encode()
    write_file("empty", "")
    assert Path("empty").read_bytes() == b""


def test_a_new_file_has_the_mode_that_any_program_would_give_it():
    before = os.umask(0o027)
    try:
        write_file("new", "x")
    finally:
        os.umask(before)
    assert stat.S_IMODE(Path("new").stat().st_mode) == 0o640


@pytest.mark.parametrize("mode", [0o644, 0o755, 0o600, 0o400, 0o6755])
def test_the_mode_is_kept(mode):
    Path("old").write_text("old")
    Path("old").chmod(mode)
    assert f"kept mode {mode:o}" in write_file("old", "new")
    assert stat.S_IMODE(Path("old").stat().st_mode) == mode


def test_owner_and_group_are_kept_where_they_can_be():
    if os.geteuid() != 0:
        pytest.skip("only root gives files away")
    Path("old").write_text("old")
    os.chown("old", 1234, 2345)
    write_file("old", "new")
    assert (Path("old").stat().st_uid, Path("old").stat().st_gid) == (1234, 2345)


def test_an_owner_that_cannot_be_kept_is_told(monkeypatch):
    def refuse(*_):
        raise PermissionError(errno.EPERM, "no")

    Path("old").write_text("old")
    real = os.fstat

    class Another:
        """The status of a file that another made."""

        def __init__(self, status):
            self._status = status

        def __getattr__(self, name):
            return 4711 if name == "st_uid" else getattr(self._status, name)

    monkeypatch.setattr(replacing.os, "fchown", refuse)
    monkeypatch.setattr(replacing.os, "fstat", lambda fd: Another(real(fd)))
    assert "its owner or group could not be kept" in write_file("old", "new")


@pytest.mark.parametrize(
    ("before", "content", "after"),
    [
        (b"a\r\nb\r\n", "x\ny\n", b"x\r\ny\r\n"),
        (b"a\r\nb\r\n", "x\r\ny\r\n", b"x\r\ny\r\n"),
        (b"a\nb\n", "x\r\ny\r\n", b"x\r\ny\r\n"),
        (b"a\r\nb\n", "x\ny\n", b"x\ny\n"),
        (b"a\r\nb\r\n", "x", b"x"),
        (b"", "x\n", b"x\n"),
    ],
)
def test_line_endings_are_kept_where_the_content_brings_none(before, content, after):
    Path("f").write_bytes(before)
    said = write_file("f", content)
    assert Path("f").read_bytes() == after
    assert ("CRLF" in said) is (content.count("\n") > 0 and after != content.encode())


@pytest.mark.parametrize("codec", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32-be"])
def test_the_encoding_and_the_mark_are_kept(codec):
    mark = "" if codec in ("utf-8-sig", "utf-16") else "\ufeff"
    Path("f").write_bytes(f"{mark}old\r\n".encode(codec))
    assert "with a byte-order mark" in write_file("f", "nëw\n")
    assert Path("f").read_bytes() == f"{mark}nëw\r\n".encode(codec)
    write_file("f", "\ufeffagain\n")
    assert Path("f").read_bytes() == f"{mark}again\r\n".encode(codec)


def test_what_was_no_utf8_is_said_to_have_become_it():
    Path("f").write_bytes(b"caf\xe9\n")
    assert "was not all UTF-8" in write_file("f", "café\n")
    Path("f").write_bytes(b"\0\1")
    assert "was binary" in write_file("f", "text")


def test_the_same_content_is_not_written_again():
    write_file("f", "x")
    before = Path("f").stat()
    assert "nothing was written" in write_file("f", "x")
    assert Path("f").stat().st_ino == before.st_ino


def test_a_link_inside_the_workspace_stays_a_link():
    Path("target").write_text("old")
    Path("link").symlink_to("target")
    write_file("link", "new")
    assert Path("link").is_symlink()
    assert Path("target").read_text() == "new"
    Path("early").symlink_to("late")
    write_file("early", "made")
    assert Path("late").read_text() == "made"


def test_the_other_names_of_a_file_keep_the_old_content(tmp_path):
    Path("f").write_text("old")
    os.link("f", "other")
    assert "the old content stays under 1 other hard link of it" in write_file("f", "new")
    assert Path("other").read_text() == "old"


def test_missing_directories_are_made_on_request_only():
    with pytest.raises(ToolError, match="its directory d/e does not exist") as refusal:
        write_file("d/e/f", "x")
    assert "`parents`" in refusal.value.hint
    assert not Path("d").exists()
    assert write_file("d/e/f", "x", parents=True) == "created d/e/f (1 byte), and the directory d/e"


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("d", "d is a directory"),
        (".", "is a directory"),
        ("none/new.txt", "its directory none does not exist"),
        ("f/new.txt", "f is not a directory"),
        ("f/x/new.txt", "f is not a directory"),
        ("new/", "the name of a directory"),
        ("x" * 300, "too long"),
    ],
)
@pytest.mark.parametrize("parents", [False, True])
def test_writing_says_clearly_what_went_wrong(path, words, parents):
    if parents and path.startswith("none"):
        return
    Path("d").mkdir()
    Path("f").write_text("x")
    with pytest.raises(ToolError, match=words):
        write_file(path, "x", parents=parents)
    assert sorted(each.name for each in Path().iterdir()) == ["d", "f"]


def _full(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture(params=["nameless", "named"])
def staging(request, monkeypatch):
    """Both ways of writing beside a file: without a name, and where there is none, with one."""
    if request.param == "named":
        real = os.open

        def without_nameless(path, flags, *rest, **options):
            if flags & os.O_TMPFILE == os.O_TMPFILE:
                raise OSError(errno.EOPNOTSUPP, "not here")
            return real(path, flags, *rest, **options)

        monkeypatch.setattr(replacing.os, "open", without_nameless)
    return request.param


@pytest.mark.parametrize("step", ["write", "fchmod", "rename"])
@pytest.mark.parametrize("there", [True, False])
def test_a_write_that_fails_leaves_what_was_there_and_nothing_else(
    staging, step, there, monkeypatch
):
    if there:
        Path("f").write_text("old")
    elif step == "fchmod":
        return
    with monkeypatch.context() as patched:
        patched.setattr(replacing.os, step, _full)
        with pytest.raises(ToolError, match="no space left"):
            write_file("f", "new")
        if not there:
            with pytest.raises(ToolError, match="no space left"):
                write_file("deep/er/f", "new", parents=True)
    assert [each.name for each in Path().rglob("*")] == (["f"] if there else [])
    assert not there or Path("f").read_text() == "old"


def test_a_file_is_replaced_in_both_ways(staging):
    write_file("f", "one")
    write_file("f", "two")
    assert Path("f").read_text() == "two"
    assert [each.name for each in Path().iterdir()] == ["f"]


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY])
@pytest.mark.parametrize("step", ["open", "rename"])
def test_where_a_directory_lets_no_file_be_replaced_it_is_written_over(number, step, monkeypatch):
    Path("f").write_text("old and longer")
    inode = Path("f").stat().st_ino
    real = os.open

    def refuse(*_, **__):
        raise OSError(number, "no")

    def refuse_new(path, flags, *rest, **options):
        if flags & os.O_TMPFILE == os.O_TMPFILE or flags & os.O_CREAT:
            refuse()
        return real(path, flags, *rest, **options)

    with monkeypatch.context() as patched:
        patched.setattr(replacing.os, step, refuse_new if step == "open" else refuse)
        assert "written over in place" in write_file("f", "new")
        with pytest.raises(ToolError):
            write_file("another", "x")
    assert (Path("f").read_text(), Path("f").stat().st_ino) == ("new", inode)
    assert [each.name for each in Path().iterdir()] == ["f"]


def test_a_file_that_is_too_large_to_change_is_told():
    with Path("large").open("wb") as file:
        file.truncate(33 * 1024**2)
    with pytest.raises(ToolError, match="are not changed in memory"):
        load(Path("large"), "large")


def _tagged(name):
    try:
        os.setxattr(name, "user.note", b"kept")
    except OSError:
        pytest.skip("this file system has no extended attributes")


def test_extended_attributes_stay(workspace):
    Path("f").write_text("old")
    _tagged("f")
    assert "attribute" not in write_file("f", "new")
    assert os.getxattr("f", "user.note") == b"kept"


def test_an_access_list_stays_with_the_mode_that_it_makes(workspace):
    Path("f").write_text("old")
    Path("f").chmod(0o640)
    # Version 2; the owner rw-, user 4321 r--, the group r--, the mask r--, others ---.
    rows = [(1, 6, -1), (2, 4, 4321), (4, 4, -1), (16, 4, -1), (32, 0, -1)]
    acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *row) for row in rows)
    try:
        os.setxattr("f", "system.posix_acl_access", acl)
    except OSError:
        pytest.skip("this file system has no access lists")
    write_file("f", "new")
    assert os.getxattr("f", "system.posix_acl_access") == acl
    assert stat.S_IMODE(Path("f").stat().st_mode) == 0o640


def test_an_attribute_that_cannot_be_kept_is_said_and_the_content_written(workspace, monkeypatch):
    Path("f").write_text("old")
    _tagged("f")

    def refuse(*_, **__):
        raise PermissionError

    monkeypatch.setattr(os, "setxattr", refuse)
    assert "it lost 1 extended attribute" in write_file("f", "new")
    assert Path("f").read_text() == "new"
