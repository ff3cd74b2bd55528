"""Claims of `toolcell.approvals.spender`: a process is not taken for another one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from toolcell.approvals import spender
from toolcell.approvals.spender import lives, this_process


@pytest.fixture
def child():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def test_a_process_that_runs_is_known_again():
    assert lives(this_process())


def test_a_process_that_has_ended_is_gone_even_before_it_is_waited_for(child):
    name = spender._name(child.pid)
    assert lives(name)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert Path(f"/proc/{child.pid}").exists(), "it is a zombie"
    assert not lives(name)
    child.wait()
    assert not lives(name)


@pytest.mark.parametrize("part", range(4))
def test_another_boot_namespace_number_or_start_is_another_process(part, child):
    parts = this_process().split()
    assert len(parts) == 4
    parts[part] = {2: str(child.pid), 3: str(int(parts[3]) - 1)}.get(part, "other")
    assert not lives(" ".join(parts))


def test_a_name_cannot_be_played_by_the_name_of_a_program(tmp_path):
    odd = tmp_path / ") S 1 1 1"
    odd.symlink_to("/bin/sleep")
    with subprocess.Popen([odd, "20"]) as process:
        try:
            while b"(" + odd.name.encode() not in Path(f"/proc/{process.pid}/stat").read_bytes():
                pass
            assert lives(spender._name(process.pid))
            assert spender._name(process.pid).split()[2:] != ["1", "1"]
        finally:
            process.kill()


@pytest.mark.parametrize(
    "name", ["", "x", "a b", "a b c d", "a b -1 5", "a b 99999999999999 5", "a b \u0663 5"]
)
def test_nonsense_names_nobody(name):
    assert not lives(name)


def test_where_proc_does_not_tell_nobody_is_named(monkeypatch):
    monkeypatch.setattr(spender, "Path", lambda path: Path("/nonexistent"))
    assert this_process() == ""
