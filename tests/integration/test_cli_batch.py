"""`toolcell batch`, `tools` and `doctor`: many calls, and what is to be known before them."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from toolcell import EventKind, EventReader

pytestmark = [pytest.mark.isolation, pytest.mark.any_user]


@pytest.fixture
def cli(workspace: Path) -> Any:
    """Run a command on the workspace."""

    def start(command: str, *arguments: str, **options: Any) -> Any:
        return subprocess.run(
            [sys.executable, "-m", "toolcell", command, "--workspace", str(workspace), *arguments],
            **({"capture_output": True, "text": True, "timeout": 60} | options),
        )

    return start


def _line(call_id: str, name: str = "echo", **arguments: Any) -> str:
    return json.dumps({"call_id": call_id, "name": name, "arguments": arguments})


def _echoes(count: int) -> list[str]:
    return [_line(f"id-{n}", text=str(n)) for n in range(count)]


def _results(done: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_results_come_in_input_order_and_a_bad_line_is_one_error(cli: Any, tmp_path: Path) -> None:
    lines = _echoes(200)
    lines[100] = "{not json"
    (tmp_path / "calls.jsonl").write_text("\n".join(lines))
    done = cli("batch", str(tmp_path / "calls.jsonl"), "--concurrency", "4")
    results = _results(done)
    assert done.returncode == 1
    assert len(results) == 200
    bad = results.pop(100)
    assert (bad["call_id"], bad["error"]["category"]) == ("line-101", "invalid_arguments")
    assert "line 101" in bad["error"]["message"]
    expected = [n for n in range(200) if n != 100]
    assert [(r["call_id"], r["output"]) for r in results] == [(f"id-{n}", str(n)) for n in expected]
    assert done.stderr == ""


_BAD_LINES = [
    "[]",
    "null",
    '{"call_id": "x"}',
    '{"call_id": "", "name": "echo"}',
    '{"call_id": "x", "name": "echo", "arguments": 7}',
    '{"call_id": "x", "name": "echo", "more": 1}',
    '{"call_id": "x", "name": "echo", "name": "shell"}',
    '{"call_id": "x", "name": "echo", "arguments": {"text": NaN}}',
    '{"call_id": "x", "name": "echo", "arguments": {"text": "\\ud800"}}',
    '{"call_id": "x", "name": "echo", "arguments": ' + "[" * 5000 + "}",
    "\udcff\udcfe",
]


def test_whatever_a_line_holds_the_next_one_runs(cli: Any, tmp_path: Path) -> None:
    text = "".join(f"{line}\n{_echoes(1)[0]}\n" for line in _BAD_LINES)
    (tmp_path / "calls.jsonl").write_text(text, errors="surrogateescape")
    done = cli("batch", str(tmp_path / "calls.jsonl"))
    results = _results(done)
    assert len(results) == 2 * len(_BAD_LINES)
    assert {result["status"] for result in results[::2]} == {"rejected"}, done.stdout
    assert [result["output"] for result in results[1::2]] == ["0"] * len(_BAD_LINES)
    assert "Traceback" not in done.stderr


def test_all_succeeding_is_zero_and_empty_lines_are_passed_over(cli: Any, workspace: Path) -> None:
    # Started in the workspace, where "-" would be a file.
    done = cli("batch", "-", input="\n\n".join(_echoes(3)) + "\n\n", cwd=workspace)
    assert done.returncode == 0, done.stdout
    assert [result["output"] for result in _results(done)] == ["0", "1", "2"]
    assert cli("batch", "-", input="").returncode == 0


def test_arguments_may_be_the_text_that_providers_send(cli: Any) -> None:
    line = json.dumps({"call_id": "1", "name": "echo", "arguments": '{"text": "x"}'})
    assert _results(cli("batch", "-", input=line))[0]["output"] == "x"


def test_results_can_come_as_they_finish(cli: Any) -> None:
    lines = [_line("slow", "shell", command="sleep 0.5"), _line("fast", text="x")]
    text = "\n".join(lines)
    for option, order in ((["--as-finished"], ["fast", "slow"]), ([], ["slow", "fast"])):
        done = cli("batch", "-", "--concurrency", "2", *option, input=text)
        assert [result["call_id"] for result in _results(done)] == order


def test_a_slow_producer_gets_each_answer_at_once(workspace: Path) -> None:
    command = [sys.executable, "-m", "toolcell", "batch", "-", "--workspace", str(workspace)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as process:
        assert process.stdin
        assert process.stdout
        for line in _echoes(3):
            process.stdin.write(line + "\n")
            process.stdin.flush()
            answer = json.loads(process.stdout.readline())
            assert f"id-{answer['output']}" == answer["call_id"]
        process.stdin.close()
    assert process.returncode == 0


def test_nobody_is_asked_in_a_batch(cli: Any) -> None:
    line = _line("1", "write_file", path="x", content="")
    (result,) = _results(cli("batch", "-", "--policy", "strict", input=line))
    assert result["error"]["category"] == "approval_denied"
    assert "nobody" in result["error"]["message"]


def test_a_table_is_for_people(cli: Any) -> None:
    lines = [*_echoes(2), _line("bad", "shell", command="echo [red]why >&2; exit 2")]
    done = cli("batch", "-", "--table", input="\n".join(lines))
    assert done.returncode == 1
    assert "exit code 2: [red]why" in " ".join(done.stdout.split())
    told = " ".join(done.stdout.split())
    assert "3 calls, 3 of them in a cell" in told
    assert "Processes left: 0" in told
    assert "\x1b" not in done.stdout


def test_a_missing_file_and_contradicting_options_are_usage(cli: Any) -> None:
    for arguments in (["/nonexistent.jsonl"], ["-", "--table", "--json"], ["-", "-c", "0"]):
        done = cli("batch", *arguments, input="")
        assert done.returncode == 2, arguments
        assert "Traceback" not in done.stderr


def test_events_are_appended_to_a_log(cli: Any, tmp_path: Path) -> None:
    log = tmp_path / "events.db"
    for _ in range(2):
        cli("batch", "-", "--events", str(log), input="\n".join(_echoes(2)))
    events = [row.event for row in EventReader(log).rows()]
    assert [event.kind for event in events].count(EventKind.FINISHED) == 4
    assert log.stat().st_mode & 0o777 == 0o600
    command = [sys.executable, "-m", "toolcell", "events", "verify", "--log", str(log)]
    assert "Intact" in subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_events_are_kept_in_the_state_directory_unless_told_not_to(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLCELL_STATE_DIR", str(tmp_path / "state"))
    cli("call", "echo", '{"text": "x"}', "--no-events")
    assert not (tmp_path / "state").exists()
    cli("call", "echo", '{"text": "x"}')
    assert (tmp_path / "state/events.db").exists()


def test_tools_lists_specs_for_a_model_or_a_table(cli: Any) -> None:
    specs = json.loads(cli("tools", "--json").stdout)
    assert [spec["name"] for spec in specs] == sorted(spec["name"] for spec in specs)
    assert {"echo", "shell", "python", "read_file"} <= {spec["name"] for spec in specs}
    assert all(spec["input_schema"]["additionalProperties"] is False for spec in specs)
    assert "sandbox_workers" not in json.dumps(specs)
    table = cli("tools", "--policy", "strict").stdout
    assert "ask" in table
    assert "allow" in table


def test_doctor_tries_and_tells(cli: Any) -> None:
    done = cli("doctor", "--json")
    report = json.loads(done.stdout)
    states = {entry["guarantee"]: entry["state"] for entry in report["guarantees"]}
    assert done.returncode == 0, report
    assert report["ready"]
    assert {states[name] for name in ("filesystem", "network", "process_tree", "secrets")} == {
        "held"
    }
    assert "broken" not in states.values()
    assert all(entry["tried"] for entry in report["guarantees"])
