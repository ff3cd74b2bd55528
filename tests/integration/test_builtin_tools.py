"""The built-in tools: what they answer, and how they say no."""

from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.isolation, pytest.mark.any_user]


@pytest.fixture
def project(workspace: Path) -> Path:
    """A workspace with a few files."""
    (workspace / "src").mkdir()
    (workspace / "src/a.py").write_text("one\ntwo\nthree\n")
    (workspace / "src/b.txt").write_text("two\r\n")
    (workspace / "binary").write_bytes(b"\0\1\2two")
    (workspace / ".git").mkdir()
    (workspace / ".git/config").write_text("two")
    return workspace


@pytest.mark.parametrize(
    ("name", "arguments", "output"),
    [
        ("echo", {"text": "x\0y"}, "x\\x00y"),
        ("read_file", {"path": "src/a.py"}, "one\ntwo\nthree\n"),
        ("read_file", {"path": "src/a.py", "start_line": 2, "end_line": 2}, "two\n[line 2 of 3]\n"),
        (
            "read_file",
            {"path": "src/a.py", "start_line": 3, "end_line": 99},
            "three\n[line 3 of 3; end_line=99 is past the end]\n",
        ),
        ("write_file", {"path": "src/new", "content": "ü"}, "created src/new (2 bytes)"),
    ],
)
async def test_a_built_in_tool_answers(
    project: Path, run: Any, name: str, arguments: dict[str, Any], output: str
) -> None:
    result = await run(name, **arguments)
    assert result.success, result.for_llm()
    assert result.output == output


async def test_listing_and_searching_count_what_they_leave_out(project: Path, run: Any) -> None:
    listed = await run("list_files")
    assert listed.output == (
        "binary  6\nsrc/\nsrc/a.py  14\nsrc/b.txt  5\n[4 entries: 3 files, 1 directory.]"
    )
    few = await run("list_files", glob="*.{py,txt}", limit=1)
    assert few.output.startswith("src/a.py  14\n[2 entries: 2 files. The first 1 is shown, 1 is")
    found = await run("search_text", pattern="^tw.$", limit=1)
    assert found.output.startswith("src/a.py:2:two\n[2 matching lines in 2 of 2 files searched.")
    assert found.structured is None, "the text is all there is, and it is not sent twice"


async def test_a_search_in_a_cell_cannot_be_made_to_hang(project: Path, run: Any) -> None:
    (project / "long").write_text("a" * 100_000 + "!\n")
    found = await run("search_text", pattern="(a+)+$", path="long")
    assert found.output == "[No line matches in 1 file searched.]"


async def test_ripgrep_is_used_in_a_cell_that_has_it(project: Path, runner: Any) -> None:
    """What stands in for it here leaves a trace, and says that no file can match."""
    (project / "large").write_text("one\n" * 700_000)
    without = await runner()("search_text", pattern="o[n]e", limit=1)
    assert "[700,001 matching lines in 2 of 3 files" in without.output, without.for_llm()
    (project / "rg").write_text("#!/bin/sh\necho x > used\nexit 1\n")
    (project / "rg").chmod(0o755)
    path = f"{project}:/usr/bin:/bin"
    stood_in = await runner(cell={"env": {"PATH": path}})("search_text", pattern="o[n]e")
    assert (project / "used").exists(), stood_in.for_llm()
    assert stood_in.output.startswith("[No line matches in 5 files searched.")


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("read_file", {"path": "missing"}, "does not exist"),
        ("read_file", {"path": "src"}, "is a directory"),
        ("read_file", {"path": "/etc/passwd"}, "outside the workspace"),
        ("read_file", {"path": "../outside"}, "outside the workspace"),
        ("read_file", {"path": "a\0b"}, "NUL"),
        ("read_file", {"path": "src/a.py/x"}, "not a directory"),
        ("read_file", {"path": "src/a.py", "start_line": 9}, "past its end"),
        ("read_file", {"path": "src/a.py", "start_line": 3, "end_line": 1}, "before start_line"),
        ("read_file", {"path": "pipe"}, "not a regular file"),
        ("list_files", {"path": "src/a.py"}, "not a directory"),
        ("list_files", {"path": "missing"}, "does not exist"),
        ("search_text", {"pattern": "("}, "this group is not closed"),
        ("search_text", {"pattern": "x", "path": "/usr"}, "outside the workspace"),
        ("write_file", {"path": "src", "content": ""}, "is a directory"),
        ("write_file", {"path": "no/such/place", "content": ""}, "does not exist"),
        ("write_file", {"path": "../x", "content": ""}, "outside the workspace"),
        ("read_file", {"path": "x" * 300}, "too long"),
    ],
)
async def test_a_built_in_tool_says_clearly(
    project: Path, run: Any, name: str, arguments: dict[str, Any], words: str
) -> None:
    assert (await run.sh("[ -p pipe ] || mkfifo pipe")).success
    result = await run(name, **arguments)
    assert result.error.category == "tool_error", result.for_llm()
    assert words in result.error.message
    assert result.metadata.stderr == ""
