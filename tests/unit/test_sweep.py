"""Claims of `sandbox_workers.sweep`: what is below goes, and what is not is not touched."""

import json
import os
import subprocess
import sys

import pytest

from sandbox_workers import sweep

# A process that adopts orphans, and below it what tries not to be found.
_TREE = """
import json, os, signal, subprocess, sys, time
from sandbox_workers import libc, sweep
libc.do(libc.prctl(libc.PR_SET_CHILD_SUBREAPER, 1))
for command in json.loads(sys.argv[1]):
    subprocess.Popen(["sh", "-c", command], stdout=subprocess.DEVNULL)
while len(sweep.descendants()) < int(sys.argv[2]):
    pass
found = sweep.descendants()
tasks = sweep.tasks()
statuses = sweep.end_descendants()
left = [pid for pid in found if os.path.exists(f"/proc/{pid}")]
print(json.dumps([len(found), tasks, len(statuses), left, sweep.descendants()]))
"""
_COMMANDS = [
    "sleep 60",
    "setsid sleep 60",
    "(setsid sh -c 'sleep 60 & sleep 60' &)",
    "trap '' TERM HUP INT; sleep 60",
    "sleep 60 & kill -STOP $!; wait",
]


def test_everything_below_is_ended_and_waited_for():
    command = [sys.executable, "-c", _TREE, json.dumps(_COMMANDS), "7"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    found, tasks, ended, left, remaining = json.loads(done.stdout)
    assert found >= 7
    assert tasks >= found
    assert ended >= found
    assert (left, remaining) == ([], [])


def test_without_children_there_is_nothing_to_do():
    code = "from sandbox_workers import sweep\nprint(sweep.end_descendants(), sweep.tasks())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "{} 0\n"


@pytest.fixture
def other():
    """A process that is nobody's descendant here: its parent is another."""
    code = "import subprocess; p = subprocess.Popen(['cat']); print(p.pid, flush=True); p.wait()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", code], **pipes, text=True) as parent:
        yield int(parent.stdout.readline())
        parent.stdin.close()


def test_only_a_descendant_is_signalled(other, monkeypatch):
    sent = []
    monkeypatch.setattr(sweep.signal, "pidfd_send_signal", lambda fd, number: sent.append(number))
    sweep.send(other, 15)
    assert sent == [15], "a grandchild"
    sweep.send(os.getppid(), 15)
    sweep.send(1, 15)
    assert sent == [15]
    monkeypatch.setattr(sweep.os, "getpid", lambda: other)
    sweep.send(other, 15)
    assert sent == [15], "and not itself"


def test_a_process_that_ended_is_not_signalled():
    sweep.send(2**22 + 1, 9)  # raises nothing
    assert sweep._parent(2**22 + 1) == 0


def test_signals_to_all_are_sent_only_where_they_reach_none_outside(monkeypatch):
    sent = []

    def kill(pid, number):
        sent.append((pid, number))
        if outcome:
            raise outcome

    monkeypatch.setattr(sweep.os, "kill", kill)
    outcome = None
    assert sweep.reaches_outside()
    outcome = PermissionError()
    assert not sweep.reaches_outside()
    assert sent == [(os.getppid(), 0)] * 2, "tried with no signal at all"
