"""Claims of `toolcell approvals`: what a person sees, says and is told of."""

import json
import os
import pty
import re
import subprocess
import sys
import threading
from datetime import timedelta

import pytest
from typer.testing import CliRunner

from toolcell.approvals import SqliteApprovals, utc_now
from toolcell.cli.approvals import app
from toolcell.model import ApprovalResponse, ApprovalState
from toolcell.registry import define

from .samples import ASK, greet, prepared

_EVIL = "Ada\u202e\x1b[2J\n  because  it is harmless"


_MAIN = "from toolcell.cli.approvals import app; app()"


@pytest.fixture
def file(tmp_path):
    return tmp_path / "approvals.db"


@pytest.fixture
def store(file):
    made = SqliteApprovals(file)
    yield made
    made.close()


@pytest.fixture
def do(file):
    """Run a command on the store; returns its exit code, output and talk."""

    def start(*words):
        done = CliRunner().invoke(app, [*words, "--store", str(file)])
        if done.exception and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done.exit_code, done.stdout, " ".join(done.stderr.split())

    return start


def ask(store, name="Ada", **rest):
    return store.create(prepared(define(greet), name=name), ASK, "policy-1", **rest)


def say(store, request, approved=True, by="bo", **rest):
    answer = {"approval_id": request.approval_id, "approved": approved, "by": by} | rest
    return store.answer(ApprovalResponse(**answer))


@pytest.fixture
def expired(file):
    old = SqliteApprovals(file, clock=lambda: utc_now() - timedelta(days=2))
    return ask(old)


def test_list_shows_what_waits_and_what_stands_for_a_run(store, do, expired):
    assert do("list") == (0, "", "toolcell: no question waits")
    waiting, granted = ask(store, _EVIL), ask(store, run="run-7", prefix=("git", "push"))
    say(store, granted, remember="prefix")
    code, out, _ = do("list")
    assert code == 0
    assert waiting.approval_id in out
    assert 'name="Ada\\u202e' in out
    assert "\u202e" not in out
    assert "\x1b" not in out
    assert expired.approval_id not in out
    (grant,) = store.grants()
    assert grant.grant_id in out
    assert "greet: git push ..." in out
    assert "run-7" in out


def test_list_all_shows_every_state(store, do, expired):
    done = ask(store)
    say(store, done)
    store.spend(done.approval_id)
    store.settle(done.approval_id, "failed")
    _, out, _ = do("list", "--all")
    assert re.search(rf"{done.approval_id}.*ran: failed", out)
    assert re.search(rf"{expired.approval_id}.*expired", out)


def test_list_makes_no_file(file, do):
    assert do("list") == (0, "", "toolcell: no question waits")
    assert do("show", "k")[0] == 1
    assert not file.exists()


def test_what_was_spent_by_one_who_is_gone_is_told_of(store, do, monkeypatch):
    request = ask(store)
    say(store, request)
    monkeypatch.setattr("toolcell.approvals.sqlite.this_process", lambda: "")
    store.spend(request.approval_id)
    assert "1 spent, outcome unknown" in do("list")[2]
    assert "spent, outcome unknown" in do("list", "--all")[1]
    assert "may have run, or not" in do("show", request.approval_id)[1]


def test_list_and_show_print_json_that_can_do_nothing_to_a_terminal(store, do):
    request = ask(store, _EVIL, run="r")
    say(store, ask(store, run="r"), remember="call")
    _, out, _ = do("list", "--json")
    document = json.loads(out)
    assert out.replace("\n", "").isprintable()
    assert out.isascii()
    (listed,) = document["approvals"]
    assert listed["request"]["call"]["arguments"]["name"] == _EVIL
    assert len(document["grants"]) == 1
    assert json.loads(do("show", request.approval_id, "--json")[1]) == listed


def test_show_shows_all_that_will_run(store, do):
    request = ask(store, _EVIL + "x" * 5000, workspace="/w")
    code, out, _ = do("show", request.approval_id)
    assert code == 0
    lines = out.splitlines()
    assert "    | Ada\\u202e\\x1b[2J" in lines
    assert "    |   because  it is harmless" + "x" * 5000 in lines
    assert "  because  a person decides" in lines
    assert "  in       /w" in lines
    assert f"  digest   {request.digest}" in lines
    assert "  state    waits for an answer" in lines


def test_a_terminal_that_lacks_letters_shows_them_spelled(store, file):
    request = ask(store, "é\u202e日")
    done = subprocess.run(
        [sys.executable, "-c", _MAIN, "show", request.approval_id, "--store", file],
        capture_output=True,
        check=True,
        env=os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert b"    | \\xe9\\u202e\\u65e5\n" in done.stdout


def test_approve_and_deny_are_kept_with_name_and_note(store, do):
    first, second = ask(store), ask(store)
    code, _, talk = do("approve", first.approval_id, "--by", "anna", "--note", "fine")
    assert code == 0
    assert f"{first.approval_id} is approved, once" in talk
    approval = store.get(first.approval_id)
    assert (approval.state, approval.by, approval.note) == ("approved", "anna", "fine")
    assert do("deny", second.approval_id, "--note", "use /tmp")[0] == 0
    approval = store.get(second.approval_id)
    assert (approval.state, approval.note) == ("denied", "use /tmp")
    assert approval.by, "the login name"


def test_the_beginning_of_an_id_is_enough_if_there_is_one(store, do, monkeypatch):
    letters = iter("a" * 9 + "b" + "a" * 9 + "c")
    monkeypatch.setattr("secrets.choice", lambda _: next(letters))
    ask(store), ask(store)
    code, _, talk = do("approve", "aaa")
    assert code == 1
    assert "could be any of 2 approvals, such as aaaaaaaaab and aaaaaaaaac" in talk
    assert do("approve", "AAAAAAAAAC")[0] == 0
    assert [each.state for each in store.approvals()] == ["pending", "approved"]


@pytest.mark.parametrize("command", ["show", "approve", "deny", "cancel", "revoke"])
@pytest.mark.parametrize("name", ["zzzz\x1b", "", "%", "\udcff"])
def test_an_id_that_nothing_has_is_said_in_words(store, do, command, name):
    ask(store)
    code, out, talk = do(command, name)
    assert (code, out) == (1, "")
    assert re.search("no (approval|grant) begins with", talk)
    assert "\x1b" not in talk


@pytest.mark.parametrize("command", ["approve", "deny"])
def test_the_second_of_two_is_told_who_was_first(store, do, command):
    yes, no, ran = ask(store), ask(store), ask(store)
    say(store, yes)
    say(store, no, approved=False)
    say(store, ran)
    store.spend(ran.approval_id)
    code, _, talk = do(command, yes.approval_id)
    assert code == 1
    assert f"bo approved {yes.approval_id} before, at 20" in talk
    assert f"bo denied {no.approval_id} before" in do(command, no.approval_id)[2]
    assert "its call runs now" in do(command, ran.approval_id)[2]
    assert [each.by for each in store.approvals()] == ["bo"] * 3


def test_the_second_of_two_at_once_is_told_who_was_first(store, do, monkeypatch):
    request = ask(store)
    get = SqliteApprovals.get

    def slow(self, approval_id):
        found = get(self, approval_id)
        if found.state == "pending":
            say(store, request, approved=False)  # between the look and the answer
        return found

    monkeypatch.setattr(SqliteApprovals, "get", slow)
    code, _, talk = do("approve", request.approval_id)
    assert code == 1
    assert f"bo denied {request.approval_id} before" in talk


@pytest.mark.parametrize("command", ["approve", "deny", "cancel"])
def test_an_expired_question_is_said_to_be(do, expired, command):
    code, _, talk = do(command, expired.approval_id)
    assert code == 1
    assert f"{expired.approval_id} expired at" in talk


def test_what_is_cancelled_cannot_be_approved(store, do):
    request = ask(store)
    assert do("cancel", request.approval_id)[0] == 0
    assert do("cancel", request.approval_id)[0] == 1
    code, _, talk = do("approve", request.approval_id)
    assert code == 1
    assert "was taken back" in talk


def test_a_grant_for_the_run_is_given_listed_and_revoked(store, do):
    exact, prefix = ask(store, run="r"), ask(store, run="r", prefix=("git", "push"))
    assert "exactly the call of" in do("approve", exact.approval_id, "--for-run", "call")[2]
    words = ["--for-run", "prefix", "--prefix", "git 'push'"]
    assert "greet: git push ..." in do("approve", prefix.approval_id, *words)[2]
    first, second = store.grants("r")
    assert (first.digest, second.prefix) == (exact.digest, ("git", "push"))
    assert do("revoke", first.grant_id)[0] == 0
    assert do("revoke", first.grant_id)[0] == 1
    assert store.grants("r") == [second]


@pytest.mark.parametrize("words", [["--prefix", "x"], ["--for-run", "prefix", "--prefix", "a '"]])
def test_a_prefix_that_makes_no_sense_is_a_mistake_of_usage(store, do, words):
    request = ask(store, run="r", prefix=("a",))
    assert do("approve", request.approval_id, *words)[0] == 2
    assert store.pending() == [request]


def test_answers_print_json(store, do):
    for command, state in (("approve", "approved"), ("deny", "denied")):
        request = ask(store)
        _, out, _ = do(command, request.approval_id, "--json")
        assert json.loads(out)["state"] == state


def test_bytes_that_are_no_text_do_not_end_an_answer(store, do):
    request = ask(store)
    assert do("deny", request.approval_id, "--note", "a\udcffb", "--by", "\udcfe")[0] == 0
    assert store.get(request.approval_id).note == "a\ufffdb"


def test_prune_deletes_what_is_old_and_settled(store, do, expired):
    waiting = ask(store)
    assert "1 deleted" in do("prune", "--days", "1")[2]
    assert [each.request for each in store.approvals()] == [waiting]
    assert "0 deleted" in do("prune", "--days", "0")[2]


@pytest.mark.parametrize("command", [["list"], ["show", "a"], ["approve", "a"], ["prune"]])
def test_a_file_that_cannot_be_used_is_a_fault_of_ours(file, do, command):
    file.write_bytes(b"no database " * 99)
    code, out, talk = do(*command)
    assert (code, out) == (125, "")
    assert "not a database of toolcell" in talk


_WATCH = """
import os, sys
if len(sys.argv) > 2:
    terminal = os.open(sys.argv[2], os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(terminal, number)
from toolcell.cli.approvals import app
app(["watch", "--by", "anna", "--store", sys.argv[1]])
"""


@pytest.fixture
def watch(file):
    """Start `toolcell approvals watch`, at a terminal or not."""
    started = []

    def start(*terminal):
        started.append(
            subprocess.Popen(
                [sys.executable, "-c", _WATCH, file, *terminal],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
            )
        )
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_watch_without_a_terminal_prints_each_question_once(store, watch):
    first = ask(store, _EVIL)
    process = watch()
    lines = [process.stdout.readline()]
    second = ask(store)
    lines.append(process.stdout.readline())
    assert [json.loads(line)["approval_id"] for line in lines] == [
        first.approval_id,
        second.approval_id,
    ]
    assert "".join(lines).isascii()
    assert store.pending() == [first, second], "nothing was answered"


def test_watch_at_a_terminal_asks_about_each_question(store, watch):
    hand, other = pty.openpty()
    seen = [""]

    def until(text):
        while text not in seen[0]:
            seen[0] += os.read(hand, 4096).decode()
        shown, _, seen[0] = seen[0].partition(text)
        return shown

    skipped, denied = ask(store), ask(store, "Bo")
    process = watch(os.ttyname(other))
    until("run it? ")
    os.write(hand, b"s\n")
    assert "| Bo" in until("run it? ")
    os.write(hand, b"n too loud\n")
    until(f"{denied.approval_id} is denied")
    late = ask(store, "Cy")
    until("run it? ")
    say(store, late, approved=False)
    os.write(hand, b"y\n")
    until(f"bo denied {late.approval_id} before")
    approved = ask(store, "Di", run="r")
    until("run it? ")
    os.write(hand, b"a\n")
    until(f"{approved.approval_id} is approved")
    ask(store)
    until("run it? ")
    os.write(hand, b"q\n")
    assert process.wait() == 0
    os.close(hand)
    os.close(other)
    assert store.get(skipped.approval_id).state == ApprovalState.PENDING
    found = store.get(denied.approval_id)
    assert (found.state, found.by, found.note) == ("denied", "anna", "too loud")
    assert [grant.approval_id for grant in store.grants("r")] == [approved.approval_id]


def test_answers_of_many_people_at_once_are_all_told_the_truth(store, file):
    request = ask(store)
    start = threading.Barrier(8)
    codes = []

    def answer(number):
        other = SqliteApprovals(file, wait=30)
        start.wait()
        stands = say(other, request, approved=number % 2 == 0, by=f"person {number}")
        codes.append((stands.by, stands.state))
        other.close()

    threads = [threading.Thread(target=answer, args=[number]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stands = store.get(request.approval_id)
    assert stands.state == ApprovalState.DENIED, "a no also counts after a yes"
    told = set(codes) - {(stands.by, stands.state)}
    assert (stands.by, stands.state) in codes
    assert [state for _, state in told] in ([], [ApprovalState.APPROVED]), "one yes, before the no"
