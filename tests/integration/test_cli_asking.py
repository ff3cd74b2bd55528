"""A call that asks: at a terminal it asks there; elsewhere the question is kept for later."""

import json
import os
import pty
import re
import select
import subprocess
import sys
from pathlib import Path

import pytest

from toolcell import ApprovalResponse, SqliteApprovals

pytestmark = [pytest.mark.isolation, pytest.mark.any_user]

_WRITE = {"path": ".git/config", "content": "written \u202e"}
_QUIET_SECONDS = 0.5


@pytest.fixture
def git(workspace: Path) -> Path:
    (workspace / ".git").mkdir()
    return workspace / ".git/config"


class Terminal:
    """A program with a terminal of its own, and a person at it."""

    def __init__(self, workspace: Path, *words: str) -> None:
        self._fd, theirs = pty.openpty()
        command = ["setsid", "--ctty", "--wait", sys.executable, "-m", "toolcell", *words]
        self._process = subprocess.Popen(
            command, cwd=workspace, stdin=theirs, stdout=theirs, stderr=theirs
        )
        os.close(theirs)
        self.seen = ""

    def until(self, text: str) -> None:
        """Read until it shows a text."""
        while text not in self.seen:
            self._read()

    def is_quiet(self) -> bool:
        """Whether it writes nothing while it waits for an answer."""
        return not select.select([self._fd], [], [], _QUIET_SECONDS)[0]

    def type(self, line: str) -> None:
        os.write(self._fd, f"{line}\n".encode())

    def code(self) -> int:
        """Read to its end; returns the exit code."""
        try:
            while True:
                self._read()
        except OSError:  # nobody has the terminal open any more
            os.close(self._fd)
        return self._process.wait()

    def _read(self) -> None:
        self.seen += os.read(self._fd, 65536).decode(errors="replace")


def _toolcell(workspace: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "toolcell", *words]
    return subprocess.run(
        command,
        cwd=workspace,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(("answer", "code", "written"), [("y", 0, True), ("n", 126, False)])
def test_at_a_terminal_a_call_asks_there_and_shows_what_will_run(
    workspace: Path, git: Path, answer: str, code: int, written: bool
) -> None:
    asked = Terminal(workspace, "call", "write_file", json.dumps(_WRITE))
    asked.until("run it? ")
    assert r"written \u202e" in asked.seen, "what would not show is spelled"
    assert "\u202e" not in asked.seen
    assert "network: none" in asked.seen, "and so is the cell"
    assert "rest of the run" not in asked.seen, "one call has none"
    asked.type(answer)
    assert asked.code() == code
    assert git.exists() is written


def test_a_batch_keeps_its_hands_off_the_terminal_while_it_asks(workspace: Path, git: Path) -> None:
    calls = [{"call_id": "w", "name": "write_file", "arguments": _WRITE}] * 2
    (workspace / "calls.jsonl").write_text("\n".join(json.dumps(call) for call in calls))
    asked = Terminal(workspace, "batch", "calls.jsonl", "-c", "1")
    asked.until("run it? ")
    assert asked.is_quiet()
    asked.type("a")
    assert asked.code() == 0
    assert asked.seen.count("run it? ") == 1, "the grant covers the second one"
    assert git.exists()


def test_elsewhere_the_question_is_kept_and_the_same_call_runs_once_it_is_approved(
    workspace: Path, git: Path
) -> None:
    words = ("call", "write_file", json.dumps(_WRITE))
    asked = _toolcell(workspace, *words)
    assert (asked.returncode, git.exists()) == (3, False)
    (approval,) = re.findall(r"approvals approve (\w+)", asked.stderr)
    assert _toolcell(workspace, "approvals", "approve", approval).returncode == 0
    assert _toolcell(workspace, *words).returncode == 0
    assert git.exists()
    assert _toolcell(workspace, *words).returncode == 3, "it was good for one run"


def test_what_the_model_wrote_does_not_reach_the_terminal_as_it_is(workspace: Path) -> None:
    line = {"command": "echo \u202e \u001b[31m > .git/x"}
    asked = _toolcell(workspace, "call", "shell", json.dumps(line))
    assert asked.returncode == 3
    assert not {"\u202e", "\u001b"} & set(asked.stdout + asked.stderr)
    (kept,) = SqliteApprovals().pending()
    assert kept.call.arguments["command"] == line["command"], "the control: it is asked about as is"
    missing = _toolcell(workspace, "call", "read_file", json.dumps({"path": "a\u001b[31mb"}))
    assert "\u001b" not in missing.stderr
    assert r"a\x1b[31mb" in missing.stderr, "the control: it is told"


def test_a_call_can_wait_for_an_answer_that_is_given_elsewhere(workspace: Path, git: Path) -> None:
    command = [sys.executable, "-m", "toolcell", "call", "write_file", json.dumps(_WRITE), "--wait"]
    with subprocess.Popen(command, cwd=workspace, stderr=subprocess.PIPE, text=True) as waiting:
        assert waiting.stderr
        line = waiting.stderr.readline()
        (approval,) = re.findall(r"approvals show (\w+)", line)
        yes = ApprovalResponse(approval_id=approval, approved=True, by="Ada")
        SqliteApprovals().answer(yes)
        assert waiting.wait(timeout=30) == 0
    assert git.exists()
