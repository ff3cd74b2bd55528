"""Attestation: a launcher is used only after its walls have been tried from inside.

When a launcher starts, its first cell is a probe: it tries what the plan forbids, on
targets that the controller has set up and reached itself first (the control), so that
"held" means that a wall held and not that nothing was there.
"""

import os
import secrets
import shutil
import socket
import tempfile
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from toolcell.cells.leftovers import left_behind
from toolcell.cells.lending import is_inside
from toolcell.cells.process import Launcher
from toolcell.cells.supervisor import Supervisor
from toolcell.errors import CellRefused
from toolcell.model import (
    Guarantee,
    HandlerRef,
    Mount,
    PreparedToolCall,
    Report,
    ToolCall,
    ToolDefinition,
    ToolSpec,
)

HANDLERS = "sandbox_workers.tools.probe"
_SECONDS = 10.0
_PREFIX = "toolcell-probe"
_LONGEST_ADDRESS = 107  # unix(7)
_OF_EVERY_CELL = ("HOME", "TMPDIR")  # its own, wherever its scratch space lies

ATTEMPTS = {
    Guarantee.FILESYSTEM: ("read_outside", "write_outside", "mount"),
    Guarantee.NETWORK: ("connect_tcp", "connect_abstract", "connect_unix"),
    Guarantee.PROCESS_TREE: ("signal_controller",),
    Guarantee.SECRETS: ("read_environment",),
    Guarantee.SYSCALLS: ("use_system_calls", "new_user_namespace"),
}
"""What a probe tries, by the guarantee that a success would break."""


async def attest(launcher: Launcher) -> None:
    """Try a launcher's walls; raises CellRefused where one does not hold or cannot be tried."""
    enforced = launcher.plan.enforcement.enforced
    names = [name for guarantee in enforced for name in ATTEMPTS.get(guarantee, ())]
    try:
        with probe_targets(launcher.plan.environment) as targets:
            _require_outside(targets["file"], launcher.plan.mounts)
            arguments = {"targets": targets, "attempts": names}
            supervisor = Supervisor(await launcher.make(), launcher.plan.limits)
            report = await supervisor.run(_prepared(arguments), None, _SECONDS)
            if not os.access(targets["file"], os.F_OK):  # then nothing was there to be reached
                raise CellRefused("the walls could not be tried: what was to be reached is gone")
    except OSError as error:
        raise CellRefused(f"the walls could not be tried: {error}") from error
    answer = _answer(report)
    if missing := set(names) - answer.keys():
        raise CellRefused(f"the walls could not be tried: no answer on {', '.join(missing)}")
    reached = [words for words in answer.values() if words]
    if reached:
        raise CellRefused(
            f"the walls do not hold on this machine: a probe {'; '.join(reached)}",
            "`toolcell doctor` shows which; please report it as a security problem",
        )


def _require_outside(file: str, mounts: Iterable[Mount]) -> None:
    """Refuse to try what every cell may reach: that would tell nothing of the walls."""
    place = str(Path(file).resolve().parent)
    if lent := [mount.source for mount in mounts if is_inside(place, [mount.source])]:
        raise CellRefused(
            f"the walls could not be tried: the temporary directory {tempfile.gettempdir()} lies "
            f"in {lent[-1]}, which is lent to tools, and is to hold what is out of their reach",
            "set TMPDIR to a directory elsewhere, such as /tmp",
        )


def probe_definition(function: str) -> ToolDefinition:
    """Define a handler of the probe's module as a tool."""
    return ToolDefinition(
        spec=ToolSpec(name=function, description="A probe.", input_schema={"type": "object"}),
        handler=HandlerRef(module=HANDLERS, function=function),
    )


def _prepared(arguments: dict[str, Any]) -> PreparedToolCall:
    call = ToolCall(call_id="attestation", name="probe", arguments=arguments)
    return PreparedToolCall.of(call, probe_definition("probe"), arguments)


def _answer(report: Report) -> dict[str, str | None]:
    if report.reply and isinstance(report.reply.get("value"), dict):
        answer: dict[str, str | None] = report.reply["value"]
        return answer
    why = report.reply or report.bad_reply or report.killed or f"exit {report.exit}"
    raise CellRefused(f"the walls could not be tried: the probe ended with {why}")


@contextmanager
def probe_targets(given: Collection[str]) -> Iterator[dict[str, Any]]:
    """Set up what a cell must not reach, and reach it from here: the control.

    `given` are the variables that the cell is to have; another of the controller's own
    stands for its secrets.
    """
    given = {*given, *_OF_EVERY_CELL}
    with ExitStack() as stack:
        _sweep()
        prefix = f"{_PREFIX}-{os.getpid()}-"
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=prefix)))
        secret = place / "secret"
        secret.write_text("secret")
        secret.chmod(0o644)
        place.chmod(0o755)
        port = _listen(stack)
        abstract = f"{_PREFIX}-{secrets.token_hex(8)}"
        named = stack.enter_context(socket.socket(socket.AF_UNIX))
        named.bind("\0" + abstract)
        named.listen()
        letters = _letter_box(stack, str(place / "letters"))
        _control(secret, abstract, letters)
        yield {
            "file": str(secret),
            "port": port,
            "abstract": abstract,
            "letters": letters,
            "pid": os.getpid(),
            "variable": next((name for name in os.environ if name not in given), None),
            "mark": f"{_PREFIX}-{secrets.token_hex(8)}",
        }


def _sweep() -> None:
    """Remove what controllers left that were killed while they tried walls."""
    for old in left_behind(Path(tempfile.gettempdir()), _PREFIX):
        shutil.rmtree(old, ignore_errors=True)  # another user's stays


def _listen(stack: ExitStack) -> int | None:
    """Listen on the host's loopback and connect to it; None where the host has none."""
    try:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        port: int = listener.getsockname()[1]
        socket.create_connection(("127.0.0.1", port), 2).close()
    except OSError:  # as in a network namespace whose loopback is down
        return None
    return port


def _letter_box(stack: ExitStack, path: str) -> str | None:
    """Bind a datagram socket at a path; None where that is longer than an address can be."""
    if len(path.encode()) > _LONGEST_ADDRESS:
        return None
    stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)).bind(path)
    return path


def _control(secret: Path, abstract: str, letters: str | None) -> None:
    secret.read_bytes()
    secret.with_name("control").write_bytes(b"")
    with socket.socket(socket.AF_UNIX) as client:
        client.connect("\0" + abstract)
    if letters:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as client:
            client.sendto(b"control", letters)
    os.kill(os.getpid(), 0)
