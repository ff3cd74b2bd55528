"""doctor: what this machine can enforce, found out by trying to break it from inside a cell.

Each attempt has a control: the same thing is done from the controller first, and has to
succeed there, so that "held" means that the wall held and not that nothing was there.

Where a policy takes the strongest rung that can be had, and that is not the full one, the
full one is tried too, to tell what keeps it from this machine and what to do.
"""

import tempfile
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import psutil

from toolcell.cells.attestation import probe_definition, probe_targets
from toolcell.cells.capabilities import WEAKER, capabilities, rungs
from toolcell.controller import ToolController
from toolcell.errors import CellRefused
from toolcell.model import (
    Category,
    CellSettings,
    Guarantee,
    Limits,
    Rung,
    ToolCall,
    ToolResult,
)
from toolcell.policy import ToolPolicy
from toolcell.registry import ToolRegistry
from toolcell.runtime import ToolRuntime

_GROUPS = (
    "start the program with `systemd-run --user --scope -p Delegate=yes`, or as a user to whom "
    "the memory controller of a cgroup (version 2) is delegated"
)
_UNTRIED = "an attempt could not be made"

State = Literal["held", "broken", "not enforced"]

_MIB = 1024**2
_LIMITS = Limits(
    wall=20, cpu=1, memory=64 * _MIB, processes=16, file_size=4 * _MIB, scratch=8 * _MIB
)

_WORDS = {
    Guarantee.FILESYSTEM: {
        "read_outside": "read a file outside",
        "write_outside": "write a file outside",
        "mount": "mount a file system",
    },
    Guarantee.NETWORK: {
        "connect_tcp": "connect to the host's loopback",
        "connect_abstract": "connect to an abstract socket",
        "connect_unix": "send to a unix socket by its path",
    },
    Guarantee.PROCESS_TREE: {
        "signal_controller": "signal the controller",
        "leave_a_daemon": "leave a daemon behind",
    },
    Guarantee.SECRETS: {"read_environment": "read the controller's environment"},
    Guarantee.SYSCALLS: {
        "use_system_calls": "use a system call that tools do not need",
        "new_user_namespace": "enter a new user namespace",
    },
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


@dataclass(frozen=True, slots=True)
class Examination:
    """What was found: the rung that cells get here, every guarantee, and what would be better.

    `weaker` lists what the rung leaves open, `advice` pairs of what could be better and how.
    `usable` is false where the workspace that calls are to have cannot be lent.
    """

    rung: Rung | None
    findings: list[Finding]
    weaker: tuple[str, ...] = ()
    advice: tuple[tuple[str, str], ...] = ()
    usable: bool = True


async def examine(policy: ToolPolicy, workspace: Path | None = None) -> Examination:
    """Try every guarantee in a cell of the policy's settings.

    The cell has a workspace of its own; `workspace` is one that calls are to have, and only
    whether it can be lent is looked at.
    """
    rung, findings = await _tried(policy)
    if rung is None:
        return Examination(None, findings)
    advice = [*(await _for_the_full_rung(policy) if rung == "landlock" else [])]
    if rung != "none" and capabilities().groups is None:
        advice.append(
            ("memory is watched, not counted by the kernel: no cgroup can be made", _GROUPS)
        )
    if workspace is not None and (refusal := _refusal(policy, workspace, rung)):
        return Examination(rung, findings, WEAKER[rung], (refusal, *advice), usable=False)
    return Examination(rung, findings, WEAKER[rung], tuple(advice))


def _refusal(policy: ToolPolicy, workspace: Path, rung: Rung) -> tuple[str, str] | None:
    """Why calls could not have this workspace on the rung, and what to do."""
    protected = [policy.source] if policy.source else []
    runtime = ToolRuntime(ToolRegistry.builtin(), workspace, protected=protected)
    try:
        runtime.plan(policy.cell.model_copy(update={"require": ()}), policy.limits, rung)
    except CellRefused as refusal:
        return f"no call could run in {workspace}: {refusal.cause}", refusal.remedy
    return None


async def _for_the_full_rung(policy: ToolPolicy) -> list[tuple[str, str]]:
    """Why there are no namespaces, where the policy would have taken them."""
    if policy.cell.isolation != "auto":
        return []
    full = policy.changed(cell={"isolation": "full", "require": []})
    with tempfile.TemporaryDirectory() as workspace:
        async with _controller(full.cell, workspace) as controller:
            result = await _call(controller, "probe", {"targets": {}, "attempts": []})
    return [(result.error.message, result.error.hint)] if result.error else []


async def _tried(policy: ToolPolicy) -> tuple[Rung | None, list[Finding]]:
    # Without `require`, so that what cannot be had is shown rather than refused.
    settings = policy.cell.model_copy(update={"require": ()})
    # Where there are to be no walls, to try them would be to do it: to the host.
    walls = settings.isolation != "none"
    attempts = [name for names in _WORDS.values() for name in names] if walls else []
    async with AsyncExitStack() as stack:
        workspace = stack.enter_context(tempfile.TemporaryDirectory())
        controller = await stack.enter_async_context(_controller(settings, workspace))
        planner = ToolRuntime(controller.runtime.registry, workspace)
        given: dict[str, str] = {}  # where there will be no cell, the first call says why
        for each in rungs(settings):
            with suppress(CellRefused):
                given |= planner.plan(settings, _LIMITS, each).environment
        with probe_targets(given) as targets:
            result = await _call(controller, "probe", {"targets": targets, "attempts": attempts})
            if result.error:
                return None, [_unavailable(guarantee, policy, result) for guarantee in Guarantee]
            reached = dict(result.structured)
            reached["leave_a_daemon"] = _daemon_left(targets["mark"])
            for guarantee, (amount, _) in _EXHAUST.items():
                arguments = {"what": guarantee.value, "amount": amount}
                used = await _call(controller, "exhaust", arguments)
                reached[guarantee] = _overspent(guarantee, used)
    rung = result.enforcement.rung
    if rung is None or rung == "inline":
        raise TypeError("the doctor's probe runs in a cell")
    return rung, [_finding(guarantee, policy, result, reached) for guarantee in Guarantee]


def _controller(settings: CellSettings, workspace: str) -> ToolController:
    registry = ToolRegistry([probe_definition("probe"), probe_definition("exhaust")])
    policy = ToolPolicy(name="doctor", allow={"*": "a probe"}, cell=settings, limits=_LIMITS)
    return ToolController(registry, policy, workspace, spare_cells=0)


async def _call(controller: ToolController, name: str, arguments: dict[str, Any]) -> ToolResult:
    outcome = await controller.handle(ToolCall(call_id=name, name=name, arguments=arguments))
    if not isinstance(outcome, ToolResult):
        raise TypeError("the doctor's policy asks nobody")
    return outcome


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
    attempts = _WORDS.get(guarantee, {})
    tried = [*attempts.values()] or [_EXHAUST[guarantee][1]]
    asked = list(attempts) or [guarantee]
    broken = [text for name in asked if (text := reached.get(name, _UNTRIED))]
    mechanism = result.enforcement.enforced.get(guarantee)
    state: State = "not enforced" if mechanism is None else "broken" if broken else "held"
    return Finding(
        guarantee=guarantee,
        state=state,
        required=guarantee in policy.cell.require,
        mechanism=mechanism or _nothing(guarantee, policy, result),
        tried=", ".join(tried),
        detail="; ".join(dict.fromkeys(broken)) if state == "broken" else "",
        fix="please report this as a security problem" if state == "broken" else "",
    )


def _nothing(guarantee: Guarantee, policy: ToolPolicy, result: ToolResult) -> str:
    if guarantee is Guarantee.NETWORK and policy.cell.network == "host":
        return "nothing: the policy opens it"
    return f"nothing on the {result.enforcement.rung} rung"


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
