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
        ("echo", {"text": "x\0y"}, "x\0y"),
        ("read_file", {"path": "src/a.py"}, "one\ntwo\nthree\n"),
        ("read_file", {"path": "src/a.py", "start_line": 2, "end_line": 2}, "two\n"),
        ("read_file", {"path": "src/a.py", "start_line": 3, "end_line": 99}, "three\n"),
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
    listed = (await run("list_files")).structured
    assert listed == {"files": ["binary", "src/a.py", "src/b.txt"], "total": 3, "left_out": 0}
    few = (await run("list_files", glob="*.py", limit=1)).structured
    assert few == {"files": ["src/a.py"], "total": 1, "left_out": 0}
    found = (await run("search_text", pattern="^tw.", limit=1)).structured
    assert found["matches"] == [{"file": "src/a.py", "line": 2, "text": "two"}]
    assert (found["total"], found["left_out"], found["files_searched"]) == (2, 1, 2)


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
        ("search_text", {"pattern": "("}, "not a regular expression"),
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
