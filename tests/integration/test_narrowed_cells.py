"""A rule narrows the cell of what it matches: network, writes and limits, by the kernel."""

from pathlib import Path
from typing import Any

import pytest

from toolcell import ToolPolicy

pytestmark = pytest.mark.isolation

RUNGS = ["full", "landlock"]


def policy(*rules: dict[str, Any], rung: str, **cell: Any) -> ToolPolicy:
    return ToolPolicy(
        allow={"*": "a test"}, rules=rules, cell={"isolation": rung} | cell, limits={"wall": 10}
    )


@pytest.mark.parametrize("rung", RUNGS)
async def test_only_the_directories_that_a_rule_leaves_can_be_written(runner, workspace, rung):
    (workspace / "build/deep").mkdir(parents=True)
    (workspace / "src").mkdir()
    rule = {"id": "build", "tool": "shell", "commands": ["touch"], "cell": {"writable": ["build"]}}
    narrowed = runner(policy=policy(rule, rung=rung))
    assert (await narrowed.sh("touch build/a build/deep/b")).success
    for command in ("touch src/a", "touch a", "touch build/../src/a"):
        assert not (await narrowed.sh(command)).success, command
    assert (await narrowed.sh("true && ls src")).success
    # The control: another command is not narrowed.
    assert (await narrowed.sh("cp /etc/os-release src/a")).success
    assert sorted(path.name for path in workspace.rglob("*") if path.is_file()) == ["a", "a", "b"]


@pytest.mark.parametrize("rung", RUNGS)
async def test_a_writable_directory_that_is_not_there_or_a_link_refuses_the_call(
    runner, workspace, tmp_path, rung
):
    rule = {"id": "out", "tool": "shell", "cell": {"writable": ["out"]}}
    narrowed = runner(policy=policy(rule, rung=rung))
    missing = await narrowed.sh("true")
    assert "no such directory" in missing.error.message
    (tmp_path / "elsewhere").mkdir()
    (workspace / "out").symlink_to(tmp_path / "elsewhere")
    linked = await narrowed.sh("touch out/x")
    assert "link" in linked.error.message
    assert list((tmp_path / "elsewhere").iterdir()) == []
    (workspace / "out").unlink()
    (workspace / "out").mkdir()
    assert (await narrowed.sh("touch out/x")).success, "the control"


@pytest.mark.parametrize("rung", RUNGS)
async def test_a_rule_can_take_the_writes_away_from_one_tool(runner, workspace, rung):
    rule = {"id": "look", "tool": "python", "cell": {"workspace": "ro"}}
    narrowed = runner(policy=policy(rule, rung=rung))
    assert not (await narrowed.py("open('x', 'w')")).success
    assert (await narrowed.sh("touch x")).success, "the control"


async def test_a_rule_can_take_the_network_away_from_one_command(runner, workspace):
    rule = {
        "id": "offline",
        "tool": "shell",
        "not_commands": ["cat", "true"],
        "cell": {"network": "none"},
    }
    open_cell = {"network": "host", "require": ["filesystem", "process_tree", "syscalls"]}
    narrowed = runner(policy=policy(rule, rung="full", **open_cell))
    with_network = (await narrowed.sh("cat /proc/net/dev")).output
    without = (await narrowed.sh("cat /proc/net/dev | sort")).output
    own = [line.split(":")[0].strip() for line in without.splitlines() if ":" in line]
    assert own == ["lo"]
    host = Path("/proc/net/dev").read_text()
    assert [line.split(":")[0] for line in with_network.splitlines()] == [
        line.split(":")[0] for line in host.splitlines()
    ], "the control: the host's interfaces"


async def test_a_rule_can_shorten_the_time_of_what_it_matches(runner):
    rule = {"id": "short", "tool": "shell", "command": ["sleep"], "limits": {"wall": 0.3}}
    narrowed = runner(policy=policy(rule, rung="full"))
    ended = await narrowed.sh("sleep 20")
    assert ended.error.category == "wall"
    assert (await narrowed.sh("true; read -t 0.6 < /dev/zero; true")).success, "the control"
