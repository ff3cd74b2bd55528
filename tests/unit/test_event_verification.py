"""Claims of `toolcell.events.verification`: whatever a hand does to a log is found, and named."""

import random
import shutil
import sqlite3
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolcell.errors import StoreError
from toolcell.events import EventKind, EventLog, EventReader, verify
from toolcell.events.chain import GENESIS, Head, Row, link, seal

from .event_samples import edit, event, query

ROWS = 12
COLUMNS = ("sequence", "body", "hash", "at", "kind", "run", "key", "call_id", "tool_name")


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A log of twelve events, which nobody edits."""
    path = tmp_path_factory.mktemp("original") / "events.db"
    log = EventLog(path)
    for number in range(ROWS):
        log(event(number, EventKind.DECIDED, data={"reason": f"reason {number}"}))
    log.close()
    return path


@pytest.fixture
def path(original, tmp_path):
    return copy(original, tmp_path)


def copy(original, place):
    place.mkdir(exist_ok=True)
    for suffix in (".db", ".key"):
        shutil.copy(original.with_suffix(suffix), place)
    return place / original.name


def found_in(path):
    """What is wrong, as one text; each finding about an event has that event's number."""
    found = verify(path)
    assert found.intact == (not found.findings)
    for finding in found.findings:
        assert finding.sequence is None or str(finding.sequence) in finding.what
    return "; ".join(finding.what for finding in found.findings)


def rechain(path, *, from_sequence=1):
    """Recompute every hash and the head, as anybody can; but for the seal."""
    with closing(sqlite3.connect(path)) as connection:
        before = "SELECT hash FROM events WHERE sequence = ?"
        found = connection.execute(before, (from_sequence - 1,)).fetchone()
        previous = found[0] if found else GENESIS
        rows = "SELECT sequence, body FROM events WHERE sequence >= ? ORDER BY sequence"
        last = 0
        for sequence, body in connection.execute(rows, (from_sequence,)).fetchall():
            previous, last = link(previous, sequence, body), sequence
            update = "UPDATE events SET hash = ? WHERE sequence = ?"
            connection.execute(update, (previous, sequence))
        connection.execute("UPDATE head SET sequence = ?, hash = ?", (last, previous))
        connection.commit()


def test_a_log_that_nobody_edited_is_intact(path):
    found = verify(path)
    assert found.intact
    assert (found.events, found.first, found.last, found.pruned) == (ROWS, 1, ROWS, 0)
    assert found.hash == query(path, "SELECT hash FROM head")[0][0]


def test_dropping_the_guards_alone_is_no_edit_of_an_event(path):
    edit(path)
    assert verify(path).intact


@pytest.mark.parametrize(
    ("statements", "said"),
    [
        (
            ["UPDATE events SET body = replace(body, 'reason 4', 'reason X')"],
            "event 5: it does not fit the chain: it was changed",
        ),
        (
            ["UPDATE events SET body = replace(body, '12:00:04', '12:00:05') WHERE sequence = 5"],
            "event 5: it does not fit the chain: it was changed",
        ),
        (["UPDATE events SET at = at + 1 WHERE sequence = 5"], "event 5: what it is searched by"),
        (["UPDATE events SET call_id = 'cX' WHERE sequence = 5"], "event 5: what it is searched"),
        (["UPDATE events SET body = '{}' WHERE sequence = 5"], "event 5: it does not fit"),
        (["UPDATE events SET body = x'ff00' WHERE sequence = 5"], "event 5: it does not fit"),
        (["UPDATE events SET body = CAST(body AS BLOB) WHERE sequence = 5"], "event 5: "),
        (["UPDATE events SET hash = CAST(x'ff' AS TEXT) WHERE sequence = 5"], "event 5: "),
        (["DELETE FROM events WHERE sequence = 5"], "event 5 is missing"),
        (["DELETE FROM events WHERE sequence IN (5, 6, 7)"], "events 5 to 7 are missing"),
        (["DELETE FROM events WHERE sequence = 1"], "event 1 is missing"),
        (["DELETE FROM events WHERE sequence = 12"], "event 12 is missing at the end"),
        (["DELETE FROM events WHERE sequence > 9"], "events 10 to 12 are missing at the end"),
        (["DELETE FROM events"], "events 1 to 12 are missing at the end"),
        (["DELETE FROM events", "DELETE FROM head"], "the head and all events were removed"),
        (["DELETE FROM head"], "the head is missing, and there are events"),
        (
            [
                "DELETE FROM events WHERE sequence = 12",
                "UPDATE head SET sequence = 11,"
                " hash = (SELECT hash FROM events WHERE sequence = 11)",
            ],
            "the seal is broken: the head was edited by somebody without the key",
        ),
        (
            [
                "DELETE FROM events WHERE sequence <= 3",
                "UPDATE head SET anchor_sequence = 3, anchor_hash = 'x'",
            ],
            "the seal is broken",
        ),
        (["UPDATE head SET hash = 'x'"], "the seal is broken"),
        (["UPDATE head SET seal = 'x'"], "the seal is broken"),
        (["UPDATE head SET seal = x'00'"], "the head was edited into something that is no head"),
        (["UPDATE head SET sequence = 'many'"], "edited into something that is no head"),
        (["UPDATE head SET hash = CAST(x'ff' AS TEXT)"], "the seal is broken"),
        (["UPDATE head SET key_id = 'x'"], "is the key of another log"),
        (
            [
                "INSERT INTO events SELECT 13, body, hash, at, kind, run, key, call_id, tool_name"
                " FROM events WHERE sequence = 5"
            ],
            "event 13 was added behind the head",
        ),
        (
            [
                "INSERT INTO events SELECT 0, body, hash, at, kind, run, key, call_id, tool_name"
                " FROM events WHERE sequence = 5"
            ],
            "event 0 was added before the first that is kept",
        ),
        (
            [
                "UPDATE events SET sequence = sequence + 1000 WHERE sequence >= 5",
                "UPDATE events SET sequence = sequence - 999 WHERE sequence > 1000",
                "INSERT INTO events SELECT 5, body, hash, at, kind, run, key, call_id, tool_name"
                " FROM events WHERE sequence = 4",
            ],
            "event 5: it does not fit the chain: it was changed, or put in this place",
        ),
        (["DROP TABLE head"], "is a database of something else"),
        (["PRAGMA user_version = 9"], "has format 9"),
    ],
)
def test_an_edit_is_found(path, statements, said):
    edit(path, *statements)
    assert said in found_in(path)


@pytest.mark.parametrize(("one", "other"), [(5, 6), (3, 9), (1, 12)])
@pytest.mark.parametrize("with_hashes", [True, False])
def test_two_events_that_changed_places_are_found_and_named(path, one, other, with_hashes):
    if with_hashes:
        edit(
            path,
            f"UPDATE events SET sequence = 99 WHERE sequence = {one}",
            f"UPDATE events SET sequence = {one} WHERE sequence = {other}",
            f"UPDATE events SET sequence = {other} WHERE sequence = 99",
        )
    else:
        bodies = dict(query(path, "SELECT sequence, body FROM events"))
        change = "UPDATE events SET body = ? WHERE sequence = ?"
        edit(path, (change, bodies[other], one), (change, bodies[one], other))
    said = found_in(path)
    assert f"what is event {one} now was event {other}: they are out of order" in said
    assert f"what is event {other} now was event {one}: they are out of order" in said


@pytest.mark.parametrize("sequence", [1, 5, 12])
def test_a_chain_that_was_recomputed_without_the_key_is_found(path, sequence):
    edit(
        path,
        f"UPDATE events SET body = replace(body, 'reason', 'excuse') WHERE sequence = {sequence}",
    )
    rechain(path, from_sequence=sequence)
    assert found_in(path) == "the seal is broken: the head was edited by somebody without the key"


def test_a_chain_that_was_recomputed_with_the_key_is_not_found_as_is_said(path):
    edit(path, "UPDATE events SET body = replace(body, 'reason', 'excuse') WHERE sequence = 5")
    rechain(path)
    ((sequence, digest),) = query(path, "SELECT sequence, hash FROM head")
    right = seal(path.with_suffix(".key").read_bytes(), Head(sequence, digest))
    edit(path, ("UPDATE head SET seal = ?", right))
    assert verify(path).intact


def test_a_missing_key_is_its_own_finding_and_the_chain_is_walked_all_the_same(path):
    path.with_suffix(".key").unlink()
    assert found_in(path).startswith("the seal cannot be checked: the key is missing")
    edit(path, "DELETE FROM events WHERE sequence = 5")
    assert "event 5 is missing" in found_in(path)


def test_the_key_of_another_log_is_its_own_finding(path, tmp_path):
    EventLog(tmp_path / "other.db")(event())
    shutil.copy(tmp_path / "other.key", path.with_suffix(".key"))
    assert "is the key of another log" in found_in(path)


def test_a_log_that_is_not_there_is_not_intact(tmp_path, path):
    assert "there is no log" in found_in(tmp_path / "nothing.db")
    assert not (tmp_path / "nothing.db").exists()
    path.unlink()
    assert "the log was removed: its key is still there" in found_in(path)


def test_an_older_copy_of_log_and_key_is_found_by_what_was_noted(path, tmp_path):
    old = copy(path, tmp_path / "old")
    log = EventLog(path)
    log(event(20))
    log.close()
    later = verify(path)
    noted = (later.last, later.hash)
    assert verify(path, noted=noted).noted == "found"
    assert verify(old).intact  # the control: nothing in the copy tells
    found = verify(old, noted=noted)
    assert not found.intact
    assert (
        "event 13 that was noted is not in the log: it is an older copy" in found.findings[0].what
    )


def test_a_noted_event_that_was_pruned_since_says_nothing_of_the_log(path):
    noted = verify(path)
    log = EventLog(path)
    log.prune(keep_bytes=0)
    log.close()
    found = verify(path, noted=(noted.last, noted.hash))
    assert found.intact
    assert found.noted == "pruned"


def test_findings_stop_at_twenty(tmp_path):
    log = EventLog(tmp_path / "events.db")
    for number in range(50):
        log(event(number))
    log.close()
    edit(log.path, "UPDATE events SET tool_name = 'x'")
    assert len(verify(log.path).findings) == 20


def test_a_log_can_be_verified_while_it_is_written(path):
    log = EventLog(path)
    with log._database.writing() as connection:
        connection.execute("UPDATE head SET sequence = 99")  # not committed: nobody sees it
        assert verify(path).intact
        connection.execute(f"UPDATE head SET sequence = {ROWS}")
    log.close()


def test_what_cannot_be_read_at_all_is_an_error_and_no_finding(tmp_path):
    (tmp_path / "events.db").mkdir()
    assert "not a regular file" in found_in(tmp_path / "events.db")
    with pytest.raises(StoreError, match="another ending"):
        verify(tmp_path / "events.key")


values = st.one_of(
    st.text(max_size=20), st.integers(-(2**62), 2**62), st.binary(max_size=20), st.booleans()
)


@settings(max_examples=150, deadline=None)
@given(st.integers(1, ROWS), st.sampled_from(COLUMNS), values)
def test_any_edit_of_one_field_is_found(original, tmp_path_factory, sequence, column, value):
    path = copy(original, tmp_path_factory.mktemp("edited"))
    before = query(path, "SELECT * FROM events ORDER BY sequence")
    change = f"UPDATE OR IGNORE events SET {column} = ? WHERE sequence = ?"
    try:
        edit(path, (change, value, sequence))
    except sqlite3.IntegrityError:  # text as a sequence number
        return
    changed = query(path, "SELECT * FROM events ORDER BY sequence") != before
    assert verify(path).intact != changed


@settings(max_examples=150, deadline=None)
@given(st.integers(1, ROWS), st.data())
def test_any_edit_of_one_character_is_found(original, tmp_path_factory, sequence, data):
    path = copy(original, tmp_path_factory.mktemp("edited"))
    ((body,),) = query(path, f"SELECT body FROM events WHERE sequence = {sequence}")
    place = data.draw(st.integers(0, len(body) - 1))
    character = data.draw(st.characters(codec="utf-8").filter(lambda c: c != body[place]))
    edited = body[:place] + character + body[place + 1 :]
    edit(path, ("UPDATE events SET body = ? WHERE sequence = ?", edited, sequence))
    assert f"event {sequence}: " in found_in(path)


@pytest.mark.parametrize("seed", range(8))
def test_a_garbled_file_is_never_taken_for_another_log(original, tmp_path, seed):
    numbers = random.Random(seed)
    with closing(EventReader(original)) as reader:
        lines = [row.line for row in reader.rows()]
    for attempt in range(25):
        path = copy(original, tmp_path / str(attempt))
        data = bytearray(path.read_bytes())
        for _ in range(numbers.choice([1, 3, 50])):
            data[numbers.randrange(len(data))] = numbers.randrange(256)
        if numbers.random() < 0.2:
            del data[numbers.randrange(len(data)) :]
        path.write_bytes(data)
        if verify(path).intact:  # what was hit was in use by nothing
            with closing(EventReader(path)) as reader:
                assert [row.line for row in reader.rows()] == lines


def test_a_row_says_what_its_event_is_or_that_it_is_none():
    assert Row(1, '{"v":1}', GENESIS, ()).line == f'{{"seq":1,"v":1,"hash":"{GENESIS}"}}'
    with pytest.raises(ValueError, match="kind"):
        _ = Row(1, '{"v":1}', GENESIS, ()).event
