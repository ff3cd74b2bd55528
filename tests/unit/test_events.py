"""Claims of `toolcell.events`: an event is kept whole and in order, or refused in words."""

import hashlib
import json
import os
import resource
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcell.errors import StoreError
from toolcell.events import Event, EventKind, EventLog, EventReader, no_events, verify
from toolcell.events.chain import GENESIS, body_of

from .event_samples import edit, event, query

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "events.db"


@pytest.fixture
def log(path):
    made = EventLog(path)
    yield made
    made.close()


def events_in(path):
    with closing(EventReader(path)) as reader:
        return [row.event for row in reader.rows()]


def test_the_log_is_below_the_state_directory_where_none_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("TOOLCELL_STATE_DIR", str(tmp_path / "state"))
    log = EventLog()
    assert not log.path.exists()
    log(event())
    log.close()
    assert log.path == tmp_path / "state" / "events.db"
    assert verify().events == 1


def test_log_and_key_are_readable_by_their_owner_only(path):
    before = os.umask(0)
    try:
        log = EventLog(path)
        log(event())
    finally:
        os.umask(before)
    files = list(path.parent.iterdir())
    assert {file.name for file in files} >= {"events.db", "events.key"}
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    log.close()


def test_a_key_that_others_could_read_is_closed_to_them(path, log):
    log(event())
    key = path.with_suffix(".key")
    key.chmod(0o644)
    EventLog(path)(event(1))
    assert stat.S_IMODE(key.stat().st_mode) == 0o600


def test_events_read_back_whole_and_in_their_order(path, log):
    written = [
        event(3, data={"reason": "two\nlines"}),
        event(1, EventKind.FINISHED, data={"text": "é\u2028\0", "n": [1, None, 2**80]}),
        event(2, run="", key="", call_id="", tool_name=""),
    ]
    for one in written:
        log(one)
    assert events_in(path) == written


def test_what_only_sinks_of_this_process_are_given_is_not_stored(path, log):
    log(event().model_copy(update={"about": object()}))
    assert "about" not in query(path, "SELECT body FROM events")[0][0]


@given(st.dictionaries(st.text(), JSON, max_size=4))
def test_any_data_reads_back_as_it_was(data):
    one = event(data=data)
    assert Event.model_validate_json(body_of(one)) == one


@given(st.text(st.characters(categories=["Cs", "L"])))
def test_lone_surrogates_are_spelled_and_lose_no_event(text):
    stored = Event.model_validate_json(body_of(event(data={"nested": [{text: text}]})))
    spelled = text.encode("utf-8", "backslashreplace").decode()
    assert stored.data == {"nested": [{spelled: spelled}]}


def test_data_that_is_nested_too_deeply_is_cut_and_can_be_read():
    deep = "end"
    for _ in range(400):
        deep = [deep]
    body = body_of(event(data={"deep": deep}))
    assert "nested too deeply" in body
    assert Event.model_validate_json(body)


def test_a_log_goes_on_where_it_was(path):
    for number in range(3):
        log = EventLog(path)
        log(event(number))
        log.close()
    assert [one.call_id for one in events_in(path)] == ["c0", "c1", "c2"]
    assert verify(path).intact


def test_a_log_that_was_closed_opens_again_with_the_next_event(path, log):
    log(event(0))
    log.close()
    log(event(1))
    assert len(events_in(path)) == 2


def test_the_hash_can_be_followed_by_others(path, log):
    for number in range(5):
        log(event(number, data={"text": 'a "quote", ü, \\ and \n'}))
    with closing(EventReader(path)) as reader:
        lines = [row.line for row in reader.rows()]
    previous = "0" * 64
    for number, line in enumerate(lines, 1):
        unhashed = line[:-75] + "}"
        assert hashlib.sha256((previous + unhashed).encode()).hexdigest() == line[-66:-2]
        assert json.loads(line)["seq"] == number
        assert json.loads(line)["hash"] == line[-66:-2]
        previous = json.loads(line)["hash"]
    assert previous == query(path, "SELECT hash FROM head")[0][0] != GENESIS


def test_events_of_many_threads_are_one_chain(path, log):
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda number: log(event(number, data={"x": "y" * 500})), range(200)))
    assert sorted(one.call_id for one in events_in(path)) == sorted(f"c{n}" for n in range(200))
    assert verify(path).intact


_WRITER = """
import sys
from datetime import UTC, datetime
from toolcell.events import Event, EventKind, EventLog
log = EventLog(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
for number in range(50):
    log(Event(at=datetime(2030, 1, 1, tzinfo=UTC), kind=EventKind.RECEIVED, run=sys.argv[2],
        key=f"key_{number}", call_id=f"c{number}", tool_name="echo"))
"""


def test_events_of_many_processes_are_one_chain_also_where_all_begin_it(path):
    runs = [f"run_{number}" for number in range(4)]
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(path), run],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for run in runs
    ]
    for writer in writers:
        assert writer.stdout.readline() == b"ready\n"
    for writer in writers:  # none has opened the log yet: now all do
        writer.stdin.write(b"go\n")
        writer.stdin.flush()
    assert [writer.communicate() and writer.returncode for writer in writers] == [0] * 4
    found = events_in(path)
    for run in runs:
        mine = [one.call_id for one in found if one.run == run]
        assert mine == [f"c{number}" for number in range(50)]
    assert verify(path).intact
    assert not list(path.parent.glob("*.new"))


def test_a_forked_child_goes_on_with_the_log(path, log):
    log(event(0))
    child = os.fork()
    if not child:
        try:
            log(event(1))
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    log(event(2))
    assert [one.call_id for one in events_in(path)] == ["c0", "c1", "c2"]
    assert verify(path).intact


@pytest.mark.parametrize("statement", ["UPDATE events SET body = '{}'", "DELETE FROM events"])
def test_a_hand_that_does_not_mean_harm_is_stopped(path, log, statement):
    log(event())
    refused = pytest.raises(sqlite3.IntegrityError, match="append-only")
    with closing(sqlite3.connect(path)) as connection, refused:
        connection.execute(statement)
    edit(path, statement)  # the control: a hand that does is not
    assert not verify(path).intact


# Where a log cannot be written


def test_a_log_that_another_process_holds_is_waited_for_and_then_refused(path):
    log = EventLog(path, wait=0.05)
    log(event(0))
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match=r"locked by another process.*end that process"):
            log(event(1))
        holder.execute("ROLLBACK")
    log(event(2))
    assert [one.call_id for one in events_in(path)] == ["c0", "c2"]
    assert verify(path).intact
    log.close()


def test_a_full_disk_is_said_and_loses_nothing(path, log):
    log(event(0))
    with log._database.reading() as connection:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count={pages}")
    with pytest.raises(StoreError, match="the disk is full; free some space"):
        log(event(1, data={"text": "x" * 10_000}))
    with log._database.reading() as connection:
        connection.execute("PRAGMA max_page_count=100000")
    log(event(2))
    assert [one.call_id for one in events_in(path)] == ["c0", "c2"]
    assert verify(path).intact


_FILL = """
import sys
import tempfile
from tests.unit.event_samples import event
from toolcell.errors import StoreError
from toolcell.events import EventLog
log = EventLog(sys.argv[1])
try:
    for number in range(100_000):
        log(event(number, data={"text": "x" * 500}))
        print(number, flush=True)
except StoreError as error:
    print(error, file=sys.stderr)
"""


def _fill(path, *prefix, **options):
    done = subprocess.run(
        [*prefix, sys.executable, "-c", _FILL, str(path)],
        capture_output=True,
        text=True,
        timeout=60,
        **options,
    )
    return done.stdout.split(), done.stderr


def test_a_file_that_may_not_grow_is_said_and_loses_nothing(path):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))

    written, said = _fill(path, preexec_fn=limit)
    assert f"{path} cannot be" in said
    assert "Traceback" not in said
    assert len(written) > 10
    assert [one.call_id for one in events_in(path)] == [f"c{number}" for number in written]
    assert verify(path).intact


_ON_A_SMALL_DISK = 'mount -t tmpfs -o size=300k none "$1" && "${@:2}"; cp -a "$1"/. "$1-kept"'


def test_a_disk_that_is_really_full_is_said_and_loses_nothing(tmp_path):
    disk, kept = tmp_path / "disk", tmp_path / "disk-kept"
    for place in (disk, kept):
        place.mkdir()
    unshare = [shutil.which("unshare") or "unshare", "--user", "--map-root-user", "--mount"]
    if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespace can be made here")
    written, said = _fill(
        disk / "events.db", *unshare, "bash", "-c", _ON_A_SMALL_DISK, "bash", str(disk)
    )
    assert "full" in said or "its space" in said
    assert "Traceback" not in said
    assert len(written) > 10
    found = [one.call_id for one in events_in(kept / "events.db")]
    assert found == [f"c{number}" for number in written]
    assert verify(kept / "events.db").intact


def test_what_is_no_database_is_refused_and_left_as_it_is(path, log):
    path.write_bytes(b"not a database\n" * 100)
    with pytest.raises(StoreError, match="is not a database of toolcell; name another"):
        log(event())
    assert path.read_bytes() == b"not a database\n" * 100


def test_a_database_of_something_else_is_refused_and_left_as_it_is(path, log):
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE notes (text)")
        other.commit()
    for use in (lambda: log(event()), lambda: EventReader(path)):
        with pytest.raises(StoreError, match="a database of something else; name another file"):
            use()
    assert query(path, "SELECT name FROM sqlite_master") == [("notes",)]


def test_a_directory_or_a_link_is_refused(tmp_path):
    (tmp_path / "directory.db").mkdir()
    (tmp_path / "link.db").symlink_to(tmp_path / "victim")
    for name in ("directory.db", "link.db"):
        with pytest.raises(StoreError, match=f"{name} is not a regular file"):
            EventLog(tmp_path / name)(event())
    assert not (tmp_path / "victim").exists()


def test_a_link_in_the_place_of_the_key_is_refused(path, tmp_path, log):
    log(event())
    key = path.with_suffix(".key")
    key.rename(tmp_path / "elsewhere")
    key.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match=r"events\.key cannot be read: .*symbolic"):
        EventLog(path)(event())
    assert "cannot be checked" in verify(path).findings[0].what


_AS_SOMEBODY = """
import os, sys
from tests.unit.event_samples import event
from toolcell.errors import StoreError
from toolcell.events import EventLog
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
try:
    EventLog(sys.argv[1])(event())
except StoreError as error:
    print(error)
"""


@pytest.fixture
def public():
    """A directory that anybody can reach, which pytest's is not."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)


@pytest.mark.parametrize(
    ("mode", "directory_mode", "said"),
    [(0o000, 0o755, "cannot be opened"), (0o600, 0o555, "cannot be"), (0o600, 0o000, "cannot be")],
)
def test_a_file_or_directory_that_is_closed_is_said(public, mode, directory_mode, said):
    if os.geteuid() and not mode:
        pytest.skip("one's own file is opened to oneself again")
    place = public / "place"
    place.mkdir()
    log = place / "events.db"
    log.touch()
    log.chmod(mode)
    place.chmod(directory_mode)
    done = subprocess.run(
        [sys.executable, "-c", _AS_SOMEBODY, str(log)], capture_output=True, text=True, timeout=60
    )
    place.chmod(0o755)
    assert done.stderr == ""
    assert f"{log} {said}" in done.stdout


# The key


def test_a_missing_key_is_not_made_anew(path, log):
    log(event(0))
    key = path.with_suffix(".key")
    secret = key.read_bytes()
    key.unlink()
    with pytest.raises(StoreError, match=r"key of the event log .* is missing.*put the right one"):
        EventLog(path)(event(1))
    assert not key.exists()
    key.write_bytes(secret)
    EventLog(path)(event(2))  # the control
    assert [one.call_id for one in events_in(path)] == ["c0", "c2"]


@pytest.mark.parametrize(
    ("content", "said"), [(b"k" * 32, "that of another log"), (b"short", "is not the key")]
)
def test_a_key_that_is_not_the_logs_is_refused(path, log, content, said):
    log(event(0))
    path.with_suffix(".key").write_bytes(content)
    with pytest.raises(StoreError, match=said):
        EventLog(path)(event(1))
    assert len(events_in(path)) == 1


def test_a_log_whose_file_was_removed_is_not_begun_again_in_silence(path, log):
    log(event(0))
    log.close()
    path.unlink()
    with pytest.raises(StoreError, match=r"lost its head or its events.*to begin a new one"):
        EventLog(path)(event(1))
    assert not verify(path).intact
    path.with_suffix(".key").unlink()
    EventLog(path)(event(2))  # the control: with the key gone, too, it is a new log
    assert verify(path).intact


def test_an_edit_of_the_head_is_not_sealed_over(path, log):
    log(event(0))
    log(event(1))
    digest = query(path, "SELECT hash FROM events WHERE sequence = 1")[0][0]
    edit(
        path,
        "DELETE FROM events WHERE sequence = 2",
        ("UPDATE head SET sequence = 1, hash = ?", digest),
    )
    for writer in (log, EventLog(path)):
        with pytest.raises(StoreError, match="changed by something else than toolcell"):
            writer(event(2))
    assert len(events_in(path)) == 1


@pytest.mark.parametrize("left", [b"", b"half of a key"])
def test_what_a_first_writer_left_when_it_was_ended_is_in_nobodys_way(path, log, left):
    path.with_name("events.key.new").write_bytes(left)
    log(event())
    assert verify(path).intact
    assert not path.with_name("events.key.new").exists()


def test_a_key_whose_maker_was_ended_before_it_took_its_name_is_used(path, log):
    log(event(0))
    log.close()
    path.with_suffix(".key").rename(path.with_name("events.key.new"))
    assert verify(path).intact
    EventLog(path)(event(1))
    assert verify(path).events == 2
    assert path.with_suffix(".key").exists()


def test_a_log_and_its_key_may_be_moved(path, log, tmp_path):
    log(event(0))
    log.close()
    (tmp_path / "elsewhere").mkdir()
    for suffix in (".db", ".key"):
        path.with_suffix(suffix).rename(tmp_path / "elsewhere" / f"other{suffix}")
    moved = tmp_path / "elsewhere" / "other.db"
    EventLog(moved)(event(1))
    assert verify(moved).events == 2
    assert verify(moved).intact


def test_a_log_cannot_have_the_name_of_a_key(tmp_path):
    with pytest.raises(StoreError, match="another ending"):
        EventLog(tmp_path / "events.key")


def test_the_files_do_not_reach_child_processes(path, log):
    log(event())
    links = {int(link.name): link for link in Path("/proc/self/fd").iterdir()}
    held = [n for n, link in links.items() if str(path) in os.path.realpath(link)]
    assert len(held) == 3  # the database, its write-ahead log, and what they share
    assert not any(os.get_inheritable(fd) for fd in held)


def test_no_events_keeps_nothing():
    assert no_events(event()) is None
