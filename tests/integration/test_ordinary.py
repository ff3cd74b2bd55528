"""What programs ordinarily do has to work in a cell."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from toolcell import load_policy

pytestmark = pytest.mark.isolation
rungs = pytest.mark.parametrize("rung", ["full", "landlock"])

_PYTHON = {
    "a child process": "import subprocess\nsubprocess.run(['echo', 'ok'], check=True);",
    "a pipeline of children": """
import subprocess
one = subprocess.Popen(["printf", "b\\\\na\\\\n"], stdout=subprocess.PIPE)
two = subprocess.run(["sort"], stdin=one.stdout, capture_output=True, text=True)
assert two.stdout == "a\\nb\\n", two
print("ok")
""",
    "input to a child": """
import subprocess
print(subprocess.run(["cat"], input="ok", capture_output=True, text=True, check=True).stdout)
""",
    "threads": """
import threading
done = []
threads = [threading.Thread(target=done.append, args=(n,)) for n in range(50)]
[t.start() for t in threads]; [t.join() for t in threads]
print("ok" if len(done) == 50 else done)
""",
    "a multiprocessing lock and queue": """
import multiprocessing as mp
def work(lock, queue):
    with lock:
        queue.put("ok")
if __name__ == "__main__":
    context = mp.get_context("fork")
    lock, queue = context.Lock(), context.Queue()
    child = context.Process(target=work, args=(lock, queue))
    child.start(); print(queue.get()); child.join()
""",
    "a multiprocessing pool": """
import multiprocessing as mp
with mp.get_context("fork").Pool(2) as pool:
    print("ok" if pool.map(abs, [-1, -2]) == [1, 2] else "no")
""",
    "a process pool of concurrent.futures": """
from concurrent.futures import ProcessPoolExecutor
import multiprocessing as mp
with ProcessPoolExecutor(2, mp_context=mp.get_context("fork")) as pool:
    print("ok" if list(pool.map(abs, [-1, -2])) == [1, 2] else "no")
""",
    "shared memory": """
from multiprocessing import shared_memory
block = shared_memory.SharedMemory(create=True, size=4096)
block.buf[0] = 7
again = shared_memory.SharedMemory(block.name)
print("ok" if again.buf[0] == 7 else "no")
again.close(); block.close(); block.unlink()
""",
    "its own loopback": """
import socket, threading
for host in ("127.0.0.1", "::1", "localhost"):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    server = socket.create_server((host, 0), family=family)
    threading.Thread(target=lambda s=server: s.accept()[0].sendall(b"ok")).start()
    assert socket.create_connection(server.getsockname()[:2], 2).recv(2) == b"ok"
print("ok")
""",
    "UDP on its own loopback": """
import socket
a = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); a.bind(("127.0.0.1", 0))
b = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); b.sendto(b"ok", a.getsockname())
print(a.recv(2).decode())
""",
    "its own unix sockets": """
import socket
for address in ("/tmp/socket", "\\0abstract"):
    server = socket.socket(socket.AF_UNIX); server.bind(address); server.listen()
    client = socket.socket(socket.AF_UNIX); client.connect(address)
    server.accept()[0].sendall(b"ok")
    assert client.recv(2) == b"ok"
print("ok")
""",
    "a pseudo-terminal": """
import os, pty
pid, fd = pty.fork()
if pid == 0:
    os.execvp("sh", ["sh", "-c", "tty >/dev/null && echo ok"])
print(os.read(fd, 100).decode().strip())
os.waitpid(pid, 0);
""",
    "sqlite with a write-ahead log": """
import sqlite3
for path in ("data.db", "/tmp/data.db"):
    base = sqlite3.connect(path)
    assert base.execute("pragma journal_mode=wal").fetchone() == ("wal",)
    base.execute("create table t (x)"); base.execute("insert into t values ('ok')"); base.commit()
    assert sqlite3.connect(path).execute("select x from t").fetchone() == ("ok",)
print("ok")
""",
    "TLS contexts": """
import ssl
context = ssl.create_default_context()
assert context.verify_mode is ssl.CERT_REQUIRED
print("ok")
""",
    "the user's name": """
import getpass, os, pwd, grp
entry = pwd.getpwuid(os.getuid())
assert getpass.getuser() == entry.pw_name and grp.getgrgid(os.getgid()).gr_name
assert os.path.isdir(os.path.expanduser("~")) and os.access(os.path.expanduser("~"), os.W_OK)
print("ok")
""",
    "temporary files": """
import tempfile, os
with tempfile.NamedTemporaryFile() as file, tempfile.TemporaryDirectory() as directory:
    assert os.path.exists(file.name) and os.path.isdir(directory)
    os.link(file.name, directory + "/link"); os.mkfifo(directory + "/fifo")
print("ok")
""",
    "asyncio": """
import asyncio
async def main():
    child = await asyncio.create_subprocess_exec("echo", "ok", stdout=asyncio.subprocess.PIPE)
    server = await asyncio.start_server(lambda r, w: w.close(), "127.0.0.1", 0)
    await asyncio.open_connection(*server.sockets[0].getsockname())
    async with asyncio.timeout(5):
        await asyncio.sleep(0.001)
    return (await child.communicate())[0].decode()
print(asyncio.run(main()))
""",
    "signals and timers": """
import signal, time
signal.signal(signal.SIGALRM, lambda *_: print("ok"))
signal.setitimer(signal.ITIMER_REAL, 0.01); signal.pause()
""",
    "file locks and memory maps": """
import fcntl, mmap
with open("locked", "w+b") as file:
    fcntl.flock(file, fcntl.LOCK_EX); file.write(b"no"); file.flush()
    with mmap.mmap(file.fileno(), 2) as view:
        view[:] = b"ok"
print(open("locked").read())
""",
    "name resolution of itself": """
import socket
assert socket.gethostbyname("localhost") == "127.0.0.1"
assert socket.gethostbyname(socket.gethostname()) == "127.0.0.1"
print("ok")
""",
    "the local time and locale": """
import locale, time
locale.setlocale(locale.LC_ALL, "")
print("ok" if time.localtime().tm_year >= 2024 and "ü".encode() == b"\\xc3\\xbc" else "no")
""",
    "packages of the controller's environment": "import pydantic, sys; print('ok')",
    "an exit handler": "import atexit\natexit.register(print, 'ok');",
}


# What a cell without namespaces cannot have; SECURITY.md and `toolcell doctor` list it.
_NEEDS_NAMESPACES = {
    "a multiprocessing lock and queue",
    "a multiprocessing pool",
    "a process pool of concurrent.futures",
    "shared memory",
    "its own loopback",
    "UDP on its own loopback",
    "its own unix sockets",
    "a pseudo-terminal",
    "sqlite with a write-ahead log",  # the test's second place is /tmp itself
    "the user's name",
    "asyncio",
    "executables in scratch",
}


@pytest.fixture
def on_rung(runner: Any, rung: str) -> Any:
    return runner(cell={"isolation": rung})


@rungs
@pytest.mark.parametrize("what", _PYTHON)
async def test_a_python_program_has(on_rung: Any, what: str, rung: str) -> None:
    result = await on_rung.py(_PYTHON[what])
    if rung == "landlock" and what in _NEEDS_NAMESPACES:
        assert not result.success, "it can be had: the list says that it cannot"
        return
    assert result.success, result.for_llm()
    assert result.output.strip() == "ok"


_SHELL = {
    "process substitution": "diff <(echo ok) <(echo ok) && cat <(echo ok)",
    "here documents": "cat <<END\nok\nEND",
    "pipes that end early": "set -o pipefail; yes ok 2>&1 | head -1; true",
    "arithmetic and arrays": "a=(1 2 3); [ $((a[2] + 1)) = 4 ] && echo ok",
    "background jobs": "sleep 0.01 & wait $! && echo ok",
    "devices": "echo x > /dev/null && head -c 4 /dev/urandom | wc -c | grep -q 4 && echo ok",
    "files of descriptors": "echo ok > /dev/stdout && echo no > /dev/stderr",
    "a virtual environment": "python3 -m venv --without-pip .v && .v/bin/python -c 'print(\"ok\")'",
    "an archive": "echo ok > f && tar czf a.tgz f && rm f && tar xzf a.tgz && cat f",
    "make and mktemp": 'd=$(mktemp -d) && [ -d "$d" ] && echo ok',
    "executable files of its own": "printf '#!/bin/sh\\necho ok' > s && chmod +x s && ./s",
    "executables in scratch": "printf '#!/bin/sh\\necho ok' > /tmp/s && chmod +x /tmp/s && /tmp/s",
}


@rungs
@pytest.mark.parametrize("what", _SHELL)
async def test_a_shell_command_has(on_rung: Any, what: str, rung: str) -> None:
    result = await on_rung.sh(_SHELL[what])
    if rung == "landlock" and what in _NEEDS_NAMESPACES:
        assert not result.success, "it can be had: the list says that it cannot"
        return
    assert result.success, result.for_llm()
    assert result.output == "ok\n"


_PROGRAMS = {
    "git": "git init -q . && echo x > f && git add f && git -c user.name=a -c user.email=a@b"
    " commit -qm ok && git log --format=%s",
    "gcc": "echo 'int puts(const char*); int main(void) { puts(\"ok\"); }' > m.c"
    " && gcc m.c -o m && ./m",
    "node": "node -e 'console.log(\"ok\")'",
    "perl": "perl -e 'print qq(ok\\n)'",
    "npm": "npm init -y > /dev/null && npm pkg set scripts.test='node -e \"console.log(1)\"'"
    " && npm test --silent | grep -q 1 && echo ok",
    "sqlite3": "sqlite3 data.db \"create table t (x); insert into t values ('ok');"
    ' select x from t"',
    "openssl": "openssl version > /dev/null && echo ok",
}

_TESTS = """
import threading
import numpy

def test_a_product_in_threads():
    found = []
    def multiply():
        found.append(float((numpy.ones((200, 200)) @ numpy.ones((200, 200))).sum()))
    threads = [threading.Thread(target=multiply) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert found == [200.0**3] * 4
"""


@rungs
async def test_a_test_run_with_numpy_and_threads_works_under_the_default_policy(
    runner: Any, workspace: Path, rung: str
) -> None:
    (workspace / "test_numbers.py").write_text(_TESTS)
    policy = load_policy("default").changed(cell={"isolation": rung})
    result = await runner(policy=policy).sh("python3 -m pytest -q -p no:cacheprovider")
    assert result.success, result.for_llm()
    assert "1 passed" in result.output


@rungs
@pytest.mark.parametrize("program", _PROGRAMS)
async def test_a_program_of_the_system_works(runner: Any, program: str, rung: str) -> None:
    if not (path := shutil.which(program)) or not Path(path).resolve().is_relative_to("/usr"):
        pytest.skip(f"this host has no {program} among the system's programs")
    policy = load_policy("default").changed(cell={"isolation": rung})
    result = await runner(policy=policy).sh(_PROGRAMS[program])
    assert result.success, result.for_llm()
    assert result.output == "ok\n"


async def test_certificates_are_there_where_the_host_has_them(run: Any, on_host: Any) -> None:
    code = "import ssl; print(len(ssl.create_default_context().get_ca_certs()) > 0)"
    assert (await run.py(code)).output == on_host(code)


async def test_standard_input_is_empty_unless_given(run: Any) -> None:
    assert (await run.sh("cat; echo end")).output == "end\n"
    assert (await run.py("import sys; print(repr(sys.stdin.read()))")).output == "''\n"


async def test_python_is_the_controllers(run: Any, on_host: Any) -> None:
    code = "import sys; print(sys.version, sys.executable)"
    assert (await run.py(code)).output == on_host(code)


async def test_as_many_threads_as_the_limit_says_can_be_started(runner: Any) -> None:
    # RLIMIT_DATA counts each thread's 8 MiB of untouched stack
    code = """
import threading
event = threading.Event()
threads = [threading.Thread(target=event.wait) for _ in range(200)]
for thread in threads:
    thread.start()
event.set()
print("ok")
"""
    assert (await runner(limits={"processes": 256}).py(code)).output == "ok\n"
