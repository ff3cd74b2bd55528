"""What tests share: a real cell where one is needed, and short ways to call and to wait."""

import asyncio
import dataclasses
import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from toolcell import (
    CellSettings,
    Guarantee,
    Limits,
    RunOptions,
    ToolCall,
    ToolController,
    ToolPolicy,
    ToolRegistry,
    ToolResult,
)
from toolcell.cells.capabilities import capabilities

_numbers = itertools.count(1)


class Runner:
    """A controller, and the short way to make calls through it."""

    def __init__(self, controller: ToolController) -> None:
        self.controller = controller
        self.last_id = ""

    async def __call__(self, tool: str, /, **arguments: Any) -> ToolResult:
        """Make one call that no rule asks about."""
        return await self.with_options(tool, None, **arguments)

    async def with_options(
        self, tool: str, options: RunOptions | None, /, **arguments: Any
    ) -> ToolResult:
        """Make one call with options of the host."""
        self.last_id = f"call-{next(_numbers)}"
        call = ToolCall(call_id=self.last_id, name=tool, arguments=arguments)
        outcome = await self.controller.handle(call, options)
        assert isinstance(outcome, ToolResult), outcome
        return outcome

    async def sh(self, command: str) -> ToolResult:
        """Run a command line."""
        return await self("shell", command=command)

    async def py(self, code: str) -> ToolResult:
        """Run a Python program."""
        return await self("python", code=code)


@pytest.fixture(scope="session")
def isolation_refusal(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Why no cell can be made here, found by making one; empty where it can."""

    async def attempt() -> str:
        place = tmp_path_factory.mktemp("isolation")
        async with ToolController(ToolRegistry.builtin(), workspace=place) as controller:
            call = ToolCall(call_id="isolation", name="echo", arguments={"text": "here"})
            result = await controller.handle(call)
        assert isinstance(result, ToolResult)
        return "" if result.success else result.for_llm()

    return asyncio.run(attempt())


@pytest.fixture(scope="session")
def _states(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    base = tmp_path_factory.mktemp("states")
    return (base / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def _a_state_of_its_own(_states: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees, or leaves, what toolcell keeps for the person who runs the tests."""
    place = next(_states)  # made by whoever uses it
    monkeypatch.setenv("TOOLCELL_STATE_DIR", str(place))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(place / "config"))


@pytest.fixture(autouse=True)
def _a_cell_where_one_is_needed(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("isolation") is None:
        return
    refusal = request.getfixturevalue("isolation_refusal")
    if refusal and os.environ.get("TOOLCELL_MUST_ISOLATE") == "1":
        pytest.fail(f"no cell can be made, and TOOLCELL_MUST_ISOLATE=1: {refusal}")
    if refusal:
        pytest.skip(f"no cell can be made: {refusal}")


@pytest.fixture
def _heeds_sigint() -> Any:
    """Start programs that SIGINT ends; a shell's background jobs are made to ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """An empty directory to lend to cells; its parent is a place that they must not see."""
    place = tmp_path / "workspace"
    place.mkdir()
    return place


@pytest.fixture
async def runner(workspace: Path) -> AsyncIterator[Callable[..., Runner]]:
    """A factory of runners; takes tools of one's own, `limits`, `cell` and controller options."""
    async with AsyncExitStack() as stack:

        def make(
            *tools: Any,
            limits: dict[str, Any] | None = None,
            cell: dict[str, Any] | None = None,
            lend: Path | None = workspace,
            **options: Any,
        ) -> Runner:
            registry = ToolRegistry.builtin()
            for tool in tools:
                registry.register(tool)
            options.setdefault(
                "policy",
                ToolPolicy(
                    name="test",
                    allow={"*": "a test"},
                    cell=CellSettings(**(cell or {})),
                    limits=Limits(**({"wall": 10} | (limits or {}))),
                ),
            )
            controller = ToolController(registry, workspace=lend, **options)
            stack.push_async_callback(controller.close)
            return Runner(controller)

        yield make


@pytest.fixture
def run(runner: Callable[..., Runner]) -> Runner:
    """A runner of the built-in tools with a short wall."""
    return runner()


@pytest.fixture
def controller(run: Runner) -> ToolController:
    """The controller behind `run`."""
    return run.controller


@pytest.fixture
def on_host() -> Callable[..., str]:
    """Run Python code outside of any cell and return what it prints: the control of a wall."""

    def start(code: str, **options: Any) -> str:
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=20, **options
        )
        sys.stderr.write(done.stderr)  # shown where the test fails
        return done.stdout

    return start


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Callable[[Guarantee], None]:
    """Make this machine one that cannot enforce a guarantee."""

    def lose(guarantee: Guarantee) -> None:
        real = capabilities()
        enforced = {
            rung: {key: how for key, how in walls.items() if key != guarantee}
            for rung, walls in real.enforced.items()
        }
        less = dataclasses.replace(real, enforced=enforced)
        monkeypatch.setattr("toolcell.supply.capabilities", lambda: less)

    return lose


@pytest.fixture
def until() -> Callable[..., Awaitable[None]]:
    """Wait for a condition, looking often; fails with its name where it does not come true."""

    async def wait(condition: Callable[[], object], what: str, seconds: float = 5.0) -> None:
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, f"not within {seconds:g} s: {what}"
            await asyncio.sleep(0.01)

    return wait


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Write a module of one's own to a directory on the import path, and import it."""
    place = tmp_path / "modules"
    place.mkdir()
    monkeypatch.syspath_prepend(str(place))

    def write(source: str, name: str | None = None) -> Any:
        name = name or f"tools_{next(_numbers)}"
        (place / f"{name}.py").write_text(source)
        monkeypatch.delitem(sys.modules, name, raising=False)
        found = __import__(name)
        monkeypatch.setitem(sys.modules, name, found)
        return found

    return write


@pytest.fixture
def processes() -> Callable[[str], list[int]]:
    """Return the ids of the processes whose command line holds a text."""

    def find(text: str) -> list[int]:
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                try:
                    line = (entry / "cmdline").read_bytes()
                except OSError:  # it ended since the directory was listed
                    continue
                if text.encode() in line:
                    found.append(int(entry.name))
        return found

    return find
