"""The other end of a cell and of a launcher, played by a test."""

import os
import socket
import subprocess
from pathlib import Path
from typing import Any

from sandbox_workers import wire
from toolcell.cells.cell import Cell

READY = {"type": "ready"}


class Peer:
    """The other ends of a cell's pipes, and a process in the place of its init.

    The process is a `cat`: it ends when it is killed, or by `end`.
    """

    def __init__(self) -> None:
        self.request, request = os.pipe()
        pipes = [os.pipe() for _ in range(4)]
        self.reply, self.stdout, self.stderr, self.status = (write for _, write in pipes)
        self.process = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        pidfd = os.pidfd_open(self.process.pid)
        self.theirs = [request, *(read for read, _ in pipes), pidfd]
        self._open = {self.request, self.reply, self.stdout, self.stderr, self.status}
        self.closed: list[Cell] = []

    def cell(self) -> Cell:
        """The controller's ends as a cell, which owns them."""
        return Cell(*self.theirs, on_close=self.closed.append)

    def send(self, *messages: dict[str, Any]) -> None:
        """Say something on the reply pipe."""
        os.write(self.reply, b"".join(map(wire.frame, messages)))

    def close_end(self, *fds: int) -> None:
        """Close some of these ends."""
        for fd in fds:
            self._open.discard(fd)
            os.close(fd)

    def end(self) -> None:
        """End the process and close what is open."""
        self.close_end(*list(self._open))
        self.process.communicate()


class Process:
    """Stands for the keeper's process; ends when it is asked to."""

    def __init__(self) -> None:
        self.waited = 0

    def poll(self) -> int:
        """Say that it has ended."""
        self.waited += 1
        return 0

    def wait(self, timeout: float | None = None) -> int:
        """End at once."""
        self.waited += 1
        return 0


class LauncherPeer:
    """The launcher's end of a control socket; give `spawn` for `process._spawn`."""

    def __init__(self, *first: dict[str, Any], words: bytes = b"", silent: bool = False) -> None:
        self.process = Process()
        self._silent = silent
        self._first = first
        self._words = words

    def spawn(self, plan: bytes, control: socket.socket, log: Any) -> Process:
        """Take the place of a keeper that says `first` and writes `words`, or ends at once."""
        self.plan = wire.decode(plan)
        self.control = control.dup()
        log.write(self._words)
        log.flush()
        for message in self._first:
            self.control.send(wire.encode(message))
        if not self._first and not self._silent:
            self.control.close()
        return self.process

    def asked(self) -> int:
        """Take one request for a cell, and return its number."""
        return int(wire.decode(self.control.recv(4096))["cell"])

    def hand_over(self, number: int, fds: list[int]) -> None:
        """Send descriptors for a request; they are no longer open on this side."""
        socket.send_fds(self.control, [wire.encode({"cell": number})], fds)
        for fd in fds:
            os.close(fd)


def descriptors() -> int:
    """How many descriptors this process has open."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())
