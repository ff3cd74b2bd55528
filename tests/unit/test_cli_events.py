"""Claims of `toolcell events`: data on stdout, talk on stderr, nothing a terminal acts on."""

import hashlib
import json
import signal
import stat
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from toolcell.cli.events import app
from toolcell.errors import StoreError
from toolcell.events import EventKind, EventLog, verify

from .event_samples import a_call, edit, event


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    with monkeypatch.context() as zone:
        zone.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "events.db"


@pytest.fixture
def write(path):
    """Write events to the log, and close it."""

    def append(*events):
        log = EventLog(path, keep_days=None)
        for one in events:
            log(one)
        log.close()

    return append


@pytest.fixture
def cli(path):
    """Run a command on the log."""

    def run(*words):
        place = [] if "--log" in words else ["--log", str(path)]
        result = CliRunner().invoke(app, [*words, *place])
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


HOSTILE = "\x1b]0;owned\x07\u202eevil\nsecond line"


def test_tail_prints_one_line_an_event_newest_last(cli, write):
    write(*a_call(7))
    lines = cli("tail", "-n", "3").stdout.splitlines()
    assert len(lines) == 3
    assert lines[-1].split() == [
        *("9", "2030-01-01", "12:00:11.500+00:00", "finished", "shell", "c7", "succeeded")
    ]


def test_tail_finds_a_call_or_a_run(cli, write):
    write(*a_call(1), *a_call(2), event(3, run="other"))
    for words, count in [(("--call", "c2"), 9), (("--call", "key_1"), 9), (("--run", "other"), 1)]:
        assert len(cli("tail", *words).stdout.splitlines()) == count
    assert len(cli("tail").stdout.splitlines()) == 19  # the control


def test_tail_as_json_is_the_lines_of_the_export(cli, write):
    write(*a_call(7))
    assert cli("tail", "--json").stdout == cli("export", "--jsonl").stdout


@pytest.mark.usefixtures("_heeds_sigint")
def test_tail_follows_until_it_is_interrupted(path, write):
    write(event(0))
    program = "import sys; from toolcell.cli.events import app; app(sys.argv[1:])"
    command = ["tail", "--follow", "-n", "1", "--json", "--log", str(path)]
    with subprocess.Popen(
        [sys.executable, "-c", program, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as tail:
        assert json.loads(tail.stdout.readline())["call_id"] == "c0"
        for number in range(1, 4):
            write(event(number))
            assert json.loads(tail.stdout.readline())["call_id"] == f"c{number}"
        tail.send_signal(signal.SIGINT)
        assert tail.wait(10)
        assert "Traceback" not in tail.stderr.read()


def test_show_prints_the_timeline_of_one_call(cli, write):
    write(*a_call(1), *a_call(2))
    shown = cli("show", "c1").stdout
    assert shown.splitlines()[0] == "call c1   tool shell   run run_1   key key_1"
    rows = [line.split() for line in shown.splitlines() if line.strip().startswith("+")]
    assert len(rows) == 9
    assert rows[0] == ["+0.0", "ms", "received", '{"command":', '"git', 'push"}']
    assert rows[4][:4] == ["+10.3", "s", "10.0", "s"]
    assert rows[4][5:] == [*["waiting", "for", "a", "person"], "answered", "approved", "by", "ada"]
    bars = [row.count("█") + row.count("#") for row in map(" ".join, rows)]
    assert max(bars) == bars[4] == 10  # ten of eleven and a half seconds
    assert shown.splitlines()[-1] == "succeeded   (in all 11.5 s)"


def test_show_says_where_there_is_no_end(cli, write):
    write(*a_call(1)[:7])
    shown = cli("show", "c1").stdout
    assert "no end was recorded: it still runs, or its controller ended" in shown


def test_show_takes_the_last_call_of_an_id_and_names_the_others(cli, write):
    again = [one.model_copy(update={"key": "key_again"}) for one in a_call(1, begin=60)]
    write(*a_call(1), *again)
    result = cli("show", "c1")
    assert "key key_again" in result.stdout
    assert "1 more with this id" in result.stderr
    assert "Show another by its key: key_1" in result.stderr
    result = cli("show", "key_1")
    assert "key key_1" in result.stdout
    assert result.stderr == ""


def test_show_as_json_has_the_events_and_the_stages(cli, write):
    write(*a_call(1))
    shown = json.loads(cli("show", "c1", "--json").stdout)
    assert (shown["call_id"], shown["key"], shown["outcome"]) == ("c1", "key_1", "succeeded")
    answered = shown["steps"][4]
    assert (answered["stage"], answered["took_ms"]) == ("waiting for a person", 10000.0)
    assert answered["event"]["seq"] == 5
    assert answered["event"]["data"]["by"] == "ada"


def test_show_of_a_call_that_is_not_there_fails(cli, write):
    write(event(0))
    result = cli("show", "c9")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "has no event of this call: 'c9'" in result.stderr
    assert cli("show", "").exit_code == 1


def test_export_can_be_verified_with_nothing_but_a_hash(cli, write, tmp_path):
    write(*a_call(1), event(2, data={"text": "ü \u2028 \n"}))
    file = tmp_path / "out.jsonl"
    assert cli("export", "--jsonl", str(file)).exit_code == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    previous = b"0" * 64
    lines = file.read_bytes().split(b"\n")
    assert lines.pop() == b""
    for line in lines:
        stripped = line[:-75] + b"}"
        previous = hashlib.sha256(previous + stripped).hexdigest().encode()
        assert json.loads(line)["hash"].encode() == previous
    assert len(lines) == 10
    assert "64 zeros" in cli("export", "--help").stdout


def test_export_overwrites_nothing(cli, write, tmp_path):
    write(event(0))
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(StoreError, match="mine cannot be made: File exists; name another file"):
        cli("export", str(tmp_path / "mine"))
    assert (tmp_path / "mine").read_text() == "mine"


@pytest.mark.parametrize(
    ("since", "count"),
    [("2030-01-01T12:00:03Z", 2), ("2030-01-01 12:00:03+00:00", 2), ("2031-01-01", 0), ("1s", 5)],
)
def test_export_since(cli, write, since, count):
    write(*(event(number) for number in range(5)))  # in 2030: younger than any age
    assert len(cli("export", "--since", since).stdout.splitlines()) == count


@pytest.mark.parametrize(
    "words",
    [
        ("export", "--since", "yesterday"),
        ("stats", "--since", "9" * 30 + "w"),
        ("prune",),
        ("prune", "--older-than", "30"),
        ("prune", "--keep-bytes", "much"),
        ("verify", "--noted", "12"),
        ("tail", "-n", "-1"),
    ],
)
def test_what_cannot_be_meant_is_a_mistake_of_usage(cli, write, words):
    write(event(0))
    result = cli(*words)
    assert result.exit_code == 2
    assert result.stderr


def test_verify_says_what_it_proved_and_what_not(cli, write, path):
    write(*a_call(1))
    result = cli("verify")
    found = verify(path)
    assert result.exit_code == 0
    assert f"Intact: {path}, 9 events (1 to 9)" in result.stdout
    assert "Proved: " in result.stdout
    assert "Not proved: " in result.stdout
    assert result.stdout.splitlines()[-1] == f"9:{found.hash}"
    noted = cli("verify", "--noted", f"9:{found.hash}")
    assert "Proved: the event that was noted is there" in noted.stdout


def test_verify_of_an_edited_log_fails_and_names_the_event(cli, write, path):
    write(*a_call(1))
    edit(path, "UPDATE events SET body = replace(body, 'ada', 'eve') WHERE sequence = 5")
    result = cli("verify")
    assert result.exit_code == 1
    assert f"NOT INTACT: {path}, 9 events" in result.stdout
    assert "- event 5: it does not fit the chain" in result.stdout
    document = json.loads(cli("verify", "--json").stdout)
    assert document["intact"] is False
    assert document["findings"][0]["sequence"] == 5


def test_stats_prints_tools_categories_and_stages(cli, write):
    write(*a_call(1), *a_call(2, status="failed", category="exit_code"), *a_call(3)[:4])
    shown = cli("stats").stdout
    assert "2 calls ended, 1 without an end" in shown
    rows = [line.split() for line in shown.splitlines()]
    assert ["shell", "2", "50%", *["1500.0", "ms"] * 3] in rows
    assert ["exit_code", "1", "50.0%"] in rows
    assert ["waiting", "for", "a", "person", "2", *["10.0", "s"] * 3, "20.0", "s"] in rows
    document = json.loads(cli("stats", "--json").stdout)
    assert document["tools"][0]["time"]["p95_ms"] == 1500
    assert document["categories"] == [{"category": "exit_code", "calls": 1, "rate": 0.5}]
    assert json.loads(cli("stats", "--json", "--since", "2031-01-01").stdout)["calls"] == 0


def test_prune_removes_and_the_log_stays_intact(cli, write, path):
    write(*(event(number, seconds=-86400 * 365 * 10) for number in range(5)), event(9))
    assert (
        "5 events removed; the log begins after event 5"
        in cli("prune", "--older-than", "365d").stdout
    )
    assert "7 events removed" in cli("prune", "--keep-bytes", "0").stdout or verify(path).events < 3
    assert json.loads(cli("prune", "--older-than", "365d", "--json").stdout)["pruned"] == 0
    result = cli("verify")
    assert result.exit_code == 0
    assert "that were pruned" in result.stdout


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("tail",), 0),
        (("stats",), 0),
        (("export",), 0),
        (("show", "c1"), 1),
        (("verify",), 1),
        (("prune", "--older-than", "1d"), 0),
    ],
)
def test_without_a_log_it_is_said_and_none_is_made(cli, words, code, path, tmp_path):
    result = cli(*words)
    assert result.exit_code == code
    assert "there" in result.stdout + result.stderr or words[0] == "prune"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        *[("tail",), ("show", "c1"), ("stats",)],
        *[("tail", "--json"), ("show", "c1", "--json"), ("stats", "--json"), ("export",)],
    ],
)
def test_nothing_that_an_event_holds_acts_on_the_terminal(cli, write, words):
    names = {"call_id": "c1", "key": HOSTILE, "tool_name": HOSTILE, "run": HOSTILE}
    write(
        event(1, data={"arguments": {"[bold]command": HOSTILE}}, **names),
        event(1, EventKind.DECIDED, data={"action": HOSTILE, "reason": HOSTILE}, **names),
        event(1, EventKind.FINISHED, data={"status": HOSTILE, "category": HOSTILE}, **names),
    )
    result = cli(*words)
    assert result.exit_code == 0
    assert "owned" in result.stdout
    assert all(character.isprintable() for character in result.stdout.replace("\n", ""))
    assert "evil\nsecond" not in result.stdout


def test_a_name_that_looks_like_markup_is_printed_as_it_is(cli, write):
    write(*a_call(1, tool="[red]x[/red]"))
    for words in (("show", "c1"), ("stats",), ("tail",)):
        assert "[red]x[/red]" in cli(*words).stdout


def test_rows_that_are_no_events_are_told_of_and_left_out(cli, write, path):
    write(*a_call(1))
    edit(path, "UPDATE events SET body = 'x' WHERE sequence = 3")
    for words in (("tail",), ("show", "c1"), ("export",), ("stats",)):
        result = cli(*words)
        assert result.exit_code == 0
        assert "row 3 is no event; see `toolcell events verify`" in result.stderr
    assert len(cli("tail").stdout.splitlines()) == 8


def test_a_file_that_is_no_log_is_an_error_in_words(cli, tmp_path):
    (tmp_path / "notes.txt").write_text("not a database, but a text that is long enough" * 30)
    with pytest.raises(StoreError, match="is not a database of toolcell"):
        cli("tail", "--log", str(tmp_path / "notes.txt"))
