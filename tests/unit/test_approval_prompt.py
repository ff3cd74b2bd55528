"""Claims of `toolcell.cli.prompt`, at a terminal: silence is no consent, nor is haste."""

import json
import os
import pty
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from toolcell.cli.prompt import Left, _understood
from toolcell.model import ApprovalRequest, ApprovalResponse

_NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
_ASK = """
import array, fcntl, json, os, sys, termios, threading
order = json.loads(sys.argv[1])
if order["terminal"]:
    terminal = os.open(order["terminal"], os.O_RDWR)  # the first one of a session controls it
    if order["stderr"]:
        os.dup2(terminal, 2)
from toolcell.cli.prompt import ask, can_ask
from toolcell.model import ApprovalRequest
told = {"can ask": can_ask()}
if order["terminal"]:
    waiting = array.array("i", [0])
    fcntl.ioctl(terminal, termios.FIONREAD, waiting)
    told["typed ahead"] = waiting[0]
    mode = termios.tcgetattr(terminal)
def put():
    answer = ask(ApprovalRequest.model_validate_json(order["request"]), by="anna")
    told["answer"] = answer and answer.model_dump(mode="json", exclude_defaults=True)
try:
    if order["thread"]:
        thread = threading.Thread(target=put)
        thread.start()
        thread.join()
    else:
        put()
except KeyboardInterrupt:
    told["interrupted"] = True
if order["terminal"]:
    told["mode kept"] = termios.tcgetattr(terminal) == mode
print(json.dumps(told))
"""
_YES = {"approval_id": "k3f9x2mq7h", "approved": True, "by": "anna"}


def question(**rest):
    fields = {
        "approval_id": "k3f9x2mq7h",
        "call": {"call_id": "c1", "name": "shell", "arguments": {"command": "rm -r \u202ex"}},
        "digest": "sha256:1",
        "policy_version": "p",
        "reason": "talks to a remote",
        "created_at": _NOW,
        "expires_at": _NOW.replace(year=2999),
    }
    return ApprovalRequest.model_validate(fields | rest)


class Person:
    """Sits at a terminal of their own, at which a program asks."""

    def __init__(self):
        self.hand, self._slave = pty.openpty()
        self.seen = b""

    def type(self, text):
        os.write(self.hand, text.encode())

    def start(self, request=None, thread=False, terminal=True, stderr=True):
        order = {
            "terminal": os.ttyname(self._slave) if terminal else "",
            "request": (request or question()).model_dump_json(),
            "thread": thread,
            "stderr": stderr,
        }
        self._process = subprocess.Popen(
            [sys.executable, "-c", _ASK, json.dumps(order)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        )

    def wait_for_prompt(self):
        while not self.seen.endswith(b"run it? "):
            self.seen += os.read(self.hand, 4096)
        shown, self.seen = self.seen, b""
        return shown.decode()

    def told(self):
        out, error = self._process.communicate()
        assert out, error.decode()
        return json.loads(out)

    def close(self):
        self._process.kill()
        self._process.communicate()
        os.close(self.hand)
        os.close(self._slave)


@pytest.fixture
def person():
    made = Person()
    yield made
    made.close()


def test_a_question_shows_what_will_run_and_a_line_answers_it(person):
    person.start()
    shown = person.wait_for_prompt()
    assert "    | rm -r \\u202ex\r\n" in shown
    assert "\u202e" not in shown
    person.type("y\n")
    told = person.told()
    assert told["answer"] == _YES
    assert told["can ask"]
    assert told["mode kept"]


@pytest.mark.parametrize("silence", ["\n", "\x04", "y\x04", "s\n", "  \n"])
def test_silence_is_not_consent(person, silence):
    person.start()
    person.wait_for_prompt()
    person.type(silence)
    assert person.told()["answer"] is None


@pytest.mark.usefixtures("_heeds_sigint")
@pytest.mark.parametrize("thread", [False, True])
@pytest.mark.parametrize("begun", ["", "y", "yes "])
def test_ctrl_c_leaves_it_open_and_interrupts_the_program(person, thread, begun):
    person.start(thread=thread)
    person.wait_for_prompt()
    person.type(begun + "\x03")
    told = person.told()
    assert told["interrupted"]
    assert not told.get("answer")
    assert thread or told["mode kept"]


@pytest.mark.parametrize("pasted", ["y\n", "y\ny\ny\n", "yes"])
def test_what_was_typed_before_the_question_answers_nothing(person, pasted):
    person.type(pasted)
    person.start()
    person.wait_for_prompt()
    person.type("n not that\n")
    told = person.told()
    assert told["answer"] == _YES | {"approved": False, "note": "not that"}
    if pasted.endswith("\n"):
        assert told["typed ahead"], "the control: it had come"


@pytest.mark.parametrize("line", ["yn", "ye", "y please", "j", "a", "p", "\u202ey", "y\u200b"])
def test_what_is_no_answer_is_asked_again(person, line):
    person.start()
    person.wait_for_prompt()
    person.type(line + "\n")
    assert "nothing was decided" in person.wait_for_prompt()
    person.type("Y\n")
    assert person.told()["answer"] == _YES


def test_lines_pasted_behind_a_wrong_one_answer_nothing(person):
    person.start()
    person.wait_for_prompt()
    person.type("what\ny\n")
    person.wait_for_prompt()
    person.type("n\n")
    assert person.told()["answer"] == _YES | {"approved": False}


def test_a_grant_for_the_run_is_offered_where_there_can_be_one(person):
    person.start(question(run="r", prefix=("git", "push")))
    shown = person.wait_for_prompt()
    assert "start with git push, for the rest of the run" in shown
    person.type("p\n")
    assert person.told()["answer"] == _YES | {"remember": "prefix", "prefix": ["git", "push"]}


@pytest.mark.parametrize(
    ("line", "asked", "answer"),
    [
        ("a", {"run": "r"}, {"remember": "call"}),
        ("again", {"run": "r"}, {"remember": "call"}),
        ("NO  because of x ", {}, {"approved": False, "note": "because of x"}),
        ("p", {"run": "r"}, None),
        ("p", {"prefix": ("git",)}, None),
        ("a", {}, None),
        ("a always", {"run": "r"}, None),
    ],
)
def test_lines_are_understood_as(line, asked, answer):
    found, _ = _understood(line, question(**asked), "anna")
    assert found == (None if answer is None else ApprovalResponse.model_validate(_YES | answer))


@pytest.mark.parametrize(
    ("line", "left"), [("", Left.UNANSWERED), ("skip", Left.SKIPPED), ("q", Left.ENDED)]
)
def test_a_question_is_left_open_by(line, left):
    assert _understood(line, question(), "anna") == (left, "")


@pytest.mark.parametrize("how", [{"terminal": False}, {"stderr": False}])
def test_nobody_is_asked_without_a_terminal(person, how):
    person.start(**how)
    told = person.told()
    assert (told["can ask"], told["answer"]) == (False, None)
