"""Every status and category that exists so far, through the real thing."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from toolcell import (
    Category,
    Guarantee,
    Status,
    ToolCall,
    ToolController,
    ToolPolicy,
    ToolRegistry,
    WorkspaceError,
)
from toolcell.model import STATUS_OF

pytestmark = [pytest.mark.isolation, pytest.mark.any_user]

_OWN = """
import os, resource, signal, time
from toolcell import tool, ToolError

@tool
def refuse() -> str:
    raise ToolError("no such city", hint="try another")

@tool
def divide() -> float:
    return 1 / 0

@tool
def hoard() -> int:
    return len(bytearray(1 << 30))

@tool
def vanish() -> str:
    os._exit(0)

def reply_descriptor():
    fds = [int(fd) for fd in os.listdir("/proc/self/fd") if int(fd) > 2]
    return [fd for fd in fds if os.path.exists(f"/proc/self/fd/{fd}")
            and os.readlink(f"/proc/self/fd/{fd}").startswith("pipe:")][0]

def send(*bodies):
    for body in bodies:
        os.write(reply_descriptor(), len(body).to_bytes(4, "big") + body)
    os._exit(0)

@tool
def garbage() -> str:
    send(b"not json")

@tool
def nan() -> str:
    send(b'{"type": "reply", "value": NaN}')

@tool
def twice() -> str:
    send(b'{"type": "reply", "value": 1}', b'{"type": "reply", "value": 2}')

@tool
def twice_a_key() -> str:
    send(b'{"type": "reply", "value": 1, "value": 2}')

@tool
def surrogate() -> str:
    send(b'{"type": "reply", "value": "\\\\ud800"}')

@tool
def deep() -> str:
    send(b'{"type": "reply", "value": ' + b"[" * 100 + b"]" * 100 + b"}")

@tool
def cut_off() -> str:
    os.write(reply_descriptor(), b"\\0\\0\\1\\0{")
    os._exit(0)

@tool
def oversized() -> str:
    os.write(reply_descriptor(), b"\\xff\\xff\\xff\\xff")
    os._exit(0)

@tool
def unsendable() -> object:
    return object()

@tool
def infinite() -> float:
    return float("inf")
"""

_HOG = """
import mmap
hog = mmap.mmap(-1, 1 << 29)
for offset in range(0, 1 << 29, 4096):
    hog[offset] = 1
"""
_TOO_BIG = """
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
open("big", "wb").write(bytes(2 << 20))
"""
_SPIN = "while True: pass"
_SPIN_DEAF = "import signal; signal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass"


def _ends(result: Any, category: str) -> None:
    """Assert the category, and what every failure has in common."""
    assert result.error is not None, result
    assert result.error.category == category, result.for_llm()
    assert result.status is STATUS_OF[Category(category)]
    assert not result.success
    named = "[cancelled]" if category == "cancelled" else f"[{result.status}: {category},"
    assert named in result.for_llm()
    assert "Traceback" not in result.error.message
    ran = result.source == "cell" and category != "cell_setup"
    assert (Guarantee.FILESYSTEM in result.enforcement.enforced) == ran
    assert result.metadata.survivors_checked == ran or category == "cell_setup"


async def test_a_success_is_told_as_such(run: Any) -> None:
    result = await run("echo", text="hello")
    assert (result.status, result.success, result.error) == (Status.SUCCEEDED, True, None)
    assert (result.output, result.return_code, result.signal) == ("hello", 0, None)
    assert result.enforcement.rung == "full"
    assert set(result.enforcement.required) <= set(result.enforcement.enforced)
    assert result.metadata.survivors_checked


@pytest.mark.attack
@pytest.mark.parametrize(
    ("tool", "category", "words"),
    [
        ("divide", "exception", "ZeroDivisionError"),
        ("hoard", "memory", "memory"),
        ("vanish", "worker_lost", "without an answer"),
        ("garbage", "bad_reply", "not JSON"),
        ("nan", "bad_reply", "NaN"),
        ("twice", "bad_reply", "second"),
        ("twice_a_key", "bad_reply", "twice"),
        ("surrogate", "bad_reply", "surrogate"),
        ("deep", "bad_reply", "deep"),
        ("cut_off", "bad_reply", "inside a frame"),
        ("oversized", "bad_reply", "limit"),
        ("unsendable", "bad_reply", "JSON"),
        ("infinite", "bad_reply", "JSON"),
    ],
)
async def test_a_tool_of_ones_own_ends_in(
    runner: Any, module: Any, tool: str, category: str, words: str
) -> None:
    own = module(_OWN)
    result = await runner(getattr(own, tool), limits={"memory": 256 << 20})(tool)
    _ends(result, category)
    assert words in result.error.message


@pytest.mark.attack
@pytest.mark.parametrize(
    ("tool", "text", "category", "limits"),
    [
        ("shell", "echo kept; exit 7", "exit_code", {}),
        ("python", "print('kept', flush=True); raise SystemExit(7)", "exit_code", {}),
        ("python", "print('kept'); 1 / 0", "exit_code", {}),
        ("shell", "echo kept; kill -SEGV $$", "signal", {}),
        ("python", f"print('kept'){_HOG}", "memory", {"memory": 64 << 20}),
        ("python", f"print('kept')\n{_SPIN}", "cpu", {"cpu": 1}),
        ("python", f"print('kept')\n{_SPIN_DEAF}", "cpu", {"cpu": 1}),
        ("shell", "echo kept; exec head -c 2M /dev/zero > big", "disk", {"file_size": 1 << 20}),
        ("python", f"print('kept', flush=True){_TOO_BIG}", "disk", {"file_size": 1 << 20}),
        ("shell", "echo kept; yes", "output_limit", {"output": 1 << 20}),
        ("shell", "echo kept; sleep 30", "wall", {"wall": 0.5}),
        ("shell", "echo kept; trap '' TERM; sleep 30", "wall", {"wall": 0.3, "grace": 0.2}),
    ],
)
async def test_a_program_ends_in(
    runner: Any, tool: str, text: str, category: str, limits: dict[str, Any]
) -> None:
    run = runner(limits=limits)
    result = await (run.sh(text) if tool == "shell" else run.py(text))
    _ends(result, category)
    assert "kept" in result.for_llm()


async def test_an_exit_code_and_a_signal_are_named(run: Any) -> None:
    exited = await run.sh("echo reason >&2; exit 42")
    assert (exited.return_code, exited.signal) == (42, None)
    assert "42" in exited.for_llm()
    assert "reason" in exited.for_llm()
    killed = await run.sh("kill -ABRT $$")
    assert (killed.return_code, killed.signal) == (None, "SIGABRT")
    assert "SIGABRT" in killed.for_llm()


@pytest.mark.parametrize(
    ("lend", "words"),
    [
        (Path("/nonexistent/workspace"), "not a directory"),
        (None, "none was given"),
        (Path("/"), "far more than one project"),
    ],
)
def test_a_workspace_that_cannot_be_lent_is_the_hosts_mistake(
    runner: Any, lend: Path | None, words: str
) -> None:
    with pytest.raises(WorkspaceError, match=words):
        runner(lend=lend)


async def test_a_cell_that_cannot_be_made_is_refused(runner: Any, workspace: Path) -> None:
    run = runner(cell={"read": ["/nonexistent/data"]})
    result = await run("echo", text="never")
    _ends(result, "cell_setup")
    assert "does not exist" in result.for_llm()
    assert result.output == ""
    run = runner()
    workspace.rmdir()
    result = await run("echo", text="never")
    _ends(result, "cell_setup")
    assert "not a directory" in result.for_llm()
    assert (result.source, result.metadata.attempts) == ("controller", 0)


async def test_a_guarantee_that_is_required_and_not_given_is_a_refusal(
    runner: Any, without: Any
) -> None:
    without(Guarantee.MEMORY)
    result = await runner(cell={"require": ["filesystem", "memory"]})("echo", text="never")
    _ends(result, "cell_setup")
    assert "memory" in result.error.message
    assert "doctor" in result.error.hint
    allowed = await runner(cell={"require": ["filesystem"]})("echo", text="runs")
    assert allowed.success
    assert Guarantee.MEMORY not in allowed.enforcement.enforced


async def test_cancelling_by_id_ends_the_call_with_its_output_kept(
    controller: ToolController, workspace: Path, until: Any
) -> None:
    call = ToolCall(
        call_id="long", name="shell", arguments={"command": "echo kept; touch on; sleep 30"}
    )
    task = asyncio.create_task(controller.handle(call))
    await until((workspace / "on").exists, "the command runs")
    assert controller.cancel("long")
    result = await task
    _ends(result, "cancelled")
    assert "kept" in result.for_llm()
    assert not controller.cancel("long")


@pytest.mark.parametrize(
    ("name", "arguments", "category"),
    [
        ("send_email", {}, "unknown_tool"),
        ("echo", {"text": 123}, "invalid_arguments"),
        ("echo", '{"text": ', "invalid_arguments"),
        ("shell", {"command": "true"}, "policy_denied"),
    ],
)
async def test_a_call_is_rejected_before_anything_runs(
    workspace: Path, name: str, arguments: Any, category: str
) -> None:
    policy = ToolPolicy(allow=["echo"])
    async with ToolController(ToolRegistry.builtin(), policy, workspace) as controller:
        result = await controller.handle(ToolCall(call_id="1", name=name, arguments=arguments))
    _ends(result, category)
    assert result.source == "controller"


async def test_more_calls_than_may_wait_are_overloaded(runner: Any) -> None:
    run = runner(max_running=1, max_waiting=1)
    results = await asyncio.gather(*(run.sh("sleep 0.2") for _ in range(4)))
    categories = [result.error and result.error.category for result in results]
    assert sorted(filter(None, categories)) == ["overloaded"] * 2
    _ends(next(result for result in results if result.error), "overloaded")
    assert next(result for result in results if result.error).error.retryable
    assert (await run.sh("true")).success


@pytest.mark.parametrize(
    "call_id",
    ["toolu_01A09q90qw90lq917835lq9", " ", "id/../../x", "ключ-🔑", "x" * 5000, "a\nb\0c"],
)
async def test_the_calls_id_comes_back_unchanged(controller: ToolController, call_id: str) -> None:
    for name in ("echo", "no-such-tool"):
        call = ToolCall(call_id=call_id, name=name, arguments={"text": "x"})
        result = await controller.handle(call)
        assert result.call_id == call_id
