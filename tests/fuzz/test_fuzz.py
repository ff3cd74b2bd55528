"""Whatever comes in, only the one exception that a module names comes out of it."""

import json

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sandbox_workers import wire
from toolcell.arguments import InvalidArguments, validate
from toolcell.cells.capture import StreamCapture
from toolcell.cells.conversation import Conversation, State
from toolcell.declare import tool
from toolcell.errors import PolicyError
from toolcell.legible import clean, clean_text
from toolcell.model import (
    Captured,
    HandlerRef,
    PreparedToolCall,
    ToolCall,
    ToolDefinition,
    ToolSpec,
)
from toolcell.normalizer.truncation import shorten, shorten_text
from toolcell.policy.file import parse_policy
from toolcell.registry import define

settings.register_profile(
    "toolcell", max_examples=150, deadline=None, suppress_health_check=list(HealthCheck)
)
settings.load_profile("toolcell")

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
ANY_TEXT = st.text(max_size=30)  # lone surrogates too
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT
JSON = st.recursive(
    SCALARS.filter(lambda value: value not in (float("inf"), float("-inf"))),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=15,
)
# Almost JSON: the marks that a parser stumbles over, in any order.
MARKS = [
    *'{}[]",:\\ \n\t0-.eE',
    "null",
    "NaN",
    "Infinity",
    "true",
    '"a":',
    "\\u",
    "\\ud800",
    "\ud800",
]
SOUP = st.lists(st.sampled_from(MARKS), max_size=40).map("".join)
# What a model might send: right names, wrong values, and things that are no JSON at all.
ODD = st.recursive(
    SCALARS | ANY_TEXT | st.floats() | st.binary(max_size=3) | st.complex_numbers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=8,
)


@tool(isolation="inline")
def sample(
    text: str, count: int = 1, ratio: float = 0.5, flags: list[bool] | None = None
) -> None: ...


SAMPLE = define(sample)
RAW = ToolDefinition(
    spec=ToolSpec(
        name="raw",
        description="d",
        input_schema={
            "properties": {"text": {"type": "string"}, "count": {"type": "integer"}},
            "additionalProperties": {"type": "boolean"},
        },
    ),
    handler=HandlerRef(module="m", function="f"),
)
CALL = PreparedToolCall.of(ToolCall(call_id="1", name="sample"), SAMPLE, {"text": "a"})


@given(st.binary() | SOUP | ANY_TEXT)
@example('{"a":1,"a":1}')
@example(b"\xff")
@example("[" * 100_000)
@example("9" * 5000)
@example('"' + "\\")
def test_decoding_anything_gives_a_value_or_wire_error(data):
    try:
        value = wire.decode(data)
    except wire.WireError:
        return
    assert wire.decode(wire.encode(value)) == value


@given(JSON)
def test_json_values_survive_the_pipe(value):
    assert wire.decode(wire.encode(value)) == value
    assert json.loads(wire.encode(value)) == value


@given(ODD)
def test_encoding_anything_gives_bytes_or_wire_error(value):
    try:
        wire.encode(value)
    except wire.WireError:
        return


@given(st.lists(st.dictionaries(TEXT, JSON, max_size=3), max_size=5), st.data())
def test_a_reader_gives_the_same_frames_however_the_stream_is_cut(values, data):
    stream = b"".join(wire.frame(value) for value in values)
    reader, seen = wire.FrameReader(), []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        reader.feed(stream[:size])
        stream = stream[size:]
        while (value := reader.next()) is not None:
            seen.append(value)
    reader.close()
    assert seen == values


@given(st.lists(st.binary(max_size=40), max_size=6), st.booleans())
def test_a_conversation_takes_any_bytes(chunks, asked):
    conversation = Conversation()
    if asked:
        conversation.feed(wire.frame({"type": "ready"}))
        conversation.ask(CALL, None)
    for chunk in [*chunks, b""]:
        conversation.feed(chunk)
    assert (conversation.state is State.BROKEN) == (conversation.problem is not None)


FIELDS = st.sampled_from(["type", "kind", "name", "message", "hint", "value", "stage"])
VALUES = st.sampled_from(["ready", "failed", "reply", "error", "exception"]) | JSON


@given(st.lists(st.dictionaries(FIELDS, VALUES), max_size=5), st.booleans())
def test_a_conversation_takes_any_frames(messages, asked):
    conversation = Conversation()
    if asked:
        conversation.feed(wire.frame({"type": "ready"}))
        conversation.ask(CALL, None)
    for message in messages:
        conversation.feed(wire.frame(message))
    conversation.feed(b"")
    if conversation.state is State.ANSWERED:
        assert conversation.answer["type"] in ("reply", "error")


NAMES = st.sampled_from(["text", "count", "ratio", "flags"]) | ANY_TEXT


@pytest.mark.parametrize("definition", [SAMPLE, RAW], ids=["typed", "schema"])
@given(raw=st.dictionaries(NAMES, ODD, max_size=4) | SOUP | ANY_TEXT)
@example(raw='{"text": "a"}')
def test_arguments_are_canonical_or_invalid(definition, raw):
    try:
        arguments = validate(definition, raw)
    except InvalidArguments:
        return
    assert validate(definition, arguments) == arguments
    PreparedToolCall.of(ToolCall(call_id="1", name="x"), definition, arguments)


LINES = st.sampled_from(
    [
        *["version = 1", 'default = "ask"', "[tools]", "[cell]", "[limits]", "[tools.ask]"],
        *['allow = ["echo"]', 'deny = ["echo", "x"]', 'shell = "why"', 'wall = "30s"', "wall = -1"],
        *['memory = "1GiB"', 'env = {A = "b"}', 'require = ["cpu", "no"]', "a.b = 1", "[[rule]]"],
        *['read = ["/"]', 'network = "host"', "x = 1979-05-27T07:32:00Z", "= 1", '"""', "]"],
    ]
)


@given(st.lists(LINES | TEXT, max_size=10).map("\n".join) | ANY_TEXT)
def test_any_text_is_a_policy_or_a_policy_error(text):
    try:
        policy = parse_policy(text, "p.toml")
    except PolicyError:
        return
    assert policy.version.startswith("sha256:")
    assert policy.by_name("anything").reason


BUDGETS = st.integers(16, 300)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=300), BUDGETS)
def test_truncated_text_is_whole_characters_and_exact_counts(text, budget):
    text = clean_text(text.replace("\ufffd", "?"))
    shown, cut = shorten_text(text, budget)
    if cut is None:
        assert shown == text
        return
    head, _, rest = shown.rpartition("[... ")
    tail = rest.partition("left out ...]\n")[2]
    # A line end before the marker may be the marker's own; the counts tell.
    total = len(text.encode())
    if len((head + tail).encode()) + cut.omitted_bytes != total:
        head = head.removesuffix("\n")
    assert text.startswith(head)
    assert text.endswith(tail)
    kept = head + tail
    assert len(kept.encode()) + cut.omitted_bytes == total == cut.total_bytes
    assert kept.count("\n") + cut.omitted_lines == text.count("\n") == cut.total_lines
    assert len(kept.encode()) <= budget
    assert "\ufffd" not in shown


@given(st.lists(st.binary(max_size=60) | TEXT.map(str.encode)), st.integers(0, 64), BUDGETS)
def test_whatever_a_stream_holds_the_counts_are_exact(chunks, kept, budget):
    capture = StreamCapture(kept, kept)
    for chunk in chunks:
        capture.feed(chunk)
    captured = capture.result()
    data = b"".join(chunks)
    assert (captured.total_bytes, captured.total_lines) == (len(data), data.count(b"\n"))
    assert data.startswith(captured.head)
    assert data.endswith(captured.tail)
    shown, cut = shorten(captured, budget)
    cleaned = clean(data).text
    assert (cut is None) == (captured.left_out == 0 and len(cleaned) <= budget)
    if cut is not None:
        assert 0 <= cut.omitted_bytes <= len(data)
        assert 0 <= cut.omitted_lines <= data.count(b"\n")
        assert "left out ...]" in shown


@given(TEXT.filter(lambda text: "\ufffd" not in text), st.integers(4, 40), st.integers(4, 40))
def test_a_capture_that_cuts_characters_does_not_show_it(text, head, tail):
    data = (text * 10).encode()
    capture = StreamCapture(head, tail)
    capture.feed(data)
    shown, _ = shorten(capture.result(), 200)
    assert "\ufffd" not in shown


def test_an_empty_capture_is_empty_text():
    assert shorten(Captured(), 100) == ("", None)
