"""Tools of one's own: imported where they run, with their arguments built there."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from toolcell import tool
from toolcell.errors import ImportPathWarning

pytestmark = [pytest.mark.isolation, pytest.mark.any_user]

_OWN = """
import asyncio, datetime, decimal, enum, os, pathlib, uuid
from dataclasses import dataclass
from typing import Annotated, Literal
from pydantic import BaseModel, Field
from toolcell import ToolError, tool

class Colour(enum.Enum):
    RED = "red"

class Point(BaseModel):
    x: int
    y: int = 2

@dataclass
class Size:
    width: int

@tool
def typed(colour: Colour, point: Point, size: Size, points: list[Point],
          day: datetime.date, path: pathlib.Path, count: Annotated[int, Field(ge=1)] = 3,
          mode: Literal["a", "b"] = "a", maybe: Point | None = None) -> list[str]:
    '''Say what the arguments were built as.'''
    return [type(value).__name__ for value in
            (colour, point, size, points[0], day, path, count, mode, maybe)]

@tool
def model() -> Point:
    return Point(x=1)

@tool
def structures() -> dict:
    return {"size": Size(3), "colour": Colour.RED, "day": datetime.date(2024, 2, 29),
            "path": pathlib.Path("/x"), "set": {1}, "tuple": (1, 2), 5: None, "f": 0.5}

@tool
async def later(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "awaited"

@tool
def hinted() -> str:
    raise ToolError("no such city", hint="try another")

@tool
def nothing() -> None:
    pass

@tool
def printing() -> None:
    print("as a program does")

@tool(idempotent=True, retries=1)
def patient() -> int:
    import time
    with open("tries", "a") as file:
        file.write("x")
    tries = len(open("tries").read())
    time.sleep(20 if tries < 2 else 0)
    return tries

@tool(idempotent=True, retries=3)
def failing() -> int:
    with open("tries", "a") as file:
        file.write("x")
    raise ValueError("every time")

@tool(timeout=0.3)
def slow() -> None:
    import time
    time.sleep(30)
"""


async def test_typed_parameters_are_built_in_the_cell(runner: Any, module: Any) -> None:
    own = module(_OWN)
    arguments = {
        "colour": "red",
        "point": {"x": 1},
        "size": {"width": 1},
        "points": [{"x": 1, "y": 1}],
        "day": "2024-02-29",
        "path": "a/b",
        "maybe": {"x": 3},
    }
    result = await runner(own.typed)("typed", **arguments)
    assert result.structured == [
        *("Colour", "Point", "Size", "Point", "date", "PosixPath", "int", "str", "Point")
    ], result.for_llm()


async def test_returned_structures_become_json(runner: Any, module: Any) -> None:
    own = module(_OWN)
    run = runner(own.model, own.structures, own.nothing, own.printing, own.later)
    assert (await run("model")).structured == {"x": 1, "y": 2}
    assert (await run("structures")).structured == {
        "size": {"width": 3},
        "colour": "red",
        "day": "2024-02-29",
        "path": "/x",
        "set": [1],
        "tuple": [1, 2],
        "5": None,
        "f": 0.5,
    }
    nothing = await run("nothing")
    assert (nothing.success, nothing.output, nothing.structured) == (True, "", None)
    assert (await run("printing")).output == "as a program does\n"
    assert (await run("later", seconds=0.01)).output == "awaited"


async def test_a_tools_own_timeout_shortens_the_wall(runner: Any, module: Any) -> None:
    result = await runner(module(_OWN).slow)("slow")
    assert result.error.category == "wall"
    assert "0.3 s" in result.error.message


async def test_a_failure_of_the_tool_is_not_tried_again(
    runner: Any, module: Any, workspace: Path
) -> None:
    result = await runner(module(_OWN).failing)("failing")
    assert result.error.category == "exception"
    assert (workspace / "tries").read_text() == "x"
    assert result.metadata.attempts == 1


@pytest.mark.parametrize(("retries", "attempts"), [(1, 2), (0, 1)])
async def test_a_cell_that_was_lost_is_tried_again_where_that_does_no_harm(
    runner: Any, module: Any, workspace: Path, until: Any, retries: int, attempts: int
) -> None:
    source = _OWN.replace("retries=1", f"retries={retries}")
    run = runner(module(source).patient, spare_cells=0)
    call = asyncio.create_task(run("patient"))
    await until((workspace / "tries").exists, "it runs")
    keeper = psutil.Process().children()[0]
    (init,) = keeper.children()[0].children()
    init.kill()
    result = await call
    assert result.metadata.attempts == attempts
    if retries:
        assert (result.structured, result.error) == (2, None)
    else:
        assert result.error.category == "worker_lost"
        assert result.error.retryable


async def test_a_module_beside_the_tool_is_importable_and_other_files_are_not_there(
    runner: Any, module: Any, on_host: Any
) -> None:
    beside = module("ANSWER = 42\n", "beside_the_tool")
    place = Path(beside.__file__).parent
    (place / ".env").write_text("SECRET=1")
    (place / "data.json").write_text("{}")
    (place / "package").mkdir()
    (place / "package/__init__.py").write_text("NAME = 'package'\n")
    own = module(
        "import beside_the_tool, os, package\ndef look() -> list:\n"
        "    here = os.path.dirname(__file__)\n"
        "    return [beside_the_tool.ANSWER, package.NAME, sorted(os.listdir(here))]\n"
    )
    answer, name, seen = (await runner(own.look)("look")).structured
    assert (answer, name) == (42, "package")
    assert ".env" in on_host(f"import os; print(os.listdir({str(place)!r}))"), "the control"
    assert all(entry == "package" or entry.endswith(".py") for entry in seen), seen


async def test_a_missing_module_is_named_with_the_remedy(runner: Any, module: Any) -> None:
    own = module(
        "import os\nif os.environ.get('TOOLCELL_CELL'):\n    import not_in_the_cell\n"
        "def look() -> int:\n    return 1\n"
    )
    result = await runner(own.look)("look")
    assert result.error.category == "tool_error"
    assert "not_in_the_cell" in result.error.message
    assert "`read`" in result.error.hint


def test_a_script_can_hold_its_own_tools(tmp_path: Path, workspace: Path) -> None:
    script = tmp_path / "my script.py"
    script.write_text(
        "import asyncio, os\nfrom toolcell import ToolCall, ToolController, ToolRegistry, tool\n"
        "@tool\ndef where(n: int) -> list:\n    return [n, __name__, os.getpid() < 10]\n"
        "async def main():\n"
        "    from toolcell import ToolPolicy\n"
        "    policy = ToolPolicy(allow=['where'])\n"
        f"    async with ToolController(ToolRegistry([where]), policy, {str(workspace)!r}) as c:\n"
        "        r = await c.handle(ToolCall(call_id='1', name='where', arguments={'n': 1}))\n"
        "    print(r.structured, r.error)\n"
        "if __name__ == '__main__':\n    asyncio.run(main())\n"
    )
    command = [sys.executable, str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert done.stdout == "[1, '__toolcell_main__', True] None\n", done.stderr


async def test_an_inline_tool_runs_here_and_says_that_there_is_no_wall(runner: Any) -> None:
    seen = []

    @tool(isolation="inline", timeout=0.2)
    def closure(seconds: float) -> str:
        import time

        seen.append(seconds)
        time.sleep(seconds)
        return "from the controller"

    run = runner(closure)
    result = await run("closure", seconds=0)
    assert (result.output, result.source, result.enforcement.rung) == (
        *("from the controller", "inline", "inline"),
    )
    assert seen == [0]
    assert result.enforcement.enforced == {}
    late = await run("closure", seconds=0.5)
    assert late.error.category == "wall"
    assert "cannot be killed" in late.error.message


async def test_a_tool_sees_the_controllers_prefix(run: Any, on_host: Any) -> None:
    code = "import sys, sysconfig; print(sys.prefix, sysconfig.get_path('purelib'))"
    assert (await run.py(code)).output == on_host(code)


@pytest.mark.parametrize("rung", ["full", "landlock"])
async def test_a_preloaded_module_is_there_before_the_call(runner: Any, rung: str) -> None:
    code = "import sys; print('decimal' in sys.modules)"
    with_it = runner(cell={"preload": ["decimal"], "isolation": rung})
    assert (await with_it.py(code)).output == "True\n"
    assert (await runner(cell={"isolation": rung}).py(code)).output == "False\n", "the control"


async def test_a_module_that_a_tool_could_have_written_is_not_preloaded(
    runner: Any, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "planted.py").write_text("")
    monkeypatch.syspath_prepend(str(workspace))
    with pytest.warns(ImportPathWarning):
        result = await runner(cell={"preload": ["planted"]})("echo", text="x")
    assert result.error.category == "cell_setup"
    assert "planted cannot be preloaded: ModuleNotFoundError" in result.error.message


async def test_a_module_that_starts_threads_is_not_preloaded(runner: Any, module: Any) -> None:
    source = (
        "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()"
    )
    place = Path(module(source).__file__)
    cell = {"preload": [place.stem], "read": [str(place.parent)]}
    result = await runner(cell=cell)("echo", text="x")
    assert result.error.category == "cell_setup"
    assert "it starts threads" in result.error.message
