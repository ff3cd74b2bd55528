"""A kit for testing agents: real policy, approvals, events and budgets, and tools that are played.

    from toolcell import ToolError
    from toolcell.testing import FakeController

    with FakeController({"fetch": [ToolError("busy"), "page one"]}) as controller:
        my_agent(controller)
    assert controller.calls.names == ["fetch", "fetch"]

No process is started and nothing is waited for: a script says what each call comes to, and a clock
that is turned by hand or by the script drives deadlines, pauses and the expiry of questions.
"""

from toolcell.testing.behaviours import (
    Answers,
    Behaviour,
    Exceeds,
    Exits,
    Floods,
    Hangs,
    IsKilled,
    IsLost,
    NoCell,
    Raises,
    Waits,
)
from toolcell.testing.calls import Calls, SeenCall
from toolcell.testing.clock import FakeClock
from toolcell.testing.controller import AsyncFakeController, FakeController
from toolcell.testing.executor import FakeExecutor
from toolcell.testing.recording import Recording
from toolcell.testing.script import Script, ScriptedTool, UnscriptedCallError, scripted

__all__ = [
    "Answers",
    "AsyncFakeController",
    "Behaviour",
    "Calls",
    "Exceeds",
    "Exits",
    "FakeClock",
    "FakeController",
    "FakeExecutor",
    "Floods",
    "Hangs",
    "IsKilled",
    "IsLost",
    "NoCell",
    "Raises",
    "Recording",
    "Script",
    "ScriptedTool",
    "SeenCall",
    "UnscriptedCallError",
    "Waits",
    "scripted",
]
