"""A cell as the controller holds it: five pipe ends and the pidfd of its init."""

import asyncio
import os
import select
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from toolcell.cells.cgroup import Group
from toolcell.cells.conversation import Conversation, State
from toolcell.errors import CellRefused, WallsNotBuilt

END = signal.SIGUSR1  # see sandbox_workers.init
_READ = 65536
_NO_PID = 2**31 - 1  # above the highest that Linux gives out
_READY_SECONDS = 10.0

ENDS = ("request", "reply", "stdout", "stderr", "status", "pidfd")


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
        sweeps: bool = False,
        on_close: Callable[["Cell"], None],
    ) -> None:
        """Own the descriptors from now on; the pipe ends become non-blocking.

        `sweeps` says that there is no PID namespace, and the end of the tree is init's work.
        """
        self.sweeps = sweeps
        self.lost = False
        self._on_close = on_close
        self.request = request
        self.reply = reply
        self.stdout = stdout
        self.stderr = stderr
        self.status = status
        self.pidfd = pidfd
        self.conversation = Conversation()
        self.group: Group | None = None
        self.narrowed: dict[str, int] = {}
        """The limits that its call has less of than it was made with (see `narrowing`)."""
        for fd in (request, reply, stdout, stderr, status):
            os.set_blocking(fd, False)

    async def ready(self) -> None:
        """Wait until the worker says that its jail is shut; raises CellRefused."""
        try:
            async with asyncio.timeout(_READY_SECONDS):
                while self.conversation.state is State.MAKING:
                    data = await _read_when_ready(self.reply)
                    self.conversation.feed(data)
                    if not data:
                        break
        except TimeoutError:
            raise CellRefused(f"the cell was not ready within {_READY_SECONDS:.0f} s") from None
        answer = self.conversation.answer or {}
        if self.conversation.state is State.FAILED:
            raise WallsNotBuilt(
                f"the {answer['stage']} could not set up the cell: {answer['message']}",
                answer["errno"],
            )
        if self.conversation.state is not State.READY:
            raise CellRefused("the cell ended before it was ready")

    @property
    def closed(self) -> bool:
        """Whether its descriptors have been released."""
        return self.pidfd < 0

    def alive(self) -> bool:
        """Whether the cell has not ended: a pidfd is readable from the end of its process on."""
        poller = select.poll()
        poller.register(self.pidfd, select.POLLIN)
        return not poller.poll(0)

    def end(self) -> None:
        """Ask init to kill everything and to tell what it used."""
        self._signal(END)

    def kill(self) -> None:
        """Send SIGKILL to init, which takes a whole PID namespace with it.

        Where there is none, it takes a worker that has run no tool yet; what a tool started is
        then the keeper's to end.
        """
        self._signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Send SIGTERM to init, which passes it to every process of the cell."""
        self._signal(signal.SIGTERM)

    def pid(self) -> int:
        """The PID of init, as /proc tells it of a pidfd (Linux 5.3); none once it ended."""
        for line in Path(f"/proc/self/fdinfo/{self.pidfd}").read_text().splitlines():
            if line.startswith("Pid:") and (pid := int(line.split()[1])) > 0:
                return pid
        return _NO_PID

    def memory_kills(self) -> int:
        """What the cgroup says; it holds whether or not this process has a descriptor to ask."""
        if self.group is None:
            return 0
        try:
            return self.group.kills()
        except OSError:
            return 0

    def close(self) -> None:
        """Release the descriptors; a cell that still waits for its call ends by that."""
        for name in ENDS:
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


async def _read_when_ready(fd: int) -> bytes:
    """Read once from a non-blocking descriptor, waiting until it has something."""
    await readable(fd)
    return os.read(fd, _READ)


async def readable(fd: int) -> None:
    """Wait until a descriptor can be read: a pipe has something, a pidfd's process ended."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()
    loop.add_reader(fd, _settle, future)
    try:
        await future
    finally:
        loop.remove_reader(fd)


def _settle(future: "asyncio.Future[None]") -> None:
    if not future.done():  # a second readiness before the waiter ran
        future.set_result(None)
