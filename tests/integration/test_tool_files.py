"""Files of tools as they come: broken ones, large neighbourhoods, neighbours that go."""

import importlib
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.isolation, pytest.mark.any_user]

_GOOD = "from toolcell import tool\n@tool\ndef add(a: int) -> int:\n    return a + 1\n"


@pytest.fixture
def call_from(workspace: Path, tmp_path: Path) -> Any:
    """Call `add` from a tool file of some text."""

    def start(text: str) -> Any:
        (tmp_path / "own_tools.py").write_text(text)
        command = [sys.executable, "-m", "toolcell", "call", "-w", str(workspace)]
        command += ["-t", "own_tools.py", "--allow", "add", "add", '{"a": 1}']
        return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path)

    return start


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def add(:\n", "own_tools.py:1: SyntaxError"),
        ("\nx = 1 / 0\n", "own_tools.py:2: ZeroDivisionError"),
        ("import sys\nsys.exit(0)\n", "own_tools.py:2: SystemExit"),
        ("import no_such_module\n", "No module named 'no_such_module'"),
        ("raise KeyError('two\\nlines')\n", "KeyError"),
        ("x = 1\n", "declares no tool"),
        ("\0", "cannot be imported"),
    ],
)
def test_a_tool_file_that_cannot_be_used_is_usage_and_one_line(
    call_from: Any, text: str, words: str
) -> None:
    done = call_from(text)
    assert done.returncode == 2, done.stderr
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stdout == ""


def test_the_control_a_tool_file_that_can_be_used(call_from: Any) -> None:
    done = call_from(_GOOD)
    assert (done.returncode, done.stdout, done.stderr) == (0, "2\n", "")


async def test_a_directory_with_many_modules_beside_the_tool_works(
    runner: Any, module: Any
) -> None:
    place = Path(module("", "first_neighbour").__file__).parent
    for number in range(1200):
        (place / f"neighbour_{number}.py").write_text(f"NUMBER = {number}\n")
    own = module(
        "def last() -> int:\n    import neighbour_1199\n    return neighbour_1199.NUMBER\n"
    )
    run = runner(own.last)
    results = [await run("last") for _ in range(3)]
    assert [result.structured for result in results] == [1199] * 3, results[0].for_llm()


_COLD = "the plan refuses what was beside the tool when that was registered"
_SHOWN_AGAIN = "what is lent below /tmp is mounted in each cell anew, and is not there any more"


@pytest.mark.parametrize("change", ["deleted", "saved anew"])
@pytest.mark.parametrize(
    "above",
    [
        "/var/tmp",
        "/tmp",
    ],
)
async def test_a_neighbour_that_changes_later_breaks_no_call(
    runner: Any, monkeypatch: pytest.MonkeyPatch, above: str, change: str
) -> None:
    with tempfile.TemporaryDirectory(dir=above) as directory:
        monkeypatch.syspath_prepend(directory)
        neighbour = Path(directory, "neighbour.py")
        neighbour.touch()
        own = _one(Path(directory), monkeypatch)
        run = runner(own.one)
        assert (await run("one")).structured == 1
        if change == "saved anew":
            Path(directory, "new").touch()
            Path(directory, "new").replace(neighbour)  # as editors save
        else:
            neighbour.unlink()
        results = [await run("one") for _ in range(4)]
        assert [result.structured for result in results] == [1] * 4, results[0].for_llm()


async def test_a_neighbour_that_goes_before_the_first_call_breaks_none(
    runner: Any, module: Any
) -> None:
    neighbour = Path(module("", "neighbour_that_goes").__file__)
    run = runner(module("def one() -> int:\n    return 1\n").one)
    neighbour.unlink()
    result = await run("one")
    assert result.structured == 1, result.for_llm()


def _one(place: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (place / "tool_with_neighbour.py").write_text("def one() -> int:\n    return 1\n")
    monkeypatch.delitem(sys.modules, "tool_with_neighbour", raising=False)
    found = importlib.import_module("tool_with_neighbour")
    monkeypatch.setitem(sys.modules, "tool_with_neighbour", found)
    return found
