"""Claims of `toolcell.redaction.stream`: where the pieces of a stream are cut does not matter."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcell.redaction import Redactor

from .test_redaction import BOTH, SOUP, TOKENS, TRUE, plain


def streamed(redactor: Redactor, pieces: list[bytes]) -> bytes:
    stream = redactor.stream()
    return b"".join([*map(stream.feed, pieces), stream.close()])


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


def joined(data: bytes) -> bytes:
    """Take markers that follow one another as one: a stream cannot join them."""
    return re.sub(rb"(\[redacted: [^\]]*\])+", b"[redacted]", data)


@pytest.mark.parametrize(("kind", "text"), TRUE)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 16, 50])
def test_a_token_in_pieces_is_redacted_like_a_whole_one(kind, text, size):
    data = plain(text).encode()
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    assert streamed(TOKENS, pieces) == TOKENS.data(data)
    assert f"[redacted: {kind}]".encode() in streamed(TOKENS, pieces)


@given(SOUP, st.lists(st.integers(0, 10_000), max_size=12))
def test_whatever_a_stream_holds_and_wherever_it_is_cut_it_is_redacted_as_a_whole(text, places):
    data = text.encode("utf-8", "surrogatepass").replace(b"[redacted: ", b"")
    assert joined(streamed(BOTH, cut(data, places))) == joined(BOTH.data(data))


@pytest.mark.parametrize(
    "text", [b"ordinary text\n", b"compiling 3 of 7 ", b"see https://example.com/!", b"\xff\0\xfe"]
)
def test_what_cannot_be_a_secret_is_given_out_at_once(text):
    assert BOTH.stream().feed(text) == text


def test_only_what_may_be_the_beginning_of_a_secret_is_held_back():
    stream = BOTH.stream()
    assert stream.feed(b"the key is swordf") == b"the key is "
    assert stream.feed(b"ight, no fi") == b"swordfight, no fi"
    assert stream.feed(b" swordfi") == b" "
    assert stream.feed(b"sh\n") == b"[redacted: KEY]\n"
    assert stream.close() == b""


def test_a_stream_that_ends_gives_out_what_it_held_back():
    stream = BOTH.stream()
    assert stream.feed(b"swordf") == b""
    assert stream.close() == b"swordf"


def test_a_secret_whose_end_may_begin_another_is_not_forgotten():
    word = "A1b2C3d4E5f6G7h8I9j0"
    pieces = [f"https://hooks.slack.com/services/{word}-----BEGIN ".encode(), b"RSA KEY\n"]
    assert streamed(BOTH, pieces) == BOTH.data(b"".join(pieces))
    assert word.encode() not in streamed(BOTH, pieces)


@pytest.mark.parametrize("text", [b"swordfisswordfis", b"-----BEGIN RSA PRIVATE KEY-----\n", b"ab"])
def test_what_is_held_back_is_bounded(text):
    stream, given, fed = BOTH.stream(), 0, 0
    for _ in range(200):
        given += len(stream.feed(text * 100))
        fed += 100 * len(text)
        assert fed - given <= BOTH.reach + len(text)


def test_a_redactor_without_secrets_changes_and_holds_nothing():
    stream = Redactor(shapes=False).stream()
    assert stream.feed(b"sk-ghp_") == b"sk-ghp_"
    assert stream.close() == b""
