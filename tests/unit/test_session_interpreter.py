"""Claims of `sandbox_workers.session.interpreter`: what a Python that stays keeps; its forks."""

import os
import select
import time
from pathlib import Path

import pytest

from toolcell.sessions.protocol import Done, Ended, Forked, Output, Unforked

from .hosting import Host


@pytest.fixture
def readable():
    """A function that waits until there is something to read, and reads nothing."""

    def wait(file):
        assert select.select([file], [], [], 5)[0], "nothing came"

    return wait


@pytest.fixture
def python(tmp_path):
    made = Host("python", tmp_path)
    yield made
    made.close()


def forked(python, copies, *, reseed=False):
    python.send(python.dialogue.fork(0, copies, reseed=reseed))
    return python.until(Forked, Unforked)


def children(pid):
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def outbox_of(branch, directory):
    return directory.parent / f"{directory.name}-scratch/toolcell-branch-{branch}/.toolcell-outbox"


def test_what_one_call_made_is_there_in_the_next(python, tmp_path):
    (tmp_path / "sub").mkdir()
    python("import os, sys\nx = 5\ndef f(): return x + 1\nos.chdir('sub')")
    done = python("print('hi'); sys.stderr.write('err'); print(os.getcwd(), __name__)\nx += 1\nf()")
    assert done.out == f"hi\n{tmp_path}/sub __main__\n7\n"
    assert (done.err, done.exit) == ("err", 0)


@pytest.mark.parametrize(
    ("code", "exit_code", "error"),
    [
        ("1 +", 1, "SyntaxError"),
        ("def f():\n    return 1 / 0\nf()", 1, "line 2, in f\n    return 1 / 0"),
        ("raise SystemExit(3)", 3, ""),
        ("import sys; sys.exit('no')", 1, "no"),
        ("raise KeyboardInterrupt", 130, "KeyboardInterrupt"),
        ("input()", 1, "EOFError"),
        ("import os; os.close(1); os.close(2)", 0, ""),
        ("import sys; sys.stdout.close(); sys.stderr = None", 0, ""),
        ("class E(Exception):\n  def __str__(self): raise ValueError\nraise E", 1, "E"),
    ],
)
def test_what_fails_in_a_call_ends_only_that_call(python, code, exit_code, error):
    python("x = 'kept'")
    failed = python(code)
    assert (failed.exit, failed.kept) == (exit_code, True)
    assert error in failed.err
    assert "sandbox_workers" not in failed.err
    assert python("x").out == "'kept'\n"


def test_the_line_of_an_earlier_call_is_shown_where_its_function_fails(python):
    python("def f():\n    raise ValueError('of f')")
    assert 'File "<call 1>", line 2, in f\n    raise ValueError' in python("f()").err


def test_a_limit_that_an_exception_tells_of_is_claimed(python):
    assert python("raise MemoryError").end.error[0] == "memory"
    assert python("import errno; raise OSError(errno.ENOSPC, 'full')").end.error[0] == "disk"


def test_standard_input_is_what_the_call_was_given(python):
    assert python("input() + input()", stdin=b"a\nb\n").out == "'ab'\n"
    assert python("import sys; sys.stdin.read()", stdin=b"c").out == "'c'\n"


@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        "import time; time.sleep(60)",
        "import asyncio; await asyncio.sleep(60)",
        "import os; os.system('sleep 60')",
        "import subprocess; subprocess.run(['sleep', '60'])",
    ],
)
def test_an_interrupt_ends_the_call_and_the_state_survives(python, code):
    python("x = 'kept'")
    call = python.begin(f"print('started')\n{code}")
    python.written(call, b"started")
    done = python.interrupt(call)
    assert done.kept
    assert python("x").out == "'kept'\n"


def test_an_interrupt_that_comes_late_touches_nothing(python):
    call = python.begin("1")
    python.end_of(call)
    for _ in range(3):
        python.send(python.dialogue.interrupt(call, again=True))
    assert python("2").out == "2\n"


def test_what_a_call_left_running_writes_is_told_apart(python, tmp_path):
    (tmp_path / "go").write_text("")
    loop = "while [ -e go ]; do sleep 0.01; done; echo late; echo err >&2; touch done"
    python(f"import subprocess, os, time; p = subprocess.Popen({loop!r}, shell=True)")
    assert python("print('mine')").earlier == ""
    (tmp_path / "go").unlink()
    done = python("while not os.path.exists('done'): time.sleep(0.01)\nprint('mine')")
    assert (done.out, done.earlier) == ("mine\n", "late\nerr\n")


def test_a_flood_of_what_was_left_running_is_kept_to_its_end_and_counted(python, tmp_path):
    flood = "head -c 3000000 /dev/zero | tr '\\0' a; echo end; touch done"
    own = python(f"import subprocess, os, time; p = subprocess.Popen({flood!r}, shell=True)").out
    done = python("while not os.path.exists('done'): time.sleep(0.01)")
    assert done.earlier.endswith("aaaend\n")
    assert len(own) + done.end.earlier_total == 3_000_004, "some came while its own call ran"
    assert done.end.earlier_lines == 1
    assert len(done.earlier) < 64 * 1024


def test_all_of_a_flood_comes_before_the_end_of_its_call(python):
    assert len(python("print('a' * 20_000_000)").out) == 20_000_001


def test_a_copy_that_the_code_itself_forks_off_does_not_answer_in_its_place(python):
    done = python("import os\nif os.fork() == 0: print('child')\nelse: os.wait(); print('parent')")
    assert sorted(done.out.split()) == ["child", "parent"]
    assert python("'next'").out == "'next'\n"


@pytest.mark.parametrize(
    ("code", "exit_code"), [("os._exit(7)", 7), ("os.kill(os.getpid(), 9)", -9)]
)
def test_what_ends_the_process_ends_the_session_and_says_how(python, code, exit_code):
    done = python(f"import os; print('before', flush=True); {code}")
    assert (done.out, done.kept, done.exit) == ("before\n", False, exit_code)
    assert python.process.wait(timeout=5) == 0, "the host ends with its last executor"


@pytest.mark.parametrize(
    "report",
    ["b'junk'", "b'\\0\\0\\0\\2{}'", "b'\\xff' * 9", 'b\'\\0\\0\\0\\x11{"type":"forked"}\''],
)
def test_a_forged_report_ends_its_branch_and_no_more(python, report):
    forked(python, 1)
    code = f"import os, time\nfor fd in range(3, 20):\n  try: os.write(fd, {report})\n"
    done = python(f"{code}  except OSError: pass\ntime.sleep(60)", branch=1)
    assert not done.kept
    assert "report" in done.end.why or "frame" in done.end.why or "JSON" in done.end.why
    assert python("'alive'").out == "'alive'\n"


def test_copies_begin_as_their_origin_is_and_go_their_own_way(python):
    python("import os, random\nrandom.seed(7)\nx = [0]")
    made = forked(python, 3)
    assert made.copies == (1, 2, 3)
    for branch in (1, 2, 3):
        python(f"x.append({branch})", branch=branch)
    assert [python("x", branch=branch).out for branch in range(4)] == [
        *("[0]\n", "[0, 1]\n", "[0, 2]\n", "[0, 3]\n")
    ]
    numbers = {python("random.random()", branch=branch).out for branch in range(4)}
    assert len(numbers) == 1, "a copy is the same in all things"
    assert len({python("os.getpid()", branch=branch).out for branch in range(4)}) == 4


def test_copies_that_are_reseeded_have_random_numbers_of_their_own(python):
    python("import random; random.seed(7)")
    forked(python, 2, reseed=True)
    assert len({python("random.random()", branch=branch).out for branch in range(3)}) == 3


def test_branches_run_at_the_same_time_and_end_apart(python, tmp_path):
    forked(python, 2)
    wait = "import os, time\nwhile not os.path.exists('go'): time.sleep(0.01)\nprint('done')"
    calls = {branch: python.begin(wait, branch) for branch in (1, 2)}
    assert python("import os; open('go', 'w').close()").kept
    assert [python.end_of(call, branch).out for branch, call in calls.items()] == ["done\n"] * 2
    python.send(python.dialogue.kill(1))
    assert python.until(Ended, branch=1).exit == -9
    assert not python("os._exit(4)").kept, "the origin ends"
    assert python("'alive'", branch=2).out == "'alive'\n"


def test_a_copy_can_be_copied(python):
    python("x = 1")
    forked(python, 1)
    python("x = 2", branch=1)
    python.send(python.dialogue.fork(1, 1, reseed=False))
    assert python.until(Forked, branch=1).copies == (2,)
    assert python("x", branch=2).out == "2\n"


def test_a_fork_names_the_files_that_copies_share_the_place_in(python, tmp_path):
    python("f = open('log', 'w'); g = open('/proc/self/status')")
    assert forked(python, 1).open_files == (f"{tmp_path}/log",)
    python("f.write('one'); f.flush()")
    python("f.write('two'); f.flush()", branch=1)
    assert (tmp_path / "log").read_text() == "onetwo"


def test_an_interpreter_with_threads_is_not_forked_and_says_which(python):
    python("import threading\ne = threading.Event()")
    python("t = threading.Thread(target=e.wait, name='mine'); t.start()")
    refused = forked(python, 1)
    assert isinstance(refused, Unforked)
    assert "mine" in refused.message
    python("e.set(); t.join()")
    assert len(forked(python, 1).copies) == 1


def test_a_fork_of_which_one_copy_fails_says_so_and_leaves_none(python, tmp_path):
    python("x = 'kept'")
    outbox_of(2, tmp_path).parent.touch()
    refused = forked(python, 3)
    assert isinstance(refused, Unforked)
    assert "a copy could not go on: FileExistsError" in refused.message
    assert python("x").out == "'kept'\n"
    end = time.monotonic() + 5
    while len(children(python.process.pid)) > 1 and time.monotonic() < end:
        python("1")
    assert len(children(python.process.pid)) == 1, "the copies that were ready have ended"
    again = forked(python, 3).copies
    assert [python("x", branch=branch).out for branch in again] == ["'kept'\n"] * 3


def test_a_copy_that_ends_before_it_is_asked_for_anything_is_missed(python):
    # The origin reports the fork only after the host has waited for the copy.
    python(
        "import os, time\n"
        "host, waitpid = os.getppid(), os.waitpid\n"
        "def late(*given):\n"
        "  os.waitid(os.P_PID, given[0], os.WEXITED | os.WNOWAIT)\n"
        "  while len(open(f'/proc/{host}/task/{host}/children').read().split()) > 1:\n"
        "    time.sleep(0.005)\n"
        "  return waitpid(*given)\n"
        "os.waitpid = late\n"
        "os.register_at_fork(after_in_child=lambda: setattr(os, 'read', lambda *_: os._exit(3)))\n"
    )
    assert forked(python, 1).copies == (1,)
    assert python.until(Ended, branch=1).exit == 3
    assert python("'alive'").out == "'alive'\n"


def test_what_the_code_put_in_the_way_of_a_fork_refuses_it_and_ends_nothing(python):
    python("import random\nkept, random.getstate = random.getstate, None")
    assert "TypeError" in forked(python, 1).message
    python("random.getstate = kept")
    assert isinstance(forked(python, 1), Forked)


def test_a_file_that_appears_in_the_outbox_of_an_idle_branch_is_not_sent_at_its_end(
    python, tmp_path
):
    forked(python, 1)
    python("1", branch=1)
    (outbox_of(1, tmp_path) / "late").write_text("late")
    python.send(python.dialogue.kill(1))
    python.until(Ended, branch=1)
    assert not [each for each in python.said if isinstance(each, Output) and each.call == 0]
    assert python("'alive'").out == "'alive'\n"


def test_a_branch_that_ends_while_its_files_are_sent_sends_them_once_and_to_their_end(
    python, tmp_path, readable
):
    forked(python, 1)
    pid = int(python("import os; os.getpid()", branch=1).out)
    call = python.begin(
        "for n in range(3): open(os.environ['TOOLCELL_OUTBOX'] + f'/{n}', 'w').write('a' * 10**6)",
        branch=1,
    )
    readable(python.process.stdout)  # nobody reads on, so the sending waits
    python.send(python.dialogue.kill(1))
    end = time.monotonic() + 5
    while Path(f"/proc/{pid}").exists() and time.monotonic() < end:
        os.sched_yield()
    assert isinstance(python.until(Done, Ended, branch=1), Done)
    assert python.until(Ended, branch=1).exit == -9
    sent = b"".join(
        each.data for each in python.said if isinstance(each, Output) and each.stream == "files"
    )
    assert {each.call for each in python.said if isinstance(each, Output)} >= {call}
    assert (sent.count(b'"size"'), sent.count(b'"end"')) == (3, 1)
    assert sent.endswith(b"}\n")
    assert len(sent.replace(b"a" * 10**6, b"")) < 500


@pytest.mark.parametrize("name", [b"log\xff", b"l" * 250])
def test_a_name_of_any_bytes_and_length_is_told(python, name):
    python(f"f = open({name!r}, 'w')")
    (told,) = forked(python, 1).open_files
    assert told.endswith("log?" if b"log" in name else "l" * 190)
    python("import threading\ne = threading.Event()")
    python(f"t = threading.Thread(target=e.wait, name={os.fsdecode(name)!r}); t.start()")
    assert "threads run" in forked(python, 1).message
    assert python("e.set(); 'alive'").out == "'alive'\n"


def test_a_call_can_close_what_a_call_before_it_opened_up_to_the_limit(python):
    fill = "files = []\ntry:\n  while True: files.append(os.open('/dev/null', os.O_RDONLY))\n"
    python(
        f"import os, resource\nlimit = resource.RLIMIT_NOFILE\n"
        f"resource.setrlimit(limit, (64, resource.getrlimit(limit)[1]))\n"
        f"{fill}except OSError: pass"
    )
    assert "Too many open files" in forked(python, 1).message
    assert python("len(files) > 10").out == "True\n"
    python("while files: os.close(files.pop())")
    assert isinstance(forked(python, 1), Forked)


def test_a_call_that_no_file_can_be_opened_for_fails_by_that_limit_and_ends_nothing(python):
    python("import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))")
    for _ in range(2):
        refused = python("1")
        assert (refused.kept, refused.exit, refused.end.error[0]) == (True, 1, "open_files")


def test_a_shell_is_not_forked(tmp_path):
    shell = Host("shell", tmp_path)
    try:
        assert "only a Python session" in forked(shell, 1).message
        assert shell("echo on").out == "on\n"
    finally:
        shell.close()


def test_the_host_keeps_no_descriptor_of_what_has_ended(python):
    def held():
        return len(list(Path(f"/proc/{python.process.pid}/fd").iterdir()))

    python("1")
    before = held()
    for _ in range(5):
        forked(python, 2)
        for branch in list(python.dialogue._states)[-2:]:
            python("2", branch=branch)
            python.send(python.dialogue.kill(branch))
            python.until(Ended, branch=branch)
    python("3")
    end = time.monotonic() + 5
    while held() != before and time.monotonic() < end:  # ends of pipes are seen a turn later
        python("4")
    assert held() == before
