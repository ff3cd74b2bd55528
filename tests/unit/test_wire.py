"""Claims of `sandbox_workers.wire`: strict JSON, bounded frames, one exception."""

import time
import tracemalloc

import pytest

from sandbox_workers import wire


@pytest.mark.parametrize(
    "value",
    [{}, [], None, True, 0, -1.5, "", "é😀\u2028", {"a": [{"b": None}]}, 2**70, "\0", "[" * 100],
    ids=repr,
)
def test_what_is_encoded_decodes_to_itself(value):
    assert wire.decode(wire.encode(value)) == value


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("nul", "not JSON"),
        ("{} {}", "not JSON"),
        ("{'a': 1}", "not JSON"),
        ("[1,]", "not JSON"),
        ("\ufeff{}", "not JSON"),
        ("NaN", "NaN is not JSON"),
        ("[Infinity]", "Infinity is not JSON"),
        ('{"a": -Infinity}', "-Infinity is not JSON"),
        ("1e999", "out of range"),
        ("-1e999", "out of range"),
        ("9" * 5000, "not JSON"),
        ('{"a": 1, "a": 1}', "'a' stands twice"),
        ('[{"a": {"b": 1, "b": 2}}]', "'b' stands twice"),
        (r'"\ud800"', "lone surrogate"),
        (r'{"\udfff": 1}', "lone surrogate"),
        ('"\ud800"', "lone surrogate"),
        ("[" * 65 + "]" * 65, "deeper than 64"),
        ('{"a":' * 65 + "1" + "}" * 65, "deeper than 64"),
        ("[" * 100_000, "deeper than 64"),
    ],
    ids=lambda value: value[:20],
)
def test_what_is_not_strict_json_is_refused_in_words(text, words):
    with pytest.raises(wire.WireError, match=words):
        wire.decode(text)


@pytest.mark.parametrize("data", [b"\xff", b'"\xed\xa0\x80"', b'"\xc0\x80"', b'"\xf0\x9f"'])
def test_bytes_that_are_not_utf8_are_refused(data):
    with pytest.raises(wire.WireError, match="not UTF-8"):
        wire.decode(data)


def test_a_surrogate_pair_is_one_character():
    assert wire.decode(r'"\ud83d\ude00"') == "😀"


def test_exactly_the_deepest_nesting_decodes():
    assert wire.decode("[" * 64 + "]" * 64)


def test_brackets_inside_strings_do_not_count_as_depth():
    text = "[" * 100 + r"\"" + "{" * 100
    assert wire.decode(wire.encode([text])) == [text]
    assert wire.decode("[" + ",".join(["[]"] * 500) + "]") == [[]] * 500


@pytest.mark.parametrize("mark", ['\\"', '"\\'], ids=repr)
def test_refusing_a_hostile_document_takes_time_linear_in_its_size(mark):
    def seconds(size: int) -> float:
        document, times = mark * size + "[" * 65, []
        for _ in range(3):
            began = time.perf_counter()
            with pytest.raises(wire.WireError):
                wire.decode(document)
            times.append(time.perf_counter() - began)
        return min(times)

    # 8 times the size: 8 times the work, where a scan that goes back would need 64.
    assert seconds(32_000) < 30 * seconds(4_000)


def test_decoding_a_long_string_stays_within_a_few_times_its_size():
    size = 1_000_000
    document = '["' + "a" * size + '"' + ",[]" * 65 + "]"
    tracemalloc.start()
    try:
        wire.decode(document)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 5 * size


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), object(), {1, 2}, b"bytes", "\ud800", {"\udc00": 1}]
)
def test_what_json_cannot_carry_is_not_encoded(value):
    with pytest.raises(wire.WireError):
        wire.encode(value)


def test_a_value_that_holds_itself_is_not_encoded():
    circle: list[object] = []
    circle.append(circle)
    with pytest.raises(wire.WireError):
        wire.encode(circle)


def test_a_frame_over_the_cap_is_not_made():
    with pytest.raises(wire.WireError, match="over the limit"):
        wire.frame({"text": "x" * wire.MAX_FRAME})


def test_a_length_over_the_cap_is_refused_before_its_body_is_read():
    reader = wire.FrameReader(limit=10)
    reader.feed(b"\0\0\0\x0b")
    with pytest.raises(wire.WireError, match="11 bytes, over the limit of 10"):
        reader.next()


@pytest.mark.parametrize("value", [[], "text", 1, None, True])
def test_a_frame_that_holds_no_object_is_refused(value):
    reader = wire.FrameReader()
    reader.feed(wire.frame(value))
    with pytest.raises(wire.WireError, match="a frame holds a JSON object"):
        reader.next()


def test_frames_come_out_whole_and_in_order():
    reader = wire.FrameReader()
    reader.feed(wire.frame({"n": 1}) + wire.frame({"n": 2}) + wire.frame({"n": 3})[:-1])
    assert [reader.next(), reader.next(), reader.next()] == [{"n": 1}, {"n": 2}, None]


def test_a_stream_may_end_between_frames_and_not_inside_one():
    reader = wire.FrameReader()
    reader.feed(wire.frame({"n": 1}))
    reader.next()
    reader.close()
    reader.feed(b"\0\0")
    with pytest.raises(wire.WireError, match="ended inside a frame, after 2 bytes"):
        reader.close()
