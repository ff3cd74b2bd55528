"""The sync face: several threads, one controller."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from toolcell import (
    ApprovalRequest,
    ApprovalResponse,
    BlockingController,
    SqliteApprovals,
    ToolCall,
    ToolPolicy,
    ToolRegistry,
    ToolResult,
)

pytestmark = [pytest.mark.isolation, pytest.mark.any_user]


def _open(workspace: Path, **policy: Any) -> BlockingController:
    policy = policy or {"allow": ["*"]}
    return BlockingController(ToolRegistry.builtin(), ToolPolicy(**policy), workspace)


def _shell(number: int, command: str) -> ToolCall:
    return ToolCall(call_id=str(number), name="shell", arguments={"command": command})


def test_one_thread_waits_for_the_answer_that_another_process_may_give(workspace: Path) -> None:
    with _open(workspace, ask={"shell": "it runs programs"}) as controller:
        request = controller.handle(_shell(1, "echo ran"))
        assert isinstance(request, ApprovalRequest)
        with ThreadPoolExecutor(1) as thread:
            waiting = thread.submit(controller.wait, request)
            yes = ApprovalResponse(approval_id=request.approval_id, approved=True, by="Ada")
            SqliteApprovals().answer(yes)
            assert waiting.result(timeout=20).output == "ran\n"


def test_several_threads_share_one_controller(workspace: Path) -> None:
    with _open(workspace) as controller, ThreadPoolExecutor(8) as threads:
        calls = [_shell(n, f"echo {n}") for n in range(24)]
        results = list(threads.map(controller.handle, calls))
    assert [(r.call_id, r.output) for r in results if isinstance(r, ToolResult)] == [
        (str(n), f"{n}\n") for n in range(24)
    ]


def test_closing_twice_does_nothing_and_leaves_nothing(workspace: Path) -> None:
    threads = threading.active_count()
    controller = _open(workspace)
    controller.handle(_shell(1, "true"))
    controller.close()
    controller.close()
    assert threading.active_count() == threads
    assert psutil.Process().children() == []


def test_a_call_is_cancelled_from_another_thread(workspace: Path) -> None:
    with _open(workspace) as controller, ThreadPoolExecutor(1) as thread:
        future = thread.submit(controller.handle, _shell(1, "touch on; sleep 20"))
        # Until it runs there is nothing to cancel, and the answer says so.
        while not ((workspace / "on").exists() and controller.cancel("1")):
            assert not future.done()
        result = future.result(timeout=5)
    assert isinstance(result, ToolResult)
    assert result.status == "cancelled"


def test_an_approval_is_resolved_without_async(workspace: Path) -> None:
    with _open(workspace, ask=["shell"]) as controller:
        request = controller.handle(_shell(1, "echo approved"))
        assert isinstance(request, ApprovalRequest)
        answer = ApprovalResponse(approval_id=request.approval_id, approved=True, by="anna")
        assert controller.resolve(answer).output == "approved\n"


def test_an_error_of_the_caller_surfaces_in_the_calling_thread(workspace: Path) -> None:
    answer = ApprovalResponse(approval_id="made-up", approved=True, by="anna")
    with _open(workspace) as controller, pytest.raises(LookupError, match="made-up"):
        controller.resolve(answer)
