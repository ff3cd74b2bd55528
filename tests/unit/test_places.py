"""Claims of paths: what leads where in the workspace, for every file tool, and what is said.

The cases are those that file servers for models test, and some of their advisories.
"""

import os
import socket
from pathlib import Path

import pytest

from sandbox_workers.tools import ToolError
from sandbox_workers.tools.editing import edit_file
from sandbox_workers.tools.moving import delete, move
from sandbox_workers.tools.patching import apply_patch
from sandbox_workers.tools.places import entry, existing_directory, inside, near_names, relative
from sandbox_workers.tools.reading import read_file
from sandbox_workers.tools.writing import write_file


@pytest.fixture(autouse=True)
def ground(tmp_path, monkeypatch):
    """A workspace with links in it, a sibling of nearly its name, and a secret beside it."""
    place = tmp_path / "work"
    (place / "src" / "deep").mkdir(parents=True)
    (place / "a.txt").write_text("inside\n")
    (place / "src" / "b.txt").write_text("inside\n")
    for directory in ("work-evil", "work2", "outside"):
        (tmp_path / directory).mkdir()
        (tmp_path / directory / "secret").write_text("secret\n")
    links = {
        "to-file": "../outside/secret",
        "to-file-absolute": str(tmp_path / "outside/secret"),
        "to-directory": "../outside",
        "to-nothing": "../outside/new",
        "to-no-directory": "../outside/no/new",
        "one": "two",
        "two": "src/three",
        "src/three": "../../outside/secret",
        "loop": "loop",
        "round": "about",
        "about": "round",
        "to-root": "/",
        "inner": "a.txt",
        "inner-directory": "src",
        "self": ".",
        "up-and-back": "../work/a.txt",
    }
    for name, target in links.items():
        (place / name).symlink_to(target)
    monkeypatch.chdir(place)
    return place


OUTSIDE = [
    "..",
    "../",
    "/",
    "/etc/passwd",
    "../outside/secret",
    "../work-evil/secret",
    "../work2/secret",
    "{work}-evil/secret",
    "{work}2",
    "{work}.bak/x",
    "{work}/../outside/secret",
    "{work}/src/../../work2/secret",
    "{work}/./../outside/secret",
    "{work}/../work/../../etc",
    "src/../../outside/secret",
    "./../outside/secret",
    "x/../../outside/secret",
    "a/" * 1000 + "../" * 1001 + "outside/secret",
    "to-file",
    "to-file-absolute",
    "to-directory/secret",
    "to-directory/new",
    "to-directory/../outside/secret",
    "inner-directory/../../outside/secret",
    "to-nothing",
    "to-no-directory",
    "one",
    "two",
    "to-root/etc/passwd",
    "self/self/../../outside/secret",
]

INSIDE = {
    "a.txt": "a.txt",
    "{work}/a.txt": "a.txt",
    "{work}//src///b.txt": "src/b.txt",
    "./a.txt": "a.txt",
    "src/../a.txt": "a.txt",
    "src/./b.txt": "src/b.txt",
    "../work/a.txt": "a.txt",
    "{work}/../work/a.txt": "a.txt",
    "inner": "a.txt",
    "inner-directory/b.txt": "src/b.txt",
    "inner-directory/../a.txt": "a.txt",
    "self/self/a.txt": "a.txt",
    "up-and-back": "a.txt",
}

PLAIN = [
    "~",
    "~root",
    "~/x",
    "$HOME",
    "%2e%2e",
    "%2e%2e%2foutside",
    "..%2foutside",
    "file%20name",
    "report_50%.pdf",
    "my project (v2)",
    "a b",
    " leading",
    "...",
    "....",
    "..name",
    "name..",
    "na..me",
    ".hidden",
    "-r",
    "--help",
    "C:\\Users\\x",
    "..\\outside\\secret",
    "\\\\server\\share",
    "C:/x",
    "café",
    "cafe\u0301",
    "日本語",
    "🎉",
    "A.TXT",
    "a\nb",
    "a\tb",
    "*",
    "a?[b]{c}",
    "nul",
    "CON",
    "a:b",
    "x" * 255,
    "a\u202eb",
]


@pytest.mark.parametrize("path", OUTSIDE, ids=lambda path: path[:40])
def test_what_leads_out_is_named_and_refused_by_every_tool(ground, path, tmp_path):
    path = path.format(work=ground)
    calls = [
        lambda: read_file(path),
        lambda: write_file(path, "evil", parents=True),
        lambda: edit_file(path, "secret", "evil"),
        lambda: existing_directory(path),
        lambda: inside(path),
    ]
    for call in calls:
        with pytest.raises(ToolError, match="outside the workspace") as refusal:
            call()
        assert str(ground) in refusal.value.hint
    for target in ("outside", "work-evil", "work2"):
        assert [each.name for each in (tmp_path / target).iterdir()] == ["secret"]
        assert (tmp_path / target / "secret").read_text() == "secret\n"


_THEMSELVES = ("to-file", "to-file-absolute", "to-nothing", "to-no-directory", "one", "two")


@pytest.mark.parametrize(
    "path", [path for path in OUTSIDE if path not in _THEMSELVES], ids=lambda path: path[:40]
)
def test_no_name_outside_is_moved_deleted_or_patched(ground, path, tmp_path):
    path = path.format(work=ground)
    calls = [
        lambda: delete(path, recursive=True),
        lambda: move(path, "mine"),
        lambda: move("a.txt", path, overwrite=True, parents=True),
        lambda: apply_patch(f"--- /dev/null\n+++ {path}\n@@ -0,0 +1 @@\n+evil\n"),
        lambda: apply_patch(f"--- {path}\n+++ {path}\n@@ -1 +1 @@\n-secret\n+evil\n"),
        lambda: apply_patch(
            f"diff --git a/a.txt b/x\nsimilarity index 100%\nrename from a.txt\nrename to {path}\n"
        ),
    ]
    for call in calls:
        with pytest.raises(ToolError, match=r"outside the workspace|is the workspace itself"):
            call()
    assert (ground / "a.txt").read_text() == "inside\n"
    assert [each.name for each in (tmp_path / "outside").iterdir()] == ["secret"]


@pytest.mark.parametrize("path", [*_THEMSELVES, "to-directory", "loop", "round"])
def test_a_link_is_moved_and_deleted_itself_wherever_it_leads(ground, path, tmp_path):
    target = Path(path).readlink()
    move(path, "moved")
    assert Path("moved").readlink() == target
    assert not os.path.lexists(path)
    assert "the link" in delete("moved", recursive=True)
    assert not os.path.lexists("moved")
    assert (tmp_path / "outside" / "secret").read_text() == "secret\n"


@pytest.mark.parametrize("path", [*_THEMSELVES, "inner"])
def test_a_patch_does_not_follow_a_link(ground, path, tmp_path):
    with pytest.raises(ToolError, match="is a link; patch the file that it leads to"):
        apply_patch(f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-secret\n+evil\n")
    with pytest.raises(ToolError, match="exists already"):
        apply_patch(f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+evil\n")
    assert (tmp_path / "outside" / "secret").read_text() == "secret\n"


@pytest.mark.parametrize(("path", "name"), INSIDE.items())
def test_what_leads_into_the_workspace_is_read_and_written(ground, path, name):
    path = path.format(work=ground)
    assert read_file(path) == "inside\n"
    edit_file(path, "inside", "edited")
    assert (ground / name).read_text() == "edited\n"
    write_file(path, "written\n")
    assert (ground / name).read_text() == "written\n"
    assert relative(inside(path)) == name


@pytest.mark.parametrize("name", PLAIN, ids=ascii)
def test_a_name_with_a_meaning_elsewhere_is_a_plain_name(ground, name):
    write_file(name, "x\n", parents=True)
    assert (ground / name).read_text() == "x\n"
    assert read_file(name) == "x\n"
    edit_file(name, "x", "y")
    move(name, "moved")
    assert (ground / "moved").read_text() == "y\n"
    move("moved", name)
    assert delete(name).startswith("deleted ")
    assert not (ground / name).exists()


@pytest.mark.parametrize("name", [name for name in PLAIN if not {"\n", "\t"} & {*name}], ids=ascii)
def test_a_patch_takes_such_a_name_as_it_is(ground, name):
    end = "\t" if " " in name else ""
    apply_patch(f"--- /dev/null\n+++ b/{name}{end}\n@@ -0,0 +1 @@\n+x\n")
    assert (ground / name).read_text() == "x\n"


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("", "workspace itself|is a directory"),
        (".", "workspace itself|is a directory"),
        ("{work}", "workspace itself|is a directory"),
        ("{work}/", "workspace itself|is a directory"),
        ("src/..", "workspace itself|is a directory"),
        ("a\0b", "NUL"),
        ("\0", "NUL"),
        ("a.txt\0.png", "NUL"),
        ("../outside/secret\0/a.txt", "NUL"),
        ("a.txt/x", "not a directory"),
        ("x" * 256, "too long"),
        ("d/" * 3000 + "x", "too long"),
        ("\ud800", "not Unicode|does not exist"),
    ],
    ids=lambda value: ascii(value)[:30],
)
def test_what_is_no_file_is_told(ground, path, words):
    path = path.format(work=ground)
    calls = [
        lambda: read_file(path),
        lambda: edit_file(path, "a", "b"),
        lambda: delete(path, recursive=True),
        lambda: move(path, "new"),
    ]
    for call in calls:
        with pytest.raises(ToolError, match=words):
            call()


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("A.TXT", "a.txt"),
        ("a.tx", "a.txt"),
        ("./{work}/A.txt", ""),
        ("{work}/A.txt", "a.txt"),
        ("srcc/b.txt", "src/b.txt"),
        ("Src/deep/none", "src"),
        ("src/B.TXT", "src/b.txt"),
        ("src/../A.txt", "a.txt"),
        ("inner-directory/c.txt", "src/b.txt"),
        ("nothing-alike", ""),
        ("x" * 200, ""),
    ],
)
def test_what_is_not_there_is_answered_with_what_is_like_it(ground, path, meant):
    with pytest.raises(ToolError) as refusal:
        read_file(path.format(work=ground))
    expected = f"did you mean {meant}?" if meant else "list_files shows what is there"
    assert refusal.value.hint == expected


def test_names_that_differ_in_case_only_go_before_others(ground):
    for name in ("README.md", "readme.txt", "Readme.MD"):
        (ground / name).touch()
    with pytest.raises(ToolError) as refusal:
        read_file("readme.md")
    names = refusal.value.hint.removeprefix("did you mean ").removesuffix("?").split(" or ")
    assert sorted(names) == ["README.md", "Readme.MD"]


@pytest.mark.parametrize("path", ["to-directory/secre", "self/../outside/secre", "../outside/x"])
def test_no_name_outside_is_suggested(path, tmp_path):
    with pytest.raises(ToolError) as refusal:
        read_file(path)
    assert "did you mean" not in refusal.value.hint
    assert "outside" not in near_names("to-directory/secre")


@pytest.mark.parametrize("path", ["loop", "round", "loop/x"])
def test_links_in_a_circle_are_told(path):
    for call in (lambda: read_file(path), lambda: write_file(path, "x")):
        with pytest.raises(ToolError, match=r"leads back to itself|symbolic links|does not exist"):
            call()


def test_a_name_of_bytes_that_are_no_text_can_be_named(ground):
    name = os.fsdecode(b"caf\xe9")
    (ground / name).write_text("x\n")
    assert read_file(name) == "x\n"
    delete(name)
    assert not (ground / name).exists()


@pytest.mark.parametrize("kind", ["a pipe", "a socket", "a device"])
def test_what_would_block_or_is_no_file_is_refused(ground, kind, monkeypatch):
    monkeypatch.chdir(ground)
    if kind == "a pipe":
        os.mkfifo("odd")
    elif kind == "a socket":
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("odd")
    else:
        monkeypatch.chdir("/dev")
        (ground / "odd").touch()
    path = "null" if kind == "a device" else "odd"
    for call in (
        lambda: read_file(path),
        lambda: edit_file(path, "a", "b"),
        lambda: write_file(path, "x"),
        lambda: apply_patch(f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-a\n+b\n"),
    ):
        with pytest.raises(ToolError, match="regular file"):
            call()


def test_the_last_name_of_a_path_can_be_a_link_that_is_not_followed(ground):
    assert entry("to-file") == ground / "to-file"
    assert entry("inner-directory/three") == ground / "src/three"
    assert entry("src/") == ground / "src"
    with pytest.raises(ToolError, match="outside"):
        entry("to-directory/secret")
