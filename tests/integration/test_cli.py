"""The command line as a shell sees it: exit codes, streams, shapes and mistakes."""

import json
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.isolation, pytest.mark.any_user]

_POLICY = """
version = 1
[tools]
allow = ["read_*", "python"]
ask = ["shell"]
[tools.deny]
echo = "no echo here"
[limits]
wall = "5s"
"""

_TOOLS = """
from toolcell import ToolRegistry, tool
@tool
def add(a: int, b: int = 1) -> int:
    '''Add two numbers.'''
    return a + b
registry = ToolRegistry([add])
"""


@pytest.fixture
def cli(workspace: Path, tmp_path: Path) -> Any:
    """Run the command line; the working directory is not the workspace."""

    def start(*arguments: str, lend: bool = True, **options: Any) -> Any:
        command, *rest = arguments
        place = ["--workspace", str(workspace)] if lend else []
        options = {"capture_output": True, "text": True, "timeout": 60, "cwd": tmp_path} | options
        return subprocess.run([sys.executable, "-m", "toolcell", command, *place, *rest], **options)

    return start


@pytest.mark.parametrize(
    ("options", "command", "code"),
    [
        ([], ["true"], 0),
        ([], ["sh", "-c", "exit 7"], 7),
        ([], ["sh", "-c", "exit 124"], 124),
        ([], ["sh", "-c", "kill -TERM $$"], 143),
        ([], ["sh", "-c", "kill -KILL $$"], 137),
        ([], ["no-such-command"], 127),
        ([], ["/etc"], 126),
        (["--wall", "300ms"], ["sleep", "9"], 124),
        (["--policy", "strict"], ["true"], 3),
        (["--policy", "nonsense"], ["true"], 2),
        (["--wall", "soon"], ["true"], 2),
        (["--memory", "1KiB"], ["true"], 2),
        (["--env", "novalue"], ["true"], 2),
        (["--workspace", "/nonexistent"], ["true"], 2),
        (["--read", "/nonexistent"], ["true"], 125),
        (["--cpu", "1s"], ["sh", "-c", "while :; do :; done"], 152),
    ],
)
def test_run_ends_with(cli: Any, options: list[str], command: list[str], code: int) -> None:
    done = cli("run", *options, "--", *command)
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    if code in (2, 3, 124, 125):
        assert done.stderr or command == ["sh", "-c", "exit 124"]


def test_run_passes_bytes_through_exactly(cli: Any) -> None:
    data = random.Random(1).randbytes(1 << 20)
    code = "import random, sys; sys.stdout.buffer.write(random.Random(1).randbytes(1 << 20))"
    done = cli("run", "--", "python3", "-c", code, text=False)
    assert done.stdout == data
    assert done.stderr == b""


def test_run_keeps_arguments_and_streams_apart(cli: Any) -> None:
    words = ["a b", "", "*", "$HOME", "'\"", "\\", "ü\n", "-x", "--", ";true"]
    code = "import json, sys; print(json.dumps(sys.argv[1:])); print('talk', file=sys.stderr)"
    done = cli("run", "--", "python3", "-c", code, *words)
    assert json.loads(done.stdout) == words
    assert done.stderr == "talk\n"


def test_run_gives_standard_input_only_when_asked(cli: Any) -> None:
    assert cli("run", "--", "cat", input="given").stdout == ""
    assert cli("run", "--stdin", "--", "cat", input="given").stdout == "given"


def test_run_options_open_and_close_the_cell(cli: Any, workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "lent").write_text("lent")
    assert cli("run", "--mode", "ro", "--", "touch", "x").returncode == 1
    assert cli("run", "--", "touch", "x").returncode == 0
    assert (workspace / "x").exists()
    assert cli("run", "--env", "A=b=c", "--", "printenv", "A").stdout == "b=c\n"
    assert cli("run", "--", "cat", str(tmp_path / "lent")).returncode == 1
    read = ("--read", str(tmp_path / "lent"))
    assert cli("run", *read, "--", "cat", str(tmp_path / "lent")).stdout == "lent"


def test_run_ends_a_whole_tree_at_its_deadline(cli: Any, processes: Any) -> None:
    mark = f"977.{random.randrange(10**6)}"
    began = time.monotonic()
    done = cli("run", "--wall", "1s", "--", "sh", "-c", f"setsid sleep {mark} & sleep {mark}")
    assert done.returncode == 124
    assert time.monotonic() - began < 3
    assert processes(mark) == []


@pytest.mark.parametrize("rung", ["full", "landlock"])
def test_run_names_the_wall_or_the_limit_that_a_command_met(cli: Any, rung: str) -> None:
    options = ("run", "--isolation", rung, "--processes", "8")
    refused = cli(*options, "--", "unshare", "--user", "true")
    assert refused.returncode == 1, "the command's own"
    assert "toolcell: " in refused.stderr
    assert "refused unshare(CLONE_NEWUSER)" in refused.stderr
    assert "toolcell: " not in cli(*options, "--", "false").stderr, "a failure of its own"


@pytest.mark.parametrize(("rung", "code"), [("full", 0), ("landlock", 0), ("none", 2)])
def test_the_rung_can_be_named_but_for_none(cli: Any, rung: str, code: int) -> None:
    done = cli("run", "--isolation", rung, "--json", "--", "true")
    assert done.returncode == code
    if code == 0:
        assert json.loads(done.stdout)["enforcement"]["rung"] == rung


@pytest.mark.parametrize("rung", ["full", "landlock"])
def test_the_doctor_tells_the_rung_and_what_it_leaves_open(cli: Any, rung: str) -> None:
    done = cli("doctor", "--isolation", rung, "--json", lend=False)
    found = json.loads(done.stdout)
    assert (done.returncode, found["rung"], found["ready"]) == (0, rung, True)
    states = {each["guarantee"]: each["state"] for each in found["guarantees"]}
    counted = {states.pop("disk"), states.pop("processes")}
    assert set(states.values()) == {"held"}
    assert counted == ({"held"} if rung == "full" else {"not enforced"})
    assert bool(found["weaker"]) == (rung == "landlock")


def test_run_as_json_is_one_result(cli: Any) -> None:
    done = cli("run", "--json", "--", "sh", "-c", "echo out; echo err >&2; exit 3")
    result = json.loads(done.stdout)
    assert done.returncode == 3
    assert (result["output"], result["metadata"]["stderr"]) == ("out\n", "err\n")
    assert result["error"]["category"] == "exit_code"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["echo", '{"text":"hello"}'], 0, ""),
        (["echo", '{"text":123}'], 1, "text"),
        (["echo", '{"text":'], 1, "not valid JSON"),
        (["echo"], 1, "`text`: is required"),
        (["echo", '{"text":"x","more":1}'], 1, "`more`"),
        (["nothing"], 1, "the tools are"),
        (["shell", '{"command":"exit 4"}'], 1, "exit_code"),
        (["shell", '{"command":"sleep 9"}', "--wall", "300ms"], 124, "wall"),
        (["echo", '{"text":"x"}', "--policy", "POLICY"], 126, "no echo here"),
        (["shell", '{"command":"true"}', "--policy", "POLICY"], 3, "needs approval"),
        (["shell", '{"command":"true"}', "--policy", "/nonexistent.toml"], 2, "no policy"),
        (["echo", '{"text":"x"}', "--tool-file", "nothing.py"], 2, "does not exist"),
        (["echo", '{"text":"x"}', "--workspace", "/nonexistent"], 2, "not a directory"),
        (["echo", '{"text":"x"}', "--workspace", "/etc"], 2, "far more"),
        (["echo", '{"text":"x"}', "--no-such-option"], 2, "--no-such-option"),
    ],
)
def test_call_ends_with(
    cli: Any, tmp_path: Path, arguments: list[str], code: int, words: str
) -> None:
    (tmp_path / "p.toml").write_text(_POLICY)
    done = cli("call", *[str(tmp_path / "p.toml") if a == "POLICY" else a for a in arguments])
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ("hello\n" if code == 0 else "")


def test_call_as_json_has_the_documented_shape(cli: Any) -> None:
    done = cli("call", "echo", '{"text":"hello"}', "--json", "--id", "toolu_01")
    result = json.loads(done.stdout)
    expected = {"call_id": "toolu_01", "tool_name": "echo", "status": "succeeded", "success": True}
    assert expected.items() <= result.items()
    assert (result["output"], result["error"], result["source"]) == ("hello", None, "cell")
    assert {"latency_ms", "structured", "truncation", "enforcement", "metadata"} <= result.keys()
    assert result["enforcement"]["enforced"]["filesystem"]


def test_call_reports_the_whole_path(cli: Any) -> None:
    done = cli("call", "shell", '{"command":"echo [bold]x; exit 3"}', "--report")
    parts = ["call", "decision", "enforcement", "result", "what the model reads"]
    positions = [done.stdout.index(f"{part} ──") for part in parts]
    assert positions == sorted(positions)
    assert "[bold]x" in done.stdout
    assert "exit code 3" in done.stdout
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize("where", ["own.py", "own.py:registry", "own", "own:registry"])
def test_tools_come_from_a_file_or_a_module(cli: Any, tmp_path: Path, where: str) -> None:
    (tmp_path / "own.py").write_text(_TOOLS)
    arguments = ("add", '{"a": 2}', "--tool-file", where)
    if where == "own.py":
        assert cli("call", *arguments).returncode == 126, "the policy does not name it"
    done = cli("call", *arguments, "--allow", "add")
    assert (done.returncode, done.stdout) == (0, "3\n"), done.stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("version = 1\n[tools]\nallow = 3\n", ":3:"),
        ("version = 1\n\n[limits]\nwal = '3s'\n", ":4: unknown key `limits.wal`"),
        ("version = 1\n[tools]\ndeny = ['ecko']\n", "'ecko'"),
        ("[tools]\n", "version"),
        ("version = 1\n[tools\n", "not TOML"),
    ],
)
def test_a_mistake_in_a_policy_is_named_with_its_place(
    cli: Any, tmp_path: Path, text: str, words: str
) -> None:
    (tmp_path / "bad.toml").write_text(text)
    done = cli("call", "echo", '{"text":"x"}', "--policy", str(tmp_path / "bad.toml"))
    assert done.returncode == 2
    assert words in done.stderr
    assert "bad.toml" in done.stderr


@pytest.mark.parametrize("command", [[], ["run"], ["call"], ["batch"], ["tools"], ["doctor"]])
def test_help_is_there_and_fits_a_pipe(cli: Any, command: list[str]) -> None:
    first, *rest = [*command, "--help"]
    done = cli(first, *rest, lend=False)
    assert done.returncode == 0
    assert "Usage" in done.stdout
    assert "\x1b" not in done.stdout
    assert done.stderr == ""


def test_the_version_is_told() -> None:
    command = [sys.executable, "-m", "toolcell", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("toolcell ")


def test_a_reader_that_has_enough_ends_the_command(workspace: Path) -> None:
    line = f"{sys.executable} -m toolcell run --wall 5s -w {workspace} -- yes | head -1"
    done = subprocess.run(
        ["sh", "-c", line], capture_output=True, text=True, timeout=4, check=False
    )
    assert (done.stdout, done.stderr) == ("y\n", "")


def test_output_that_cannot_be_written_is_told_by_the_exit_code(workspace: Path) -> None:
    line = f"{sys.executable} -m toolcell run -w {workspace} -- echo hi > /dev/full"
    done = subprocess.run(
        ["sh", "-c", line], capture_output=True, text=True, timeout=9, check=False
    )
    assert done.returncode == 125
    assert done.stderr == "toolcell: No space left on device\n"
