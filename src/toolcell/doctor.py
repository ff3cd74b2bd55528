"""doctor: what this machine can enforce, found out by trying to break it from inside a cell.

Each attempt has a control: the same thing is done from the controller first, and has to
succeed there, so that "held" means that the wall held and not that nothing was there.
"""

import os
import secrets
import socket
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import psutil

from toolcell.controller import ToolController
from toolcell.model import (
    Category,
    CellSettings,
    Guarantee,
    HandlerRef,
    Limits,
    ToolCall,
    ToolDefinition,
    ToolResult,
    ToolSpec,
)
from toolcell.policy import ToolPolicy
from toolcell.registry import ToolRegistry

State = Literal["held", "broken", "not enforced"]

_HANDLERS = "sandbox_workers.tools.probe"
_VARIABLE = "TOOLCELL_DOCTOR_SECRET"
_MIB = 1024**2
_LIMITS = Limits(
    wall=20, cpu=1, memory=64 * _MIB, processes=16, file_size=4 * _MIB, scratch=8 * _MIB
)

_ATTEMPTS = {
    Guarantee.FILESYSTEM: {
        "read_outside": "read a file outside",
        "write_outside": "write a file outside",
        "mount": "mount a file system",
    },
    Guarantee.NETWORK: {
        "connect_tcp": "connect to the host's loopback",
        "connect_abstract": "connect to an abstract socket",
    },
    Guarantee.PROCESS_TREE: {
        "signal_controller": "signal the controller",
        "leave_a_daemon": "leave a daemon behind",
    },
    Guarantee.SECRETS: {"read_environment": "read the controller's environment"},
    Guarantee.SYSCALLS: {"use_system_calls": "use a system call that tools do not need"},
}
_EXHAUST = {
    Guarantee.MEMORY: (256 * _MIB, "take four times the memory limit"),
    Guarantee.PROCESSES: (64, "start four times the processes"),
    Guarantee.DISK: (16 * _MIB, "write four times the file size limit"),
    Guarantee.CPU: (4, "use four times the CPU time limit"),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One guarantee: what was tried, how it ended, and what to do."""

    guarantee: Guarantee
    state: State
    required: bool
    mechanism: str
    tried: str
    detail: str = ""
    fix: str = ""


async def examine(policy: ToolPolicy) -> list[Finding]:
    """Try every guarantee in a cell of the policy's settings; one finding for each."""
    # Without `require`, so that what cannot be had is shown rather than refused.
    settings = policy.cell.model_copy(update={"require": ()})
    with _targets() as targets, tempfile.TemporaryDirectory() as workspace:
        async with _controller(settings, workspace) as controller:
            result = await _call(controller, "probe", {"targets": targets})
            if result.error:
                return [_unavailable(guarantee, policy, result) for guarantee in Guarantee]
            reached = dict(result.structured)
            reached["leave_a_daemon"] = _daemon_left(targets["mark"])
            for guarantee, (amount, _) in _EXHAUST.items():
                arguments = {"what": guarantee.value, "amount": amount}
                used = await _call(controller, "exhaust", arguments)
                reached[guarantee] = _overspent(guarantee, used)
    return [_finding(guarantee, policy, result, reached) for guarantee in Guarantee]


def _controller(settings: CellSettings, workspace: str) -> ToolController:
    registry = ToolRegistry([_tool("probe", "targets"), _tool("exhaust", "what", "amount")])
    policy = ToolPolicy(name="doctor", allow={"*": "a probe"}, cell=settings, limits=_LIMITS)
    return ToolController(registry, policy, workspace, spare_cells=0)


def _tool(name: str, *arguments: str) -> ToolDefinition:
    return ToolDefinition(
        spec=ToolSpec(
            name=name,
            description="A probe of the doctor.",
            input_schema={"type": "object", "properties": {name: {} for name in arguments}},
        ),
        handler=HandlerRef(module=_HANDLERS, function=name),
    )


async def _call(controller: ToolController, name: str, arguments: dict[str, Any]) -> ToolResult:
    outcome = await controller.handle(ToolCall(call_id=name, name=name, arguments=arguments))
    if not isinstance(outcome, ToolResult):
        raise TypeError("the doctor's policy asks nobody")
    return outcome


@contextmanager
def _targets() -> Iterator[dict[str, Any]]:
    """Set up what a cell must not reach, and reach it from here: the control."""
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="toolcell-doctor-")))
        secret = place / "secret"
        secret.write_text("secret")
        secret.chmod(0o644)
        place.chmod(0o755)
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        port = listener.getsockname()[1]
        abstract = f"toolcell-doctor-{secrets.token_hex(8)}"
        named = stack.enter_context(socket.socket(socket.AF_UNIX))
        named.bind("\0" + abstract)
        named.listen()
        os.environ[_VARIABLE] = "secret"
        stack.callback(os.environ.pop, _VARIABLE)
        _control(secret, port, abstract)
        yield {
            "file": str(secret),
            "port": port,
            "abstract": abstract,
            "pid": os.getpid(),
            "variable": _VARIABLE,
            "mark": f"toolcell-doctor-{secrets.token_hex(8)}",
        }


def _control(secret: Path, port: int, abstract: str) -> None:
    secret.read_bytes()
    secret.with_name("control").write_bytes(b"")
    socket.create_connection(("127.0.0.1", port), 2).close()
    with socket.socket(socket.AF_UNIX) as client:
        client.connect("\0" + abstract)
    os.kill(os.getpid(), 0)


def _daemon_left(mark: str) -> str | None:
    for process in psutil.process_iter(["cmdline"]):
        if mark in (process.info["cmdline"] or []):
            return "a process outlived its call"
    return None


def _overspent(guarantee: Guarantee, result: ToolResult) -> str | None:
    """What was had past a limit; the CPU limit shows by how the call was ended."""
    if guarantee is Guarantee.CPU:
        ended = result.error is not None and result.error.category is Category.CPU
        return None if ended else "the call was not ended at its CPU limit"
    if result.success and result.structured is None:
        return result.output or None  # None: the attempt was stopped inside
    if result.error and result.error.category is Category.MEMORY:
        return None
    return f"the attempt itself failed: {result.error.message if result.error else result.output}"


def _finding(
    guarantee: Guarantee, policy: ToolPolicy, result: ToolResult, reached: dict[str, Any]
) -> Finding:
    attempts = _ATTEMPTS.get(guarantee, {})
    tried = [*attempts.values()] or [_EXHAUST[guarantee][1]]
    broken = [text for name in [*attempts, guarantee] if (text := reached.get(name))]
    mechanism = result.enforcement.enforced.get(guarantee)
    state: State = "not enforced" if mechanism is None else "broken" if broken else "held"
    return Finding(
        guarantee=guarantee,
        state=state,
        required=guarantee in policy.cell.require,
        mechanism=mechanism or "nothing: the policy opens it, or this machine cannot",
        tried=", ".join(tried),
        detail="; ".join(broken),
        fix="please report this as a security problem" if state == "broken" else "",
    )


def _unavailable(guarantee: Guarantee, policy: ToolPolicy, result: ToolResult) -> Finding:
    error = result.error
    return Finding(
        guarantee=guarantee,
        state="not enforced",
        required=guarantee in policy.cell.require,
        mechanism="no cell could be made",
        tried="start a cell",
        detail=error.message if error else "",
        fix=error.hint if error else "",
    )
