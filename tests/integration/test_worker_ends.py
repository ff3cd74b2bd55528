"""However a tool treats its own process, its end is a plain result without our traceback."""

from typing import Any

import pytest

pytestmark = [pytest.mark.isolation, pytest.mark.attack]

_OWN = """
import os, sys
from toolcell import ToolError, tool

@tool
def closes_the_pipe() -> str:
    print("kept", flush=True)
    os.close(4)
    return "never arrives"

@tool
def closes_everything() -> str:
    print("kept", flush=True)
    os.closerange(0, 100)
    return "never arrives"

class Mute(Exception):
    def __str__(self):
        raise KeyError("no words")

@tool
def mute() -> str:
    print("kept", flush=True)
    raise Mute

class Leaves(Exception):
    def __str__(self):
        sys.exit(3)

@tool
def leaves() -> str:
    print("kept", flush=True)
    raise Leaves

@tool
def mute_no() -> str:
    print("kept", flush=True)
    class Refusal(ToolError):
        def __str__(self):
            raise KeyError("no words")
    raise Refusal("no", Mute())

@tool
def speaks() -> str:
    print("kept", flush=True)
    raise ValueError("in words")
"""


def _is_plain(result: Any) -> None:
    assert not result.success
    assert result.output == "kept\n"
    text = result.for_llm() + result.metadata.stderr
    assert "sandbox_workers" not in text
    assert "_answer" not in text
    assert "defect" not in text


@pytest.mark.parametrize("name", ["closes_the_pipe", "closes_everything"])
async def test_a_tool_that_closes_the_pipe_of_its_answer_ends_with_an_exit_code(
    runner: Any, module: Any, name: str
) -> None:
    result = await runner(getattr(module(_OWN), name))(name)
    _is_plain(result)
    assert (result.error.category, result.return_code) == ("exit_code", 1)


@pytest.mark.parametrize(
    ("name", "category", "message"),
    [
        ("speaks", "exception", "ValueError: in words"),
        ("mute", "exception", "Mute: a Mute that cannot be shown"),
        ("mute_no", "tool_error", "a Refusal that cannot be shown"),
    ],
)
async def test_an_exception_without_words_is_told_as_one_with_words(
    runner: Any, module: Any, name: str, category: str, message: str
) -> None:
    result = await runner(getattr(module(_OWN), name))(name)
    _is_plain(result)
    assert (result.error.category, result.error.message) == (category, message)


async def test_an_exception_that_exits_when_it_is_shown_is_a_plain_result(
    runner: Any, module: Any
) -> None:
    result = await runner(module(_OWN).leaves)("leaves")
    _is_plain(result)
    assert result.error.message == "Leaves: a Leaves that cannot be shown"


@pytest.mark.parametrize(
    "code",
    [
        "import sys; print('kept'); sys.stdout.close()",
        "import sys; print('kept'); sys.stdout = sys.stderr = None",
    ],
)
async def test_a_program_without_its_standard_output_ends_as_it_does_outside(
    run: Any, on_host: Any, code: str
) -> None:
    assert (
        on_host(
            f"import subprocess, sys; print(subprocess.call([sys.executable, '-c', {code!r}]"
            ", stdout=subprocess.DEVNULL))"
        )
        == "0\n"
    ), "the control"
    result = await run.py(code)
    assert (result.success, result.output) == (True, "kept\n"), result.for_llm()


_HOSTILE = """
from toolcell import ToolError

class Mark(Exception):
    @property
    def is_tool_error(self):
        raise KeyError("mark")

class Hint:
    def __bool__(self):
        raise KeyError("hint")

def mark() -> int:
    print("kept", end="")
    raise Mark("words")

def hint() -> int:
    print("kept", end="")
    raise ToolError("words", Hint())
"""


@pytest.mark.parametrize("name", ["mark", "hint"])
async def test_an_exception_whose_attributes_raise_is_told_and_its_output_kept(
    runner: Any, module: Any, name: str
) -> None:
    result = await runner(getattr(module(_HOSTILE), name))(name)
    assert result.error.category in ("exception", "tool_error"), result.for_llm()
    assert result.output == "kept"
