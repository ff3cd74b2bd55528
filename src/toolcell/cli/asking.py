"""Where a command meets a question: asked on the terminal, waited for, or left open."""

import asyncio
import os
import pwd
import sys
import threading
from concurrent.futures import Future

from toolcell.cli.progress import stepped_aside
from toolcell.cli.prompt import ask, can_ask
from toolcell.controller import ToolController
from toolcell.grants import RunOptions
from toolcell.model import ApprovalRequest, ApprovalResponse, ToolResult


async def ask_or_wait(
    controller: ToolController,
    request: ApprovalRequest,
    options: RunOptions | None = None,
    *,
    wait: bool,
) -> ToolResult | ApprovalRequest:
    """Ask a person on the terminal, or wait for one elsewhere; otherwise the question stays open.

    Where the person at the terminal does not answer, it stays open too.
    """
    if wait:
        print(
            f"toolcell: waiting for an answer: toolcell approvals show {request.approval_id}",
            file=sys.stderr,
        )
        return await controller.wait(request, options)
    if not can_ask():
        return request
    response = await _asked(request)
    return request if response is None else await controller.resolve(response, options)


async def _asked(request: ApprovalRequest) -> ApprovalResponse | None:
    """Ask in a thread, so that calls that run go on; `ask` takes one question at a time.

    The thread is a daemon: a question that nobody answers must not keep the program from ending.
    """
    answer: Future[ApprovalResponse | None] = Future()

    def body() -> None:
        try:
            with stepped_aside():
                answer.set_result(ask(request, by=_name()))
        except BaseException as error:  # noqa: BLE001  # it is raised where it is waited for
            answer.set_exception(error)

    threading.Thread(target=body, daemon=True).start()
    return await asyncio.wrap_future(answer)


def _name() -> str:
    """Who is at the terminal, by the system's word: the environment's can be anyone's."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"
