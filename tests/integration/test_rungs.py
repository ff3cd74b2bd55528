"""Rungs: the strongest that a machine allows, no weaker one than asked for, and each recorded."""

import json
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from toolcell import CellSettings, Guarantee, ToolPolicy
from toolcell.cells.capabilities import capabilities

pytestmark = pytest.mark.isolation
rungs = pytest.mark.parametrize("rung", ["full", "landlock"])

# What a plain container does to a process: a filter without namespaces and mounts (ours, but
# that it lets others listen), and no capabilities. `listener` makes it one that tells somebody,
# as LXD's does.
_CONTAINED = """
import asyncio, json, os, platform, sys
from sandbox_workers import confine, libc
from toolcell import CellSettings, ToolCall, ToolController, ToolPolicy, ToolRegistry
from toolcell.cells import seccomp

async def main(workspace, cell, command):
    policy = ToolPolicy(allow=["*"], cell=CellSettings(**cell), limits={"wall": 10})
    async with ToolController(ToolRegistry.builtin(), policy, workspace) as controller:
        call = ToolCall(call_id="1", name="shell", arguments={"command": command})
        print((await controller.handle(call)).model_dump_json())

contained, listener, *arguments = json.loads(sys.argv[1])
if contained:
    libc.do(confine.clear_capabilities(), libc.prctl(libc.PR_SET_NO_NEW_PRIVS, 1))
    ours = seccomp.guards
    seccomp.guards = lambda bits: {k: v for k, v in ours(bits).items() if k != "seccomp"}
    variant = seccomp.Variant(told=False)
    libc.do(confine.install_filter(seccomp.compile_filter(platform.machine(), variant)))
    seccomp.guards = ours
    seccomp.compile_filter.cache_clear()
if listener:
    libc.do(libc.prctl(libc.PR_SET_NO_NEW_PRIVS, 1))
    libc.do(confine.install_told_filter(bytes.fromhex(listener)))
asyncio.run(main(*arguments))
"""
_ALLOW_ALL = struct.pack("=HBBI", 0x06, 0, 0, 0x7FFF0000)


def elsewhere(
    workspace: Path,
    cell: dict[str, Any],
    command: str,
    *,
    contained: bool = True,
    listener: str = "",
) -> dict[str, Any]:
    """Make one call from a process that may less than this one; returns the result."""
    arguments = json.dumps([contained, listener, str(workspace), cell, command])
    done = subprocess.run(
        [sys.executable, "-c", _CONTAINED, arguments], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@rungs
async def test_a_result_says_what_was_required_and_what_by_which_rung_is_enforced(
    runner: Any, rung: str
) -> None:
    result = await runner(cell={"isolation": rung, "require": ["filesystem"]})("echo", text="x")
    assert result.enforcement.rung == rung
    assert result.enforcement.required == (Guarantee.FILESYSTEM,)
    assert result.enforcement.enforced == capabilities().enforced[rung]  # type: ignore[index]  # one of them
    assert result.enforcement.attested


async def test_where_namespaces_are_allowed_a_policy_gets_them(runner: Any) -> None:
    assert (await runner()("echo", text="x")).enforcement.rung == "full"


def test_a_plain_container_gets_the_next_rung(workspace: Path) -> None:
    command = "echo made > file && cat file && cat /etc/shadow"
    result = elsewhere(workspace, {}, command)
    assert result["output"] == "made\n", result
    assert result["enforcement"]["rung"] == "landlock"
    assert result["enforcement"]["attested"]
    assert "Permission denied" in result["metadata"]["stderr"]
    control = elsewhere(workspace, {}, command, contained=False)
    assert control["enforcement"]["rung"] == "full", "the control: it is the container's doing"


def test_a_guarantee_that_only_namespaces_give_is_refused_in_a_container(workspace: Path) -> None:
    result = elsewhere(workspace, {"require": ["filesystem", "disk"]}, "touch ran")
    assert result["error"]["category"] == "cell_setup"
    assert "unshare" in result["error"]["message"], "why there are no namespaces"
    assert "disk" in result["error"]["message"], "and why the other rung will not do"
    assert "user namespaces" in result["error"]["hint"]
    assert not (workspace / "ran").exists()


def test_a_policy_that_names_the_full_rung_is_refused_in_a_container(workspace: Path) -> None:
    result = elsewhere(workspace, {"isolation": "full"}, "touch ran")
    assert result["error"]["category"] == "cell_setup"
    assert not (workspace / "ran").exists()


def test_where_another_filter_listens_cells_work_and_tell_less(workspace: Path) -> None:
    options = {"contained": False, "listener": _ALLOW_ALL.hex()}
    result = elsewhere(workspace, {}, "unshare -r true", **options)  # type: ignore[arg-type]
    assert result["enforcement"]["rung"] == "full"
    assert result["error"]["category"] == "exit_code", "refused, but nobody was told of it"
    told = elsewhere(workspace, {}, "unshare -r true", contained=False)
    assert told["error"]["category"] == "sandbox_violation", "the control"
    shared = elsewhere(workspace, {"isolation": "landlock"}, "unshare -r true", **options)  # type: ignore[arg-type]
    assert shared["enforcement"]["rung"] == "landlock"
    assert shared["error"]["category"] == "exit_code"


@pytest.mark.parametrize("guarantee", ["disk", "processes"])
async def test_a_forced_rung_that_cannot_give_what_is_required_is_refused(
    runner: Any, workspace: Path, guarantee: str
) -> None:
    run = runner(cell={"isolation": "landlock", "require": ["filesystem", guarantee]})
    result = await run.sh("touch ran")
    assert result.error.category == "cell_setup"
    assert guarantee in result.error.message
    assert "landlock" in result.error.message
    assert "require" in result.error.hint
    assert not (workspace / "ran").exists()


async def test_no_walls_are_there_only_where_a_policy_says_so_by_name(
    runner: Any, tmp_path: Path
) -> None:
    (tmp_path / "outside").write_text("reached")
    command = f"cat {tmp_path}/outside"
    bare = await runner(cell={"isolation": "none", "require": []}).sh(command)
    assert (bare.output, bare.enforcement.rung) == ("reached", "none")
    assert Guarantee.FILESYSTEM not in bare.enforcement.enforced
    for rung in ("auto", "full", "landlock"):
        assert "reached" not in (await runner(cell={"isolation": rung}).sh(command)).output
    with pytest.raises(ValueError, match=r"require = \[\]"):
        ToolPolicy(allow=["*"], cell=CellSettings(isolation="none"))


async def test_without_mounts_a_protected_file_in_a_writable_workspace_is_refused(
    runner: Any, workspace: Path
) -> None:
    (workspace / "policy.toml").write_text("version = 1\n")
    options = {"protected": [workspace / "policy.toml"]}
    command = "echo changed > policy.toml; true"
    result = await runner(cell={"isolation": "landlock"}, **options).sh(command)
    assert result.error.category == "cell_setup"
    assert "policy.toml" in result.error.message
    assert 'workspace = "ro"' in result.error.hint
    await runner(**options).sh(command)
    await runner(cell={"isolation": "landlock", "workspace": "ro"}, **options).sh(command)
    assert (workspace / "policy.toml").read_text() == "version = 1\n"
    await runner(cell={"isolation": "landlock"}).sh(command)
    assert (workspace / "policy.toml").read_text() == "changed\n", "the control"


@pytest.mark.parametrize("wall", ["only_wall", "compile_filter"])
async def test_a_wall_that_is_missing_is_found_by_the_probe_and_no_call_runs(
    runner: Any, workspace: Path, monkeypatch: pytest.MonkeyPatch, wall: str
) -> None:
    from toolcell.cells import plan

    if wall == "only_wall":
        real = plan.only_wall

        def without(*places: Any, **options: Any) -> Any:
            ruleset = real(*places, **options)
            return ruleset.model_copy(update={"rules": (*ruleset.rules, ("/", 0xFFFF))})

        monkeypatch.setattr(plan, wall, without)
    else:
        monkeypatch.setattr(plan, wall, lambda *_: _ALLOW_ALL)
    result = await runner(cell={"isolation": "landlock"}).sh("touch ran")
    assert result.error.category == "cell_setup"
    assert "the walls do not hold" in result.error.message
    assert not (workspace / "ran").exists()


async def test_scratch_is_of_one_call_and_gone_with_it(runner: Any, on_host: Any) -> None:
    run = runner(cell={"isolation": "landlock"})
    first = await run.sh('echo secret > "$TMPDIR/note"; cat "$TMPDIR/note"; pwd -P; echo "$HOME"')
    assert first.output.startswith("secret\n")
    place = first.output.split()[-1]
    assert not Path(place).exists()
    second = await run.sh(f'ls "$TMPDIR" | wc -l; ls {Path(place).parent}; cat {place}/note')
    assert second.output == "0\n"
    assert "secret" not in second.for_llm()
    await run.controller.close()
    assert not Path(place).parent.exists()


_LITTER = {
    "directories that keep their owner out": "mkdir -p a/b && touch a/b/c && chmod 0 a/b a",
    "a tree deeper than any path": "import os\nfor n in range(3000): os.mkdir('d'); os.chdir('d')",
    "many files": "import os\nfor n in range(3000): open(f'f{n}', 'w')",
    "links to what is outside": "ln -s {outside} link && ln -s {outside}/keep other",
    "names that mean something": "mkdir -- '-rf' ' ' '*' && touch -- '-i' $'new\\nline'",
}


@pytest.mark.parametrize("what", _LITTER)
async def test_whatever_a_tool_leaves_in_scratch_is_removed(
    runner: Any, tmp_path: Path, what: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "keep").write_text("kept")
    run = runner(cell={"isolation": "landlock", "read": [str(outside)]})
    code = _LITTER[what].replace("{outside}", str(outside))
    if code.startswith("import"):
        code = f"import os\nos.chdir(os.environ['TMPDIR'])\nprint(os.getcwd())\n{code}"
        result = await run.py(code)
    else:
        result = await run.sh(f'cd "$TMPDIR" && pwd && {code}')
    assert result.success, result.for_llm()
    # What takes longer than a call should wait for goes with the launcher.
    await run.controller.close()
    assert not Path(result.output.strip()).parent.exists()
    assert (outside / "keep").read_text() == "kept"


@rungs
async def test_a_call_that_fails_for_what_the_filter_refused_says_what_was_tried(
    runner: Any, module: Any, rung: str
) -> None:
    own = module(
        "import os\n"
        "def mounts() -> None:\n"
        "    import ctypes\n"
        "    libc = ctypes.CDLL(None, use_errno=True)\n"
        "    if libc.mount(b'none', b'/tmp', b'tmpfs', 0, None):\n"
        "        raise OSError(ctypes.get_errno(), 'no mount')\n"
        "def tries() -> str:\n"
        "    try:\n"
        "        mounts()\n"
        "    except OSError as error:\n"
        "        return str(error.errno)\n"
        "    return 'mounted'\n"
    )
    run = runner(own.mounts, own.tries, cell={"isolation": rung})
    shell = await run.sh("unshare --user --net true")
    assert shell.error.category == "sandbox_violation"
    assert "unshare(CLONE_NEWUSER|CLONE_NEWNET)" in shell.error.message
    assert shell.return_code == 1
    raised = await run("mounts")
    assert raised.error.category == "sandbox_violation"
    assert "refused mount" in raised.error.message
    assert raised.metadata.refused == ("mount",)
    handled = await run("tries")
    assert (handled.success, handled.output) == (True, "1"), "it went on, and is told EPERM"
    assert handled.metadata.refused == ("mount",)
    unrelated = await run.sh("exit 3")
    assert unrelated.error.category == "exit_code"
    assert unrelated.metadata.refused == ()


async def test_a_flood_of_refused_calls_is_answered_and_ends_at_the_limit(runner: Any) -> None:
    code = "import ctypes\nlibc = ctypes.CDLL(None)\nwhile True: libc.unshare(0x10000000)"
    result = await runner(limits={"wall": 1}).py(code)
    assert result.status == "timed_out"
    assert result.metadata.refused == ("unshare(CLONE_NEWUSER)",)


async def test_nobody_inside_can_answer_for_init(runner: Any) -> None:
    # A tool's own listener would be asked instead of init.
    code = """
import ctypes, errno, struct
libc = ctypes.CDLL(None, use_errno=True)
program = struct.pack("=HBBI", 0x06, 0, 0, 0x7fff0000)
buffer = ctypes.create_string_buffer(program, 8)
class Fprog(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
fprog = Fprog(1, ctypes.addressof(buffer))
number = {"x86_64": 317, "aarch64": 277}[__import__("platform").machine()]
done = libc.syscall(number, 1, 8, ctypes.byref(fprog))
print(done, errno.errorcode[ctypes.get_errno()])
"""
    assert (await runner().py(code)).output == "-1 EPERM\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root is another user than its tools could be")
async def test_a_controller_that_is_root_runs_tools_as_the_workspaces_owner(
    runner: Any, workspace: Path
) -> None:
    status = "grep -E '^(Cap|NoNewPrivs)' /proc/self/status"
    result = await runner(cell={"isolation": "landlock"}).sh(status)
    fields = dict(line.split(":\t") for line in result.output.splitlines())
    assert fields.pop("NoNewPrivs") == "1"
    assert {int(value, 16) for value in fields.values()} == {0}


@pytest.mark.parametrize("landlock", [True, False])
async def test_init_heeds_no_signal_from_inside(
    runner: Any, monkeypatch: pytest.MonkeyPatch, landlock: bool
) -> None:
    if not landlock:
        monkeypatch.setattr("toolcell.cells.plan.second_wall", lambda *_, **__: None)
    result = await runner(limits={"grace": 1}).sh("kill -USR1 1; kill -TERM 1; kill -9 1; echo on")
    assert (result.success, result.output) == (True, "on\n")
    assert ("not permitted" in result.metadata.stderr) is landlock, "the control: one was sent"


async def test_a_signal_at_a_fork_breaks_no_pipeline(runner: Any) -> None:
    # dash handles SIGCHLD without restarting calls: a fork that waits for anybody ends in EINTR.
    command = "for n in $(seq 60); do sh -c 'echo a | cat' > /dev/null || echo failed; done"
    result = await runner(cell={"isolation": "landlock"}, limits={"wall": 30}).sh(command)
    assert (result.output, result.metadata.stderr) == ("", "")


async def test_without_a_count_by_the_kernel_a_call_with_too_many_processes_is_ended(
    runner: Any,
) -> None:
    run = runner(cell={"isolation": "landlock"}, limits={"processes": 12})
    command = "for n in $(seq {}); do sleep 30 & done; sleep {}"
    result = await run.sh(command.format(40, 30))
    assert result.error.category == "processes", result.for_llm()
    few = await run.sh(command.format(6, 0.3))
    assert few.success, few.for_llm()
