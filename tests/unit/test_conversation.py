"""Claims of `toolcell.cells.conversation`: the table is all there is, a wrong turn a value."""

from itertools import product
from typing import Any

import pytest

from sandbox_workers import wire
from toolcell.arguments import InvalidArguments
from toolcell.cells.conversation import ERROR_KINDS, Conversation, State
from toolcell.registry import define

from .samples import greet, inline, prepared

READY = {"type": "ready"}
FAILED = {"type": "failed", "stage": "jail", "message": "no", "errno": 1}
REPLY = {"type": "reply", "value": [1]}
ERROR = {
    "type": "error",
    "kind": "exception",
    "name": "N",
    "message": "m",
    "hint": "",
    "retryable": False,
}
FRAMES = {"ready": READY, "failed": FAILED, "reply": REPLY, "error": ERROR}
TURNS = {
    (State.MAKING, "ready"): State.READY,
    (State.MAKING, "failed"): State.FAILED,
    (State.ASKED, "reply"): State.ANSWERED,
    (State.ASKED, "error"): State.ANSWERED,
}


def at(state: State) -> Conversation:
    """Lead a conversation to a state."""
    conversation = Conversation()
    if state in (State.READY, State.ASKED, State.ANSWERED):
        conversation.feed(wire.frame(READY))
    if state in (State.ASKED, State.ANSWERED):
        conversation.ask(prepared(define(greet), name="Ada"), None)
    if state is State.ANSWERED:
        conversation.feed(wire.frame(REPLY))
    if state is State.FAILED:
        conversation.feed(wire.frame(FAILED))
    if state is State.BROKEN:
        conversation.feed(wire.frame(REPLY))
    assert conversation.state is state
    return conversation


@pytest.mark.parametrize(("state", "kind"), list(product(State, FRAMES)))
def test_every_turn_that_the_table_does_not_have_breaks_the_conversation(state, kind):
    conversation = at(state)
    conversation.feed(wire.frame(FRAMES[kind]))
    assert conversation.state is TURNS.get((state, kind), State.BROKEN)
    if conversation.state is State.BROKEN:
        assert conversation.answer is None
        assert conversation.problem
    else:
        assert conversation.answer == FRAMES[kind]


def test_a_second_answer_takes_the_first_one_back():
    conversation = at(State.ASKED)
    conversation.feed(wire.frame(REPLY) + wire.frame(REPLY))
    assert (conversation.answer, conversation.problem) == (None, "a second answer")


def test_a_broken_conversation_stays_broken():
    conversation = at(State.ASKED)
    conversation.feed(wire.frame({"type": "nonsense"}))
    problem = conversation.problem
    conversation.feed(wire.frame(REPLY))
    conversation.feed(b"")
    assert (conversation.state, conversation.problem) == (State.BROKEN, problem)


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"type": None},
        {"type": ["reply"]},
        {"type": "call"},
        {"type": "reply"},
        {"type": "reply", "value": 1, "more": 2},
        {"type": "error", "kind": "exception"},
        ERROR | {"message": 1},
        ERROR | {"kind": "policy_denied"},
        ERROR | {"kind": "wall"},
    ],
    ids=str,
)
def test_a_frame_with_other_fields_breaks_the_conversation(message):
    conversation = at(State.ASKED)
    conversation.feed(wire.frame(message))
    assert conversation.state is State.BROKEN


@pytest.mark.parametrize("kind", sorted(ERROR_KINDS))
def test_the_error_kinds_that_a_worker_may_claim_are_answers(kind):
    conversation = at(State.ASKED)
    conversation.feed(wire.frame(ERROR | {"kind": kind}))
    assert conversation.state is State.ANSWERED


@pytest.mark.parametrize("state", [State.MAKING, State.ASKED, State.ANSWERED])
def test_an_end_between_frames_is_no_problem_and_inside_one_it_is(state):
    whole, cut = at(state), at(state)
    whole.feed(b"")
    assert whole.state is state
    cut.feed(wire.frame(REPLY)[:-1])
    cut.feed(b"")
    assert cut.state is State.BROKEN
    assert "ended inside a frame" in cut.problem


@pytest.mark.parametrize("data", [b"\xff\xff\xff\xff", b"\0\0\0\1x", b"\0\0\0\2[]", b"\0\0\0\0"])
def test_bytes_that_are_no_frame_break_the_conversation(data):
    conversation = at(State.ASKED)
    conversation.feed(data)
    assert conversation.state is State.BROKEN


def test_the_request_names_the_handler_and_holds_the_canonical_arguments():
    conversation = at(State.READY)
    call = prepared(define(greet), name="Ada")
    reader = wire.FrameReader()
    reader.feed(conversation.ask(call, b"some input", {"cpu": 7}))
    handler = call.definition.handler
    assert reader.next() == {
        "type": "call",
        "module": handler.module,
        "file": None,
        "function": "greet",
        "import_path": [handler.root],
        "arguments": {"name": "Ada", "times": 1},
        "typed": [],
        "answers": "value",
        "stdin": "c29tZSBpbnB1dA==",
        "limits": {"cpu": 7},
    }
    assert conversation.state is State.ASKED


def test_a_call_that_no_frame_holds_cannot_be_asked():
    call = prepared(define(greet), name="x" * wire.MAX_FRAME)
    with pytest.raises(wire.WireError, match="over the limit"):
        Conversation().ask(call, None)


def test_every_call_that_validates_makes_a_frame_that_the_other_end_can_read():
    def take(value: Any) -> None: ...

    deepest: Any = 1
    for _ in range(59):
        deepest = [deepest]
    reader = wire.FrameReader()
    reader.feed(Conversation().ask(prepared(inline(take), value=deepest), None))
    assert reader.next()["arguments"] == {"value": deepest}
    with pytest.raises(InvalidArguments, match="deeper than 60"):
        prepared(inline(take), value=[deepest])
