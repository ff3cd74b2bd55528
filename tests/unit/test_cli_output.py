"""Claims of `toolcell output`: the bytes as they are kept, nothing a terminal acts on."""

import json
import os
import pty
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from toolcell.cli.output import app
from toolcell.outputs import OutputStore, Stored

TEXT = "".join(f"line {number} é\n" for number in range(1, 5001)).encode()


@pytest.fixture
def store(tmp_path):
    return OutputStore(tmp_path / "outputs", cap=200_000)


@pytest.fixture
def put(store):
    def write(data, **facts):
        writer = store.begin("stdout", **facts)
        writer.write(data)
        return writer.close().handle

    return write


@pytest.fixture
def cli(store, monkeypatch):
    """Run a command on the store."""
    monkeypatch.setenv("COLUMNS", "140")

    def run(*words):
        result = CliRunner().invoke(app, [*words, "--store", str(store.path)])
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


def test_a_pipe_gets_every_byte_as_it_is_kept(cli, put):
    data = TEXT + b"\x1b[31m\xff\0no line end"
    assert cli("show", put(data)).stdout_bytes == data


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        (["--lines", "2:3"], "line 2 é\nline 3 é\n"),
        (["--lines", "5000:"], "line 5000 é\n"),
        (["--lines", ":1"], "line 1 é\n"),
        (["--lines", "5001:"], ""),
        (["--bytes", "0:5"], "line "),
        (["--bytes", f"{len(TEXT) - 3}:"], "é\n"),
        (["--search", "line 10.. "], None),
        (["--search", "^line 7 ", "--lines", "1:7"], "7:line 7 é\n"),
        (["--search", "^line 7 ", "--lines", "8:"], ""),
        (["--search", "^line 7 ", "--literal"], ""),
        (["--search", "e 77 é", "--literal"], "77:line 77 é\n"),
    ],
)
def test_parts_are_printed(cli, put, options, shown):
    found = cli("show", put(TEXT), *options)
    assert found.exit_code == 0
    if shown is None:
        assert found.stdout.splitlines()[0] == "1000:line 1000 é"
        assert len(found.stdout.splitlines()) == 100
    else:
        assert found.stdout == shown


def test_a_terminal_is_not_acted_on_unless_it_is_asked_for(put, store, monkeypatch):
    handle = put(b"\x1b]0;title\x07\x1b[31mred\r\x00 end")
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "toolcell", "output", "show", handle]
    spelled = rb"\x1b]0;title\x07\x1b[31mred\x0d\x00 end"
    for options, shown in (([], spelled), (["--raw"], b"\x1b]0;")):
        subprocess.run([*command, "--store", store.path, *options], stdout=slave, timeout=20)
        assert os.read(master, 1000).startswith(shown)
    os.close(master)
    os.close(slave)


def test_what_is_known_of_it_is_json(cli, put, store):
    handle = put(TEXT, call_id="c")
    assert Stored.model_validate_json(cli("show", handle, "--json").stdout) == store.get(handle)


@pytest.mark.parametrize(
    "options",
    [
        ["--lines", "x"],
        ["--lines", ":"],
        ["--lines", "5:2"],
        ["--literal"],
        ["--bytes", "5:2"],
        ["--bytes", "1"],
        ["--search", "("],
        ["--bytes", "1:2", "--lines", "1:2"],
        ["--bytes", "1:2", "--search", "x"],
    ],
)
def test_what_cannot_be_understood_is_a_matter_of_usage(cli, put, options):
    assert cli("show", put(TEXT), *options).exit_code == 2


def test_a_handle_that_is_not_there_is_told(cli):
    found = cli("show", "out-aaaaaaaaaaaaa")
    assert (found.exit_code, found.stdout) == (1, "")
    assert "there is no output" in found.stderr


def test_what_was_lost_is_told_beside_what_there_is(cli, put):
    found = cli("show", put(b"x" * 300_000))
    assert len(found.stdout) == 200_000
    assert "of 300,000 bytes that were written: one output is kept up to 200,000" in found.stderr


def test_the_list_shows_each_with_size_call_and_tool(cli, put):
    handle = put(b"x" * 300_000, call_id="call\x1b[31m-1", tool_name="shell")
    put(b"x" * 9)
    lines = cli("list").stdout.splitlines()
    line = next(line for line in lines if handle in line)
    assert "195.3 KiB of 293.0 KiB" in line
    assert "call\\x1b[31m-1" in line
    assert "shell" in line
    assert json.loads(cli("list", "--json").stdout)[0]["handle"] == handle


def test_an_empty_list_says_so_on_stderr(cli, store):
    store.path.mkdir()
    found = cli("list")
    assert (found.exit_code, found.stdout) == (0, "")
    assert "no outputs" in found.stderr
    assert json.loads(cli("list", "--json").stdout) == []


@pytest.mark.parametrize(
    ("options", "left"),
    [
        (["--all"], 0),
        (["--older-than", "1h"], 3),
        (["--older-than", "0s"], 0),
        (["--keep-bytes", "2kB"], 2),
    ],
)
def test_outputs_are_removed(cli, put, store, options, left):
    for _ in range(3):
        put(b"x" * 1000)
    found = cli("prune", *options)
    assert f"{3 - left} outputs removed" in found.stdout
    assert len(store.list()) == left


def test_outputs_are_removed_by_their_handles(cli, put, store):
    first, second = put(b"x"), put(b"y")
    found = cli("prune", first, "out-aaaaaaaaaaaaa", "--json")
    assert json.loads(found.stdout) == {"handles": [first], "size": 1}
    assert found.exit_code == 1
    assert "not there: out-aaaaaaaaaaaaa" in found.stderr
    assert [stored.handle for stored in store.list()] == [second]


def test_to_remove_it_has_to_be_said_what(cli):
    assert cli("prune").exit_code == 2
    assert cli("prune", "--older-than", "soon").exit_code == 2
    assert cli("prune", "--keep-bytes", "much").exit_code == 2


def test_what_contradicts_itself_or_is_not_there_is_a_matter_of_usage(cli, put, store, tmp_path):
    kept = put(b"x")
    assert cli("prune", "--all", "--older-than", "30d").exit_code == 2
    assert cli("prune", "--all", kept).exit_code == 2
    assert [stored.handle for stored in store.list()] == [kept]
    assert CliRunner().invoke(app, ["list", "--store", str(tmp_path / "nowhere")]).exit_code == 2
