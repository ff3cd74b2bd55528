"""Redaction: no secret in what a call in a real cell gives back, however it came out."""

import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from toolcell import CellSettings, Grant, Limits, RunOptions, ToolCall, ToolRegistry, ToolResult
from toolcell.model import PreparedToolCall
from toolcell.normalizer import Origin
from toolcell.redaction import Redactor
from toolcell.runtime import ToolRuntime

pytestmark = [pytest.mark.isolation, pytest.mark.any_user]

SECRET = "correct-horse-battery-staple"
TOKEN = "ghp_" + "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2"

_TOOLS = """
from toolcell import ToolError, tool

@tool
def raises(text: str) -> str:
    '''Raise.'''
    raise ValueError(f"no {text}")

@tool
def refuses(text: str) -> str:
    '''Refuse.'''
    raise ToolError(f"not {text}", hint=f"without {text}")

@tool
def returns(text: str) -> dict:
    '''Return.'''
    print("printed", text)
    return {"text": text, text: [text]}
"""


@pytest.fixture
async def call(workspace: Path, module: Any) -> AsyncIterator[Callable[..., Any]]:
    """Make one call in a cell of a runtime that has a redactor, or none."""
    own = module(_TOOLS)
    runtimes = []

    async def make(
        name: str, redactor: Redactor | None, options: RunOptions | None = None, **arguments: Any
    ) -> ToolResult:
        registry = ToolRegistry.builtin()
        for tool in (own.raises, own.refuses, own.returns):
            registry.register(tool)
        runtime = ToolRuntime(registry, workspace, redactor=redactor, spare_cells=0)
        runtimes.append(runtime)
        proposed = ToolCall(call_id="c1", name=name, arguments=arguments)
        prepared = runtime.prepare(proposed)
        assert isinstance(prepared, PreparedToolCall), prepared
        settings = CellSettings(env={"MY_KEY": SECRET})
        grant = Grant(prepared.digest, Origin(proposed), settings, Limits(wall=10))
        return await runtime.execute(prepared, grant, options)

    yield make
    for runtime in runtimes:
        await runtime.close()


@pytest.fixture
def redactor() -> Redactor:
    """One that takes a secret from this process's environment, as a policy names it."""
    return Redactor.from_environment(["MY_KEY", "UNSET"], os.environ | {"MY_KEY": SECRET})


_IN_PIECES = """
import os, sys, time
secret = os.environ["MY_KEY"]
for stream in (sys.stdout, sys.stderr):
    for piece in ("the key is ", secret[:9], secret[9:], ", no more"):
        stream.write(piece)
        stream.flush()
        time.sleep(0.02)
"""


async def test_a_secret_that_is_written_in_pieces_is_redacted(call: Any, redactor: Any) -> None:
    pieces: list[bytes] = []
    tap = RunOptions(tap=lambda _, data: pieces.append(data))
    made = await call("python", redactor, tap, code=_IN_PIECES)
    assert made.output == "the key is [redacted: MY_KEY], no more"
    assert made.metadata.stderr == "the key is [redacted: MY_KEY], no more"
    assert SECRET not in made.model_dump_json() + made.for_llm()
    assert len(pieces) > 2, "it came in pieces"
    assert SECRET.encode() in b"".join(pieces), "a tap is given what the tool wrote"
    bare = await call("python", None, code=_IN_PIECES)
    assert bare.output == bare.metadata.stderr == f"the key is {SECRET}, no more"


async def test_a_secret_in_the_environments_listing_is_redacted(call: Any, redactor: Any) -> None:
    made = await call("shell", redactor, command='env; printf %s "$MY_KEY" | base64')
    assert "MY_KEY=[redacted: MY_KEY]\n" in made.output
    assert made.output.endswith("\n[redacted: MY_KEY]\n")
    assert SECRET in (await call("shell", None, command="env")).output


@pytest.mark.parametrize("secret", [SECRET, TOKEN])
@pytest.mark.parametrize("name", ["raises", "refuses", "returns"])
async def test_a_secret_in_an_error_or_a_value_is_redacted(
    call: Any, redactor: Any, name: str, secret: str
) -> None:
    made = await call(name, redactor, text=secret)
    kind = "MY_KEY" if secret == SECRET else "github token"
    assert secret not in made.model_dump_json() + made.for_llm()
    assert f"[redacted: {kind}]" in made.for_llm()
    assert secret in (await call(name, None, text=secret)).for_llm()


async def test_a_flood_of_secrets_that_is_ended_shows_no_part_of_one(
    call: Any, redactor: Any
) -> None:
    command = 'timeout 0.3 yes "$MY_KEY"; kill -9 $$'
    made = await call("shell", redactor, command=command)
    bare = await call("shell", None, command=command)
    assert made.truncation.omitted_bytes < made.truncation.total_bytes
    for part in (SECRET[at : at + 6] for at in range(len(SECRET) - 5)):
        assert part not in made.output
        assert part in bare.output
