"""The file tools in real cells: on a git repository, with owners and modes, and at the walls."""

import os
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.isolation, pytest.mark.any_user]

_ENVIRONMENT = {
    **os.environ,
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    **{f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}


def _git(place: Path, *words: str, given: str | None = None) -> str:
    return subprocess.run(
        ["git", *words],
        cwd=place, env=_ENVIRONMENT, input=given, capture_output=True, text=True, check=True,
        timeout=20,
    ).stdout  # fmt: skip


@pytest.fixture
def repository(workspace: Path) -> Path:
    """A small repository with one commit."""
    (workspace / "src").mkdir()
    (workspace / "src/app.py").write_text("".join(f"line {n}\n" for n in range(1, 41)))
    (workspace / "run.sh").write_text("#!/bin/sh\necho one\n")
    (workspace / "run.sh").chmod(0o750)
    (workspace / "dos.txt").write_bytes(b"one\r\ntwo\r\n")
    _git(workspace, "init", "-q")
    _git(workspace, "add", ".")
    _git(workspace, "commit", "-qm", "x")
    return workspace


async def test_an_agent_lives_on_the_file_tools_alone(repository: Path, run: Any) -> None:
    calls: list[tuple[str, dict[str, Any], str]] = [
        ("read_file", {"path": "src/app.py", "start_line": 2, "end_line": 2, "line_numbers": True},
         "     2\tline 2\n"),
        ("edit_file", {"path": "run.sh", "old_text": "echo one", "new_text": "echo two"},
         "-echo one\n+echo two\n"),
        ("edit_file", {"path": "dos.txt", "old_text": "one\ntwo", "new_text": "1\n2\n3"}, "+3\n"),
        ("write_file", {"path": "docs/a/new.md", "content": "# New\n", "parents": True},
         "created docs/a/new.md (6 bytes), and the directory docs/a"),
        ("move", {"source": "docs/a/new.md", "destination": "docs/new.md"}, "moved docs/a/new.md"),
        ("delete", {"path": "docs/a"}, "deleted the directory docs/a, which was empty"),
        ("apply_patch", {"patch": "--- a/src/app.py\n+++ b/src/app.py\n@@ -1,2 +1,2 @@\n-line 1\n"
                                  "+LINE 1\n line 2\n"}, "changed src/app.py (1 hunk)"),
    ]  # fmt: skip
    for name, arguments, words in calls:
        result = await run(name, **arguments)
        assert result.success, result.for_llm()
        assert words in result.output
    assert _git(repository, "status", "--short", "-uall").split() == [
        "M", "dos.txt", "M", "run.sh", "M", "src/app.py", "??", "docs/new.md",
    ]  # fmt: skip
    assert stat.S_IMODE((repository / "run.sh").stat().st_mode) == 0o750
    assert (repository / "dos.txt").read_bytes() == b"1\r\n2\r\n3\r\n"
    owner = repository.stat()
    for place in repository.rglob("*"):
        assert (place.stat().st_uid, place.stat().st_gid) == (owner.st_uid, owner.st_gid), place
        assert not place.name.startswith(".toolcell")


async def test_a_diff_of_git_makes_the_tree_that_git_made(repository: Path, run: Any) -> None:
    _git(repository, "mv", "src/app.py", "moved.py")
    (repository / "moved.py").write_text(
        (repository / "moved.py").read_text().replace("line 9\n", "LINE 9\n")
    )
    (repository / "new").write_text("new, and open")
    (repository / "dos.txt").write_bytes(b"one\r\nTWO\r\n")
    _git(repository, "rm", "-qf", "run.sh")
    _git(repository, "add", "-A")
    wanted = _git(repository, "write-tree")
    patch = _git(repository, "diff", "--cached", "-M")
    _git(repository, "reset", "-q", "--hard")
    result = await run("apply_patch", patch=patch)
    assert result.success, result.for_llm()
    _git(repository, "add", "-A")
    assert _git(repository, "write-tree") == wanted


@pytest.mark.parametrize("rung", ["full", "landlock"])
async def test_each_rung_lets_files_be_replaced_and_moved(
    repository: Path, runner: Any, rung: str
) -> None:
    run = runner(cell={"isolation": rung, "require": ()})
    assert (await run("write_file", path="src/app.py", content="new\n")).success
    assert (await run("move", source="src", destination="lib")).success
    moved = await run("move", source="lib/app.py", destination="app.py")
    assert moved.success, moved.for_llm()
    deleted = await run("delete", path="lib", recursive=True)
    assert deleted.success, deleted.for_llm()
    assert (repository / "app.py").read_text() == "new\n"
    assert not (repository / "lib").exists()


async def test_where_only_some_directories_are_writable_the_others_are_told(
    repository: Path, runner: Any
) -> None:
    run = runner(cell={"writable": ["src"]})
    before = (repository / "run.sh").read_bytes()
    both = "--- a/src/app.py\n+++ b/src/app.py\n@@ -1 +1 @@\n-line 1\n+x\n" + (
        "--- a/run.sh\n+++ b/run.sh\n@@ -1 +1 @@\n-#!/bin/sh\n+x\n"
    )
    refused = [
        await run("write_file", path="run.sh", content="x"),
        await run("write_file", path="new", content="x"),
        await run("edit_file", path="run.sh", old_text="one", new_text="two"),
        await run("delete", path="run.sh"),
        await run("move", source="run.sh", destination="src/run.sh"),
        await run("apply_patch", patch=both),
    ]
    for result in refused:
        assert result.error.category == "tool_error", result.for_llm()
        assert (
            "read-only file system" in result.error.message or "permission" in result.error.message
        )
    assert (repository / "run.sh").read_bytes() == before
    assert (repository / "src/app.py").read_text().startswith("line 1\n")
    assert (await run("write_file", path="src/new", content="x")).success
    assert not list(repository.rglob(".toolcell*"))


async def test_a_full_disk_leaves_what_was_there(repository: Path, runner: Any) -> None:
    run = runner(limits={"file_size": 4096})
    small = await run("write_file", path="new", content="x" * 5000)
    assert not small.success
    assert not (repository / "new").exists()
    edited = await run("write_file", path="run.sh", content="x" * 5000)
    assert not edited.success
    assert (repository / "run.sh").read_text() == "#!/bin/sh\necho one\n"
    assert not list(repository.rglob(".toolcell*"))


async def test_of_a_huge_file_a_page_is_read_within_little_memory(
    workspace: Path, runner: Any
) -> None:
    with (workspace / "huge").open("wb") as file:
        for _ in range(48):
            file.write(b"some words on a line\n" * 50_000)
    run = runner(limits={"memory": 64 * 1024**2})
    page = await run("read_file", path="huge", start_line=2_000_000, end_line=2_000_001)
    assert page.output == (
        "some words on a line\n" * 2 + "[lines 2,000,000 to 2,000,001 of 2,400,000]\n"
    ), page.for_llm()
    start = await run("read_file", path="huge")
    assert "of 2,400,000 lines" in start.output
    assert start.truncation is None
