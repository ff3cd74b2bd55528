"""The workspace: lent as the policy says, and never a way out of it or into the controller."""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.isolation

_POLICY = """
version = 1
[tools]
allow = ["shell"]
[limits]
wall = "10s"
"""

# Each tries to put other text where `conf/policy.toml` is read.
_REPLACEMENTS = [
    "echo changed > conf/policy.toml",
    "echo changed > new && mv new conf/policy.toml",
    "rm -f conf/policy.toml && echo changed > conf/policy.toml",
    "mv conf old && mkdir conf && echo changed > conf/policy.toml",
    "mv conf/policy.toml conf/x && echo changed > conf/policy.toml",
    "ln conf/policy.toml linked && echo changed > linked",
    "ln -sfn /dev/null conf/policy.toml && rm conf/policy.toml",
    "truncate -s 0 conf/policy.toml && echo changed > conf/policy.toml",
    "chmod 666 conf/policy.toml; echo changed > conf/policy.toml",
    "mkdir up && mv conf up/ && mkdir conf && echo changed > conf/policy.toml",
]


async def test_a_read_only_workspace_cannot_be_changed(runner: Any, workspace: Path) -> None:
    (workspace / "file").write_text("original")
    commands = ["echo x > new", "echo x >> file", "rm file", "mv file f", "mkdir d", "chmod 0 file"]
    closed, opened = runner(cell={"workspace": "ro"}), runner()
    for command in commands:
        result = await closed.sh(command)
        assert not result.success, command
        assert "Read-only" in result.for_llm(), result.for_llm()
    assert [path.name for path in workspace.iterdir()] == ["file"]
    assert (await closed.sh("cat file")).output == "original"
    # The control: the same commands, each with a file to change.
    for command in commands:
        (workspace / "file").write_text("original")
        assert (await opened.sh(command)).success, command
        subprocess.run(["rm", "-rf", *map(str, workspace.iterdir())], check=True)


async def test_without_a_workspace_it_is_not_there(runner: Any, workspace: Path) -> None:
    (workspace / "file").write_text("here")
    command = f"cat {workspace}/file; pwd"
    hidden = await runner(cell={"workspace": "none"}).sh(command)
    assert hidden.output == "/tmp\n"
    assert (await runner().sh(command)).output == f"here{workspace}\n"


async def test_the_policy_file_cannot_be_replaced_by_a_tool(
    tmp_path: Path, workspace: Path, runner: Any
) -> None:
    (workspace / "conf").mkdir()
    policy = workspace / "conf" / "policy.toml"
    policy.write_text(_POLICY)
    run = runner(policy=policy)
    for replacement in _REPLACEMENTS:
        result = await run.sh(replacement)
        assert result.error is None or result.error.category == "exit_code", result.for_llm()
        assert policy.read_text() == _POLICY, replacement


@pytest.mark.parametrize("replacement", _REPLACEMENTS)
async def test_the_control_a_file_that_is_no_policy_can_be_replaced(
    tmp_path: Path, workspace: Path, runner: Any, replacement: str
) -> None:
    (tmp_path / "policy.toml").write_text(_POLICY)
    (workspace / "conf").mkdir()
    other = workspace / "conf" / "policy.toml"
    other.write_text(_POLICY)
    await runner(policy=tmp_path / "policy.toml").sh(replacement)
    assert not other.exists() or other.read_text() != _POLICY


_CHANGES = [
    "echo changed >> .venv/pyvenv.cfg",
    "mv .venv old",
    "rm -rf .venv/lib",
    "touch $(echo .venv/lib/python*/site-packages)/evil.pth",
    "ln -sf /bin/true .venv/bin/python",
]


def test_a_virtual_environment_in_the_workspace_cannot_be_changed_by_a_tool(
    tmp_path: Path, workspace: Path
) -> None:
    own, other = _venv_at(workspace / ".venv"), _venv_at(tmp_path / "elsewhere")
    before = _listing(workspace)
    _run_by(own, workspace, "; ".join(_CHANGES))
    assert _listing(workspace) == before
    for change in _CHANGES:
        _venv_at(workspace / ".venv")
        before = _listing(workspace)
        _run_by(other, workspace, change)
        assert _listing(workspace) != before, f"the control: {change}"
        subprocess.run(["rm", "-rf", str(workspace / "old"), str(workspace / ".venv")], check=True)


def _run_by(python: str, workspace: Path, line: str) -> None:
    done = subprocess.run(
        [
            *[python, "-m", "toolcell", "run", "--policy", "ci", "-w", str(workspace)],
            *["--", "bash", "-c", line],
        ],
        capture_output=True,
        text=True,
        cwd=workspace,
    )
    assert done.returncode < 124, done.stderr


def _venv_at(place: Path) -> str:
    """A virtual environment that finds toolcell where this one does."""
    command = [sys.executable, "-m", "venv", "--without-pip", str(place)]
    subprocess.run(command, check=True, capture_output=True)
    site = next(place.glob("lib/python*/site-packages"))
    (site / "outer.pth").write_text("\n".join(entry for entry in sys.path if Path(entry).is_dir()))
    return str(place / "bin" / "python")


def _listing(place: Path) -> list[tuple[str, int]]:
    return sorted((str(path), path.lstat().st_size) for path in place.rglob("*"))


async def test_links_out_of_the_workspace_lead_nowhere(
    tmp_path: Path, workspace: Path, run: Any
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    (workspace / "to-file").symlink_to(outside / "secret")
    (workspace / "to-directory").symlink_to(outside)
    (workspace / "first").symlink_to("second")
    (workspace / "second").symlink_to("to-directory")
    (workspace / "to-new").symlink_to(outside / "new")
    (workspace / "relative").symlink_to("../outside/secret")
    paths = ["to-file", "to-directory/secret", "first/secret", "relative"]
    for path in paths:
        assert (workspace / path).read_text() == "secret", "the control: outside it leads there"
        assert not (await run.sh(f"cat {path}")).success
        refused = await run("read_file", path=path)
        assert refused.error.category == "tool_error"
        assert "outside the workspace" in refused.error.message
    assert not (await run.sh("echo x > to-new")).success
    assert not (await run("write_file", path="to-new", content="x")).success
    assert sorted(path.name for path in outside.iterdir()) == ["secret"]


async def test_a_hard_link_made_outside_is_the_operators_own_doing(
    tmp_path: Path, workspace: Path, run: Any
) -> None:
    (tmp_path / "outside").write_text("secret")
    denied = await run.sh(f"ln {tmp_path}/outside linked")
    assert not denied.success
    (workspace / "linked").hardlink_to(tmp_path / "outside")
    assert (await run.sh("cat linked")).output == "secret"


async def test_the_workspace_lies_at_its_real_path(run: Any, workspace: Path) -> None:
    (workspace / "sub").mkdir()
    assert (await run.sh("pwd; cd sub && pwd")).output == f"{workspace}\n{workspace}/sub\n"
    assert (await run.py("import os; print(os.path.abspath(''))")).output == f"{workspace}\n"


async def test_a_workspace_with_odd_characters_works(runner: Any, tmp_path: Path) -> None:
    place = tmp_path / "a b, c\t'ü'\"\\n:x"
    place.mkdir()
    run = runner(lend=place)
    assert (await run.sh("echo x > file && cat file")).output == "x\n"
    assert (await run("read_file", path="file")).output == "x\n"
    assert (place / "file").read_text() == "x\n"


@pytest.mark.parametrize("above", ["/var/tmp", "/tmp"])
async def test_a_workspace_below_a_scratch_directory_can_be_lent(runner: Any, above: str) -> None:
    with tempfile.TemporaryDirectory(dir=above) as place:
        result = await runner(lend=Path(place)).sh("pwd; echo x > file && ls")
        assert result.output == f"{place}\nfile\n", result.for_llm()
        assert (Path(place) / "file").read_text() == "x\n"


async def test_nothing_is_left_in_the_workspace_by_a_call(run: Any, workspace: Path) -> None:
    await run.sh("true")
    await run.py("import json")
    assert list(workspace.iterdir()) == []


async def test_a_policy_replaced_by_the_operator_stays_protected(
    runner: Any, workspace: Path
) -> None:
    policy = workspace / "policy.toml"
    policy.write_text(_POLICY)
    run = runner(policy=policy)
    await run.sh("true")
    (workspace / "new").write_text(_POLICY + "# edited")
    (workspace / "new").replace(policy)  # as editors and git save a file
    for _ in range(4):
        await run.sh("echo evil > policy.toml")
        assert policy.read_text() == _POLICY + "# edited"


async def test_a_workspace_that_was_named_by_a_link_is_found_by_that_name_too(runner: Any) -> None:
    # Not below /tmp, where a cell has a file system of its own.
    with tempfile.TemporaryDirectory(dir="/var/tmp") as place:
        workspace, link = Path(place, "workspace"), Path(place, "link")
        workspace.mkdir()
        link.symlink_to(workspace)
        (workspace / "file").write_text("here")
        run = runner(lend=link)
        for path in ("file", f"{workspace}/file", f"{link}/file"):
            assert (await run("read_file", path=path)).output == "here", path
