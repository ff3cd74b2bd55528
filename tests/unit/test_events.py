"""Claims of `toolcell.events`: one line an event, for its owner only, never lost in silence."""

import errno
import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from toolcell.events import Event, EventKind, JsonlSink, no_events


def event(number=0, **data):
    return Event(
        at=datetime(2030, 1, 1, tzinfo=UTC),
        kind=EventKind.RECEIVED,
        call_id=f"c{number}",
        tool_name="echo",
        data=data,
    )


@pytest.fixture
def path(tmp_path):
    return tmp_path / "events.jsonl"


def test_a_new_file_is_readable_by_its_owner_only(path):
    before = os.umask(0)
    try:
        JsonlSink(path).close()
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_an_existing_file_that_others_could_read_is_closed_to_them(path):
    path.touch()
    path.chmod(0o644)
    JsonlSink(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_each_event_is_one_line_that_reads_back_whole(path):
    sink = JsonlSink(path)
    written = [event(1, reason="two\nlines"), event(2, reason="é\u2028", n=[1, None])]
    for one in written:
        sink(one)
    sink.close()
    lines = path.read_bytes().split(b"\n")
    assert lines.pop() == b""
    assert [Event.model_validate_json(line) for line in lines] == written
    assert json.loads(lines[0])["v"] == 1


def test_an_existing_file_is_appended_to(path):
    for number in range(2):
        sink = JsonlSink(path)
        sink(event(number))
        sink.close()
    assert len(path.read_bytes().splitlines()) == 2


def test_lines_of_many_threads_do_not_mix(path):
    sink = JsonlSink(path)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda number: sink(event(number, text="x" * 5000)), range(200)))
    sink.close()
    events = [Event.model_validate_json(line) for line in path.read_bytes().splitlines()]
    assert {one.call_id for one in events} == {f"c{number}" for number in range(200)}


def test_a_full_disk_raises_and_leaves_no_half_of_a_line(path, monkeypatch):
    sink = JsonlSink(path)
    sink(event())
    whole = path.read_bytes()
    room = 10
    write = os.write
    monkeypatch.setattr("os.write", lambda fd, data: write(fd, data[:room]))
    with pytest.raises(OSError, match="No space left") as caught:
        sink(event())
    sink.close()
    assert caught.value.errno == errno.ENOSPC
    assert path.read_bytes() == whole


def test_a_link_or_a_device_is_refused(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "victim")
    for place in (tmp_path / "link", "/dev/null"):
        with pytest.raises(OSError, match=r"symbolic|regular"):
            JsonlSink(place)
    assert not (tmp_path / "victim").exists()


def test_a_path_that_cannot_be_opened_raises(tmp_path):
    with pytest.raises(OSError, match="directory"):
        JsonlSink(tmp_path)


def test_the_file_does_not_reach_child_processes(path):
    sink = JsonlSink(path)
    links = {int(link.name): link for link in Path("/proc/self/fd").iterdir()}
    (fd,) = [fd for fd, link in links.items() if link.is_symlink() and link.resolve() == path]
    assert not os.get_inheritable(fd)
    sink.close()


def test_no_events_keeps_nothing():
    assert no_events(event()) is None
