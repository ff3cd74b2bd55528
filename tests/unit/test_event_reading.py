"""Claims of reading: events are found, a call is told in words, stages and tools are counted."""

import threading
from contextlib import closing
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcell.events import Event, EventKind, EventLog, EventReader
from toolcell.events.statistics import statistics
from toolcell.events.table import Wanted
from toolcell.events.timeline import STAGES, call_of, outcome, stage, steps, words

from .event_samples import BEGIN, a_call, edit, event


@pytest.fixture
def path(tmp_path):
    return tmp_path / "events.db"


@pytest.fixture
def reader(path):
    """A reader of a log of two calls in each of two runs."""
    log = EventLog(path)
    for number in range(4):
        for kind in (EventKind.RECEIVED, EventKind.FINISHED):
            log(event(number, kind, run=f"run_{number % 2}", call_id=f"c{number // 2}"))
    log.close()
    with closing(EventReader(path)) as made:
        yield made


def numbers(rows):
    return [row.sequence for row in rows]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (Wanted(), [1, 2, 3, 4, 5, 6, 7, 8]),
        (Wanted(call="c0"), [1, 2, 3, 4]),
        (Wanted(call="key_1"), [3, 4]),
        (Wanted(call="nothing"), []),
        (Wanted(run="run_1"), [3, 4, 7, 8]),
        (Wanted(kind=EventKind.FINISHED), [2, 4, 6, 8]),
        (Wanted(since=BEGIN + timedelta(seconds=2)), [5, 6, 7, 8]),
        (Wanted(call="c1", run="run_1", kind=EventKind.RECEIVED), [7]),
    ],
)
def test_events_are_found_by_what_is_wanted(reader, wanted, found):
    assert numbers(reader.rows(wanted)) == found
    assert numbers(reader.last(3, wanted)) == found[-3:]
    assert numbers(reader.rows(wanted, after=4)) == [n for n in found if n > 4]


def test_more_events_than_one_look_fetches_are_all_found(path):
    log = EventLog(path)
    for number in range(1203):
        log(event(number))
    log.close()
    with closing(EventReader(path)) as reader:
        assert numbers(reader.rows()) == list(range(1, 1204))


def test_reading_makes_no_file(tmp_path):
    reader = EventReader(tmp_path / "nothing.db")
    assert not reader.exists()
    assert list(reader.rows()) == reader.last(5) == []
    with reader.at_one_moment():
        assert list(reader.rows()) == []
    assert list(tmp_path.iterdir()) == []


def test_one_moment_is_seen_whatever_is_appended_and_pruned(reader, path):
    log = EventLog(path, keep_days=None)
    with reader.at_one_moment():
        before = numbers(reader.rows())
        log(event(9))
        with log._database.writing() as connection:
            connection.execute("UPDATE head SET anchor_sequence = 4")
            connection.execute("DELETE FROM events WHERE sequence <= 4")
        assert numbers(reader.rows()) == before
    assert numbers(reader.rows()) == [5, 6, 7, 8, 9]
    log.close()


def test_events_are_followed_as_they_come_also_into_a_log_that_comes(path):
    reader = EventReader(path)
    log = EventLog(path)
    seen = threading.Semaphore(0)

    def write():
        for number in range(5):
            log(event(number))
            seen.acquire()

    writer = threading.Thread(target=write)
    writer.start()
    follow = reader.follow(every=0.001)
    for number in range(5):
        assert next(follow).event.call_id == f"c{number}"
        seen.release()
    writer.join()
    follow.close()
    reader.close()
    log.close()


def test_a_row_that_was_edited_into_no_event_is_read_as_such(reader, path):
    edit(path, "UPDATE events SET body = CAST(x'ff' AS TEXT), kind = 'x' WHERE sequence = 2")
    row = reader.last(7)[0]
    assert row.sequence == 2
    with pytest.raises(ValueError, match="valid string"):
        _ = row.event


# One call


def test_each_stage_of_a_call_has_its_name_and_its_time():
    found = [(step.stage, round(step.took, 1), round(step.offset, 1)) for step in steps(a_call())]
    assert found == [
        ("", 0.0, 0.0),
        ("prepare", 0.1, 0.1),
        ("decide", 0.1, 0.2),
        ("decide", 0.1, 0.3),
        ("waiting for a person", 10.0, 10.3),
        ("decide", 0.1, 10.4),
        ("waiting for a cell", 0.1, 10.5),
        ("running", 0.9, 11.4),
        ("finishing", 0.1, 11.5),
    ]


def test_the_time_between_two_attempts_is_waiting_for_a_cell():
    assert stage(EventKind.ENDED, EventKind.STARTED) == "waiting for a cell"
    assert stage(EventKind.STARTED, EventKind.FINISHED) == "running"
    assert stage(EventKind.DECIDED, EventKind.FINISHED) == "finishing"
    assert stage(EventKind.FINISHED, EventKind.ANSWERED) == ""


def test_a_clock_that_went_back_counts_as_no_time():
    first, second = steps([event(5), event(3, EventKind.PREPARED)])
    assert (first.took, second.took, second.offset) == (0.0, 0.0, 0.0)


def test_a_call_is_told_in_words():
    assert [words(one) for one in a_call(category=None, output_bytes=3, attempts=2)] == [
        '{"command": "git push"}',
        "arguments are valid, digest d1",
        "ask by rule push: a remote",
        "put to a person as apr_1, open until 13:00",
        "approved by ada",
        "may run once, by approval, approval apr_1",
        "runs on the full rung, its walls were found standing",
        "exit 0, stdout 3 bytes",
        "succeeded, attempts 2, output 3 bytes",
    ]


@pytest.mark.parametrize(
    ("kind", "data", "said"),
    [
        (EventKind.RECEIVED, {}, ""),
        (EventKind.RECEIVED, {"arguments": "x" * 500}, "x... (502 characters)"),
        (
            EventKind.ANSWERED,
            {"approved": False, "by": "eve", "note": "no"},
            "not approved by eve: no",
        ),
        (EventKind.ANSWERED, {"approved": True, "state": "spent"}, "(the approval is spent)"),
        (EventKind.ANSWERED, {"approved": True, "state": "expired"}, "nobody answered in time"),
        (EventKind.ANSWERED, {"state": ["odd"]}, "not approved"),
        (EventKind.STARTED, {"attempt": 2}, "runs, attempt 2"),
        (EventKind.ENDED, {"killed": "wall", "exit": None}, "ended, killed: wall"),
        (EventKind.FINISHED, {"status": "failed", "category": "memory"}, "failed: memory"),
        (EventKind.FINISHED, {}, "?"),
        (EventKind.STOPPED, {"reason": "enough"}, "the run takes no more calls, enough"),
        (
            EventKind.PRUNED,
            {"rows": 5, "through": 9, "reason": "old"},
            "5 events removed, up to 9, old",
        ),
    ],
)
def test_what_happened_is_told_as_far_as_it_is_known(kind, data, said):
    assert said in words(event(0, kind, data=data))


JSON = st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.integers(), max_size=2)
NAMES = st.sampled_from(
    ["action", "approved", "attempt", "attempts", "by", "category", "exit", "reason", "rung"]
)


@given(st.sampled_from(EventKind), st.dictionaries(NAMES | st.text(), JSON, max_size=6))
def test_no_data_keeps_an_event_from_being_told(kind, data):
    assert isinstance(words(event(0, kind, data=data)), str)


def test_a_call_without_an_end_is_told_as_such():
    call = a_call()
    assert outcome(call) == "succeeded"
    assert outcome(call[:7]) == "no end was recorded: it still runs, or its controller ended"
    assert "waits for an answer" in outcome(call[:4])


def test_what_is_of_no_call_belongs_to_none():
    assert call_of(event(1)) == ("key_1",)
    assert call_of(event(1, key="")) == ("run_1", "c1")
    assert call_of(event(1, EventKind.PRUNED)) is None
    assert call_of(event(1, EventKind.STOPPED)) is None


# Numbers


def spread(found, name):
    return next(one.time for one in found.stages if one.stage == name)


def test_tools_are_counted_slowest_first_without_the_waiting_for_a_person():
    quick = [
        event(n, kind, seconds=100 + n + later, tool_name="quick", data={"status": "succeeded"})
        for n in range(20)
        for kind, later in ((EventKind.RECEIVED, 0), (EventKind.FINISHED, (n + 1) / 1000))
    ]
    found = statistics([*quick, *a_call(100, status="failed", category="exit_code")])
    assert [tool.tool for tool in found.tools] == ["shell", "quick"]
    slow, fast = found.tools
    assert (slow.calls, slow.failed, slow.time.p50_ms) == (1, 1, 1500)
    assert (fast.calls, fast.failed) == (20, 0)
    assert (fast.time.p50_ms, fast.time.p95_ms, fast.time.max_ms) == (10, 19, 20)
    assert (found.calls, found.unfinished) == (21, 0)


def test_failures_are_counted_by_category_over_all_calls():
    ends = ["exit_code", "exit_code", "policy_denied", None, None]
    found = statistics(
        one
        for number, category in enumerate(ends)
        for one in a_call(number, status="failed" if category else "succeeded", category=category)
    )
    assert [(c.category, c.calls, c.rate) for c in found.categories] == [
        ("exit_code", 2, 0.4),
        ("policy_denied", 1, 0.2),
    ]


def test_a_call_that_waits_by_itself_has_not_failed():
    assert statistics(a_call(status="waiting")).tools[0].failed == 0


def test_time_is_counted_by_stage_in_the_order_of_the_path():
    found = statistics([*a_call(1), *a_call(2, begin=100)])
    assert [one.stage for one in found.stages] == list(STAGES)
    assert spread(found, "waiting for a person").p50_ms == 10_000
    assert spread(found, "running").total_ms == 1800
    assert spread(found, "decide").count == 2


def test_a_call_without_an_end_is_counted_as_such_and_a_late_answer_is_none():
    late = event(1, EventKind.ANSWERED, seconds=60, data={"approved": True, "state": "spent"})
    found = statistics([*a_call(1), late, *a_call(2)[:4]])
    assert (found.calls, found.unfinished) == (1, 1)


def test_an_end_whose_beginning_is_not_there_counts_but_not_its_time():
    found = statistics(a_call()[5:])
    assert (found.calls, found.tools[0].time) == (1, None)


def test_calls_of_one_id_are_told_apart_also_without_keys():
    bare = [one.model_copy(update={"key": ""}) for one in [*a_call(1), *a_call(1, begin=50)]]
    assert statistics(bare).calls == 2


def test_of_nothing_there_are_no_numbers():
    found = statistics([])
    assert (found.calls, found.tools, found.categories, found.stages) == (0, (), (), ())


def test_an_event_reads_back_from_its_row(reader):
    assert all(isinstance(row.event, Event) for row in reader.rows())
