"""A file that cannot be used is an error in words; nothing is answered, spent or lost by it."""

import os
import resource
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing

import pytest

from toolcell.approvals import SqliteApprovals
from toolcell.errors import StoreError
from toolcell.model import ApprovalResponse, ApprovalState
from toolcell.registry import define

from .samples import ASK, greet, prepared

_CALL = prepared(define(greet), name="Ada")


@pytest.fixture
def file(tmp_path):
    return tmp_path / "approvals.db"


@pytest.fixture
def store(file):
    made = SqliteApprovals(file, wait=0.05)
    yield made
    made.close()


@pytest.fixture
def approved(store):
    """One that was approved, one that waits, and one whose call runs."""
    first, second, third = [store.create(_CALL, ASK, "p") for _ in range(3)]
    store.answer(yes(first))
    store.answer(yes(third))
    store.spend(third.approval_id)
    return first, second, third


def yes(request):
    return ApprovalResponse(approval_id=request.approval_id, approved=True, by="anna")


CHANGES = {
    "create": lambda store, first, second, third: store.create(_CALL, ASK, "p"),
    "answer": lambda store, first, second, third: store.answer(yes(second)),
    "spend": lambda store, first, second, third: store.spend(first.approval_id),
    "settle": lambda store, first, second, third: store.settle(third.approval_id, "failed"),
    "cancel": lambda store, first, second, third: store.cancel(first.approval_id),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_locked_file_is_told_of_and_nothing_is_lost(file, store, approved, change):
    before = store.approvals()
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="locked by another process"):
            CHANGES[change](store, *approved)
        assert store.approvals() == before, "reading goes on"
    assert store.approvals() == before
    CHANGES[change](store, *approved)  # the control: it works when the lock is gone


@pytest.mark.parametrize("change", CHANGES)
def test_a_full_disk_is_told_of_and_nothing_is_lost(file, store, approved, change):
    before = store.approvals()
    store.close()
    real = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        with store._database.reading():
            full = file.with_name(file.name + "-wal").stat().st_size
            resource.setrlimit(resource.RLIMIT_FSIZE, (full, real[1]))
            with pytest.raises(StoreError, match=r"free some space|look after its disk"):
                CHANGES[change](store, *approved)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, real)
        signal.signal(signal.SIGXFSZ, ignored)
    assert store.approvals() == before
    assert SqliteApprovals(file).approvals() == before
    CHANGES[change](store, *approved)  # the control: it works when there is space again


def test_a_database_at_its_greatest_size_is_told_of(store, approved):
    before = store.approvals()
    with store._database.reading() as connection:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count={pages}")

    def fill():
        for _ in range(100):
            before.append(store.get(store.create(_CALL, ASK, "p").approval_id))

    with pytest.raises(StoreError, match="the disk is full; free some space"):
        fill()
    assert store.approvals() == before


@pytest.mark.parametrize(
    ("content", "why"),
    [(b"no database " * 99, "not a database of toolcell"), (None, "not a regular file")],
)
def test_a_file_that_is_something_else_is_told_of_and_left(file, content, why):
    if content is None:
        file.mkdir()
    else:
        file.write_bytes(content)
    store = SqliteApprovals(file)
    with pytest.raises(StoreError, match=why):
        store.create(_CALL, ASK, "p")
    with pytest.raises(StoreError, match=why):
        store.pending()
    assert content is None or file.read_bytes() == content


def test_a_file_of_another_format_is_told_of(file, store, approved):
    store.close()
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("PRAGMA user_version=99")
    with pytest.raises(StoreError, match="has format 99"):
        store.spend(approved[0].approval_id)


_SPEND = """
import os, sys
from toolcell.approvals import SqliteApprovals
from toolcell.errors import StoreError
os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
try:
    print(SqliteApprovals(sys.argv[1]).spend(sys.argv[2]).won)
except StoreError as error:
    print(error)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="nobody else can be played without root")
def test_a_file_of_somebody_else_is_told_of(tmp_path_factory, tmp_path):
    for place in (tmp_path, *tmp_path.parents):
        if place.stat().st_uid == 0 and place.name.startswith("pytest-"):
            place.chmod(0o755)
    tmp_path.chmod(0o755)
    file = tmp_path / "approvals.db"
    store = SqliteApprovals(file)
    request = store.create(_CALL, ASK, "p")
    store.answer(yes(request))
    done = subprocess.run(
        [sys.executable, "-c", _SPEND, file, request.approval_id],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert "cannot be opened" in done.stdout
    assert store.get(request.approval_id).state == ApprovalState.APPROVED
    assert store.spend(request.approval_id).won, "the control"


EDITS = {
    "a state that is none": "state = 'certainly'",
    "a state that is never stored": "state = 'unknown'",
    "no JSON": "request = '{'",
    "JSON of something else": "request = '[]'",
    "deep JSON": f"request = '{'[' * 100_000}'",
    "a question without a reason": "request = json_remove(request, '$.reason')",
    "a field that is not known": "request = json_insert(request, '$.more', 1)",
    "another digest": "digest = 'sha256:other'",
    "another digest in the question": "request = json_set(request, '$.digest', 'other')",
    "another id in the question": "request = json_set(request, '$.approval_id', 'other')",
    "more time": "expires_at = '2999-01-01T00:00:00.000000+00:00'",
    "another policy": "policy_version = 'q'",
    "another workspace": "workspace = '/'",
    "another run": "run = 'other'",
    "no moment": "answered_at = 'yesterday'",
    "bytes that are no text": "note = CAST(x'ff' AS TEXT)",
    "numbers": "request = 5",
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_row_edited_into_nonsense_is_told_of_and_nothing_runs_on_it(file, store, approved, edit):
    first, second, _ = approved
    with closing(sqlite3.connect(file)) as other, other:
        other.execute(f"UPDATE approvals SET {EDITS[edit]} WHERE id = ?", [first.approval_id])
    for use in (
        lambda: store.get(first.approval_id),
        lambda: store.spend(first.approval_id),
        lambda: store.answer(yes(first)),
        lambda: store.cancel(first.approval_id),
        store.approvals,
    ):
        with pytest.raises(StoreError) as caught:
            use()
        assert "makes no sense" in str(caught.value) or "decode to UTF-8" in str(caught.value)
        assert len(str(caught.value)) < 1000
    assert store.pending() == [second], "the others can be answered"
    store.answer(yes(second))
    assert store.spend(second.approval_id).won


@pytest.mark.parametrize(
    "edit", ["granted = '{}'", "run = 'other'", "id = 'other'", "revoked_at = 'x'"]
)
def test_a_grant_edited_into_nonsense_is_told_of(file, store, edit):
    request = store.create(_CALL, ASK, "p", run="r")
    store.answer(yes(request).model_copy(update={"remember": "call"}))
    (grant,) = store.grants()
    with closing(sqlite3.connect(file)) as other, other:
        other.execute(f"UPDATE grants SET {edit}")
    (name,) = store.named("", "grants")
    with pytest.raises(StoreError, match=f"grant '{name}' makes no sense"):
        store.revoke(name)
    if "revoked" not in edit:
        with pytest.raises(StoreError, match="makes no sense"):
            store.grants()
    assert grant.run == "r"


_PROCESSES, _ROUNDS = 32, 5
_COMPETE = """
import os, sys
from toolcell.approvals import SqliteApprovals
def compete(approval, ready, gate, told):
    store = SqliteApprovals(sys.argv[1], wait=60)
    store.get(approval)
    os.write(ready, b".")
    os.read(gate, 1)  # nobody writes: it ends, for all at once, when it is closed
    spending = store.spend(approval)
    os.write(told, f"{spending.won} {spending.state}\\n".encode())
for approval in sys.argv[3:]:
    pipes = [os.pipe() for _ in range(3)]
    (ready, say_ready), (gate, open_gate), (told, tell) = pipes
    for _ in range(int(sys.argv[2])):
        if os.fork() == 0:
            os.close(open_gate)
            try:
                compete(approval, say_ready, gate, tell)
            finally:
                os._exit(0)
    os.close(tell)
    for _ in range(int(sys.argv[2])):
        os.read(ready, 1)
    os.close(open_gate)
    with open(told) as lines:
        print(lines.read().replace("\\n", ","), flush=True)
    while True:
        try:
            os.wait()
        except ChildProcessError:
            break
"""


def test_of_32_competing_processes_one_spends_an_approval(file, store):
    requests = [store.create(_CALL, ASK, "p") for _ in range(_ROUNDS)]
    for request in requests:
        store.answer(yes(request))
    done = subprocess.run(
        [sys.executable, "-c", _COMPETE, file, str(_PROCESSES)]
        + [request.approval_id for request in requests],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    rounds = [Counter(line.strip(",").split(",")) for line in done.stdout.splitlines()]
    for told in rounds:
        assert told.pop("True spent") == 1
        # Whoever won may be gone when the last of them looks.
        assert told.total() == _PROCESSES - 1
        assert set(told) <= {"False spent", "False unknown"}
    assert len(rounds) == _ROUNDS
