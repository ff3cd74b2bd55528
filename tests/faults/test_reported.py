"""What users of other tool runners report most often, tried here."""

import asyncio
import json
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from toolcell import Guarantee, ToolCall, ToolController, ToolPolicy, ToolRegistry

pytestmark = pytest.mark.isolation


def _descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.mark.attack
async def test_a_thread_bomb_stops_at_the_limit(walled: Any, rung: str) -> None:
    if rung == "landlock":
        pytest.skip("without a user namespace no kernel keeps the count: a bomb is ended instead")
    code = """
import threading
started, event = 0, threading.Event()
try:
    while started < 500:
        threading.Thread(target=event.wait).start()
        started += 1
except RuntimeError as error:
    print("stopped")
event.set()
"""
    few, many = ({"processes": count, "memory": 8 << 30} for count in (20, 600))
    assert (await walled(limits=few).py(code)).output == "stopped\n"
    assert (await walled(limits=many).py(code)).output == "", "the control"


@pytest.mark.attack
@pytest.mark.parametrize("place", ["/tmp", "/dev/shm"])
async def test_scratch_has_a_size(runner: Any, place: str) -> None:
    command = f"head -c 4M /dev/zero > {place}/big && echo fits"
    full = await runner(limits={"scratch": 1 << 20}).sh(command)
    assert "No space left" in full.for_llm()
    assert (await runner(limits={"scratch": 8 << 20}).sh(command)).output == "fits\n"


@pytest.mark.attack
async def test_memory_of_a_whole_tree_is_counted(runner: Any) -> None:
    code = """
import os, time
for _ in range(4):
    if os.fork() == 0:
        block = bytearray(os.urandom(1)) * (40 << 20)
        time.sleep(20)
time.sleep(20)
"""
    result = await runner(limits={"memory": 96 << 20}).py(code)
    assert result.error.category == "memory", result.for_llm()
    assert result.latency_ms < 5000


async def test_a_large_address_space_is_not_memory(walled: Any) -> None:
    code = "import mmap\nhold = mmap.mmap(-1, 8 << 30, mmap.MAP_SHARED)\nprint(len(hold))"
    assert (await walled(limits={"memory": 128 << 20}).py(code)).output == f"{8 << 30}\n"


async def test_node_starts_under_a_modest_memory_limit(walled: Any) -> None:
    if not (path := shutil.which("node")) or not Path(path).resolve().is_relative_to("/usr"):
        pytest.skip("this host has no node among the system's programs")
    run = walled(limits={"memory": 512 << 20})
    result = await run.sh("node -e 'console.log(new Array(1e6).fill(7).length)'")
    assert result.output == "1000000\n", result.for_llm()


async def test_webassembly_and_threads_of_numpy_run_under_a_modest_memory_limit(
    walled: Any,
) -> None:
    """Both reserve far more addresses than they use."""
    run = walled(limits={"memory": 512 << 20})
    if (path := shutil.which("node")) and Path(path).resolve().is_relative_to("/usr"):
        memory = "new WebAssembly.Memory({initial: 16, maximum: 65536}).buffer.byteLength"
        assert (await run.sh(f"node -e 'console.log({memory})'")).output == "1048576\n"
    numpy = "import numpy; a = numpy.ones((600, 600)); print(int((a @ a)[0, 0]))"
    result = await run.py(f"try:\n    {numpy}\nexcept ModuleNotFoundError:\n    print(600)")
    assert result.output == "600\n", result.for_llm()


@pytest.mark.attack
async def test_a_pipe_that_ends_early_kills_its_writer_quietly(walled: Any) -> None:
    result = await walled().sh("set -o pipefail; yes | head -1")
    assert (result.output, result.metadata.stderr, result.return_code) == ("y\n", "", 141)


@pytest.mark.attack
async def test_a_worker_that_dies_while_it_holds_a_lock_blocks_nobody(walled: Any) -> None:
    code = """
import fcntl, os
file = open("lock", "w")
fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
os.kill(os.getpid(), 9)
"""
    run = walled()
    for _ in range(3):
        assert (await run.py(code)).signal == "SIGKILL"


@pytest.mark.attack
async def test_slow_exit_handlers_do_not_defeat_the_deadline(walled: Any) -> None:
    code = "import atexit, time\natexit.register(time.sleep, 30)\nprint('kept', flush=True)"
    began = time.monotonic()
    result = await walled(limits={"wall": 0.5}).py(code)
    assert result.status == "timed_out"
    assert result.output == "kept\n"
    assert time.monotonic() - began < 2


@pytest.mark.attack
async def test_closing_does_not_wait_for_calls(walled: Any, workspace: Path, until: Any) -> None:
    run = walled()
    task = asyncio.create_task(run.sh("trap '' TERM; touch on; sleep 9"))
    await until((workspace / "on").exists, "it runs")
    began = time.monotonic()
    await run.controller.close()
    assert time.monotonic() - began < 2
    await task


async def test_a_burst_of_calls_is_answered_one_for_one(walled: Any) -> None:
    run = walled(max_running=4)
    results = await asyncio.gather(*(run("echo", text=str(n)) for n in range(100)))
    assert [result.output for result in results] == [str(n) for n in range(100)]


@pytest.mark.attack
async def test_many_calls_under_few_descriptors_are_answers_not_crashes(runner: Any) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    run = runner(max_running=30)
    await run("echo", text="warm")
    resource.setrlimit(resource.RLIMIT_NOFILE, (_descriptors() + 20, hard))
    try:
        results = await asyncio.gather(*(run.sh("sleep 0.1") for _ in range(30)))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    refused = [result for result in results if result.error]
    assert refused, "the limit was met"
    assert {result.error.category for result in refused} == {"cell_setup"}
    assert "open files" in refused[0].for_llm()
    assert (await run("echo", text="next")).success


async def test_nothing_is_left_in_the_workspace_that_would_break_git(
    run: Any, workspace: Path
) -> None:
    if not shutil.which("git"):
        pytest.skip("this host has no git")
    subprocess.run(["git", "init", "-q", str(workspace)], check=True)
    await run.sh("true")
    status = ["git", "-C", str(workspace), "status", "--porcelain", "--ignored"]
    assert subprocess.run(status, capture_output=True, text=True, check=True).stdout == ""


@pytest.mark.attack
async def test_no_call_runs_without_its_walls(runner: Any, workspace: Path, without: Any) -> None:
    without(Guarantee.NETWORK)
    run = runner(cell={"require": ["network", "filesystem"]})
    for _ in range(2):
        result = await run.sh("touch ran")
        assert result.error.category == "cell_setup"
        assert result.error.hint
        assert not result.error.retryable
    assert not (workspace / "ran").exists()
    assert (await runner(cell={"require": ["filesystem"]}).sh("touch ran")).success, "the control"


_NOTHING_WORKS = """
import asyncio, errno, json, sys
from sandbox_workers import libc
import toolcell.cells.process as process
process._BOOT = process._BOOT.replace("; main()", '''
import os
from sandbox_workers import libc
def refuse(flags):
    raise libc.SystemCallError("unshare", 1)
libc.unshare = refuse
main()''').replace("; from", "\\nfrom")
from toolcell import CellSettings, ToolCall, ToolController, ToolPolicy, ToolRegistry
async def main():
    policy = ToolPolicy(allow=["*"], cell=CellSettings(isolation=sys.argv[2]))
    async with ToolController(ToolRegistry.builtin(), policy, sys.argv[1]) as controller:
        call = ToolCall(call_id="1", name="shell", arguments={"command": "touch ran"})
        result = await controller.handle(call)
    print(result.model_dump_json())
asyncio.run(main())
"""


def _where_nothing_works(workspace: Path, isolation: str) -> dict[str, Any]:
    command = [sys.executable, "-c", _NOTHING_WORKS, str(workspace), isolation]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert done.stdout, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.mark.attack
def test_without_user_namespaces_a_call_is_refused_with_the_remedy(workspace: Path) -> None:
    result = _where_nothing_works(workspace, "full")
    assert result["error"]["category"] == "cell_setup"
    assert "unshare" in result["error"]["message"]
    assert "user namespaces" in result["error"]["hint"]
    assert not (workspace / "ran").exists()


@pytest.mark.attack
def test_without_user_namespaces_the_lower_rung_is_taken_only_where_it_is_allowed_and_told(
    workspace: Path,
) -> None:
    result = _where_nothing_works(workspace, "auto")
    assert result["success"], result
    assert result["enforcement"]["rung"] == "landlock"
    assert result["enforcement"]["attested"]
    assert set(result["enforcement"]["required"]) <= set(result["enforcement"]["enforced"])
    assert (workspace / "ran").exists()


_CHILDREN_IGNORED = """
import asyncio, json, signal, sys
from toolcell import CellSettings, ToolCall, ToolController, ToolPolicy, ToolRegistry
if sys.argv[3] == "ignored":
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
async def main():
    policy = ToolPolicy(allow=["*"], cell=CellSettings(isolation=sys.argv[2]))
    async with ToolController(ToolRegistry.builtin(), policy, sys.argv[1]) as controller:
        call = ToolCall(call_id="1", name="shell", arguments={"command": "(exit 3); echo $?"})
        result = await controller.handle(call)
    print(json.dumps(result.for_llm()))
asyncio.run(main())
"""


@pytest.mark.parametrize("ends", ["told", "ignored"])
def test_a_host_that_ignores_the_ends_of_its_children_can_make_calls(
    workspace: Path, rung: str, ends: str
) -> None:
    """Daemons do; an ignored signal stays ignored in the programs that they start."""
    command = [sys.executable, "-c", _CHILDREN_IGNORED, str(workspace), rung, ends]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert json.loads(done.stdout) == "3", done.stderr


async def test_a_missing_interpreter_is_a_refusal_and_nothing_runs(
    walled: Any, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What starts the walls is gone: no call may go without them, or read as a success."""
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", str(workspace / "no-python"))
        result = await walled().sh("touch ran")
    assert result.error.category == "cell_setup", result.for_llm()
    assert not (workspace / "ran").exists()
    assert (await walled().sh("touch ran")).success, "the control"


async def test_a_denial_says_that_repeating_does_not_help(runner: Any) -> None:
    run = runner(policy=ToolPolicy(deny={"shell": "not in this project"}))
    text = (await run.sh("true")).for_llm()
    assert "not in this project" in text
    assert "repeating it will not help" in text


@pytest.mark.attack
async def test_a_model_cannot_ask_for_the_cell_to_be_switched_off(run: Any) -> None:
    for extra in ({"sandbox": False}, {"isolation": "none"}, {"network": "host"}):
        result = await run("shell", command="true", **extra)
        assert result.error.category == "invalid_arguments"


async def test_two_controllers_do_not_disturb_each_other(tmp_path: Path) -> None:
    places = [tmp_path / "one", tmp_path / "two"]
    for place in places:
        place.mkdir()
    policy = ToolPolicy(allow=["*"])
    one, two = (ToolController(ToolRegistry.builtin(), policy, place) for place in places)
    call = ToolCall(call_id="same", name="shell", arguments={"command": "pwd; ls ..; sleep 0.1"})
    async with two:
        async with one:
            first, second = await asyncio.gather(one.handle(call), two.handle(call))
        assert [r.output for r in (first, second)] == [f"{p}\n{p.name}\n" for p in places]
        assert (await two.handle(call)).success
