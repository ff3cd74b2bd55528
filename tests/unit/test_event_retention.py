"""Claims of retention: only a whole beginning of the chain goes, and what is left proves itself."""

import sqlite3
from contextlib import closing
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolcell.errors import StoreError
from toolcell.events import EventKind, EventLog, EventReader, log, verify
from toolcell.events.table import bytes_used

from .event_samples import BEGIN, edit, event, query


class Clock:
    """A clock that a test sets, in days after the first event."""

    def __init__(self):
        self.days = 0.0

    def __call__(self):
        return BEGIN + timedelta(days=self.days)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def make(tmp_path, clock):
    """Open the log, with small steps."""
    opened = []

    def open_it(**options):
        opened.append(EventLog(tmp_path / "events.db", clock=clock, **options))
        return opened[-1]

    yield open_it
    for each in opened:
        each.close()


@pytest.fixture(autouse=True)
def _small_steps(monkeypatch):
    monkeypatch.setattr(log, "_STEP", 8)
    monkeypatch.setattr(log, "_LOOK_EVERY", 4)


def day(number, **given):
    return event(0, seconds=number * 86400, call_id=f"d{number}", **given)


def fill(events, clock, days, **given):
    for number in days:
        clock.days = number
        events(day(number, **given))


def kept(path):
    """The calls whose events are left, and what was written of pruning."""
    with closing(EventReader(path)) as reader:
        found = [row.event for row in reader.rows()]
    pruned = [one for one in found if one.kind is EventKind.PRUNED]
    return [one.call_id for one in found if one not in pruned], pruned


def test_pruning_by_age_removes_what_is_older_and_nothing_else(make, clock):
    events = make(keep_days=None)
    fill(events, clock, range(10))
    done = events.prune(older_than=timedelta(days=4.5))
    assert (done.rows, done.through) == (5, 5)
    calls, pruned = kept(events.path)
    assert calls == [f"d{number}" for number in range(5, 10)]
    assert [one.data for one in pruned] == [
        {"rows": 5, "through": 5, "reason": "recorded before 2030-01-06T00:00:00+00:00"}
    ]
    found = verify(events.path)
    assert found.intact
    assert (found.events, found.pruned, found.first, found.last) == (6, 5, 6, 11)


def test_pruning_by_size_leaves_the_newest(make, clock):
    events = make(keep_days=None, keep_bytes=None)
    fill(events, clock, range(300), data={"text": "x" * 500})
    done = events.prune(keep_bytes=60_000)
    calls, _ = kept(events.path)
    assert done.rows > 200
    assert calls == [f"d{number}" for number in range(300 - len(calls), 300)]
    assert 45_000 < events.path.stat().st_size <= 60_000
    assert verify(events.path).intact


def test_everything_can_be_pruned_and_the_chain_goes_on(make, clock):
    events = make(keep_days=None)
    fill(events, clock, range(5))
    clock.days = 100
    events.prune(older_than=timedelta(days=50))
    assert kept(events.path)[0] == []
    events(day(100))
    found = verify(events.path)
    assert found.intact
    assert (found.pruned, found.first, found.last) == (5, 6, 7)


def test_pruning_nothing_writes_nothing(make, clock):
    events = make()
    fill(events, clock, range(3))
    assert events.prune(older_than=timedelta(days=30), keep_bytes=10**9).rows == 0
    assert kept(events.path) == (["d0", "d1", "d2"], [])


def test_old_events_go_by_themselves_a_day_later_at_the_most(make, clock):
    events = make(keep_days=30)
    fill(events, clock, range(100))
    calls, pruned = kept(events.path)
    assert len(pruned) > 1
    # It looks with every fourth event, and each event is of another day.
    assert 100 - 30 - 1 - 4 <= int(calls[0][1:]) <= 100 - 30
    assert calls == [f"d{number}" for number in range(int(calls[0][1:]), 100)]
    assert verify(events.path).intact


def test_the_control_without_retention_keeps_everything(make, clock):
    events = make(keep_days=None, keep_bytes=None)
    fill(events, clock, range(100))
    assert len(kept(events.path)[0]) == 100


def test_the_file_stops_growing_at_its_size(make, clock):
    events = make(keep_days=None, keep_bytes=100_000)
    sizes = []
    for _ in range(6):
        fill(events, clock, range(200), data={"text": "x" * 500})
        events.close()  # so that all of it is in the one file
        sizes.append(events.path.stat().st_size)
    assert max(sizes) < 115_000
    with events._database.reading() as connection:
        assert bytes_used(connection) < 110_000
    assert verify(events.path).intact


def test_a_process_that_writes_few_events_prunes_too(make, clock):
    for number in range(100):
        events = make(keep_days=30)
        fill(events, clock, [number])
        events.close()
    assert int(kept(events.path)[0][0][1:]) >= 100 - 30 - 1 - 1
    assert verify(events.path).intact


def test_an_append_is_held_up_by_one_step_at_the_most(make, clock):
    fill(make(keep_days=None), clock, range(100))
    clock.days = 1000
    events = make(keep_days=30)
    events(day(1000))
    calls, pruned = kept(events.path)
    assert [one.data["rows"] for one in pruned] == [8]
    assert calls[0] == "d8"


def test_an_edited_event_is_not_pruned_away(make, clock):
    events = make(keep_days=None)
    fill(events, clock, range(20))
    edit(events.path, "UPDATE events SET body = replace(body, 'd3', 'dX') WHERE sequence = 4")
    with pytest.raises(StoreError, match=r"event 4 of the log was edited.*stay"):
        events.prune(older_than=timedelta(days=1))
    # What comes before it was whole, and could go.
    assert query(events.path, "SELECT min(sequence) FROM events") == [(4,)]
    assert "event 4: " in verify(events.path).findings[0].what


def test_an_edited_event_keeps_nobody_from_writing(make, clock):
    events = make(keep_days=30)
    fill(events, clock, range(20))
    edit(events.path, "UPDATE events SET body = 'x' WHERE sequence = 1")
    fill(events, clock, range(20, 200))
    assert kept_sequences(events.path) == (1, 200)


def kept_sequences(path):
    return query(path, "SELECT min(sequence), max(sequence) FROM events")[0]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET at = 0",  # so that it would look old
        "DELETE FROM events WHERE sequence = 1",
        "UPDATE events SET hash = 'x' WHERE sequence = 1",
    ],
)
def test_retention_lets_nobody_remove_what_is_not_old(make, clock, statement):
    events = make(keep_days=30)
    fill(events, clock, range(20))
    edit(events.path, statement)
    rows = query(events.path, "SELECT count(*) FROM events")[0][0]
    fill(events, clock, [20] * 20)
    assert query(events.path, "SELECT count(*) FROM events")[0][0] == rows + 20
    assert not verify(events.path).intact


def test_a_guard_lets_only_go_what_the_head_calls_pruned(make, clock):
    events = make(keep_days=None)
    fill(events, clock, range(10))
    events.prune(older_than=timedelta(days=4.5))
    refused = pytest.raises(sqlite3.IntegrityError, match="append-only; use toolcell events prune")
    with closing(sqlite3.connect(events.path)) as connection, refused:
        connection.execute("DELETE FROM events WHERE sequence = 6")


def test_an_event_put_before_the_first_that_is_kept_is_found(make, clock):
    events = make(keep_days=None)
    fill(events, clock, range(10))
    rows = query(events.path, "SELECT * FROM events WHERE sequence = 3")
    events.prune(older_than=timedelta(days=4.5))
    edit(events.path, ("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", *rows[0]))
    found = verify(events.path)
    assert [one.what for one in found.findings] == [
        "event 3 was added before the first that is kept"
    ]


def test_an_anchor_that_was_moved_by_hand_is_found(make, clock):
    events = make(keep_days=None)
    fill(events, clock, range(10))
    digest = query(events.path, "SELECT hash FROM events WHERE sequence = 4")[0][0]
    edit(
        events.path,
        "DELETE FROM events WHERE sequence <= 4",
        ("UPDATE head SET anchor_sequence = 4, anchor_hash = ?", digest),
    )
    assert [one.what for one in verify(events.path).findings] == [
        "the seal is broken: the head was edited by somebody without the key"
    ]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("append"), st.integers(1, 20)),
            st.tuples(st.just("age"), st.integers(0, 40)),
            st.tuples(st.just("bytes"), st.integers(0, 40_000)),
            st.tuples(st.just("reopen"), st.just(0)),
        ),
        max_size=12,
    )
)
def test_whatever_is_appended_and_pruned_the_chain_holds(tmp_path_factory, deeds):
    clock = Clock()
    path = tmp_path_factory.mktemp("log") / "events.db"
    events = EventLog(path, clock=clock, keep_days=20, keep_bytes=30_000)
    events(day(0))
    days = 1
    for deed, number in deeds:
        if deed == "append":
            fill(events, clock, range(days, days + number), data={"text": "x" * 300})
            days += number
        elif deed == "age":
            events.prune(older_than=timedelta(days=number))
        elif deed == "bytes":
            events.prune(keep_bytes=number)
        else:
            events.close()
    events.close()
    found = verify(path)
    assert found.intact
    assert found.pruned + found.events == found.last
    calls, _ = kept(path)
    assert calls == [f"d{number}" for number in range(days - len(calls), days)]
