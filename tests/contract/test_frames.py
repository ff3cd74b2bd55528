"""Golden frames: the bytes on the pipe, as both ends write them and read them."""

import pytest

from sandbox_workers import wire
from toolcell.cells.conversation import Conversation, State
from toolcell.model import HandlerRef, PreparedToolCall, ToolCall, ToolDefinition, ToolSpec

HANDLER = HandlerRef(module="mine.tools", function="greet", root="/code", code=("/code/mine",))
DEFINITION = ToolDefinition(
    spec=ToolSpec(name="greet", description="Greet.", input_schema={"type": "object"}),
    handler=HANDLER,
    typed=("times",),
)
CALL = PreparedToolCall.of(
    ToolCall(call_id="c1", name="greet"), DEFINITION, {"name": "Zoë", "times": 2}
)

REQUEST = (
    b'\x00\x00\x00\xbf{"type":"call","module":"mine.tools","file":null,"function":"greet",'
    b'"import_path":["/code"],"arguments":{"name":"Zo\xc3\xab","times":2},"typed":["times"],'
    b'"answers":"value","stdin":null,"limits":{}}'
)
READY = b'\x00\x00\x00\x10{"type":"ready"}'
FAILED = b'\x00\x00\x00\x45{"type":"failed","stage":"worker","message":"mount: EPERM","errno":1}'
REPLY = b'\x00\x00\x00\x2c{"type":"reply","value":{"\xc3\xa9":[1,2.5,null]}}'
ERROR = (
    b'\x00\x00\x00\x63{"type":"error","kind":"exception","name":"ValueError",'
    b'"message":"bad","hint":"","retryable":false}'
)
WAITING = b'\x00\x00\x00\x44{"type":"waiting","state":"queued","handle":"job-17","note":"later"}'

GOLDEN = {
    READY: {"type": "ready"},
    FAILED: {"type": "failed", "stage": "worker", "message": "mount: EPERM", "errno": 1},
    REPLY: {"type": "reply", "value": {"é": [1, 2.5, None]}},
    ERROR: {
        "type": "error",
        "kind": "exception",
        "name": "ValueError",
        "message": "bad",
        "hint": "",
        "retryable": False,
    },
    WAITING: {"type": "waiting", "state": "queued", "handle": "job-17", "note": "later"},
    b"\0\0\0\x02{}": {},
    b'\0\0\0\x0b{"s":"\xe2\x80\xa8"}': {"s": "\u2028"},
    b'\0\0\0\x14{"s":"\\"\\\\\\n\\u0000"}': {"s": '"\\\n\0'},
    b'\0\0\0\x18{"n":[0,-1,1e+30,0.1,1]}': {"n": [0, -1, 1e30, 0.1, 1]},
    b'\0\0\0\x20{"b":[true,false,null,{},[],""]}': {"b": [True, False, None, {}, [], ""]},
}


@pytest.mark.parametrize("data", GOLDEN, ids=lambda data: data[4:30].decode())
def test_an_encoded_frame_is_byte_for_byte_the_golden_one(data):
    assert wire.frame(GOLDEN[data]) == data


@pytest.mark.parametrize("data", GOLDEN, ids=lambda data: data[4:30].decode())
def test_a_golden_frame_is_read_as_what_it_means(data):
    reader = wire.FrameReader()
    reader.feed(data)
    assert reader.next() == GOLDEN[data]
    reader.close()


def test_the_request_is_byte_for_byte_the_golden_one():
    assert Conversation().ask(CALL, None) == REQUEST


@pytest.mark.parametrize(
    ("last", "state"),
    [
        (REPLY, State.ANSWERED),
        (ERROR, State.ANSWERED),
        (WAITING, State.ANSWERED),
        (b"", State.ASKED),
    ],
)
def test_a_conversation_of_golden_frames_goes_its_way(last, state):
    conversation = Conversation()
    conversation.feed(READY)
    conversation.ask(CALL, None)
    conversation.feed(last)
    assert conversation.state is state


def test_a_jail_that_cannot_be_shut_says_so_in_a_golden_frame():
    conversation = Conversation()
    conversation.feed(FAILED)
    assert (conversation.state, conversation.answer) == (State.FAILED, GOLDEN[FAILED])


def body(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


MALFORMED = {
    "length one over the cap": b"\x01\x00\x00\x01",
    "largest length": b"\xff\xff\xff\xff",
    "empty body": b"\0\0\0\0",
    "duplicate key": body(b'{"type":"reply","value":1,"value":2}'),
    "duplicate key spelt with an escape": body(b'{"a":1,"\\u0061":2}'),
    "NaN": body(b'{"type":"reply","value":NaN}'),
    "Infinity": body(b'{"type":"reply","value":-Infinity}'),
    "overflow": body(b'{"type":"reply","value":1e400}'),
    "too deep": body(b'{"v":' + b"[" * 64 + b"]" * 64 + b"}"),
    "bottomless": body(b"[" * 1_000_000),
    "lone surrogate": body(b'{"v":"\\ud83d"}'),
    "surrogate as bytes": body(b'{"v":"\xed\xa0\xbd"}'),
    "not UTF-8": body(b'{"v":"\xff"}'),
    "control character": body(b'{"v":"\n"}'),
    "array": body(b"[]"),
    "number": body(b"1"),
    "null": body(b"null"),
    "trailing comma": body(b'{"v":1,}'),
    "single quotes": body(b"{'v':1}"),
    "two documents": body(b"{}{}"),
    "byte order mark": body(b"\xef\xbb\xbf{}"),
    "wrong length": b"\0\0\0\x03{}\0",
}


@pytest.mark.parametrize("data", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_frame_raises_wire_error(data):
    reader = wire.FrameReader()
    reader.feed(data)
    with pytest.raises(wire.WireError):
        reader.next()


@pytest.mark.parametrize("size", range(1, len(REPLY)))
def test_a_frame_cut_anywhere_is_told_when_the_stream_ends(size):
    reader = wire.FrameReader()
    reader.feed(REPLY[:size])
    assert reader.next() is None
    with pytest.raises(wire.WireError, match=f"after {size} bytes"):
        reader.close()
