"""Claims of `sandbox_workers.outbox` and `toolcell.cells.parcels`: what is left comes back."""

import json
import os
import socket
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox_workers import outbox, plain_files
from toolcell.cells.parcels import Parcels
from toolcell.model import Artifact, Limits, RefusedArtifact

LIMITS = {"artifacts": 4, "artifact_size": 1000, "artifact_total": 2500}


class Basket:
    """A shelf that keeps files in memory."""

    def __init__(self):
        self.files = {}

    def begin(self, name):
        return Item(self, name)


class Item:
    def __init__(self, basket, name):
        self.basket, self.name, self.data = basket, name, b""

    def write(self, data):
        self.data += data

    def close(self):
        self.basket.files[self.name] = self.data
        return Artifact(handle="h", name=self.name, media_type="t", size=len(self.data), sha256="0")

    def discard(self):
        self.basket.files[self.name] = None


def sent(scratch, limits=None):
    """All bytes that init would send."""
    read, write = os.pipe()
    parts = []

    def take():
        while data := os.read(read, 65536):
            parts.append(data)

    reader = threading.Thread(target=take)
    reader.start()
    try:
        outbox.send(str(scratch), write, limits or LIMITS)
    finally:
        os.close(write)
        reader.join()
        os.close(read)
    return b"".join(parts)


def received(data):
    basket = Basket()
    parcels = Parcels(basket, Limits())
    parcels.feed(data)
    parcels.finish()
    return basket.files, {each.name: each.reason for each in parcels.refused}


@pytest.fixture
def box(tmp_path):
    return Path(outbox.make(str(tmp_path)))


def test_an_outbox_that_nobody_used_is_nothing_to_tell_of(box):
    assert not outbox.is_used(str(box.parent))
    (box / "a").write_bytes(b"")
    assert outbox.is_used(str(box.parent))
    assert not outbox.is_used("/nowhere")


def test_files_come_back_whole_with_their_names(box):
    (box / "a").write_bytes(b"1\n2")
    (box / "empty").write_bytes(b"")
    (box / "x/y").mkdir(parents=True)
    (box / "x/y/é\n").write_bytes(b'{"end": true}\n' * 3)
    files, refused = received(sent(box.parent))
    assert files == {"a": b"1\n2", "empty": b"", "x/y/é\n": b'{"end": true}\n' * 3}
    assert refused == {}


def test_a_name_that_is_no_text_is_made_one(box):
    (Path(os.fsdecode(os.fsencode(box) + b"/\xff"))).write_bytes(b"1")
    files, _ = received(sent(box.parent))
    assert files == {"\ufffd": b"1"}


def _link(box):
    (box / "it").symlink_to("/etc/passwd")


def _hard_link(box):
    (box.parent / "other").write_bytes(b"1")
    os.link(box.parent / "other", box / "it")


def _sparse(box):
    (box / "it").write_bytes(b"")
    os.truncate(box / "it", 900 * 1024**2)


def _socket(box):
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(box / "it"))


def _deep(box):
    (box / "it/1/2/3/4").mkdir(parents=True)
    (box / "it/1/2/3/4/file").write_bytes(b"1")


def _shut(box):
    (box / "it").write_bytes(b"1" * 1001)


@pytest.mark.attack
@pytest.mark.parametrize(
    ("make", "words", "name"),
    [
        (_link, "a link", "it"),
        (_hard_link, "hard link", "it"),
        (lambda box: os.mkfifo(box / "it"), "a pipe", "it"),
        (_socket, "a socket", "it"),
        (_deep, "too deep", "it/1/2/3/4"),
        (_shut, "1,001 bytes", "it"),
        (_sparse, "sparse", "it"),
    ],
)
def test_what_is_no_plain_file_of_its_own_is_refused_by_name(box, make, words, name):
    make(box)
    (box / "plain").write_bytes(b"the control")
    files, refused = received(
        sent(box.parent, LIMITS | {"artifact_size": 1000 if make is _shut else 1024**3})
    )
    assert files == {"plain": b"the control"}
    assert list(refused) == [name]
    assert words in refused[name]


@pytest.mark.attack
def test_an_outbox_that_was_replaced_by_a_link_is_not_followed(box):
    box.rmdir()
    (box.parent / "secret").mkdir()
    (box.parent / "secret/key").write_bytes(b"1")
    box.symlink_to("secret")
    assert outbox.is_used(str(box.parent))
    files, refused = received(sent(box.parent))
    assert files == {}
    assert "not the directory" in refused[".toolcell-outbox"]


def test_caps_on_number_and_size_are_kept_and_told(box):
    for name in "abcdef":
        (box / name).write_bytes(name.encode() * 700)
    files, refused = received(sent(box.parent))
    assert sorted(files) == ["a", "b", "c"]
    assert all("together" in reason for reason in refused.values())
    files, refused = received(sent(box.parent, LIMITS | {"artifact_total": 10**6}))
    assert sorted(files) == ["a", "b", "c", "d"]
    assert "as many artifacts" in refused["e"]


def test_millions_of_files_end_in_a_bounded_answer(box, monkeypatch):
    monkeypatch.setattr(outbox, "_MOST_SEEN", 50)
    for number in range(60):
        (box / f"{number:03}").symlink_to("x")
    data = sent(box.parent).splitlines()
    assert b"only the first 50 entries" in data[0]
    assert data[-2:] == [b'{"more":19}', b'{"end":true}']
    assert len(data) == 34


def test_a_device_is_a_device_whoever_makes_it():
    """Only root can make one; its mode is enough to tell."""
    assert plain_files.refusal(Path("/dev/null").stat(), 10) == "it is a device"


@given(st.lists(st.integers(1, 40), min_size=1))
def test_parcels_do_not_depend_on_how_the_bytes_are_cut(cuts):
    data = b'{"name":"a","size":5}\n12\n45{"name":"b","refused":"no"}\n{"end":true}\n'
    basket = Basket()
    parcels = Parcels(basket, Limits())
    for cut in cuts * len(data):
        parcels.feed(data[:cut])
        data = data[cut:]
    parcels.finish()
    assert basket.files == {"a": b"12\n45"}
    assert parcels.refused == [RefusedArtifact(name="b", reason="no")]


@pytest.mark.parametrize("length", [0, 10, 22, 24, 40])
def test_what_did_not_come_whole_is_not_kept(length):
    whole = b'{"name":"a","size":5}\n12345{"name":"b","size":20}\n1234'
    files, refused = received(whole[:length] if length < 40 else whole)
    assert files.get("b") is None
    assert files == {"a": b"12345", "b": None} if length == 40 else not any(files.values())
    assert "ended before all" in refused[""]


@pytest.mark.attack
@pytest.mark.parametrize(
    "line",
    [
        b"no json",
        b"[]",
        b"x" * 70000,
        b'{"name":1,"size":2}',
        b'{"name":"a","size":-5}',
        b'{"name":"a","size":true}',
        b'{"name":"a","size":1,"more":1}',
        b'{"name":"","size":1}',
        b'{"name":"a\\u0000","size":1}',
        b'{"name":"%s","size":1}' % (b"x" * 2000),
        b'{"name":"a","size":%d}' % 10**9,
        b'{"name":"a","refused":"%s"}' % (b"x" * 500),
        b'{"more":0}',
        b'{"more":%d}' % 10**400,
        b'{"end":1}',
        b'{"end":true}\nx',
    ],
    ids=lambda line: repr(line[:40]),
)
def test_a_line_that_cannot_be_read_ends_it(line):
    _, refused = received(line + b"\n" + b'{"name":"a","size":1}\n1')
    assert "cannot be read" in refused[""]


def test_without_a_shelf_files_are_passed_over_and_said_to_be():
    parcels = Parcels(None, Limits())
    parcels.feed(b'{"name":"a","size":2}\n12{"end":true}\n')
    assert [each.reason for each in parcels.refused] == ["nothing keeps artifacts here"]


@pytest.mark.attack
def test_a_name_cannot_hide_what_it_is():
    entry = {"name": "\x1b[2J\u202egnp.exe" + "x" * 500, "refused": "no"}
    parcels = Parcels(None, Limits())
    parcels.feed(json.dumps(entry).encode() + b"\n")
    name = parcels.refused[0].name
    assert len(name) == 200
    assert name.isascii()


@pytest.mark.attack
def test_no_more_is_taken_than_one_call_may_have():
    limits = Limits(artifacts=4, artifact_size=1000, artifact_total=2500)
    file, refusal = b'{"name":"a","size":%d}\n', b'{"name":"a","refused":"no"}\n'
    floods = {
        "files": (file % 0 * 1000, 4, 1),
        "bytes": ((file % 900 + b"x" * 900) * 1000, 2, 1),
        "refusals": (refusal * 1000, 0, 65),
    }
    for flood, kept, refused in floods.values():
        parcels = Parcels(Basket(), limits)
        parcels.feed(flood)
        assert parcels.problem
        assert (len(parcels.artifacts), len(parcels.refused)) == (kept, refused)
    parcels = Parcels(Basket(), limits)
    parcels.feed(file % 0 * 4 + refusal * 33 + b'{"more":5}\n{"end":true}\n')
    assert not parcels.problem, "the control: as much as an outbox sends"


_VALUES = st.sampled_from([None, True, "a", "", [], 1.5]) | st.integers(-2, 30)


@given(
    st.lists(
        st.dictionaries(st.sampled_from(["name", "size", "refused", "more", "end"]), _VALUES).map(
            lambda entry: json.dumps(entry).encode() + b"\n"
        )
        | st.binary(max_size=30),
        max_size=12,
    )
)
def test_no_bytes_crash_the_parcels_or_make_them_grow(pieces):
    parcels = Parcels(Basket(), Limits(artifacts=3, artifact_size=20))
    for piece in pieces:
        parcels.feed(piece)
    parcels.finish()
    assert len(parcels.artifacts) <= 3
    assert len(parcels.refused) <= 70
