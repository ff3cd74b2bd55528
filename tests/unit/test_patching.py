"""Claims of apply_patch: as git and patch do, all or nothing, and rejects told by hunk."""

import difflib
import errno
import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sandbox_workers.tools import ToolError, replacing
from sandbox_workers.tools.hunks import apply_hunks, occurrences
from sandbox_workers.tools.patches import read_patch
from sandbox_workers.tools.patching import apply_patch

G = "--- a/g.txt\n+++ b/g.txt\n"
TEXT = "".join(f"line {n}\n" for n in range(1, 31))


@pytest.fixture(autouse=True)
def workspace(tmp_path, monkeypatch):
    place = tmp_path / "ws"
    place.mkdir()
    monkeypatch.chdir(place)
    Path("f.txt").write_text(TEXT)
    Path("g.txt").write_text("one\ntwo\nthree\n")
    return place


def diff(before, after, name="f.txt", context=3):
    """A unified diff as difflib makes it, with the line that says that a last line is open."""
    rows = difflib.unified_diff(
        before.splitlines(keepends=True),
        after.splitlines(keepends=True),
        f"a/{name}",
        f"b/{name}",
        n=context,
    )
    return "".join(
        row if row.endswith("\n") else f"{row}\n\\ No newline at end of file\n" for row in rows
    )


def snapshot():
    return {
        str(each): (each.read_bytes(), each.stat().st_mode)
        for each in Path().rglob("*")
        if each.is_file()
    }


def refusal(patch):
    before = snapshot()
    with pytest.raises(ToolError) as caught:
        apply_patch(patch)
    assert snapshot() == before
    return f"{caught.value}\n{caught.value.hint}"


def answer(patch):
    """What the tool says, whether it applies the patch or not."""
    try:
        return apply_patch(patch)
    except ToolError as error:
        return str(error)


def test_several_files_are_changed_made_deleted_and_renamed():
    Path("old.txt").write_text("old\n")
    Path("here.txt").write_text("here\n")
    said = apply_patch(
        diff(TEXT, TEXT.replace("line 2\n", "LINE 2\n"))
        + "diff --git a/new/n.txt b/new/n.txt\nnew file mode 100755\n--- /dev/null\n"
        "+++ b/new/n.txt\n@@ -0,0 +1,2 @@\n+a\n+b\n"
        "diff --git a/old.txt b/old.txt\ndeleted file mode 100644\n--- a/old.txt\n+++ /dev/null\n"
        "@@ -1 +0,0 @@\n-old\n"
        "diff --git a/here.txt b/there/t.txt\nsimilarity index 100%\nrename from here.txt\n"
        "rename to there/t.txt\n"
    )
    assert said.splitlines() == [
        "applied the patch to 4 files",
        "changed f.txt (1 hunk)",
        "created new/n.txt",
        "deleted old.txt",
        "renamed here.txt to there/t.txt",
    ]
    assert Path("f.txt").read_text() == TEXT.replace("line 2\n", "LINE 2\n")
    assert Path("new/n.txt").read_text() == "a\nb\n"
    assert Path("new/n.txt").stat().st_mode & 0o100
    assert not Path("old.txt").exists()
    assert not Path("here.txt").exists()
    assert Path("there/t.txt").read_text() == "here\n"


def test_one_hunk_that_does_not_apply_keeps_all_files_as_they_were():
    said = refusal(
        diff(TEXT, TEXT.replace("line 2\n", "LINE 2\n"))
        + "--- a/g.txt\n+++ b/g.txt\n@@ -1,3 +1,3 @@\n one\n-zwei\n+2\n three\n"
    )
    assert "nothing was changed" in said
    assert "g.txt: hunk 1 (@@ -1,3 +1,3 @@): at line 2" in said
    assert "expected: 'zwei'\n    found:    'two'" in said


def test_every_hunk_that_does_not_apply_is_told():
    patch = (
        "--- a/f.txt\n+++ b/f.txt\n@@ -1,2 +1,2 @@\n line 1\n-LINE 2\n+x\n"
        "@@ -9,2 +9,2 @@\n line 9\n-line 10\n+y\n@@ -20,2 +20,2 @@\n line 20\n-line  21\n+z\n"
        "--- a/none\n+++ b/none\n@@ -1 +1 @@\n-a\n+b\n"
    )
    said = refusal(patch)
    assert "f.txt: hunk 1" in said
    assert "hunk 2" not in said
    assert "hunk 3 (@@ -20,2 +20,2 @@): at line 21, it differs in the white space" in said
    assert "none: it does not exist, and the patch changes it" in said


def test_a_hunk_that_has_moved_is_found_and_its_offset_told():
    patch = diff(TEXT, TEXT.replace("line 20\n", "LINE 20\n"))
    Path("f.txt").write_text("new\nnewer\n" + TEXT)
    said = apply_patch(patch)
    assert "hunk 1 applied at line 19, 2 lines below what it says" in said
    assert Path("f.txt").read_text() == "new\nnewer\n" + TEXT.replace("line 20\n", "LINE 20\n")


def test_hunks_that_moved_together_are_told_once():
    after = TEXT.replace("line 5\n", "LINE 5\n").replace("line 20\n", "LINE 20\n")
    patch = diff(TEXT, after)
    Path("f.txt").write_text("new\n" + TEXT)
    assert apply_patch(patch).count("1 line below") == 1
    assert Path("f.txt").read_text() == "new\n" + after


def test_of_several_places_none_is_guessed():
    Path("f.txt").write_text("x\nsame\n" * 5)
    said = refusal("--- a/f.txt\n+++ b/f.txt\n@@ -40,2 +40,2 @@\n x\n-same\n+new\n")
    assert "stand 5 times, at lines 1, 3, 5, 7, 9" in said
    apply_patch("--- a/f.txt\n+++ b/f.txt\n@@ -5,2 +5,2 @@\n x\n-same\n+new\n")
    assert Path("f.txt").read_text() == "x\nsame\n" * 2 + "x\nnew\n" + "x\nsame\n" * 2


def test_a_patch_that_is_applied_already_is_recognised():
    patch = diff(TEXT, TEXT.replace("line 20\n", "LINE 20\n"))
    apply_patch(patch)
    said = refusal(patch)
    assert "it seems to be applied already: what it makes stands at line 17" in said
    assert said.endswith("\nthere is nothing to do for that file: leave it out of the patch")


_AGAIN = "read the file again, and make the patch from what it holds now"
HINTS = {
    "--- a/../x\n+++ b/../x\n@@ -1 +1 @@\n-a\n+b\n": "use a path inside the workspace, ",
    "--- a/G.TXT\n+++ b/G.TXT\n@@ -1 +1 @@\n-a\n+b\n": "did you mean g.txt?; for a new file",
    "--- /dev/null\n+++ b/g.txt\n@@ -0,0 +1 @@\n+a\n": "to change it, name it on the `---` line",
    f"{G}@@ -1 +1 @@\n-zero\n+1\n": _AGAIN,
    f"{G}@@ -9,0 +9 @@\n+a\n": _AGAIN,
    f"{G}@@ -1,2 +1,2 @@\n-1\n+one\n two\n": "there is nothing to do for that file: leave it out",
    f"{G}@@ -1,2 +1,2 @@\n-1\n+one\n two\n@@ -3 +3 @@\n-3\n+4\n": (
        f"leave out the hunks that are applied already; {_AGAIN}"
    ),
}


@pytest.mark.parametrize("patch", HINTS)
def test_each_failure_has_the_hint_that_fits_it_and_no_other(patch):
    hint = refusal(patch).rpartition("\n")[2]
    assert hint.startswith(HINTS[patch])
    assert (_AGAIN in hint) is (_AGAIN in HINTS[patch])


def test_hints_of_several_failures_are_told_once_each():
    patches = [each for each in HINTS if "zero" in each or "9,0" in each or "../x" in each]
    assert refusal("".join(patches)).rpartition("\n")[2].count("; ") == 1


@pytest.mark.parametrize(
    "header",
    [
        "@@ -2,3 +2,4 @@",
        "@@ -2,9 +2,9 @@",
        "@@ -2 +2 @@",
        "@@ -1,1 +1,1 @@ def f():",
        "@@",
        "@@ ... @@",
    ],
)
def test_wrong_counts_in_a_hunk_do_not_matter(header):
    apply_patch(f"--- a/g.txt\n+++ b/g.txt\n{header}\n one\n-two\n+zwei\n+2\n three\n\n")
    assert Path("g.txt").read_text() == "one\nzwei\n2\nthree\n"


def test_wrong_counts_do_not_swallow_the_next_file():
    apply_patch(
        "--- a/g.txt\n+++ b/g.txt\n@@ -1,9 +1,9 @@\n one\n-two\n+zwei\n"
        "--- a/f.txt\n+++ b/f.txt\n@@ -1,9 +1,9 @@\n-line 1\n+LINE 1\n line 2\n"
    )
    assert Path("g.txt").read_text() == "one\nzwei\nthree\n"
    assert Path("f.txt").read_text().startswith("LINE 1\nline 2\n")


def test_lines_that_look_like_names_of_files_are_lines_of_a_hunk():
    Path("q.sql").write_text("-- a comment\nselect 1;\n")
    patch = diff("-- a comment\nselect 1;\n", "++ another\nselect 1;\n", "q.sql")
    assert "--- a comment\n+++ another\n" in patch
    apply_patch(patch)
    assert Path("q.sql").read_text() == "++ another\nselect 1;\n"


def test_empty_lines_that_lost_their_space_are_context():
    Path("g.txt").write_text("one\n\nthree\n")
    apply_patch("--- a/g.txt\n+++ b/g.txt\n@@ -1,3 +1,3 @@\n one\n\n-three\n+drei\n")
    assert Path("g.txt").read_text() == "one\n\ndrei\n"


def test_what_stands_around_a_patch_is_passed_over():
    patch = diff("one\ntwo\nthree\n", "one\n2\nthree\n", "g.txt")
    apply_patch(f"From 123\nSubject: x\n\n---\n g.txt | 2 +-\n\n{patch}-- \n2.39.5\n\n```\n")
    assert Path("g.txt").read_text() == "one\n2\nthree\n"


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        ("", "holds no unified diff"),
        ("just words\n", "holds no unified diff"),
        ("*** Begin Patch\n*** Update File: f.txt\n", "not a unified diff, but another format"),
        ("@@ -1 +1 @@\n-a\n+b\n", "line 1 of the patch: a hunk before any"),
        ("--- a/f.txt\n@@ -1 +1 @@\n-a\n+b\n", "do not follow each other"),
        ("+++ b/f.txt\n@@ -1 +1 @@\n-a\n+b\n", "do not follow each other"),
        ("--- a/f.txt\n+++ b/g.txt\n@@ -1 +1 @@\n-a\n+b\n", "two files, f.txt and g.txt"),
        ("--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+b\n", "line 1 of the patch: no file"),
        ("--- a/f.txt\n+++ b/f.txt\n@@ -1 +1 @@", "a hunk without lines"),
        ('--- "a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n', "a file name that cannot be read"),
        ('--- "a/\\377"\n+++ "b/\\377"\n@@ -1 +1 @@\n-a\n+b\n', "a file name that cannot be read"),
        ("--- \n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n", "a file name that cannot be read"),
        ("diff --git a/x b/y\nold mode 100644\nnew mode 100755\n", "cannot be told apart"),
        ("diff --git a/f.txt b/f.txt\nindex 1..2\n", "no change of f.txt"),
        ("diff --git a/f.txt b/f.txt\nindex 1..2\nGIT binary patch\n", "a binary change"),
        ("diff --git a/f b/f\nBinary files a/f and b/f differ\n", "a binary change"),
        ("Binary files a/f and b/f differ\n", "a binary change"),
        ("diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n", "a symbolic link"),
        ("diff --git a/l b/l\nnew file mode 160000\n", "a submodule"),
        ("--- /dev/null\n+++ b/g.txt\n@@ -0,0 +1 @@\n+a\n", "g.txt: it exists already"),
        ("--- a/g.txt\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-one\n-two\n", "not hold all of its"),
        ("--- a/none\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n", "none: it does not exist"),
        ("--- a/d\n+++ b/d\n@@ -1 +1 @@\n-a\n+b\n", "d: it is a directory"),
        ("--- a/bin\n+++ b/bin\n@@ -1 +1 @@\n-a\n+b\n", "bin is binary"),
        ("--- a/g.txt\n+++ b/g.txt\n@@\n+a\n", "no line of the file, by which its place could be"),
        ("--- a/g.txt\n+++ b/g.txt\n@@ -9,0 +9 @@\n+a\n", "adds behind line 9, and the file has 3"),
        (f"{G}@@\n-one\n+x\n two\n three\n four\n", "the file ends after line 3"),
        ("--- a/../x\n+++ b/../x\n@@ -0,0 +1 @@\n+a\n", "outside the workspace"),
        ("--- /dev/null\n+++ b/g.txt/x\n@@ -0,0 +1 @@\n+a\n", "could not be written"),
        (f"{G}@@ -3 +3 @@\n-three\n+3\n@@ -1 +1 @@\n-one\n+1\n", "sort the hunks"),
    ],
)  # fmt: skip
def test_what_is_no_patch_or_does_not_apply_is_told(patch, words):
    Path("d").mkdir()
    Path("bin").write_bytes(b"\0")
    assert words in refusal(patch)


@pytest.mark.parametrize(
    "name", ["with space.txt", "tab\there", 'quote"d', "ümläut", "back\\slash"]
)
def test_names_are_read_as_git_writes_them(name, workspace):
    git("init", "-q")
    Path(name).write_text("a\nb\n")
    git("add", ".")
    Path(name).write_text("a\nc\n")
    patch = git("diff")
    git("checkout", "-q", ".")
    apply_patch(patch)
    assert Path(name).read_text() == "a\nc\n"
    assert git("diff") == patch


def git(*words, **options):
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    done = subprocess.run(
        ["git", *words], capture_output=True, check=True, timeout=20, env=environment, **options
    )
    return done.stdout.decode()


def write(files):
    for name, data in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(data)


def tree(place):
    """The files of a work tree, with what git would keep of them."""
    return {
        str(each.relative_to(place)): (each.read_bytes(), bool(each.stat().st_mode & 0o100))
        for each in place.rglob("*")
        if each.is_file() and ".git" not in each.parts
    }


BEFORE = {
    "crlf": b"a\r\nb\r\nc\r\n",
    "bom": b"\xef\xbb\xbfa\nb\n",
    "open": b"a\nb",
    "closed": b"a\nb\n",
    "mixed": b"a\r\nb\nc\r\n",
    "gone": b"x\n",
    "goes/deep/old": TEXT.encode(),
    "moves": TEXT.encode() + b"more\n",
    "run": b"#!/bin/sh\n",
    "empty-goes": b"",
}
AFTER = {
    "crlf": b"a\r\nB\r\nnew\r\nc\r\n",
    "bom": b"\xef\xbb\xbfA\nb\n",
    "open": b"a\nb\n",
    "closed": b"A\nb",
    "mixed": b"a\nb\r\nc\r\nd\n",
    "new/file": b"n\n",
    "new/empty": b"",
    "moved": TEXT.replace("line 7\n", "LINE 7\n").encode() + b"more\n",
}
STYLES = [[], ["--no-prefix"], ["-R"], ["-U0"], ["--src-prefix=i/", "--dst-prefix=w/"]]


@pytest.mark.parametrize("style", STYLES, ids=str)
def test_what_git_says_of_a_change_is_applied_as_git_applies_it(style, workspace):
    """Renames, modes, empty files, CRLF, byte-order marks, open last lines, both ways."""
    write(BEFORE)
    git("init", "-q")
    git("add", ".")
    git("-c", "user.name=x", "-c", "user.email=x", "commit", "-qm", "x")
    git("rm", "-qf", "gone", "empty-goes")
    git("mv", "moves", "moved")
    git("mv", "goes/deep/old", "came")
    write(AFTER)
    Path("run").chmod(0o755)
    git("add", "-A")
    patch = git("diff", "--cached", "-M", *style)
    if "-R" not in style:
        git("reset", "-q", "--hard")
    twin = workspace.parent / "twin"
    shutil.copytree(workspace, twin)
    options = [*(["--unidiff-zero"] * ("-U0" in style)), *(["-p0"] * ("--no-prefix" in style))]
    git("apply", *options, input=patch.encode(), cwd=twin)
    assert tree(twin) != tree(workspace)
    apply_patch(patch)
    assert tree(workspace) == tree(twin)
    assert not Path("goes" if "-R" not in style else "new").exists()


@pytest.mark.parametrize("ending", ["\r\n", "\n"])
def test_a_patch_in_lf_fits_a_file_in_crlf_and_keeps_it(ending):
    text = "a\nb\nc\n".replace("\n", ending)
    Path("f").write_bytes(text.encode())
    said = apply_patch(diff("a\nb\nc\n", "a\nB\nnew\nc\n", "f"))
    assert Path("f").read_bytes() == "a\nB\nnew\nc\n".replace("\n", ending).encode()
    assert ("without regard to white space" in said) is (ending == "\r\n")


def test_a_last_line_without_an_end_need_not_be_marked():
    Path("f").write_text("a\nb")
    apply_patch("--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-a\n+A\n b\n")
    assert Path("f").read_text() == "A\nb"
    apply_patch("--- a/f\n+++ b/f\n@@ -1,2 +1,3 @@\n A\n b\n+c\n")
    assert Path("f").read_text() == "A\nb\nc\n"


def test_a_file_that_is_not_there_is_made_by_hunks_that_only_add():
    assert "created n" in apply_patch("--- a/n\n+++ b/n\n@@ -0,0 +1,2 @@\n+a\n+b\n")
    assert Path("n").read_text() == "a\nb\n"


def test_a_file_can_come_twice_and_names_can_be_changed():
    first = diff("one\ntwo\nthree\n", "1\ntwo\nthree\n", "g.txt")
    second = diff("1\ntwo\nthree\n", "1\ntwo\n3\n", "g.txt")
    apply_patch(first + second)
    assert Path("g.txt").read_text() == "1\ntwo\n3\n"
    apply_patch(
        "diff --git a/f.txt b/g.txt\nrename from f.txt\nrename to g.txt\n"
        "diff --git a/g.txt b/f.txt\nrename from g.txt\nrename to f.txt\n"
    )
    assert Path("f.txt").read_text() == "1\ntwo\n3\n"
    assert Path("g.txt").read_text() == TEXT
    rename = "diff --git a/g.txt b/h\nrename from g.txt\nrename to h\n"
    assert "changes it and then renames it" in refusal(diff(TEXT, f"x\n{TEXT}", "g.txt") + rename)


def test_a_binary_file_is_renamed_and_copied_as_it_is():
    Path("bin").write_bytes(b"\0\xff\r\n\1")
    Path("bin").chmod(0o711)
    apply_patch("diff --git a/bin b/b2\ncopy from bin\ncopy to b2\n")
    apply_patch("diff --git a/bin b/b3\nrename from bin\nrename to b3\n")
    assert Path("b2").read_bytes() == Path("b3").read_bytes() == b"\0\xff\r\n\1"
    assert stat.S_IMODE(Path("b3").stat().st_mode) == 0o711
    assert not Path("bin").exists()


def test_mode_owner_and_encoding_are_kept():
    Path("g.txt").write_bytes("\ufeffone\r\ntwo\r\n".encode("utf-16-le"))
    Path("g.txt").chmod(0o750)
    apply_patch("--- a/g.txt\n+++ b/g.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+zwei\n")
    assert Path("g.txt").read_bytes() == "\ufeffone\r\nzwei\r\n".encode("utf-16-le")
    assert stat.S_IMODE(Path("g.txt").stat().st_mode) == 0o750


@pytest.mark.parametrize("step", range(4))
@pytest.mark.parametrize("how", ["rename", "write", "unlink"])
def test_a_write_that_fails_in_the_middle_is_put_back(how, step, monkeypatch):
    Path("gone").write_text("gone\n")
    patch = (
        "--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n"
        + diff(TEXT, TEXT.replace("line 2\n", "LINE 2\n"))
        + diff("one\ntwo\nthree\n", "one\n2\nthree\n", "g.txt")
        + "--- /dev/null\n+++ b/x/y/new\n@@ -0,0 +1 @@\n+a\n"
        + "diff --git a/last b/last\nnew file mode 100644\n"
    )
    before = snapshot()
    calls = []
    real = Path.unlink if how == "unlink" else getattr(replacing.os, how)

    def failing(*arguments, **options):
        calls.append(1)
        if len(calls) == step + 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(*arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(*((Path, "unlink") if how == "unlink" else (replacing.os, how)), failing)
        said = answer(patch)
    if len(calls) <= step:
        assert said.startswith("applied")
        return
    assert "no space left" in said
    assert "nothing was changed" in said
    assert snapshot() == before
    assert not Path("x").exists()


def test_what_cannot_be_put_back_is_told(monkeypatch):
    patch = diff(TEXT, f"x\n{TEXT}") + diff("one\ntwo\nthree\n", "2\n", "g.txt")
    calls = []
    real = replacing.os.rename

    def failing(*arguments, **options):
        calls.append(1)
        if len(calls) > 1:
            raise OSError(errno.EIO, "Input/output error")
        return real(*arguments, **options)

    monkeypatch.setattr(replacing.os, "rename", failing)
    with pytest.raises(ToolError, match=r"half applied, these could not be put back: .*f\.txt"):
        apply_patch(patch)


LINES = st.lists(
    st.sampled_from(["a", "b", "", "-- x", "++ y", " z", "@@", "\\ n", "ü", "a\t"]), max_size=12
)
TEXTS = st.builds(lambda lines, end: "\n".join(lines) + end, LINES, st.sampled_from(["", "\n"]))


@given(TEXTS, TEXTS, st.integers(1, 4))
@settings(max_examples=300, deadline=None)
def test_a_diff_of_two_texts_makes_the_second_of_the_first(before, after, context):
    assume(before != after)
    assume(before.split("\n")[-1:] != [""] or before.endswith("\n") or not before)
    patch = diff(before, after, "f", context)
    (section,) = read_patch(patch)
    applied = apply_hunks(before, section.hunks)
    assert applied.rejects == []
    assert applied.text == after
    assert applied.notes == []


@given(TEXTS, TEXTS)
@settings(max_examples=100, deadline=None)
def test_a_diff_fits_through_byte_order_marks_and_crlf(before, after):
    assume(before != after and "\n" in before)
    place = Path("any")
    data = before.replace("\n", "\r\n").encode("utf-16")
    place.write_bytes(data)
    said = answer(diff(before, after, "any"))
    if not said.startswith("applied"):  # what is alike but for white space at ends may be ambiguous
        assert "nothing was changed" in said
        assert place.read_bytes() == data
        return
    if after == "":
        return
    got = place.read_bytes().decode("utf-16").replace("\r\n", "\n")
    assert [line.rstrip() for line in got.split("\n")] == [
        line.rstrip() for line in after.split("\n")
    ]


@given(TEXTS, TEXTS, st.data())
@settings(max_examples=200, deadline=None)
def test_a_corrupted_patch_applies_to_all_or_changes_nothing(before, after, data):
    assume(before != after)
    rows = diff(before, after, "any").split("\n")
    at = data.draw(st.integers(0, len(rows) - 1))
    how = data.draw(st.sampled_from(["drop", "double", "change", "cut"]))
    new = {"drop": [], "double": [rows[at]] * 2, "change": [f"{rows[at][:1]}#"], "cut": []}[how]
    rows = rows[:at] + new + (rows[at + 1 :] if how != "cut" else [])
    Path("any").write_text(before)
    other = Path("other")
    other.write_text("x\n")
    patch = "--- a/other\n+++ b/other\n@@ -1 +1 @@\n-x\n+y\n" + "\n".join(rows)
    names = {str(each) for each in Path().iterdir()}
    try:
        apply_patch(patch)
    except ToolError:
        assert other.read_text() == "x\n"
        assert Path("any").read_text() == before
    else:
        assert other.read_text() == "y\n"
    assert {str(each) for each in Path().iterdir()} <= names | {"any"}


@given(
    st.lists(st.sampled_from("ab"), max_size=14),
    st.lists(st.sampled_from("ab"), min_size=1, max_size=4),
    st.integers(0, 3),
)
def test_lines_are_found_wherever_they_stand(lines, wanted, after):
    slow = [
        at
        for at in range(after, len(lines) - len(wanted) + 1)
        if lines[at : at + len(wanted)] == wanted
    ]
    assert occurrences(lines, wanted, after) == slow


def test_many_hunks_that_do_not_apply_are_counted_not_searched(workspace):
    hunks = "".join(f"@@ -{n},2 +{n},2 @@\n other {n}\n-x {n}\n+y\n" for n in range(1, 200))
    said = refusal(f"--- a/f.txt\n+++ b/f.txt\n{hunks}")
    assert "hunk 12 " in said
    assert "hunk 13 " not in said
    assert len(said) < 4000


def test_a_directory_that_cannot_be_removed_is_no_failure_of_the_patch(monkeypatch):
    Path("sub").mkdir()
    Path("g.txt").rename("sub/g.txt")

    def busy(place):
        raise OSError(errno.EBUSY, "Device or resource busy")

    monkeypatch.setattr(Path, "rmdir", busy)
    told = apply_patch("--- a/sub/g.txt\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-one\n-two\n-three\n")
    assert "deleted sub/g.txt" in told
    assert list(Path("sub").iterdir()) == []
