"""The launcher as the controller holds it: one process, one socket.

Every descriptor here has one owner. A `Launcher` owns the control socket and the
keeper's process. Closing the control socket ends the launcher, and with it every cell
that it made.
"""

import asyncio
import errno
import os
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import sandbox_workers
from sandbox_workers import wire
from toolcell.cells.cell import ENDS, Cell, readable
from toolcell.errors import CellRefused, WallsNotBuilt
from toolcell.model import Plan

_MESSAGE = 128 * 1024
_START_SECONDS = 20.0
_END_SECONDS = 5.0
_MAKING = 16

# Isolated and without site: no .pth file and no user directory is read or run in there.
_BOOT = "import sys; sys.path.insert(0, {root!r}); from sandbox_workers.keeper import main; main()"

# Fixed: the keeper runs outside the walls, and what a policy sets is for tools only.
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}


class Launcher:
    """A started launcher of one plan.

    `alive` turns false when it is found to have ended.
    """

    def __init__(
        self, plan: Plan, process: "subprocess.Popen[bytes]", control: socket.socket, log: IO[bytes]
    ) -> None:
        self.plan = plan
        self._process = process
        self._control = control
        self._log = log
        self._number = 0
        self._waiting: dict[int, asyncio.Future[Cell]] = {}
        self._open: set[Cell] = set()
        # More requests than the socket's buffer holds would be refused, not queued.
        self._making = asyncio.Semaphore(_MAKING)
        self.alive = True

    @property
    def open_cells(self) -> int:
        """How many cells of this launcher are being made or are not closed yet."""
        return len(self._waiting) + len(self._open)

    @classmethod
    async def start(cls, plan: Plan) -> "Launcher":
        """Start the process and wait until its walls stand; raises CellRefused."""
        try:
            launcher = cls._spawned(plan)
        except (OSError, wire.WireError) as error:
            raise CellRefused(f"the launcher could not be started: {error}") from error
        try:
            await launcher._begin()
        except BaseException:
            await launcher.close()
            raise
        return launcher

    @classmethod
    def _spawned(cls, plan: Plan) -> "Launcher":
        document = wire.encode(_wire_plan(plan))
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        try:
            log = tempfile.TemporaryFile()  # noqa: SIM115  # the launcher's own, closed with it
            try:
                return cls(plan, _spawn(document, theirs, log), ours, log)
            except BaseException:
                log.close()
                raise
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()

    async def make(self) -> Cell:
        """Make a cell and wait until it is ready; raises CellRefused."""
        async with self._making:
            cell = await self._made()
            try:
                await cell.ready()
            except BaseException:
                cell.kill()
                cell.close()
                raise
            return cell

    async def close(self) -> None:
        """End the launcher and every cell of it; returns when its process is gone."""
        self._lose("the launcher was closed")
        self._control.close()
        try:
            await _ended(self._process)
        finally:
            self._log.close()

    async def _made(self) -> Cell:
        self._number += 1
        number = self._number
        made: asyncio.Future[Cell] = asyncio.get_running_loop().create_future()
        self._waiting[number] = made
        try:
            self._control.send(wire.encode({"cell": number}))
            return await made
        except OSError as error:
            raise CellRefused(f"the launcher could not be asked for a cell: {error}") from error
        except asyncio.CancelledError:
            if made.done() and not made.cancelled() and made.exception() is None:
                made.result().close()  # it came in the same turn of the loop
            raise
        finally:
            self._waiting.pop(number, None)

    async def _begin(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(_START_SECONDS):
                data = await loop.sock_recv(self._control, _MESSAGE)
        except TimeoutError:
            raise CellRefused(f"the launcher did not start within {_START_SECONDS:.0f} s") from None
        except OSError as error:
            raise CellRefused(f"the launcher broke off: {error}{self._last_words()}") from error
        if not data:
            raise CellRefused(f"the launcher ended at its start{self._last_words()}")
        message = wire.decode(data)
        if failed := message.get("failed"):
            raise WallsNotBuilt(failed["message"], failed["errno"])
        loop.add_reader(self._control, self._receive)

    def _receive(self) -> None:
        try:
            data, fds, _, _ = socket.recv_fds(
                self._control, _MESSAGE, len(ENDS), socket.MSG_CMSG_CLOEXEC
            )
        except BlockingIOError:
            return
        except OSError as error:
            self._lose(f"the launcher broke off: {error}")
            return
        if not data:
            self._lose(f"the launcher ended{self._last_words()}")
            return
        message = wire.decode(data)
        if "cell" in message:
            self._answer(self._waiting.get(message["cell"]), message.get("failed"), fds)
        else:
            self._lose(message["failed"]["message"])

    def _answer(
        self,
        made: "asyncio.Future[Cell] | None",
        failed: dict[str, Any] | None,
        fds: list[int],
    ) -> None:
        wanted = made is not None and not made.done()  # or it was cancelled in the meantime
        if made is not None and wanted and failed is None and len(fds) == len(ENDS):
            cell = Cell(*fds, sweeps=self.plan.rung != "full", on_close=self._closed)
            self._open.add(cell)
            made.set_result(cell)
            return
        for fd in fds:
            os.close(fd)
        if made is None or not wanted:
            return
        if failed is not None:
            made.set_exception(WallsNotBuilt(failed["message"], failed["errno"]))
        else:
            made.set_exception(WallsNotBuilt("too many open files in this process", errno.EMFILE))

    def _closed(self, cell: Cell) -> None:
        self._open.discard(cell)
        if cell.lost:
            # Only the keeper can end what an init that was killed left behind, and it does
            # when the launcher ends.
            self._lose("a cell's init was killed")
            self._control.close()

    def _lose(self, why: str) -> None:
        self.alive = False
        if self._control.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self._control)
        for made in self._waiting.values():
            if not made.done():
                made.set_exception(CellRefused(why))

    def _last_words(self) -> str:
        """What a launcher that died wrote to its standard error: a defect of ours, so shown."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=1)
        self._log.seek(0)
        text = self._log.read(4096).decode(errors="replace").strip()
        return f": {text.splitlines()[-1]}" if text else ""


async def _ended(process: "subprocess.Popen[bytes]") -> None:
    """Wait until the keeper has ended; it is not reaped before, so that its PID is its own."""
    if process.poll() is not None:
        return
    pidfd = os.pidfd_open(process.pid)
    try:
        async with asyncio.timeout(_END_SECONDS):
            await readable(pidfd)
    except (TimeoutError, asyncio.CancelledError) as error:
        # The launcher notices the death of its keeper by its parent-death signal.
        process.kill()
        if isinstance(error, asyncio.CancelledError):
            raise
    finally:
        os.close(pidfd)
        process.wait()


def _spawn(plan: bytes, control: socket.socket, log: IO[bytes]) -> "subprocess.Popen[bytes]":
    root = str(Path(sandbox_workers.__file__).parent.parent)
    memory = os.memfd_create("plan")
    try:
        with open(memory, "wb", closefd=False) as file:  # a descriptor
            file.write(plan)
        descriptors = [control.fileno(), memory]
        return subprocess.Popen(
            [
                sys.executable,
                *("-I", "-S", "-X", "utf8", "-c"),
                _BOOT.format(root=root),
                *map(str, descriptors),
                str(os.getpid()),
            ],
            pass_fds=descriptors,
            env=_ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            # Signals that a terminal sends to its foreground group are not for cells.
            start_new_session=True,
        )
    finally:
        os.close(memory)


def _wire_plan(plan: Plan) -> dict[str, Any]:
    """The part of a plan that the launcher needs, as its JSON."""
    document = plan.model_dump(mode="json", include=_SENT)
    return document | {"limits": plan.limits.in_the_cell()}


_SENT = {
    *("rung", "scratch", "identity", "mounts", "hidden", "files", "links"),
    *("network", "directory", "environment", "python_path", "python_prefix"),
    *("preload", "preload_path"),
    *("seccomp", "seccomp_silent", "landlock"),
}
