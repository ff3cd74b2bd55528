"""Claims of `toolcell.cells.tree`: what a tree holds and uses, seen from outside."""

import os
import subprocess
import sys

import psutil
import pytest

from toolcell.cells import tree as trees
from toolcell.cells.tree import children, descendants

MIB = 1024**2
_HOLDS = "block = bytearray(b'x') * ({0} << 20); print(flush=True); input()"
_PARENT = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {_HOLDS!r}.format(64)])"


def uses_more_than(limit, pid):
    return trees.uses_more_than(limit, pid, descendants(pid), own_files=False)


def look(pid):
    return trees.look(pid, descendants(pid))


@pytest.fixture
def tree():
    """A process whose one child holds 64 MiB, and holds them already."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", _PARENT], **pipes) as process:
        process.stdout.readline()
        yield process
        process.stdin.close()


def test_the_memory_of_descendants_counts_and_inits_own_does_not(tree):
    assert uses_more_than(64 * MIB, tree.pid)
    assert not uses_more_than(256 * MIB, tree.pid)
    (child,) = psutil.Process(tree.pid).children()
    assert not uses_more_than(0, child.pid), "it has no descendants"


def test_shared_pages_count_once(tree, monkeypatch):
    monkeypatch.setattr(trees, "_resident", lambda process: 512 * MIB)
    assert not uses_more_than(256 * MIB, tree.pid)
    monkeypatch.setattr(trees, "_proportional", lambda process: 512 * MIB)
    assert uses_more_than(256 * MIB, tree.pid), "the control"


def test_a_program_that_hides_its_memory_counts_with_its_resident_size(tree, monkeypatch):
    def hidden(process):
        raise psutil.AccessDenied(process.pid)

    monkeypatch.setattr(psutil.Process, "memory_full_info", hidden)
    assert uses_more_than(64 * MIB, tree.pid)


def test_a_tree_that_is_gone_uses_nothing():
    assert not uses_more_than(0, 2**31 - 1)


def test_a_process_that_ends_while_it_is_measured_uses_nothing(tree, monkeypatch):
    def gone(process):
        raise psutil.NoSuchProcess(process.pid)

    monkeypatch.setattr(psutil.Process, "memory_info", gone)
    assert not uses_more_than(0, tree.pid)


def test_processes_and_threads_are_counted(tree):
    assert look(tree.pid).tasks == 1
    code = (
        "import sys, threading\nevent = threading.Event()\n"
        "threads = [threading.Thread(target=event.wait) for _ in range(4)]\n"
        "[thread.start() for thread in threads]\nprint(flush=True)\nsys.stdin.read()\nevent.set()"
    )
    with subprocess.Popen(
        ["sh", "-c", '"$0" -c "$1"; true', sys.executable, code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as shell:
        shell.stdout.readline()
        assert look(shell.pid).tasks == 5
        shell.stdin.close()


def test_the_time_of_those_that_ended_counts():
    code = "import os\nwhile sum(os.times()[:2]) < 0.3: pass"
    command = ["sh", "-c", '"$0" -c "$1"; echo; read x', sys.executable, code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as shell:
        shell.stdout.readline()
        assert look(shell.pid).tasks == 0
        assert look(shell.pid).seconds >= 0.3
        shell.stdin.close()


def test_a_memory_file_that_is_open_counts_once(tree):
    code = (
        "import os\nfd = os.memfd_create('held')\nos.set_inheritable(fd, True)\n"
        "os.truncate(fd, 64 << 20)\n"
        "for _ in range(32): os.write(fd, bytes(1 << 20))\n"
        "pid = os.fork()\nif pid: print(flush=True); os.wait()\nelse: input()"
    )
    command = ["sh", "-c", '"$0" -c "$1"; true', sys.executable, code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as shell:
        shell.stdout.readline()
        held = trees._memory_file_bytes(descendants(shell.pid))
        assert held == 32 * MIB, "what was written, and not its length"
        shell.stdin.close()


def test_children_are_those_of_every_thread():
    code = (
        "import subprocess, threading\n"
        "run = lambda: subprocess.run(['cat'], check=True)\n"
        "thread = threading.Thread(target=run)\nthread.start()\nthread.join()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) as process:
        found: list[int] = []
        while not found:
            found = children(process.pid)
        assert psutil.Process(found[0]).ppid() == process.pid
        process.stdin.close()


def test_a_process_that_is_gone_has_no_children():
    assert children(2**31 - 1) == []
    assert descendants(2**31 - 1) == []
    assert set(children(os.getpid())) == {child.pid for child in psutil.Process().children()}
