"""Whatever a cell says on its pipes is a bounded claim; a forged one is at most a bad reply.

A tool is found the descriptor of its answers, writes to it past toolcell's own code, and
ends. Each refusal has its control: the same bytes, right in the one point, are an answer.
"""

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sandbox_workers import wire

from .conftest import Mark, marked

pytestmark = [pytest.mark.isolation, pytest.mark.attack]

_TOOLS = """
import os, resource, signal, stat, struct, sys, time

def answers():
    \"\"\"The descriptor that answers are sent on: the one pipe beside the standard streams.\"\"\"
    for fd in range(3, 64):
        try:
            if stat.S_ISFIFO(os.fstat(fd).st_mode):
                os.write(fd, b"")  # the end that is written to
                return fd
        except OSError:
            continue

def put(data):
    view = memoryview(data)
    while view:
        view = view[os.write(answers(), view):]

def raw(hex: str, then: str = "leave") -> str:
    \"\"\"Write bytes as they are, and then end in one way or the other.\"\"\"
    put(bytes.fromhex(hex))
    if then == "leave":
        os._exit(0)
    if then == "fail":
        os._exit(3)
    if then == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if then == "stay":
        time.sleep(60)
    return "its own"

def drip(hex: str) -> str:
    \"\"\"Write bytes one at a time.\"\"\"
    for byte in bytes.fromhex(hex):
        put(bytes([byte]))
    os._exit(0)

def flood() -> str:
    \"\"\"Write whole answers until it is ended.\"\"\"
    body = b'{"type":"reply","value":"x"}'
    while True:
        put((struct.pack(">I", len(body)) + body) * 1000)

def grandchild(hex: str, when: str) -> str:
    \"\"\"Let a grandchild in a session of its own answer: instead, before or after the tool.\"\"\"
    read, write = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.close(read)
            if when == "after":
                time.sleep(0.3)
            put(bytes.fromhex(hex))
            os.write(write, b"x")
        os._exit(0)
    os.close(write)
    if when != "after":
        os.read(read, 1)
    if when == "instead":
        os._exit(0)
    return "its own"

def before(hex: str) -> str:
    \"\"\"Leave a process that answers the next call.\"\"\"
    if os.fork() == 0:
        os.setsid()
        while True:
            put(bytes.fromhex(hex))
            time.sleep(0.01)
    return "its own"

def plain() -> str:
    return "plain"
"""


def _body(value: str) -> bytes:
    return f'{{"type":"reply","value":{value}}}'.encode()


def _frame(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


_GOOD = _frame(_body('"forged"'))
_SURROGATE = chr(92) + "ud800"


class _Bomb:
    """What runs a command where it is unpickled."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (Path(self.path),))


@pytest.fixture
def forge(walled: Any, module: Any) -> Any:
    """A runner of the tools above, and their module."""
    own = module(_TOOLS)
    names = ("raw", "drip", "flood", "grandchild", "before", "plain")

    def make(**options: Any) -> Any:
        return walled(*(getattr(own, name) for name in names), **options)

    return make


def _is_bad(result: Any, words: str = "") -> None:
    assert result.error is not None, result
    assert (result.status, result.error.category) == ("failed", "bad_reply"), result.for_llm()
    assert words in result.error.message
    assert not result.success
    assert result.structured is None
    assert "forged" not in result.output
    assert result.metadata.survivors_checked
    json.loads(result.model_dump_json())


async def test_the_control_bytes_that_are_right_are_an_answer(forge: Any) -> None:
    run = forge()
    for value, output in [
        ('"forged"', "forged"),
        ("[" * 60 + "]" * 60, None),
        ("1e300", None),
        (f'"{chr(92)}ud83d{chr(92)}udd11"', "\U0001f511"),
        ('"\U0001f511"', "\U0001f511"),
    ]:
        result = await run("raw", hex=_frame(_body(value)).hex())
        assert result.success, result.for_llm()
        assert output is None or result.output == output
    split = await run("drip", hex=_frame(_body('"\U0001f511 split"')).hex())
    assert split.output == "\U0001f511 split"


_BAD = {
    "oversized": (b"\xff\xff\xff\xff", "limit"),
    "one byte over the cap": ((wire.MAX_REPLY + 1).to_bytes(4, "big") + b"{", "limit"),
    "deep": (_frame(_body("[" * 100 + "]" * 100)), "deep"),
    "very deep": (_frame(_body("[" * 2_000_000 + "]" * 2_000_000)), "deep"),
    "deep and open": (_frame(_body('{"a":' * 300_000)), "deep"),
    "deep behind a string": (_frame(_body('["' + '\\\\\\"' * 5000 + '",' + "[" * 90)), ""),
    "a key twice": (_frame(b'{"type":"reply","value":1,"value":2}'), "twice"),
    "a type twice": (_frame(b'{"type":"error","type":"reply","value":1}'), "twice"),
    "a key twice by escapes": (_frame(_body(r'{"a":1,"\u0061":2}')), "twice"),
    "NaN": (_frame(_body("NaN")), "NaN"),
    "Infinity": (_frame(_body("Infinity")), "Infinity"),
    "-Infinity": (_frame(_body("-Infinity")), "Infinity"),
    "a number out of range": (_frame(_body("1e999")), "range"),
    "a number of many digits": (_frame(_body("9" * 100_000)), ""),
    "a lone surrogate": (_frame(_body(f'"{_SURROGATE}"')), "surrogate"),
    "a lone surrogate in a key": (_frame(_body(f'{{"{_SURROGATE}":1}}')), "surrogate"),
    "a surrogate as bytes": (_frame(_body('"') + b"\xed\xa0\x80" + b'"}'), "UTF-8"),
    "bytes that are not UTF-8": (_frame(b'{"type":"reply","value":"\xff"}'), "UTF-8"),
    "half a character": (_frame(b'{"type":"reply","value":"\xf0\x9f'), "UTF-8"),
    "a byte order mark": (_frame(b"\xef\xbb\xbf" + _body("1")), ""),
    "UTF-16": (_frame(_body('"x"').decode().encode("utf-16")), ""),
    "an empty frame": (_frame(b""), "JSON"),
    "an array": (_frame(b"[1]"), "object"),
    "a trailing comma": (_frame(b'{"type":"reply","value":1,}'), "JSON"),
    "something behind": (_frame(_body("1") + b"{}"), "JSON"),
    "a comment": (_frame(b'{"type":"reply",/* x */"value":1}'), "JSON"),
    "another field": (_frame(b'{"type":"reply","value":1,"exit":0}'), "fields"),
    "a missing field": (_frame(b'{"type":"reply"}'), "fields"),
    "a type that is no text": (_frame(b'{"type":["reply"],"value":1}'), "type"),
    "an unknown type": (_frame(b'{"type":"result","value":1}'), "type"),
    "ready once more": (_frame(b'{"type":"ready"}'), "turn"),
    "a failed start": (_frame(b'{"type":"failed","stage":"init","message":"x"}'), "turn"),
    "an error of our own kind": (
        _frame(
            b'{"type":"error","kind":"wall","name":"x","message":"x","hint":"x","retryable":false}'
        ),
        "kind",
    ),
    "an error that is no text": (
        _frame(
            b'{"type":"error","kind":"exception","name":1,"message":[],"hint":{},"retryable":false}'
        ),
        "fields",
    ),
    "a second reply": (_GOOD + _GOOD, "second"),
    "a reply and an error": (
        _GOOD
        + _frame(
            b'{"type":"error","kind":"exception","name":"x","message":"x","hint":"","retryable":false}'
        ),
        "second",
    ),
    "a reply and half of one": (_GOOD + _GOOD[:-3], "inside a frame"),
    "a reply and one byte": (_GOOD + b"\0", "inside a frame"),
    "a frame cut off": (_GOOD[:-1], "inside a frame"),
    "half a length": (b"\0\0", "inside a frame"),
}


@pytest.mark.parametrize("kind", _BAD)
async def test_a_forged_frame_is_a_bad_reply(forge: Any, kind: str) -> None:
    data, words = _BAD[kind]
    run = forge()
    _is_bad(await run("raw", hex=data.hex()), words)
    assert (await run("plain")).output == "plain"


async def test_a_pickle_is_never_loaded(forge: Any, tmp_path: Path) -> None:
    planted = tmp_path / "planted"
    run = forge()
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        data = pickle.dumps(_Bomb(str(planted)), protocol)
        for body in (data, _body(json.dumps(data.decode("latin-1")))):
            result = await run("raw", hex=_frame(body).hex())
            assert result.success == (body != data), result.for_llm()
            assert not planted.exists()
    pickle.loads(data)
    assert planted.exists(), "the control: loading it does something"


@pytest.mark.parametrize(
    ("then", "category"), [("fail", "exit_code"), ("die", "signal"), ("stay", "wall")]
)
async def test_a_claim_of_success_does_not_stand_against_the_end_of_the_process(
    forge: Any, then: str, category: str
) -> None:
    run = forge(limits={"wall": 0.7})
    result = await run("raw", hex=_GOOD.hex(), then=then)
    assert not result.success
    assert result.error.category == category, result.for_llm()
    control = await run("raw", hex=_GOOD.hex(), then="leave")
    assert control.output == "forged", "the control"


async def test_a_forged_answer_and_the_tools_own_are_one_too_many(forge: Any) -> None:
    _is_bad(await forge()("raw", hex=_GOOD.hex(), then="return"), "second")


async def test_a_frame_that_never_ends_ends_at_the_deadline(forge: Any) -> None:
    run = forge(limits={"wall": 0.7})
    half = (1 << 20).to_bytes(4, "big") + b'{"type":"reply","value":"'
    result = await run("raw", hex=half.hex(), then="stay")
    assert result.error.category in ("wall", "bad_reply")
    assert not result.success


async def test_a_flood_of_answers_is_ended_at_the_second(forge: Any) -> None:
    _is_bad(await forge()("flood"), "second")


@pytest.mark.parametrize("when", ["instead", "before", "after"])
async def test_an_answer_of_a_grandchild_is_the_tools_one_answer_or_one_too_many(
    forge: Any, when: str
) -> None:
    run = forge()
    result = await run("grandchild", hex=_GOOD.hex(), when=when)
    if when == "before":
        _is_bad(result, "second")
    else:  # nothing can answer when the tool has ended
        assert result.output == ("forged" if when == "instead" else "its own"), result.for_llm()
    assert (await run("plain")).output == "plain"


async def test_no_process_of_a_call_answers_the_next(forge: Any) -> None:
    run = forge()
    for _ in range(5):
        await run("before", hex=_GOOD.hex())
        assert (await run("plain")).output == "plain"


_STATUS_LINES = """
import glob
reached = []
for path in glob.glob("/proc/[0-9]*/fd/*") + glob.glob("/proc/[0-9]*/task/*/fd/*"):
    pid = int(path.split("/")[2])
    try:
        if pid == os.getpid() or not os.readlink(path).startswith("pipe:"):
            continue
        fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        os.write(fd, b"0 0 0\\n")
        reached.append(path)
    except OSError:
        pass
print("REACHED" if reached else "held", flush=True)
"""


async def test_the_pipes_of_other_processes_cannot_be_written(
    walled: Any, mark: Mark, on_host: Any
) -> None:
    """Init tells on one of them how the tool has ended."""
    code = marked(_STATUS_LINES, mark, 20)
    bystander = "ends = os.pipe()\nif os.fork(): os.wait(); os._exit(0)\nos.closerange(3, 9)\n"
    own = code.replace("/proc/[0-9]*", "/proc/{os.getppid()}").replace('glob("', 'glob(f"')
    control = own.replace("import glob", bystander + "import glob")
    assert on_host(control).endswith("REACHED\n"), "the control"
    result = await walled().py(code + "os._exit(5)\n")
    assert result.output == "held\n"
    assert result.return_code == 5


async def test_a_forged_result_on_the_streams_is_only_output(walled: Any) -> None:
    forged = json.dumps({"type": "reply", "value": "forged", "status": "succeeded"})
    data = _frame(forged.encode())
    code = f"import os\nfor fd in (1, 2): os.write(fd, bytes.fromhex({data.hex()!r}))\nos._exit(9)"
    result = await walled().py(code)
    assert (result.return_code, result.error.category) == (9, "exit_code")
    assert result.structured is None
    assert "forged" in result.output
    assert "forged" in result.metadata.stderr


_LARGE = """
import asyncio, json, sys
from pathlib import Path
from sandbox_workers import wire
from toolcell import CellSettings, ToolCall, ToolController, ToolPolicy, ToolRegistry
sys.path.insert(0, sys.argv[2])
import forging
def peak():  # not ru_maxrss, which execve takes over from the parent
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
def frame(unit):
    count = (wire.MAX_REPLY - 100) // len(unit)
    body = b'{"type":"reply","value":[' + unit * count + b"0]}"
    return len(body).to_bytes(4, "big") + body
async def main():
    place, _, rung = Path(sys.argv[1]), *sys.argv[2:]
    cell = CellSettings(isolation=rung)
    policy = ToolPolicy(allow=["*"], cell=cell)
    registry = ToolRegistry.builtin()
    registry.register(forging.from_file)
    async with ToolController(registry, policy, place) as controller:
        async def call(path):
            call = ToolCall(call_id="1", name="from_file", arguments={"path": path})
            result = await controller.handle(call)
            return "" if result.success else result.error.category
        texts, nested = b'"' + b"x" * 99 + b'",', b"[" * 50 + b"]" * 50 + b","
        for number, unit in enumerate([texts, b"[],", b"{},", nested]):
            (place / str(number)).write_bytes(frame(unit))
        await call("0")
        for number in range(4):
            before = peak()
            ended = await call(str(number))
            print(json.dumps([ended, peak() - before]))
asyncio.run(main())
"""
_FORGING = """
import os
def from_file(path: str) -> str:
    view = memoryview(open(path, "rb").read())
    while view:
        view = view[os.write(4, view):]
    os._exit(0)
"""


def test_no_answer_costs_the_controller_many_times_its_size(
    rung: str, workspace: Path, tmp_path: Path
) -> None:
    """Small empty arrays are the most that bytes of JSON can become."""
    modules = tmp_path / "modules"
    modules.mkdir()
    (modules / "forging.py").write_text(_FORGING)
    command = [sys.executable, "-c", _LARGE, str(workspace), str(modules), rung]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    texts, *others = map(json.loads, done.stdout.splitlines())
    assert texts[0] == "", "the control: an answer of that size is one"
    assert len(others) == 3, done.stderr
    for ended, grown in others:
        assert ended in ("", "bad_reply")
        assert grown * 1024 < 12 * wire.MAX_REPLY, (ended, grown)
