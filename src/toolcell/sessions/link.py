"""The link to one session's cell: frames go, messages come in their order, and the cell ends.

What is said is taken as soon as it comes, and the host itself holds up a call whose output waits
for its reader, so that nobody else's does. Only where more waits than an honest host can have on
its way, nothing more is read: memory stays bounded.
The end is init's pidfd, and is told once all that the host said before is taken.
"""

import asyncio
import os
import select
from typing import Protocol

from toolcell.cells.account import Account, read_account
from toolcell.cells.cell import Cell
from toolcell.sessions.protocol import Dialogue, Message

_READ = 256 * 1024
_LAST_READS = 64
# How long init has to end everything, and to tell; longer where it has to sweep.
_ACCOUNT_SECONDS, _SWEEP_SECONDS = 0.25, 2.0


class Party(Protocol):
    """Who is linked to the cell."""

    def take(self, message: Message, /) -> None:
        """Take what the host said next."""
        ...

    def full(self) -> bool:
        """Whether no more can be taken now; `Link.proceed` is called when that changes."""
        ...

    def broken(self, problem: str, /) -> None:
        """The host said what no host says: end the link."""
        ...

    def ended(self) -> None:
        """The cell is gone, and released."""
        ...


class Link:
    """Owns a cell from now until it has ended; `account` is then what init told of it."""

    def __init__(self, cell: Cell, dialogue: Dialogue, party: Party) -> None:
        self.account: Account | None = None
        self._cell = cell
        self._dialogue = dialogue
        self._party = party
        self._loop = asyncio.get_running_loop()
        self._unsent = bytearray()
        self._status = b""
        self._gone = self._broken = False
        self._reads_left = _LAST_READS
        self._killing: asyncio.TimerHandle | None = None
        self._loop.add_reader(cell.pidfd, self._end)
        self._loop.add_reader(cell.stdout, self._read)
        self._loop.add_reader(cell.status, self._hear)

    def send(self, frame: bytes) -> None:
        """Send a frame, behind those that could not be sent yet."""
        if self._cell.closed:
            return
        if not self._unsent:
            self._loop.add_writer(self._cell.request, self._write)
        self._unsent += frame
        self._write()

    def end(self) -> None:
        """End the cell."""
        self._cell.end()
        seconds = _SWEEP_SECONDS if self._cell.sweeps else _ACCOUNT_SECONDS
        self._killing = self._loop.call_later(seconds, self._cell.kill)

    @property
    def behind(self) -> bool:
        """Whether the host said something that was not read yet."""
        if self._cell.closed:
            return False
        poll = select.poll()
        poll.register(self._cell.stdout, select.POLLIN)
        return bool(poll.poll(0))

    def proceed(self) -> None:
        """Take what came, as long as the party can; then read more."""
        while not self._cell.closed:
            if self._party.full():
                self._loop.remove_reader(self._cell.stdout)
                return
            if message := self._dialogue.next():
                self._party.take(message)
            elif self._dialogue.problem and not self._broken:
                self._broken = True
                self._party.broken(self._dialogue.problem)
            elif not self._gone:
                self._loop.add_reader(self._cell.stdout, self._read)
                return
            elif not self._read_last():
                self._release()

    def _write(self) -> None:
        try:
            while self._unsent:
                del self._unsent[: os.write(self._cell.request, self._unsent)]
        except BlockingIOError:
            return
        except BrokenPipeError:  # the host is gone; its end tells more than this
            self._unsent.clear()
        self._loop.remove_writer(self._cell.request)

    def _read(self) -> None:
        if not self._feed():
            return
        self.proceed()

    def _feed(self) -> bool:
        """Read once; whether something came."""
        try:
            data = os.read(self._cell.stdout, _READ)
        except BlockingIOError:
            return False
        if not data:
            self._loop.remove_reader(self._cell.stdout)
            return False
        if self._dialogue.problem is None:
            self._dialogue.feed(data)
        return True

    def _read_last(self) -> bool:
        """Read what is left when the cell is gone, and no more than a cell can have left."""
        self._reads_left -= 1
        return self._reads_left > 0 and self._feed()

    def _hear(self) -> None:
        """Take init's account; files that it sends behind that are of no call that still runs."""
        try:
            data = os.read(self._cell.status, _READ)
        except BlockingIOError:
            return
        self._status = self._status or data.partition(b"\n")[0]
        if not data:
            self._loop.remove_reader(self._cell.status)

    def _end(self) -> None:
        self._loop.remove_reader(self._cell.pidfd)
        self._gone = True
        self.proceed()

    def _release(self) -> None:
        cell = self._cell
        self._hear()
        self.account = read_account(self._status)
        # Without a word of it, what init was to end may live on.
        cell.lost = cell.sweeps and self.account is None
        if self._killing is not None:
            self._killing.cancel()
        for fd in (cell.stdout, cell.status):
            self._loop.remove_reader(fd)
        self._loop.remove_writer(cell.request)
        cell.close()
        self._party.ended()
