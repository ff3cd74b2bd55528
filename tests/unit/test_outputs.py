"""Claims of `toolcell.outputs`: what is written is found again, whole, counted and by its own."""

import fcntl
import os
import stat
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from toolcell.errors import UnknownOutputError
from toolcell.outputs import OutputStore
from toolcell.redaction import Redactor

DATA = bytes(range(256)) * 300


@pytest.fixture
def store(tmp_path):
    return OutputStore(tmp_path / "outputs", cap=1000_000, quota=3000_000)


def put(store, data=DATA, **facts):
    writer = store.begin("stdout", **facts)
    writer.write(data)
    return writer.close()


@pytest.mark.parametrize("chunk", [1000, 4096, len(DATA)])
def test_what_was_written_is_read_back_every_byte(store, chunk):
    writer = store.begin("stdout", call_id="c", tool_name="t", run="r", workspace="/w")
    for start in range(0, len(DATA), chunk):
        writer.write(memoryview(DATA)[start : start + chunk])
    stored = writer.close()
    assert store.read(stored.handle) == DATA
    assert store.read(stored.handle, 10, 20) == DATA[10:30]
    assert store.get(stored.handle) == stored == store.list()[0]
    assert (stored.size, stored.total_bytes, stored.total_lines) == (len(DATA), len(DATA), 300)
    assert (stored.call_id, stored.tool_name, stored.run, stored.lost) == ("c", "t", "r", "")


def test_only_the_owner_can_read_what_is_kept(store):
    stored = put(store)
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o700
    for file in store.path.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert {file.name for file in store.path.iterdir()} == {stored.handle, f"{stored.handle}.json"}


def test_nothing_is_touched_before_something_is_written(store):
    writer = store.begin("stdout")
    assert (store.list(), store.prune().handles) == ([], ())
    assert writer.close().size == 0
    assert not store.path.exists()


def test_past_the_cap_bytes_and_lines_are_counted_and_not_kept(store):
    writer = store.begin("value")
    for _ in range(300):
        writer.write(b"x" * 9_999 + b"\n")
    stored = writer.close()
    assert (stored.size, stored.total_bytes, stored.total_lines) == (1000_000, 3000_000, 300)
    assert "1,000,000 bytes" in stored.lost
    assert len(store.read(stored.handle)) == 1000_000


def test_past_the_quota_the_oldest_make_room_and_none_that_is_being_written(store):
    being_written = store.begin("stdout")
    being_written.write(b"y" * 900_000)
    finished = [put(store, b"x" * 900_000) for _ in range(4)]
    kept = [stored.handle for stored in store.list()]
    assert kept == [stored.handle for stored in finished[2:]]
    assert store.read(being_written.close().handle) == b"y" * 900_000


def test_where_all_room_is_being_written_to_the_rest_is_counted(tmp_path):
    store = OutputStore(tmp_path / "o", quota=1000)
    first, second = store.begin("stdout"), store.begin("stderr")
    first.write(b"x" * 800)
    second.write(b"y" * 800)
    second.write(b"y" * 800)
    kept = second.close()
    assert (kept.size, kept.total_bytes) == (200, 1600)
    assert "room" in kept.lost
    assert first.close().size == 800


def test_a_handle_opens_for_its_own_workspace(store):
    handle = put(store, workspace="/a").handle
    assert store.read(handle, workspace="/a") == DATA
    for other in ("/b", ""):
        with pytest.raises(UnknownOutputError, match="another workspace"):
            store.read(handle, workspace=other)


@pytest.mark.parametrize(
    "handle", ["", "out-", "../outputs", "out-aaaaaaaaaaaaa", "out-../../../../a"]
)
def test_what_is_no_handle_of_an_output_is_told_so(store, handle):
    put(store)
    with pytest.raises(UnknownOutputError):
        store.read(handle)


def test_a_link_in_the_place_of_the_data_is_not_followed(store, tmp_path):
    handle = put(store).handle
    (tmp_path / "other").write_text("not kept here")
    (store.path / handle).unlink()
    (store.path / handle).symlink_to(tmp_path / "other")
    with pytest.raises(OSError, match="cannot be read"):
        store.read(handle)


def test_handles_are_not_to_be_guessed():
    handles = {OutputStore("/nowhere").begin("stdout").handle for _ in range(1000)}
    assert len(handles) == 1000
    assert all(len(handle) == 17 for handle in handles)
    assert OutputStore("/nowhere").begin("artifact").handle.startswith("art-")


def test_a_disk_that_cannot_be_written_is_told_and_raises_nothing(tmp_path):
    (tmp_path / "file").write_text("in the way")
    stored = put(OutputStore(tmp_path / "file" / "outputs"))
    assert (stored.size, stored.total_bytes) == (0, len(DATA))
    assert "cannot be written" in stored.lost


def test_a_full_disk_is_told_and_keeps_what_was_written(store, monkeypatch):
    write, left = os.write, [50_000]

    def full(fd, data):
        if not left[0]:
            raise OSError(28, "No space left on device")
        done = write(fd, data[: left[0]])
        left[0] -= done
        return done

    monkeypatch.setattr("toolcell.outputs.writer.os.write", full)
    stored = put(store)
    assert (stored.size, stored.total_bytes) == (50_000, len(DATA))
    assert "No space left on device" in stored.lost
    assert store.read(stored.handle) == DATA[:50_000]


def test_an_output_without_a_description_is_removed_again(store, monkeypatch):
    def full(handle, description):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store._directory, "finish", full)
    stored = put(store)
    assert stored.size == 0
    assert "No space left" in stored.lost
    assert list(store.path.iterdir()) == []


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_secrets_are_not_kept_however_they_come(store, size):
    text = b"the key is correct-horse-battery, and not more\n" * 10
    writer = store.begin("stdout", redactor=Redactor({"KEY": "correct-horse-battery"}))
    for start in range(0, len(text), size):
        writer.write(text[start : start + size])
    stored = writer.close()
    assert store.read(stored.handle) == text.replace(b"correct-horse-battery", b"[redacted: KEY]")
    assert (stored.total_bytes, stored.lost) == (len(text), "")


@pytest.mark.parametrize("size", [1, 5, 1000])
@pytest.mark.parametrize(
    "split", [b"\x1b[0m", b"\x1b]8;;x\x07", b"\0", b"\x1b[31;4", "\x9bK".encode()]
)
def test_secrets_are_not_kept_where_a_sequence_goes_through_them(store, size, split):
    redactor = Redactor({"KEY": "correct-horse-battery"})
    for at in range(1, 21):
        text = b"key " + b"correct-horse-battery"[:at] + split + b"correct-horse-battery"[at:]
        text += b"\n\x1b[1mand no more\x1b[0m\n"
        if split.endswith(b";4"):  # then the first letter behind it is its end
            text = text.replace(split, split + b"m")
        writer = store.begin("stdout", redactor=redactor)
        for start in range(0, len(text), size):
            writer.write(text[start : start + size])
        kept = store.read(writer.close().handle)
        assert kept == b"key [redacted: KEY]\n\x1b[1mand no more\x1b[0m\n"


def test_a_stream_of_sequences_is_not_held_back_for_ever(store):
    writer = store.begin("stdout", redactor=Redactor({"KEY": "correct-horse-battery"}))
    writer.write(b"correct-" + b"\x1b[m" * 200_000)
    assert writer.size > 500_000


def test_the_end_of_what_was_cut_keeps_no_part_of_a_secret(store):
    writer = store.begin("stdout", redactor=Redactor({"KEY": "correct-horse-battery"}))
    writer.write(b"key: correct-hor")
    assert store.read(writer.close(cut=True).handle) == b"key: [redacted: cut off]"


def test_outputs_are_removed_by_age_by_size_by_handle_or_all(store):
    handles = [put(store, b"x" * 1000).handle for _ in range(5)]
    assert store.prune(handles=[handles[2]]).handles == (handles[2],)
    assert store.prune(keep_bytes=2500).handles == (handles[0], handles[1])
    assert store.prune(older_than=timedelta(days=1)).handles == ()
    assert store.prune(older_than=timedelta(0)).size == 2000
    put(store)
    assert len(store.prune(everything=True).handles) == 1
    assert list(store.path.iterdir()) == []


def test_what_is_discarded_is_not_there(store):
    writer = store.begin("artifact")
    writer.write(DATA)
    writer.discard()
    assert list(store.path.iterdir()) == []
    assert store.list() == []


_DIES = """
import os, sys
from toolcell.outputs import OutputStore
writer = OutputStore(sys.argv[1]).begin("stdout")
writer.write(b"x" * 1000)
print(writer.handle, flush=True)
os._exit(1)
"""


def test_what_a_dead_process_left_is_swept_and_what_a_live_one_writes_is_not(store):
    writer = store.begin("stdout")
    writer.write(b"y" * 1000)
    command = [sys.executable, "-c", _DIES, str(store.path)]
    left = subprocess.run(command, capture_output=True, text=True, timeout=20).stdout.strip()
    assert (store.path / left).exists()
    assert store.list() == []
    store.prune()
    assert not (store.path / left).exists()
    assert store.read(writer.close().handle) == b"y" * 1000


def test_what_a_dead_process_left_makes_room_for_the_next_output(tmp_path):
    path = tmp_path / "o"
    command = [sys.executable, "-c", _DIES, str(path)]
    left = subprocess.run(command, capture_output=True, text=True, timeout=20).stdout.strip()
    assert (path / left).exists()
    store = OutputStore(path, quota=1000)
    kept = put(store, b"y" * 900)
    assert (kept.size, kept.lost) == (900, "")
    assert not (path / left).exists()


def test_room_is_made_in_shares_and_not_anew_for_every_piece(tmp_path, monkeypatch):
    store = OutputStore(tmp_path / "o", quota=100_000)
    for _ in range(100):
        put(store, b"x" * 1000)
    looks, entries = [], store._directory.entries
    monkeypatch.setattr(store._directory, "entries", lambda: looks.append(1) or entries())
    writer = store.begin("stdout")
    for _ in range(100):
        writer.write(b"y" * 100)
    assert writer.close().size == 10_000
    assert len(looks) == 1


def test_a_file_that_a_sweep_took_before_it_was_locked_is_made_anew(store, monkeypatch):
    lock, taken = fcntl.flock, []

    def swept_first(fd, how):
        if not taken:
            taken.append(fd)
            next(store.path.iterdir()).unlink()
        lock(fd, how)

    monkeypatch.setattr("toolcell.outputs.directory.fcntl.flock", swept_first)
    stored = put(store)
    assert taken
    assert store.read(stored.handle) == DATA


def test_a_description_that_was_edited_into_something_else_is_no_output(store):
    stored = put(store)
    (store.path / f"{stored.handle}.json").write_text('{"handle": 1}')
    assert store.list() == []
    with pytest.raises(UnknownOutputError):
        store.get(stored.handle)
    assert store.prune(everything=True).handles == ()


def test_no_descriptor_is_left_open(store):
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(20):
        store.read(put(store).handle)
        put(store, b"")
    writer = store.begin("stdout")
    writer.write(b"x")
    writer.discard()
    assert len(list(Path("/proc/self/fd").iterdir())) == before
