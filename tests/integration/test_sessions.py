"""Sessions in real cells: what they keep, how they end, and what they cannot do to anybody else."""

import asyncio
import resource
import signal
import subprocess
import sys

import pytest

from toolcell import (
    BlockingController,
    RunOptions,
    SessionBounds,
    SessionError,
    ToolCall,
    ToolPolicy,
    ToolRegistry,
)

pytestmark = pytest.mark.isolation

RUNGS = ["full", "landlock"]
STUBBORN = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass"


@pytest.fixture
def made(runner):
    """A factory of runners whose sessions end soon where they do not heed an interrupt."""

    def make(rung="auto", **options):
        bounds = SessionBounds(**({"grace": 0.6} | options.pop("bounds", {})))
        limits = {"wall": 20} | options.pop("limits", {})
        return runner(cell={"isolation": rung}, limits=limits, session_bounds=bounds, **options)

    return make


def category(result):
    return result.error and result.error.category


@pytest.mark.parametrize("rung", RUNGS)
async def test_both_kinds_keep_their_state_through_what_fails_and_what_takes_too_long(made, rung):
    run = made(rung)
    await run("python_session", code="import os\nx = [1]")
    await run("shell_session", command="cd /tmp; f() { echo $X; }; X=kept")
    failed = await run("python_session", code="x.append(2)\n1/0")
    assert category(failed) == "exit_code"
    assert "the code raised ZeroDivisionError: division by zero" in failed.for_llm()
    assert "state is kept" in failed.for_llm()
    left = await run("python_session", code="import sys; sys.exit(3)")
    assert "the code ended with code 3" in left.for_llm()
    failed = await run("shell_session", command="false")
    assert "the command ended with code 1" in failed.for_llm()
    slow = await asyncio.gather(
        run("python_session", code="print('so far', flush=True)\nwhile True: pass", timeout=0.3),
        run("shell_session", command="echo so far; sleep 60", timeout=0.3),
    )
    for result in slow:
        assert category(result) == "wall"
        assert result.output == "so far\n"
        assert result.metadata.session.state == "kept"
        assert "state is kept" in result.for_llm()
    assert (await run("python_session", code="x")).output == "[1, 2]\n"
    assert (await run("shell_session", command="pwd; f")).output == "/tmp\nkept\n"
    infos = [(info.kind, info.name, info.calls) for info in run.controller.sessions.list()]
    assert infos == [("python", "main", 5), ("shell", "main", 4)]


@pytest.mark.parametrize("rung", RUNGS)
async def test_a_call_that_does_not_heed_its_interrupt_loses_the_state_and_everybody_says_so(
    made, rung, processes
):
    run = made(rung)
    await run("python_session", code="import subprocess; subprocess.Popen(['sleep', '947.5'])")
    lost = await run("python_session", code=f"print('so far', flush=True)\n{STUBBORN}", timeout=0.2)
    assert (category(lost), lost.output) == ("wall", "so far\n")
    assert lost.metadata.session.state == "lost"
    assert "did not heed the interrupt" in lost.for_llm()
    assert not processes("947.5")
    fresh = await run("python_session", code="'fresh'")
    assert fresh.output == "'fresh'\n", "the call that lost the state has said so"
    assert "[new session: the earlier one ended: a call of it had to end" in fresh.for_llm()
    assert (await run("python_session", code="1")).metadata.session.note == ""


@pytest.mark.any_user
async def test_a_session_that_ended_says_how_and_a_restarted_one_begins_without_words(made):
    run = made()
    ended = await run("shell_session", command="X=1; exit 3")
    assert (category(ended), ended.return_code) == ("exit_code", 3)
    assert ended.metadata.session.state == "lost"
    fresh = await run("shell_session", command="echo [$X]; X=2")
    assert fresh.output == "[]\n"
    assert "the earlier one ended: the shell exited with code 3" in fresh.for_llm()
    assert (await run("sessions", action="restart", kind="shell")).success
    assert (await run("shell_session", command="echo [$X]")).output == "[]\n"
    wrong = await run("sessions", action="end", session="other")
    assert "no session named `other`; there are main" in wrong.for_llm()
    assert (await run("sessions", action="end")).success
    assert (await run("sessions")).output == "there are no sessions"


@pytest.mark.any_user
async def test_copies_of_a_session_go_their_own_way_in_one_cell(made):
    run = made()
    await run("python_session", code="x = 1\nopen('/tmp/shared', 'w').write('seen')")
    forked = await run("sessions", action="fork", copies=2)
    assert forked.output == "main.1, main.2"
    await asyncio.gather(
        *(run("python_session", code=f"x += {n}", session=f"main.{n}") for n in (1, 2))
    )
    named = await run("sessions", action="fork", session="main.2", names=["best"])
    assert named.output == "best"
    listed = (await run("sessions")).output.splitlines()
    assert "main.1 (python): idle 0 s, 1 call, forked from main" in listed
    assert len(listed) == 4
    outputs = [
        (await run("python_session", code="print(x, open('/tmp/shared').read())", session=name))
        for name in ("main", "main.1", "main.2", "best")
    ]
    assert [each.output for each in outputs] == ["1 seen\n", "2 seen\n", "3 seen\n", "3 seen\n"]
    stubborn = await run("python_session", code=STUBBORN, session="main.1", timeout=0.1)
    assert stubborn.metadata.session.state == "lost"
    assert (await run("python_session", code="x")).output == "1\n", "it takes no other with it"
    await run("sessions", action="end", session="main")
    assert (await run("python_session", code="x", session="best")).output == "3\n"
    taken = await run("sessions", action="fork", session="best", names=["main.2"])
    assert "already: main.2" in taken.for_llm()


@pytest.mark.any_user
async def test_a_copy_that_fails_early_refuses_the_fork_and_the_session_goes_on(made):
    run = made()
    block = (
        "import os\nplace = os.path.dirname(os.environ['TOOLCELL_OUTBOX']) + '/toolcell-branch-1'"
    )
    await run("python_session", code=f"{block}\nopen(place, 'w').close()")
    refused = await run("sessions", action="fork", names=["copy"])
    assert "a copy could not go on" in refused.for_llm()
    assert (await run("python_session", code="os.remove(place)")).success
    assert (await run("sessions", action="fork", names=["copy"])).success
    assert (await run("python_session", code="os.path.exists(place)", session="copy")).success


@pytest.mark.any_user
async def test_calls_of_one_session_run_one_after_another_and_of_two_at_once(made):
    run = made()
    await run("python_session", code="import os, time; seen = []")
    await asyncio.gather(
        *(
            run("python_session", code=f"seen.append({n}); time.sleep(0.02); seen.append({n})")
            for n in range(4)
        )
    )
    seen = (await run("python_session", code="seen[::2] == seen[1::2]")).output
    assert seen == "True\n"
    wait = (
        "import os, time\nopen('{}', 'w').close()\nwhile not os.path.exists('{}'): time.sleep(.01)"
    )
    both = await asyncio.gather(
        run("python_session", code=wait.format("a", "b"), session="one"),
        run("python_session", code=wait.format("b", "a"), session="two"),
    )
    assert all(each.success for each in both)


@pytest.mark.any_user
async def test_cancelling_interrupts_the_call_that_runs_and_withdraws_the_one_that_waits(
    made, until
):
    run = made()
    await run("shell_session", command="X=kept")
    running = asyncio.create_task(run("shell_session", command="touch on; sleep 60"))
    workspace = run.controller.runtime.supply.workspace
    await until((workspace / "on").exists, "the call has begun")
    first = run.last_id
    waiting = asyncio.create_task(run("shell_session", command="touch never"))
    await asyncio.sleep(0)
    for call_id in (run.last_id, first):
        await until(lambda each=call_id: run.controller.cancel(each), "it can be cancelled")
    results = await asyncio.gather(running, waiting)
    assert [category(each) for each in results] == ["cancelled"] * 2
    assert results[0].metadata.session.state == "kept"
    assert not (workspace / "never").exists()
    assert (await run("shell_session", command="echo $X")).output == "kept\n"


@pytest.mark.any_user
async def test_a_session_is_not_used_under_other_walls_than_it_was_made_with(runner):
    policy = ToolPolicy(
        allow=["python_session"],
        rules=[
            {"id": "less", "tool": "python_session", "args": {"code": {"equals": "less"}}}
            | {"limits": {"memory": "64MiB"}}
        ],
    )
    run = runner(policy=policy)
    await run("python_session", code="less = 1")
    refused = await run("python_session", code="less")
    assert category(refused) == "cell_setup"
    assert "other cell settings or limits" in refused.for_llm()
    assert (await run("python_session", code="less ")).output == "1\n"


ROOM = "ended to make room, as idle for longest"


@pytest.mark.any_user
async def test_an_idle_session_ends_and_the_longest_idle_one_makes_room(made, until):
    run = made(bounds={"most": 2, "idle": 30})
    made_for = [await run("python_session", code="x = 1", session=name) for name in "abc"]
    notes = [each.metadata.session.note for each in made_for]
    assert notes == ["", "new session b", f"new session c; {ROOM}: a"]
    refused = await run("python_session", code="x", session="a")
    assert "idle for longest" in refused.for_llm()
    assert "starts a fresh session" in refused.for_llm(), "nothing has told of this end before"
    busy = [
        asyncio.create_task(run("python_session", code=STUBBORN, session=each)) for each in "bc"
    ]
    sessions = run.controller.sessions
    await until(lambda: {i.state for i in sessions.list()} == {"running"}, "both are in use")
    full = await run("python_session", code="x", session="d")
    assert "2 sessions are in use" in full.for_llm()
    await run.controller.sessions.end("b")
    await run.controller.sessions.end("c")
    assert [category(await each) for each in busy] == ["cancelled"] * 2
    short = made(bounds={"idle": 0.05})
    await short("python_session", code="x = 1")
    listed = short.controller.sessions.list
    await until(lambda: listed()[0].state == "ended", "it expired")
    assert "nobody used it" in (await short("python_session", code="x")).for_llm()


@pytest.mark.any_user
async def test_a_flood_keeps_the_controller_small_and_the_session_alive(made):
    run = made(limits={"output": 300_000_000})
    await run("python_session", code="x = 'kept'")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    code = "import os\nline = b'a line of words ' * 6250\nfor _ in range(1000): os.write(1, line)"
    flood = await run("python_session", code=code)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert flood.truncation.total_bytes == 100_000_000
    assert grown < 16 * 1024, "kilobytes"
    over = await made(limits={"output": 2048})("shell_session", command="X=1; yes")
    assert category(over) == "output_limit"
    assert over.metadata.session.state == "kept"
    assert (await run("python_session", code="x")).output == "'kept'\n"


@pytest.mark.any_user
async def test_what_earlier_calls_left_running_is_told_apart_in_the_result(made):
    run = made()
    await run(
        "shell_session", command="(until [ -e go ]; do sleep .01; done; echo late; touch on) &"
    )
    result = await run("shell_session", command="touch go; until [ -e on ]; do sleep .01; done")
    assert result.output == ""
    assert result.metadata.session.earlier == "late\n"
    assert "[written since by what earlier calls left running]\nlate" in result.for_llm()


@pytest.mark.any_user
@pytest.mark.parametrize(("lines", "whole"), [(50_000, False), (3_000, True)])
async def test_of_much_that_was_left_running_wrote_there_are_totals_and_a_handle_or_a_reason(
    made, lines, whole
):
    run = made(output_budget=4096)
    job = f"until [ -e go ]; do sleep .01; done; seq 1 {lines}; touch on"
    await run("shell_session", command=f"({job}) &")
    result = await run("shell_session", command="touch go; until [ -e on ]; do sleep .01; done")
    cut = result.metadata.session.earlier_truncation
    written = sum(len(f"{n}\n") for n in range(1, lines + 1))
    assert (cut.total_bytes, cut.total_lines) == (written, lines)
    assert ("kept to its last 32 KiB" in cut.not_stored, bool(cut.handle)) == (not whole, whole)
    assert (cut.handle or cut.not_stored) in result.for_llm()
    if whole:
        page = await run("read_output", handle=cut.handle, start_line=lines // 2)
        assert f"{lines // 2}\n" in page.output


@pytest.mark.any_user
async def test_files_in_the_outbox_come_back_with_the_call_that_left_them(made):
    run = made()
    leave = "import os; open(os.environ['TOOLCELL_OUTBOX'] + '/{}', 'w').write('of {}')"
    first = await run("python_session", code=leave.format("a.txt", "one"))
    assert [each.name for each in first.artifacts] == ["a.txt"]
    await run("sessions", action="fork")
    results = await asyncio.gather(
        run("python_session", code=leave.format("b.txt", "two"), session="main.1"),
        run("python_session", code="1"),
    )
    assert [[each.name for each in result.artifacts] for result in results] == [["b.txt"], []]
    last = await run("shell_session", command='echo c > "$TOOLCELL_OUTBOX/c.txt"; exit 3')
    assert [each.name for each in last.artifacts] == ["c.txt"]
    odd = await run("shell_session", command='ln -s /etc/passwd "$TOOLCELL_OUTBOX/link"')
    assert [each.name for each in odd.refused_artifacts] == ["link"]
    gone = await run(
        "shell_session", command='rm -r "$TOOLCELL_OUTBOX"; ln -s / "$TOOLCELL_OUTBOX"'
    )
    assert gone.refused_artifacts
    assert (await run("shell_session", command="echo on")).output == "on\n"


async def test_memory_is_watched_over_the_whole_session(made):
    run = made(limits={"memory": "96MiB"})
    await run("python_session", code="x = bytearray(50_000_000)")
    over = await run("python_session", code="y = bytearray(60_000_000)\nwhile True: pass")
    assert category(over) == "memory"
    assert over.metadata.session.state == "lost"
    fresh = await run("python_session", code="1")
    assert "[new session: the earlier one ended: it went over its memory" in fresh.for_llm()


@pytest.mark.parametrize("rung", RUNGS)
async def test_a_session_is_behind_the_walls_and_sees_no_other_session(
    made, rung, tmp_path, on_host
):
    secret = tmp_path / "secret"
    secret.write_text("of the host")
    read = f"print(open({str(secret)!r}).read())"
    assert on_host(read) == "of the host\n"
    run = made(rung)
    begin = "import os, subprocess; open(os.environ['HOME'] + '/mine', 'w').write('of one')\n"
    begin += "p = subprocess.Popen(['sleep', '946.5']); print(os.environ['HOME'])"
    home = (await run("python_session", code=begin, session="one")).output.strip()
    assert category(await run("python_session", code=read)) == "exit_code"
    scratch = await run("python_session", code=f"open({home + '/mine'!r}).read()")
    assert category(scratch) == "exit_code", "another session's scratch"
    reach = "import socket; socket.create_connection(('127.0.0.1', 9))"
    assert "ConnectionRefused" not in (await run("python_session", code=reach)).for_llm() or (
        rung == "full"  # a loopback of its own, on which nobody listens
    )
    if rung == "full":
        seen = (
            "import glob\n"
            "any(b'946.5' in open(each, 'rb').read() for each in glob.glob('/proc/[0-9]*/cmdline'))"
        )
        assert (await run("python_session", code=seen, session="one")).output == "True\n"
        assert (await run("python_session", code=seen, session="two")).output == "False\n"


@pytest.mark.any_user
@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("os.write(os.open(f'/proc/{host}/fd/1', os.O_WRONLY), b'forged' * 9)", "bad_reply"),
        ("os.kill(host, 9)", "signal"),
        ("os.kill(host, 19)", "wall"),
    ],
)
async def test_code_that_reaches_for_its_host_breaks_its_own_session_only(made, code, found):
    run = made()
    await run("python_session", code="x = 1", session="other")
    start = "import os, time\nhost = os.getppid()\n"
    broken = await run("python_session", code=f"{start}{code}\ntime.sleep(60)", timeout=0.2)
    assert category(broken) == found
    assert broken.metadata.session.state == "lost"
    assert (await run("python_session", code="x", session="other")).output == "1\n"


async def test_closing_the_controller_ends_all_sessions_whatever_runs_in_them(
    made, processes, until
):
    run = made()
    for name in ("a", "b"):
        await run("shell_session", command="setsid sleep 948.5 & trap '' INT", session=name)
    await until(lambda: len(processes("948.5")) == 2, "what runs in the background has begun")
    running = asyncio.create_task(run("shell_session", command="sleep 948.5", session="a"))
    await until(lambda: len(processes("948.5")) == 3, "the call has begun")
    await run.controller.close()
    assert category(await running) == "cancelled"
    assert not processes("948.5")


async def test_the_death_of_the_controller_ends_all_sessions(workspace, until, processes, tmp_path):
    program = tmp_path / "host.py"
    program.write_text(
        "import sys\n"
        "from toolcell import *\n"
        "if __name__ == '__main__':\n"
        "    controller = BlockingController(ToolRegistry.builtin(), workspace=sys.argv[1])\n"
        "    call = ToolCall(call_id='1', name='shell_session',\n"
        "                    arguments={'command': 'setsid sleep 949.5 & echo on'})\n"
        "    print(controller.handle(call).output, flush=True)\n"
        "    sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, program, workspace], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as host:
        assert host.stdout.readline() == b"on\n"
        await until(lambda: processes("949.5"), "what it left running has begun")
        host.send_signal(signal.SIGKILL)
    await until(lambda: not processes("949.5"), "everything ended")


@pytest.mark.any_user
def test_the_blocking_face_has_the_same_sessions(workspace):
    with BlockingController(ToolRegistry.builtin(), workspace=workspace) as controller:
        arguments = {"code": "x = 1"}
        controller.handle(ToolCall(call_id="1", name="python_session", arguments=arguments))
        forked = controller.sessions.fork("main", 2)
        assert forked.names == ("main.1", "main.2")
        assert [info.name for info in controller.sessions.list()] == ["main", "main.1", "main.2"]
        controller.sessions.end("main.1")
        with pytest.raises(SessionError, match="no session named"):
            controller.sessions.restart("main.1")
        with pytest.raises(SessionError, match="no python session named"):
            controller.sessions.fork("other")


@pytest.mark.any_user
async def test_calls_and_forks_that_come_at_once_keep_the_bounds_and_share_no_name(made):
    run = made(bounds={"most": 2}, max_running=20)
    sessions = run.controller.sessions
    await asyncio.gather(*(run("python_session", code="1", session=name) for name in "ab"))
    forks = [sessions.fork(name, names=["z"]) for name in "ab"]
    call = run("python_session", code="1", session="z")
    first, second, called = await asyncio.gather(*forks, call, return_exceptions=True)
    assert first.names == ("z",)
    assert isinstance(second, SessionError)
    assert called.success, "in the copy"
    assert sorted(info.name for info in sessions.list()) == ["a", "b", "z"]
    results = await asyncio.gather(
        *(run("python_session", code="1", session=f"c{n}") for n in range(6))
    )
    assert len([each for each in results if each.success]) >= 2
    assert len([info for info in sessions.list() if info.state != "ended"]) == 2
    dots = await run("python_session", code="1", session="..")
    assert category(dots) == "invalid_arguments"


@pytest.mark.any_user
async def test_a_slow_reader_of_one_call_holds_up_no_call_of_a_copy(made):
    run = made(limits={"wall": "5s"})
    await run("python_session", code="import time; x = 42")
    await run.controller.sessions.fork("main")
    begun, go = asyncio.Event(), asyncio.Event()

    async def tap(stream, data):
        begun.set()
        await go.wait()

    flood = "for _ in range(400): print('y' * 9000)\nprint('end')"
    options = RunOptions(tap=tap)
    slow = asyncio.create_task(run.with_options("python_session", options, code=flood))
    await begun.wait()
    other = await run("python_session", code="x", session="main.1")
    assert other.output == "42\n"
    assert not slow.done()
    go.set()
    result = await slow
    assert result.success
    assert result.output.endswith("end\n")
