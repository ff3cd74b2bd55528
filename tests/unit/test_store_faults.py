"""A file of events or approvals that cannot be used: told in words, nothing runs, nothing is lost.

Each fault is a real one, met by a controller whose stores are files.
"""

import resource
import sqlite3
from contextlib import contextmanager

import pytest

from toolcell import (
    ApprovalRequest,
    Category,
    EventKind,
    EventLog,
    EventReader,
    SqliteApprovals,
    ToolCall,
    ToolController,
    ToolPolicy,
    ToolRegistry,
    ToolResult,
    tool,
)
from toolcell.events import verify
from toolcell.registry import define


@contextmanager
def locked(path):
    """Another connection holds the write lock."""
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.close()


@contextmanager
def full(path):
    """No file of this process can grow."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def garbled(path):
    """Something else was written over it, and taken back."""
    kept = path.read_bytes()
    path.write_bytes(b"not a database" * 1000)
    try:
        yield
    finally:
        path.write_bytes(kept)


FAULTS = {
    "locked": (locked, "locked by another process"),
    "full": (full, "its space"),
    "garbled": (garbled, "not a database"),
}


class Bench:
    """A controller with both stores in files, and an inline tool that counts its runs."""

    def __init__(self, place):
        self.ran = 0
        self.place = place

        def act(text: str) -> str:
            self.ran += 1
            return text

        self.registry = ToolRegistry([define(tool(isolation="inline")(act))])
        self.open()

    def open(self):
        self.log = EventLog(self.place / "events.db", wait=0.05)
        self.approvals = SqliteApprovals(self.place / "approvals.db", wait=0.05)

    async def call(self, *, ask, events=True):
        policy = ToolPolicy(**{"ask" if ask else "allow": {"act": "it acts"}})
        controller = ToolController(
            self.registry,
            policy,
            events=self.log if events else (),
            approvals=self.approvals,
            spare_cells=0,
        )
        call = ToolCall(call_id="1", name="act", arguments={"text": "x"})
        return await controller.handle(call)

    def kinds(self):
        reader = EventReader(self.place / "events.db")
        try:
            return [row.event.kind for row in reader.rows()]
        finally:
            reader.close()

    def close(self):
        self.log.close()
        self.approvals.close()


@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("name", ["events.db", "approvals.db"])
async def test_a_store_that_cannot_be_used_keeps_the_call_from_running(tmp_path, name, kind):
    fault, words = FAULTS[kind]
    bench = Bench(tmp_path)
    assert isinstance(await bench.call(ask=True), ApprovalRequest), "the control"
    before = bench.kinds()
    if fault is garbled:  # a connection that is open has its own idea of the file
        bench.close()
    with fault(tmp_path / name):
        # With a full disk the events would be the first to tell.
        result = await bench.call(ask=name == "approvals.db", events=name == "events.db")
    assert isinstance(result, ToolResult)
    assert result.error.category is Category.CELL_SETUP
    assert words in result.error.message
    assert name in result.error.message
    assert bench.ran == 0
    bench.close()
    assert [each.call.name for each in bench.approvals.pending()] == ["act"], "nothing is lost"
    assert bench.kinds()[: len(before)] == before
    assert verify(tmp_path / "events.db").intact
    assert (await bench.call(ask=False)).success
    assert bench.ran == 1
    assert bench.kinds()[-1] is EventKind.FINISHED
