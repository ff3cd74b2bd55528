"""The shell and python tools in real cells: what stands around the code, and what comes of it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from toolcell import Limits, RunOptions
from toolcell.model import ToolResult

pytestmark = [pytest.mark.isolation, pytest.mark.any_user]

RUNGS = ["full", "landlock"]


def names(result: ToolResult) -> list[str]:
    return [each.name for each in result.artifacts]


def content(run: Any, result: ToolResult, name: str) -> bytes:
    handle = next(each.handle for each in result.artifacts if each.name == name)
    data: bytes = run.controller.runtime.outputs.read(handle)
    return data


async def test_code_finds_its_input_directory_and_variables(run: Any, workspace: Path) -> None:
    (workspace / "src").mkdir()
    around = {"input": "é\n2\n", "directory": "src", "environment": {"A": "b  c"}}
    shell = await run("shell", command='cat; echo "$A"; pwd; touch here', **around)
    assert shell.output == f"é\n2\nb  c\n{workspace}/src\n"
    assert (workspace / "src/here").exists()
    code = "import os\nprint(input(), os.environ['A'])\nos.listdir()"
    assert (await run("python", code=code, **around)).output == "é b  c\n['here']\n"


async def test_both_streams_are_apart_or_in_their_order(run: Any) -> None:
    for tool, line in [
        ("shell", {"command": "for i in 1 2 3; do printf o$i; printf e$i >&2; done"}),
        (
            "python",
            {
                "code": "import sys\nfor i in (1, 2, 3):\n"
                "    print(f'o{i}', end=''); print(f'e{i}', end='', file=sys.stderr)"
            },
        ),
    ]:
        apart = await run(tool, **line)
        assert (apart.output, apart.metadata.stderr) == ("o1o2o3", "e1e2e3")
        together = await run(tool, **line, separate=False)
        assert (together.output, together.metadata.stderr) == ("o1e1o2e2o3e3", "")


@pytest.mark.parametrize(
    ("directory", "words"),
    [("..", "outside the workspace"), ("/etc", "outside"), ("no", "not exist"), ("file", "a file")],
)
async def test_a_directory_that_cannot_be_is_named_and_nothing_runs(
    run: Any, workspace: Path, directory: str, words: str
) -> None:
    (workspace / "file").touch()
    for tool, code in [
        ("shell", {"command": "touch ran"}),
        ("python", {"code": "open('ran','w')"}),
    ]:
        result = await run(tool, directory=directory, **code)
        assert result.error.category == "tool_error"
        assert words in result.error.message
    assert [each.name for each in workspace.iterdir()] == ["file"]


async def test_an_input_beside_that_of_the_host_is_refused(run: Any) -> None:
    options = RunOptions(stdin="the host's")
    assert (await run.with_options("shell", options, command="cat")).output == "the host's"
    result = await run.with_options("shell", options, command="cat", input="mine")
    assert result.error.category == "tool_error"
    assert "given by the host" in result.error.message


async def test_a_call_narrows_its_own_limits(run: Any) -> None:
    late = await run("shell", command="echo a; sleep 20", timeout=0.3)
    assert late.error.category == "wall"
    assert late.output == "a\n"
    hoard = await run("python", code="x = bytearray(400 << 20)", memory=64 << 20)
    assert hoard.error.category == "memory"


async def test_a_failing_program_shows_the_frames_of_its_author(run: Any) -> None:
    result = await run.py("def f():\n    return 1 / 0\n\nf()")
    assert result.return_code == 1
    assert result.metadata.stderr.startswith(
        'Traceback (most recent call last):\n  File "<code>", line 4, in <module>\n'
    )
    assert "sandbox_workers" not in result.metadata.stderr
    broken = await run.py("def f(:")
    assert broken.metadata.stderr.startswith('  File "<code>", line 1\n')


@pytest.mark.parametrize("rung", RUNGS)
async def test_files_in_the_outbox_come_back_and_nothing_else_of_it(
    runner: Any, workspace: Path, rung: str
) -> None:
    run = runner(cell={"isolation": rung})
    (workspace / "inside").write_text("linked")
    result = await run.sh(
        "cd $TOOLCELL_OUTBOX && mkdir sub && printf 'a,b' > sub/t.csv && ln -s /etc/passwd link"
        " && ln -s inside link2 && mkfifo fifo && echo x > one && ln one two"
        " && truncate -s 30M sparse && truncate -s 1G giant; mknod dev c 1 3; exit 7"
    )
    assert result.return_code == 7
    assert names(result) == ["sub/t.csv"]
    assert result.artifacts[0].media_type == "text/csv"
    assert content(run, result, "sub/t.csv") == b"a,b"
    refused = {each.name: each.reason for each in result.refused_artifacts}
    assert set(refused) - {"dev"} == {"link", "link2", "fifo", "one", "two", "sparse", "giant"}
    text = result.for_llm()
    assert result.artifacts[0].handle in text
    assert "fifo did not come back: it is a pipe" in text
    empty = await run.sh("ls -A $TOOLCELL_OUTBOX")
    assert (empty.output, empty.artifacts) == ("", ()), "nothing of one call is in the next"


@pytest.mark.parametrize("rung", RUNGS)
async def test_a_call_that_is_ended_keeps_the_artifacts_that_are_whole(
    runner: Any, rung: str
) -> None:
    run = runner(cell={"isolation": rung})
    fill = "cd $TOOLCELL_OUTBOX; echo whole > a; setsid sh -c 'while :; do echo b >> b; done' &"
    late = await run("shell", command=f"{fill} sleep 20", timeout=0.5)
    assert late.error.category == "wall"
    assert content(run, late, "a") == b"whole\n"
    died = await run.sh("echo whole > $TOOLCELL_OUTBOX/a; kill -9 $$")
    assert (died.signal, content(run, died, "a")) == ("SIGKILL", b"whole\n")


async def test_many_calls_at_once_each_get_their_own_artifacts(runner: Any) -> None:
    run = runner(limits={"artifact_size": 4 << 20, "artifacts": 3})
    made = await asyncio.gather(
        *(
            run.sh(
                f"head -c {n} /dev/zero | tr '\\0' {n % 10} > $TOOLCELL_OUTBOX/{n}; cd /tmp;"
                " cd $TOOLCELL_OUTBOX; touch x y z"
            )
            for n in (1, 70_000, 3_000_001, 5_000_002)
        )
    )
    sizes = [[each.size for each in result.artifacts][:1] for result in made]
    assert sizes == [[1], [70_000], [3_000_001], [0]]
    assert content(run, made[2], "3000001") == b"1" * 3_000_001
    assert "one artifact may have" in made[3].for_llm()
    assert "as many artifacts" in made[0].for_llm()


_PYPLOT = """
import os

class Figure:
    def __init__(self, number):
        self.number = number
    def savefig(self, place, format):
        with open(place, "wb") as file:
            file.write(b"\\x89PNG\\r\\n\\x1a\\n" + str(self.number).encode())

open_ones = {}
backend = os.environ.get("MPLBACKEND")

def figure(number=None):
    number = number or len(open_ones) + 1
    return open_ones.setdefault(number, Figure(number))

def get_fignums():
    return sorted(open_ones)

def close(figure):
    del open_ones[figure.number]

def show():
    raise AssertionError("there is no window")
"""


async def test_figures_are_saved_where_they_are_shown_and_at_the_end(
    run: Any, workspace: Path
) -> None:
    """By a stand-in, because matplotlib is not among what the tests need."""
    (workspace / "matplotlib").mkdir()
    (workspace / "matplotlib/__init__.py").touch()
    (workspace / "matplotlib/pyplot.py").write_text(_PYPLOT)
    result = await run.py(
        "from matplotlib.pyplot import figure, show\nimport matplotlib.pyplot as plt\n"
        "figure(); figure(5)\nshow()\nfigure(7)\nplt.backend, 1 / 0"
    )
    assert result.return_code == 1, "also where the code fails later"
    assert names(result) == ["figure-1.png", "figure-2.png", "figure-3.png"]
    assert content(run, result, "figure-3.png").endswith(b"\n7")
    assert {each.media_type for each in result.artifacts} == {"image/png"}
    backend = "import matplotlib.pyplot as plt\nplt.backend"
    assert (await run.py(backend)).output == "'Agg'\n"
    own = await run("python", code=backend, environment={"MPLBACKEND": "svg"})
    assert own.output == "'svg'\n"
    without = await run.py("import sys\n'matplotlib' in sys.modules")
    assert (without.output, without.artifacts) == ("False\n", ())


async def test_changed_files_are_told_where_the_policy_asks(runner: Any, workspace: Path) -> None:
    run = runner(cell={"report_changes": True})
    (workspace / "old").write_text("12345")
    (workspace / "gone").write_text("1")
    result = await run.sh("echo x >> old; rm gone; mkdir d; echo 1 > d/new; exit 1")
    told = {each.path: (each.kind, each.size_before, each.size) for each in result.changes}
    assert told == {
        "old": ("changed", 5, 7),
        "gone": ("removed", 1, None),
        "d/new": ("added", None, 2),
    }
    assert "changed old (5 -> 7 bytes)" in result.for_llm()
    assert (await run.sh("cat old; ls")).changes == ()
    assert (await runner().sh("touch more")).changes == (), "the control: nobody asked"


_TRIES_AGAIN = """
from pathlib import Path
from toolcell import ToolError, tool

@tool(idempotent=True, retries=1)
def work() -> str:
    if not Path("first").exists():
        Path("first").touch()
        raise ToolError("not yet", retryable=True)
    Path("second").touch()
    return "done"
"""


async def test_the_changes_of_every_try_at_a_call_are_told(runner: Any, module: Any) -> None:
    result = await runner(module(_TRIES_AGAIN).work, cell={"report_changes": True})("work")
    assert result.metadata.attempts == 2
    assert [each.path for each in result.changes] == ["first", "second"]


_DECLARES = """
from pathlib import Path
from toolcell import tool

@tool(artifacts=("report/*.html",))
def report(text: str) -> str:
    Path("report").mkdir(exist_ok=True)
    Path("report/index.html").write_text(text)
    Path("report/data.bin").write_text(text)
    return "done"
"""


async def test_files_that_a_tool_declares_come_back(
    runner: Any, module: Any, workspace: Path
) -> None:
    run = runner(module(_DECLARES).report)
    (workspace / "report").mkdir()
    (workspace / "report/before.html").write_text("not of this call")
    result = await run("report", text="<p>")
    assert result.output == "done"
    assert names(result) == ["report/index.html"]
    assert content(run, result, "report/index.html") == b"<p>"


async def test_a_secret_in_a_name_is_redacted_and_the_content_is_as_it_was(
    runner: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from toolcell import CellSettings, ToolPolicy
    from toolcell.policy.tables import Redaction

    monkeypatch.setenv("A_SECRET", "hunter2-hunter2")
    policy = ToolPolicy(
        name="test",
        allow={"*": "a test"},
        cell=CellSettings(report_changes=True),
        limits=Limits(wall=10),
        redact=Redaction(env=("A_SECRET",)),
    )
    run = runner(policy=policy)
    line = "echo hunter2-hunter2 > $TOOLCELL_OUTBOX/hunter2-hunter2; touch hunter2-hunter2"
    result = await run.sh(line)
    assert "hunter2" not in result.model_dump_json()
    assert content(run, result, result.artifacts[0].name) == b"hunter2-hunter2\n"


async def test_code_knows_its_file_and_how_to_exit(run):
    shown = await run.py("from pathlib import Path\nprint(Path(__file__).parent == Path.cwd())")
    assert shown.output == "True\n"
    assert (await run.py("exit(3)")).return_code == 3
    assert (await run.py("quit()")).success
