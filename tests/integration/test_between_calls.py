"""Nothing of one call is visible to the next; the first one sees all of it, as the control."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.isolation

# What a call leaves behind, and how to look for it. Each look prints SEEN.
_TRACES = {
    "temporary file": (
        "open('/tmp/trace', 'w').write('x')",
        "import os; print('SEEN' if os.path.exists('/tmp/trace') else 'clean')",
    ),
    "shared memory file": (
        "open('/dev/shm/trace', 'w').write('x')",
        "import os; print('SEEN' if os.path.exists('/dev/shm/trace') else 'clean')",
    ),
    "background process": (
        "import subprocess\nsubprocess.Popen(['setsid', 'sleep', '30.0533'])\n"
        "while not any(open(p, 'rb').read().startswith(b'sleep\\0')"
        " for p in __import__('glob').glob('/proc/[0-9]*/cmdline')): pass",
        "import glob; print('SEEN' if any(b'30.0533' in open(p, 'rb').read()"
        " for p in glob.glob('/proc/[0-9]*/cmdline')) else 'clean')",
    ),
    "loopback port": (
        "import os, socket\ns = socket.create_server(('127.0.0.1', 4077))\n"
        "if os.fork() == 0: os.setsid(); __import__('time').sleep(30)",
        "import socket\nprint('SEEN' if socket.socket().connect_ex(('127.0.0.1', 4077)) == 0"
        " else 'clean')",
    ),
    "abstract socket": (
        "import os, socket\ns = socket.socket(socket.AF_UNIX)\ns.bind('\\0trace')\ns.listen()\n"
        "if os.fork() == 0: os.setsid(); __import__('time').sleep(30)",
        "import socket\nprint('SEEN' if socket.socket(socket.AF_UNIX).connect_ex('\\0trace') == 0"
        " else 'clean')",
    ),
    "System V shared memory": (
        "import ctypes\nassert ctypes.CDLL(None).shmget(4077, 4096, 0o1666) >= 0",
        "import ctypes\nprint('SEEN' if ctypes.CDLL(None).shmget(4077, 0, 0) >= 0 else 'clean')",
    ),
    "environment": (
        "import os; os.environ['TRACE'] = 'x'",
        "import os; print('SEEN' if 'TRACE' in os.environ else 'clean')",
    ),
    "module state": (
        "import json; json.trace = 1",
        "import json; print('SEEN' if hasattr(json, 'trace') else 'clean')",
    ),
    "working directory": (
        "import os; os.chdir('/usr')",
        "import os; print('SEEN' if os.getcwd() == '/usr' else 'clean')",
    ),
}


@pytest.mark.parametrize("trace", _TRACES)
async def test_one_call_leaves_no(run: Any, trace: str) -> None:
    leave, look = _TRACES[trace]
    control = await run.py(f"{leave}\n{look}")
    assert control.output == "SEEN\n", control.for_llm()
    # More calls than cells were ready: some were made before the trace, some after.
    for _ in range(4):
        assert (await run.py(look)).output == "clean\n"


async def test_parallel_calls_do_not_see_each_other(run: Any, workspace: Path, until: Any) -> None:
    leave, look = _TRACES["temporary file"]
    wait = "import os, time\nwhile not os.path.exists('go'): time.sleep(0.01)"
    first = asyncio.create_task(run.py(f"{leave}\nopen('left', 'w')\n{wait}\n{look}"))
    await until((workspace / "left").exists, "the first call left its trace")
    count = "import glob; print(len(glob.glob('/proc/[0-9]*')))"
    second = await run.py(f"{look}\n{count}")
    (workspace / "go").touch()
    assert (await first).output == "SEEN\n"
    assert second.output == "clean\n2\n", "init and the tool itself"


async def test_calls_do_not_share_their_randomness(run: Any) -> None:
    code = "import random, uuid, tempfile\nprint(random.random(), uuid.uuid4(), tempfile.mktemp())"
    outputs = [(await run.py(code)).output for _ in range(5)]
    assert len({output.split()[0] for output in outputs}) == 5
    assert len({output.split()[1] for output in outputs}) == 5


async def test_a_launcher_holds_nothing_of_a_tools_module(runner: Any, module: Any) -> None:
    own = module(
        "count = 0\ndef step() -> int:\n    global count\n    count += 1\n    return count\n"
    )
    run = runner(own.step)
    assert [(await run("step")).structured for _ in range(3)] == [1, 1, 1]
    assert own.count == 0, "and the controller never ran it"
