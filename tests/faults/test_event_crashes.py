"""Faults of the event log: writers that are killed at any moment leave a log that is whole.

A driver, one process without threads, forks a writer again and again and kills it after a
random time. The writer says of each event that it has been kept, after it was; so what it said
has to be there, and at most one event more.
"""

import json
import os
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROUNDS = 100

_DRIVER = """
import json, os, random, signal, sys, time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from toolcell.events import Event, EventKind, EventLog, EventReader, log, verify

place, rounds, seed, how = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
anew = how == "anew"
numbers = random.Random(seed)
log._LOOK_EVERY, log._STEP = 8, 16

def one(call, **data):
    return Event(at=datetime.now(UTC), kind=EventKind.RECEIVED, call_id=call, tool_name="t",
                 data=data)

began = time.monotonic()
EventLog(place / "first.db")(one("first"))
# About as long as it takes to begin a log, twice; or to prune a few times.
longest = max(0.002, time.monotonic() - began) * (2 if anew else 10)

def write(path, name, report):
    events = EventLog(path, keep_bytes=None if anew else 100_000)
    number = 0
    while True:
        call = f"{name}.{number}"
        text = "x" * (number * 37 % 3000)
        events(one(call, text=text))
        os.write(report, f"{call}\\n".encode())
        number += 1

def killed(path, name):
    read, report = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(read)
            write(path, name, report)
        finally:
            os._exit(1)
    os.close(report)
    time.sleep(numbers.random() * longest)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "the writer ended by itself"
    with os.fdopen(read) as stream:
        return stream.read().split()

def kept(path):
    with closing(EventReader(path)) as reader:
        found = [row.event for row in reader.rows()]
    return [one.call_id for one in found if one.kind is not EventKind.PRUNED]

said, more, pruned, states = [], 0, 0, set()
for round in range(rounds):
    path = place / (f"{round}.db" if anew else "events.db")
    said = [*([] if anew else said), *killed(path, round)]
    states.add((path.exists(), path.with_suffix(".key").exists(), len(said) > 0))
    if not path.exists():
        assert not said
        continue
    found = verify(path)
    assert found.intact, (round, found)
    there = kept(path)
    first = said.index(next((call for call in there if call in said), said[-1])) if said else 0
    lost = [call for call in said[first:] if call not in there]
    assert not lost, (round, lost)
    assert not said or said[-1] in there, (round, said[-1])
    beyond = [call for call in there if call not in said]
    assert len(beyond) <= (1 if anew else round + 1), (round, beyond)
    more = more + len(beyond) if anew else len(beyond)
    pruned = found.pruned
    if anew:  # whatever the first writer left, the next one goes on
        events = EventLog(path)
        events(one("next"))
        events.close()
        assert kept(path) == [*there, "next"]
        assert verify(path).intact
print(json.dumps({"said": len(said), "more": more, "pruned": pruned, "states": sorted(states)}))
"""


def drive(place: Path, seed: int, how: str) -> Any:
    """Run the rounds; returns what the driver counted."""
    place.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", _DRIVER, str(place), str(ROUNDS), str(seed), how],
        capture_output=True,
        text=True,
        timeout=110,
        env=os.environ | {"TOOLCELL_STATE_DIR": str(place)},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def seed() -> int:
    """Another one in each run, or the one that failed."""
    found = int(os.environ.get("FAULTS_SEED") or secrets.randbelow(10**6))
    print(f"FAULTS_SEED={found}")  # shown where the test fails
    return found


def test_a_log_is_whole_after_a_hundred_writers_were_killed(tmp_path: Path, seed: int) -> None:
    counted = drive(tmp_path / "logs", seed, "on")
    assert counted["said"] > 10 * ROUNDS
    assert counted["pruned"] > ROUNDS


def test_a_log_is_whole_whenever_its_first_writer_was_killed(tmp_path: Path, seed: int) -> None:
    counted = drive(tmp_path / "logs", seed, "anew")
    # Some were killed before there was a key, and some after the first event.
    assert [True, True, True] in counted["states"]
    assert any(not key for _, key, _ in counted["states"])
