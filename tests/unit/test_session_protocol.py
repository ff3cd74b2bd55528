"""Claims of `toolcell.sessions.protocol` and of `sandbox_workers.records`: strict; no crash."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox_workers import records, wire
from sandbox_workers.records import MESSAGE, STDERR, STDOUT
from toolcell.sessions.protocol import (
    Dialogue,
    Done,
    Ended,
    Forked,
    Output,
    State,
    Unforked,
)

from .hosting import said

DONE = {
    **{"type": "done", "branch": 0, "call": 1, "exit": 0, "error": None},
    **{"earlier": "", "earlier_total": 0, "earlier_lines": 0},
}
ENDED = {"type": "ended", "branch": 0, "exit": 3, "why": ""}


def output(call, data, kind=STDOUT):
    return records.head(kind, call, len(data)) + data


def running():
    dialogue = Dialogue()
    assert dialogue.call(0, "code", None)[0] == 1
    return dialogue


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_a_call_is_its_output_in_order_and_then_its_end_however_the_bytes_are_cut(size):
    dialogue = running()
    told = DONE | {"earlier": "b2xk", "earlier_total": 9, "earlier_lines": 2}
    told["error"] = ["memory", "MemoryError", ""]
    data = output(1, b"out") + output(1, b"err", STDERR) + records.message(told)
    found = []
    for start in range(0, len(data), size):
        found += said(dialogue, data[start : start + size])
    assert found == [
        Output(1, "stdout", b"out"),
        Output(1, "stderr", b"err"),
        Done(0, 1, 0, ("memory", "MemoryError", ""), b"old", 9, 2),
    ]
    assert dialogue.problem is None
    assert dialogue.call(0, "next", b"in")[0] == 2


def test_a_fork_makes_branches_that_run_and_end_apart():
    dialogue = Dialogue()
    dialogue.fork(0, 2, reseed=False)
    told = {"type": "forked", "branch": 0, "open_files": ["/log"]}
    assert said(dialogue, records.message(told)) == [Forked(0, (1, 2), ("/log",))]
    assert [dialogue.call(branch, "", None)[0] for branch in (2, 0, 1)] == [1, 2, 3]
    assert said(dialogue, output(3, b"of 1") + records.message(ENDED | {"branch": 1})) == [
        Output(3, "stdout", b"of 1"),
        Ended(1, 3, ""),
    ]
    assert dialogue.living == 2
    refused = {"type": "unforked", "branch": 0, "message": "threads"}
    said(dialogue, records.message(DONE | {"call": 2}))
    dialogue.fork(0, 1, reseed=True)
    assert said(dialogue, records.message(refused)) == [Unforked(0, "threads")]
    assert dialogue.problem is None


@pytest.mark.parametrize(
    "data",
    [
        records.head(9, 0, 0),
        records.head(STDOUT, 1, records.MAX_BODY + 1),
        output(2, b"of a call that does not run"),
        output(0, b""),
        records.head(MESSAGE, 0, 2) + b"[]",
        records.head(MESSAGE, 0, 1) + b"{",
        records.message({"type": "other"}),
        records.message({"type": ["done"]}),
        records.message(DONE | {"more": 1}),
        records.message(DONE | {"exit": 256}),
        records.message(DONE | {"exit": True}),
        records.message(DONE | {"exit": 1.0}),
        records.message(DONE | {"call": 2}),
        records.message(DONE | {"branch": 1}),
        records.message(DONE | {"earlier": "?"}),
        records.message(DONE | {"earlier": "b2xk", "earlier_total": 2}),
        records.message(DONE | {"earlier_total": 10**30}),
        records.message(DONE | {"earlier": "b2xk", "earlier_total": 9, "earlier_lines": 7}),
        records.message(DONE | {"earlier": "b2wK", "earlier_total": 3}),
        records.message(DONE | {"call": 10**30}),
        output(1, b""),
        records.message(DONE | {"error": ["memory"]}),
        records.message(DONE | {"error": ["exception", "E", "x" * 5000]}),
        records.message(DONE | {"error": ["wall", "", ""]}),
        records.message(ENDED | {"exit": -65}),
        records.message({"type": "forked", "branch": 0, "open_files": []}),
        records.message(DONE) + records.message(DONE),
        records.message(ENDED) + output(1, b"after its end"),
    ],
    ids=lambda data: repr(data[9:60]),
)
def test_what_no_host_says_breaks_the_dialogue_for_good(data):
    dialogue = running()
    said(dialogue, data)
    assert dialogue.problem
    assert said(dialogue, output(1, b"more")) == []


@given(st.lists(st.binary(max_size=200) | st.binary(max_size=40).map(lambda b: output(1, b))))
def test_no_bytes_crash_the_reader(pieces):
    dialogue = running()
    for piece in pieces:
        said(dialogue, piece)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(
    st.sampled_from([DONE, ENDED, {"type": "forked", "branch": 0, "open_files": []}]),
    st.dictionaries(st.sampled_from([*DONE, "why", "open_files", "message"]), _JSON, max_size=4),
    st.booleans(),
)
def test_no_message_crashes_the_reader(base, changes, forking):
    dialogue = Dialogue() if forking else running()
    if forking:
        dialogue.fork(0, 1, reseed=False)
    body = json.dumps(base | changes).encode()
    for message in said(dialogue, records.head(MESSAGE, 0, len(body)) + body):
        assert isinstance(message, Done | Ended | Forked | Unforked)


def test_a_call_out_of_turn_is_a_defect_of_ours():
    dialogue = running()
    with pytest.raises(KeyError):
        dialogue.call(0, "again", None)
    assert dialogue._states[0] is State.RUNNING


def test_a_call_that_is_too_large_to_send_leaves_its_branch_as_it_was():
    dialogue = Dialogue()
    with pytest.raises(wire.WireError):
        dialogue.call(0, "x" * wire.MAX_FRAME, None)
    assert dialogue.call(0, "small", None)[0] == 1
