"""A launcher is used only after its walls have been tried from inside."""

import struct
from typing import Any

import pytest

from toolcell.cells import process

pytestmark = pytest.mark.isolation

_ALLOW_ALL = struct.pack("=HBBI", 0x06, 0, 0, 0x7FFF0000)


async def test_walls_that_hold_are_attested(run: Any) -> None:
    result = await run("echo", text="here")
    assert result.success
    assert result.enforcement.attested


async def test_a_missing_system_call_filter_is_found_and_refused(
    runner: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolcell.cells.plan.compile_filter", lambda *_, **__: _ALLOW_ALL)
    result = await runner()("echo", text="never")
    assert result.error.category == "cell_setup"
    assert "no system call filter" in result.error.message
    assert not result.enforcement.attested


async def test_a_network_that_is_open_by_mistake_is_found_and_refused(
    runner: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = process._wire_plan
    opened = {"network": "host", "landlock": None}
    monkeypatch.setattr(process, "_wire_plan", lambda plan: sent(plan) | opened)
    result = await runner()("echo", text="never")
    assert result.error.category == "cell_setup"
    assert "connected to a port of the host" in result.error.message


async def test_what_the_policy_opens_is_not_tried(runner: Any) -> None:
    run = runner(cell={"network": "host", "require": ["filesystem"]})
    assert (await run("echo", text="here")).enforcement.attested


async def test_the_smallest_limits_leave_room_for_the_probe(runner: Any) -> None:
    limits = {"memory": 16 * 1024**2, "processes": 1, "open_files": 16, "scratch": 64 * 1024}
    assert (await runner(limits=limits)("echo", text="here")).output == "here"
