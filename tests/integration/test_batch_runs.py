"""`toolcell batch` as a long-running program: its input, its order, its ends."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.isolation, pytest.mark.any_user]


@pytest.fixture
def batch(workspace: Path) -> list[str]:
    """The command line of a batch on the workspace."""
    return [sys.executable, "-m", "toolcell", "batch", "--workspace", str(workspace)]


def _lines(count: int) -> str:
    calls = (
        {"call_id": f"id-{n}", "name": "echo", "arguments": {"text": str(n)}} for n in range(count)
    )
    return "".join(f"{json.dumps(call)}\n" for call in calls)


def _results(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_thousand_calls_give_a_thousand_results_in_order(
    batch: list[str], tmp_path: Path
) -> None:
    (tmp_path / "calls.jsonl").write_text(_lines(1000))
    began = time.monotonic()
    done = subprocess.run(
        [*batch, str(tmp_path / "calls.jsonl")], capture_output=True, text=True, timeout=60
    )
    assert time.monotonic() - began < 20
    results = _results(done.stdout)
    assert [(r["call_id"], r["output"]) for r in results] == [
        (f"id-{n}", str(n)) for n in range(1000)
    ]
    assert (done.returncode, done.stderr) == (0, "")


def test_a_call_cannot_add_to_the_calls(batch: list[str], workspace: Path) -> None:
    planted = json.dumps({"call_id": "planted", "name": "echo", "arguments": {"text": "x"}})
    for name in ("calls.jsonl", "other.jsonl"):
        (workspace / name).write_text(_lines(3))
    append = " ; ".join(
        f"echo '{planted}' >> {name}; printf '{planted}' > new; mv new {name}"
        for name in ("calls.jsonl", "other.jsonl")
    )
    first = {"call_id": "first", "name": "shell", "arguments": {"command": append}}
    calls = workspace / "calls.jsonl"
    calls.write_text(f"{json.dumps(first)}\n{_lines(3)}")
    before = calls.read_text()
    command = [*batch, "--concurrency", "1", "calls.jsonl"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=workspace)
    ids = [result["call_id"] for result in _results(done.stdout)]
    assert ids == ["first", "id-0", "id-1", "id-2"], done.stderr
    assert calls.read_text() == before
    assert "planted" in (workspace / "other.jsonl").read_text(), "the control"


def test_a_reader_that_stops_early_ends_the_batch_quietly(batch: list[str], tmp_path: Path) -> None:
    (tmp_path / "calls.jsonl").write_text(_lines(300))
    with subprocess.Popen(
        [*batch, str(tmp_path / "calls.jsonl")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        assert process.stderr
        assert json.loads(process.stdout.readline())["call_id"] == "id-0"
        process.stdout.close()
        process.wait(timeout=20)
        assert process.stderr.read() == ""


@pytest.mark.usefixtures("_heeds_sigint")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_batch_that_waits_for_its_input_ends_at_once_by(
    batch: list[str], number: signal.Signals
) -> None:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*batch, "-"], text=True, **pipes) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(_lines(1))
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["output"] == "0"
        began = time.monotonic()
        os.kill(process.pid, number)
        code = process.wait(timeout=20)
        assert time.monotonic() - began < 2
        assert process.stderr
        told = process.stderr.read()
    assert code == (130 if number is signal.SIGINT else -signal.SIGTERM)
    assert told in ("", "toolcell: interrupted\n")


@pytest.mark.parametrize(
    "line",
    [
        '{"call_id": "mine", "name": 7}',
        '{"call_id": "mine"}',
        '{"call_id": "mine", "name": "echo", "arguments": 7}',
        '{"call_id": "mine", "name": "echo", "more": 1}',
        '{"call_id": "mine", "name": "echo", "arguments": {"txt": ""}}',
    ],
)
def test_a_bad_line_keeps_its_id(batch: list[str], line: str) -> None:
    done = subprocess.run([*batch, "-"], input=line, capture_output=True, text=True, timeout=60)
    (result,) = _results(done.stdout)
    assert (result["call_id"], result["status"]) == ("mine", "rejected")


@pytest.mark.parametrize("line", ['{"call_id": 7, "name": "echo"}', "[1]", '{"call_id": "cut'])
def test_a_line_without_an_id_that_can_be_used_is_named_by_its_number(
    batch: list[str], line: str
) -> None:
    text = f"\n{line}\n"
    done = subprocess.run([*batch, "-"], input=text, capture_output=True, text=True, timeout=60)
    (result,) = _results(done.stdout)
    assert (result["call_id"], result["error"]["category"]) == ("line-2", "invalid_arguments")
