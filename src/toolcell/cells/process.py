"""The launcher and its cells as the controller holds them: one process, one socket, pipes.

Every descriptor here has one owner. A `Launcher` owns the control socket and the
keeper's process; a `Cell` owns the five pipe ends and the pidfd of its init. Closing
the control socket ends the launcher, and with it every cell that it made.
"""

import asyncio
import errno
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import sandbox_workers
from sandbox_workers import wire
from toolcell.cells.conversation import Conversation, State
from toolcell.errors import CellRefused
from toolcell.model import Plan

_MESSAGE = 128 * 1024
_READ = 65536
_START_SECONDS = 20.0
_READY_SECONDS = 10.0

# Isolated and without site: no .pth file and no user directory is read or run in there.
_BOOT = "import sys; sys.path.insert(0, {root!r}); from sandbox_workers.keeper import main; main()"


_ENDS = ("request", "reply", "stdout", "stderr", "status", "pidfd")


class Cell:
    """The controller's ends of one cell that is being made, is ready, or runs its call."""

    def __init__(
        self,
        request: int,
        reply: int,
        stdout: int,
        stderr: int,
        status: int,
        pidfd: int,
        *,
        on_close: Callable[["Cell"], None],
    ) -> None:
        """Own the descriptors from now on; the pipe ends become non-blocking."""
        self._on_close = on_close
        self.request = request
        self.reply = reply
        self.stdout = stdout
        self.stderr = stderr
        self.status = status
        self.pidfd = pidfd
        self.conversation = Conversation()
        for fd in (request, reply, stdout, stderr, status):
            os.set_blocking(fd, False)

    async def ready(self) -> None:
        """Wait until the worker says that its jail is shut; raises CellRefused."""
        try:
            async with asyncio.timeout(_READY_SECONDS):
                while self.conversation.state is State.MAKING:
                    data = await _readable(self.reply)
                    self.conversation.feed(data)
                    if not data:
                        break
        except TimeoutError:
            raise CellRefused(f"the cell was not ready within {_READY_SECONDS:.0f} s") from None
        answer = self.conversation.answer or {}
        if self.conversation.state is State.FAILED:
            raise CellRefused(
                f"the {answer['stage']} could not set up the cell: {answer['message']}"
            )
        if self.conversation.state is not State.READY:
            raise CellRefused("the cell ended before it was ready")

    def alive(self) -> bool:
        """Whether the cell has not ended: a pidfd is readable from the end of its process on."""
        poller = select.poll()
        poller.register(self.pidfd, select.POLLIN)
        return not poller.poll(0)

    def kill(self) -> None:
        """Send SIGKILL to init, which takes the whole PID namespace with it."""
        self._signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Send SIGTERM to init, which passes it to every process of the cell."""
        self._signal(signal.SIGTERM)

    def close(self) -> None:
        """Release the descriptors; a cell that still waits for its call ends by that."""
        for name in _ENDS:
            self.close_end(name)
        self._on_close(self)

    def close_end(self, name: str) -> None:
        """Release one descriptor by its name; doing it twice does nothing."""
        fd = getattr(self, name)
        if fd >= 0:
            setattr(self, name, -1)
            os.close(fd)

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):  # it ended by itself in the meantime
            signal.pidfd_send_signal(self.pidfd, number)


class Launcher:
    """A started launcher of one plan.

    `alive` turns false when it is found to have ended.
    """

    def __init__(
        self, plan: Plan, process: "subprocess.Popen[bytes]", control: socket.socket, log: Any
    ) -> None:
        self.plan = plan
        self._process = process
        self._control = control
        self._log = log
        self._number = 0
        self._waiting: dict[int, asyncio.Future[Cell]] = {}
        self._open: set[Cell] = set()
        self.alive = True

    @property
    def busy(self) -> bool:
        """Whether a cell of this launcher is being made or is not closed yet."""
        return bool(self._waiting or self._open)

    @classmethod
    async def start(cls, plan: Plan) -> "Launcher":
        """Start the process and wait until its walls stand; raises CellRefused."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        log = tempfile.TemporaryFile()  # noqa: SIM115  # owned by the launcher, closed with it
        try:
            launcher = cls(plan, _spawn(plan, theirs, log), ours, log)
        except OSError as error:
            ours.close()
            log.close()
            raise CellRefused(f"the launcher could not be started: {error}") from error
        finally:
            theirs.close()
        try:
            await launcher._begin()
        except BaseException:
            launcher.close()
            raise
        return launcher

    async def make(self) -> Cell:
        """Make a cell and wait until it is ready; raises CellRefused."""
        self._number += 1
        number = self._number
        made: asyncio.Future[Cell] = asyncio.get_running_loop().create_future()
        self._waiting[number] = made
        try:
            self._control.send(wire.encode({"cell": number}))
            cell = await made
        except OSError as error:
            raise CellRefused(f"the launcher could not be asked for a cell: {error}") from error
        except asyncio.CancelledError:
            if made.done() and not made.cancelled() and made.exception() is None:
                made.result().close()  # it came in the same turn of the loop
            raise
        finally:
            self._waiting.pop(number, None)
        try:
            await cell.ready()
        except BaseException:
            cell.close()
            raise
        return cell

    def close(self) -> None:
        """End the launcher and every cell of it; returns when its process is gone."""
        if self._control.fileno() >= 0:
            with suppress(RuntimeError):  # no loop is running: nothing is registered either
                asyncio.get_running_loop().remove_reader(self._control)
            self._control.close()
        self._lose("the launcher was closed")
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            # The launcher notices the death of its keeper by its parent-death signal.
            self._process.kill()
            self._process.wait()
        self._log.close()

    async def _begin(self) -> None:
        loop = asyncio.get_running_loop()
        self._control.setblocking(False)
        await loop.sock_sendall(self._control, wire.encode(_wire_plan(self.plan)))
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
            raise LauncherFailed(failed["message"], failed["errno"])
        loop.add_reader(self._control, self._receive)

    def _receive(self) -> None:
        try:
            data, fds, _, _ = socket.recv_fds(
                self._control, _MESSAGE, len(_ENDS), socket.MSG_CMSG_CLOEXEC
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
        if "cell" not in message:
            self._lose(message["failed"]["message"])
            return
        made = self._waiting.get(message["cell"])
        if made is None or made.done():  # the call was cancelled while its cell was made
            for fd in fds:
                os.close(fd)
        elif failed := message.get("failed"):
            made.set_exception(LauncherFailed(failed["message"], failed["errno"]))
        elif len(fds) < len(_ENDS):  # this process is at its own limit of open files
            for fd in fds:
                os.close(fd)
            made.set_exception(LauncherFailed("too many open files in this process", errno.EMFILE))
        else:
            cell = Cell(*fds, on_close=self._open.discard)
            self._open.add(cell)
            made.set_result(cell)

    def _lose(self, why: str) -> None:
        self.alive = False
        if self._control.fileno() >= 0:
            with suppress(RuntimeError):
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


class LauncherFailed(CellRefused):
    """The launcher said which system call failed; `errno` lets `plan` say what to do."""

    def __init__(self, message: str, number: int | None) -> None:
        super().__init__(message)
        self.errno = number or errno.EIO


def _spawn(plan: Plan, control: socket.socket, log: Any) -> "subprocess.Popen[bytes]":
    root = str(Path(sandbox_workers.__file__).parent.parent)
    return subprocess.Popen(
        [
            sys.executable,
            *("-I", "-S", "-X", "utf8", "-c"),
            _BOOT.format(root=root),
            str(control.fileno()),
            str(os.getpid()),
        ],
        pass_fds=[control.fileno()],
        env=plan.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=log,
        # Signals that a terminal sends to its foreground group are not for cells.
        start_new_session=True,
    )


def _wire_plan(plan: Plan) -> dict[str, Any]:
    """The part of a plan that the launcher needs, as its JSON."""
    document = plan.model_dump(mode="json", include=_SENT)
    return document | {"limits": plan.limits.in_the_cell()}


_SENT = {
    *("identity", "mounts", "hidden", "files", "links"),
    *("network", "directory", "python_path", "python_prefix", "seccomp", "landlock"),
}


async def _readable(fd: int) -> bytes:
    """Read once from a non-blocking descriptor, waiting until it has something."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()
    loop.add_reader(fd, _settle, future)
    try:
        await future
    finally:
        loop.remove_reader(fd)
    return os.read(fd, _READ)


def _settle(future: "asyncio.Future[None]") -> None:
    if not future.done():  # a second readiness before the waiter ran
        future.set_result(None)
