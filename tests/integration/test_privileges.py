"""Who a tool is: no rights, no root inside or outside, and files that belong to the controller."""

import asyncio
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import psutil
import pytest

pytestmark = pytest.mark.isolation

_STATUS = "print(open('/proc/self/status').read())"


def _fields(text: str) -> dict[str, str]:
    return {
        name: value.strip() for name, _, value in (line.partition(":") for line in text.split("\n"))
    }


async def test_every_capability_set_is_empty(run: Any, on_host: Any) -> None:
    host, cell = _fields(on_host(_STATUS)), _fields((await run.py(_STATUS)).output)
    sets = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
    assert any(int(host[name], 16) for name in sets), "the control: a process has some"
    assert {int(cell[name], 16) for name in sets} == {0}
    assert cell["NoNewPrivs"] == "1"


async def test_no_capability_comes_back_with_a_shell_or_a_child(run: Any) -> None:
    for command in ("grep Cap /proc/self/status", "sh -c 'grep Cap /proc/self/status & wait'"):
        lines = (await run.sh(command)).output.splitlines()
        assert len(lines) == 5
        assert all(int(line.split()[1], 16) == 0 for line in lines)


async def test_no_new_privs_cannot_be_cleared(run: Any) -> None:
    code = (
        "import ctypes; p = ctypes.CDLL(None).prctl; "
        "print(p(38, 0, 0, 0, 0), p(39, 0, 0, 0, 0), p(38, 1, 0, 0, 0))"
    )
    # Clearing fails, it is still set, and setting it once more is what can succeed.
    assert (await run.py(code)).output == "-1 1 0\n"


async def test_nobody_is_root_inside(run: Any) -> None:
    ids = (await run.py("import os; print(*os.getresuid(), *os.getresgid())")).output.split()
    assert "0" not in ids
    result = await run.py("import os; os.setuid(0)")
    assert "PermissionError" in result.for_llm() or "Invalid argument" in result.for_llm()
    assert "root" not in (await run.sh("id")).output


async def test_the_outer_user_is_not_root_and_owns_nothing_of_roots(
    run: Any, processes: Any, until: Any
) -> None:
    task = asyncio.create_task(run.sh("exec sleep 20.0177"))
    await until(lambda: processes("sleep\x0020.0177"), "the sleep is seen from outside")
    process = psutil.Process(processes("sleep\x0020.0177")[0])
    uids, gids = process.uids(), process.gids()
    groups = _fields(Path(f"/proc/{process.pid}/status").read_text())["Groups"].split()
    assert run.controller.cancel(run.last_id)
    await task
    if os.geteuid() == 0:
        assert 0 not in uids
        assert 0 not in gids
        assert "0" not in groups
    else:
        assert set(uids) == {os.geteuid()}


async def test_kernel_settings_cannot_be_written(run: Any) -> None:
    for name in ("kernel/core_pattern", "vm/overcommit_memory", "kernel/hostname"):
        result = await run.py(f"open('/proc/sys/{name}', 'r+').write('x')")
        assert "Permission denied" in result.for_llm() or "Read-only" in result.for_llm()


async def test_files_made_inside_belong_to_the_controllers_user(run: Any, workspace: Path) -> None:
    made = await run.sh("mkdir -p a/b && echo x > a/b/file && ln -s file a/b/link")
    assert made.success, made.for_llm()
    for place in (workspace / "a", workspace / "a/b/file", workspace / "a/b/link"):
        assert place.lstat().st_uid == os.geteuid()
        assert place.lstat().st_gid == os.getegid()
    (workspace / "mine").write_text("from outside")
    assert (await run.sh("cat mine && echo more >> mine && rm a/b/file")).success


async def test_file_systems_do_not_honour_setuid_bits(run: Any, on_host: Any) -> None:
    code = (
        "import os\nfor line in open('/proc/self/mountinfo'):\n"
        "    print('nosuid' in line.split()[5].split(','), line.split()[4])"
    )
    assert "False" in on_host(code), "the control: the host honours them somewhere"
    assert "False" not in (await run.py(code)).output


async def test_a_setuid_root_program_gains_nothing(run: Any, workspace: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make a setuid-root program to try this with")
    program = workspace / "show-id"
    shutil.copy(shutil.which("id") or "/usr/bin/id", program)
    program.chmod(0o4755)
    with tempfile.TemporaryDirectory(dir="/var/tmp") as open_place:
        Path(open_place).chmod(0o755)
        control = shutil.copy(program, open_place)
        Path(control).chmod(0o4755)
        command = [control, "-u"]
        done = subprocess.run(command, user=12345, capture_output=True, text=True)
        assert done.stdout == "0\n", "the control: it is setuid root on the host"
    assert (await run.sh("./show-id -u")).output != "0\n"


async def test_only_the_standard_descriptors_are_open(
    run: Any, runner: Any, module: Any, on_host: Any
) -> None:
    # The descriptor of the listing itself is gone when it is looked for.
    listing = """
import os
there = [fd for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}")]
print(sorted(map(int, there)))
"""
    with tempfile.TemporaryFile() as file:
        os.set_inheritable(file.fileno(), True)
        assert str(file.fileno()) in on_host(listing, close_fds=False), "the control"
        assert (await run.py(listing)).output == "[0, 1, 2, 4]\n", "4 is the reply's"
        shell = await run.sh("ls /proc/self/fd")
        assert shell.output.split() == ["0", "1", "2", "3"], "3 is the listing itself"
    own = module(
        "import os\ndef fds() -> list[str]:\n"
        "    return [os.readlink(f'/proc/self/fd/{fd}').split(':')[0]\n"
        "            for fd in os.listdir('/proc/self/fd') if int(fd) > 2\n"
        "            and os.path.exists(f'/proc/self/fd/{fd}')]\n"
    )
    assert (await runner(own.fds)("fds")).structured == ["pipe"], "the reply's"


async def test_the_terminal_of_the_controller_is_not_the_tools(run: Any) -> None:
    result = await run.py("import os; open('/dev/tty')")
    assert "No such device" in result.for_llm()
    assert (await run.py("import os; print(os.getsid(0) == os.getpid())")).output == "True\n"
