"""The host's side holds: what reaches the keeper, files the controller writes, closing, taps."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from toolcell import (
    ApprovalRequest,
    ApprovalResponse,
    EventLog,
    PolicyError,
    RunOptions,
    SqliteApprovals,
    StoreError,
    ToolCall,
    ToolcellError,
    ToolController,
    ToolPolicy,
    ToolRegistry,
    ToolResult,
    tool,
)

pytestmark = pytest.mark.isolation


def shell(call_id: str, command: str) -> ToolCall:
    return ToolCall(call_id=call_id, name="shell", arguments={"command": command})


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a compiler")
def test_a_variable_of_the_policy_reaches_tools_and_nothing_outside(workspace: Path) -> None:
    (workspace / "p.c").write_text(
        "#include <fcntl.h>\n__attribute__((constructor)) void f(void) "
        f'{{ open("{workspace}/../reached", O_CREAT | O_WRONLY, 0644); }}'
    )
    library = workspace / "p.so"
    compile_it = ["gcc", "-shared", "-fPIC", "-o", library, workspace / "p.c"]
    subprocess.run(compile_it, check=True)
    control = subprocess.run(["true"], env={"LD_PRELOAD": str(library)}, check=True)
    assert control.returncode == 0
    reached = workspace.parent / "reached"
    assert reached.exists(), "the control"
    reached.unlink()
    command = [sys.executable, "-m", "toolcell", "run", "-w", workspace]
    command += ["--env", f"LD_PRELOAD={library}", "--", "sh", "-c", "echo $LD_PRELOAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"{library}\n"
    assert not reached.exists()


@pytest.mark.parametrize("name", ["inside", "link/inside"])
async def test_what_is_kept_of_calls_is_not_kept_in_the_workspace(
    workspace: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to(workspace)
    place = (tmp_path if "link" in name else workspace) / name
    policy = ToolPolicy(ask=["shell"])
    for kept in ({"events": EventLog(place)}, {"approvals": SqliteApprovals(place)}):
        with pytest.raises(StoreError, match="lies in the workspace"):
            ToolController(ToolRegistry.builtin(), policy, workspace, **kept)
    monkeypatch.setenv("TOOLCELL_STATE_DIR", str(place))
    async with ToolController(ToolRegistry.builtin(), policy, workspace) as controller:
        result = await controller.handle(shell("1", "true"))
        assert isinstance(result, ToolResult)
        assert "lies in the workspace" in result.for_llm()
    monkeypatch.setenv("TOOLCELL_STATE_DIR", str(tmp_path / "elsewhere"))
    async with ToolController(ToolRegistry.builtin(), policy, workspace) as controller:
        asked = await controller.handle(shell("1", "true"))
        assert isinstance(asked, ApprovalRequest), "the control"
    beside = EventLog(workspace / ".." / "beside.db")
    ToolController(ToolRegistry.builtin(), policy, workspace, events=beside)


async def test_a_changed_copy_of_a_policy_has_a_version_of_its_own(workspace: Path) -> None:
    policy = ToolPolicy(ask=["shell"])
    async with ToolController(ToolRegistry.builtin(), policy, workspace) as controller:
        request = await controller.handle(shell("1", "true"))
        assert isinstance(request, ApprovalRequest)
        opened = policy.changed(cell={"network": "host", "require": ["filesystem"]})
        assert opened.version != policy.version
        controller.policy = opened
        answer = ApprovalResponse(approval_id=request.approval_id, approved=True, by="ada")
        result = await controller.resolve(answer)
    assert result.error is not None
    assert result.error.category == "approval_mismatch"


async def test_a_new_policy_is_checked_like_the_first(workspace: Path) -> None:
    async with ToolController(
        ToolRegistry.builtin(), ToolPolicy(deny=["shell"]), workspace
    ) as controller:
        with pytest.raises(PolicyError, match="shel"):
            controller.policy = ToolPolicy(allow=["*"], deny=["shel"])
        result = await controller.handle(shell("1", "true"))
    assert isinstance(result, ToolResult)
    assert result.status == "rejected"


async def test_paths_are_taken_where_the_controller_was_made(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "policy.toml").write_text('version = 1\n[tools]\nallow = ["shell"]\n')
    monkeypatch.chdir(workspace)
    async with ToolController(ToolRegistry.builtin(), "policy.toml", ".") as controller:
        monkeypatch.chdir(tmp_path)
        result = await controller.handle(shell("1", "pwd; echo x > policy.toml"))
    assert isinstance(result, ToolResult)
    assert result.output == f"{workspace}\n"
    assert "x" not in (workspace / "policy.toml").read_text().split("=")[0]


@pytest.mark.parametrize("error", [ValueError("no"), OSError("full")])
async def test_a_tap_that_raises_ends_the_call_and_is_raised(run: Any, error: Exception) -> None:
    def tap(stream: str, data: bytes) -> None:
        raise error

    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(type(error)):
        await run.with_options("shell", RunOptions(tap=tap), command="yes 61.0917")
    assert (await run.sh("echo next")).output == "next\n"
    await asyncio.sleep(0)
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 20
    assert not [p for p in psutil.process_iter(["cmdline"]) if "61.0917" in str(p.info["cmdline"])]


def test_a_slow_reader_does_not_hold_up_the_deadline(workspace: Path) -> None:
    run = f"{sys.executable} -m toolcell run --wall 500ms -w {workspace} -- yes 62.0917"
    os.mkfifo(workspace / "fifo")
    command = ["sh", "-c", f"{run} | (read line; read stop < fifo)"]
    piped = subprocess.Popen(command, cwd=workspace, start_new_session=True)

    def alive() -> bool:
        return any(
            process.info["cmdline"] == ["yes", "62.0917"]
            for process in psutil.process_iter(["cmdline"])
        )

    for _ in range(200):
        if alive():
            break
        psutil.cpu_percent(0.02)
    for _ in range(150):
        if not alive():
            break
        psutil.cpu_percent(0.02)
    assert not alive()
    os.killpg(piped.pid, signal.SIGKILL)  # the reader too, which would wait for ever
    piped.wait()


async def test_closing_cancels_what_runs_and_leaves_nothing(workspace: Path, until: Any) -> None:
    controller = ToolController(ToolRegistry.builtin(), workspace=workspace)
    running = asyncio.create_task(controller.handle(shell("1", "touch on; sleep 30")))
    await until((workspace / "on").exists, "the command runs")
    await controller.close()
    result = await running
    assert isinstance(result, ToolResult)
    assert result.status == "cancelled"
    assert psutil.Process().children() == []
    with pytest.raises(ToolcellError, match="closed"):
        await controller.handle(shell("2", "true"))


async def test_closing_while_the_launcher_starts_leaves_nothing(workspace: Path) -> None:
    controller = ToolController(ToolRegistry.builtin(), workspace=workspace)
    call = asyncio.create_task(controller.handle(shell("1", "sleep 30")))
    await asyncio.sleep(0.01)
    await controller.close()
    result = await call
    assert isinstance(result, ToolResult)
    assert not result.success
    assert psutil.Process().children() == []


async def test_many_calls_at_once_all_get_a_cell(runner: Any) -> None:
    run = runner(max_running=100)
    results = await asyncio.gather(*(run("echo", text=str(n)) for n in range(100)))
    assert [result.output for result in results] == [str(n) for n in range(100)]


async def test_a_tool_that_is_registered_later_can_be_imported(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "came_later.py").write_text("def late() -> str:\n    return 'here'\n")
    registry = ToolRegistry.builtin()
    policy = ToolPolicy(allow=["*"])
    async with ToolController(registry, policy, workspace) as controller:
        await controller.handle(shell("1", "true"))
        import came_later  # type: ignore[import-not-found]

        registry.register(tool(came_later.late))
        result = await controller.handle(ToolCall(call_id="2", name="late"))
    assert isinstance(result, ToolResult)
    assert result.output == "here", result.for_llm()


async def test_policies_that_come_and_go_leave_few_launchers(runner: Any, workspace: Path) -> None:
    run = runner()
    for processes in range(20, 30):
        run.controller.policy = ToolPolicy(allow=["shell"], limits={"processes": processes})
        assert (await run.sh("true")).success
    assert len(psutil.Process().children()) <= 6
