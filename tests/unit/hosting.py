"""A session's host without a cell around it, and the controller's side of its pipes."""

import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import sandbox_workers
from sandbox_workers import outbox
from toolcell.model import Limits
from toolcell.sessions.protocol import Dialogue, Done, Ended, Message, Output

_ROOT = str(Path(sandbox_workers.__file__).parent.parent)
# As the worker does it: the ends at their places, streams that are written line by line.
_BOOT = f"""
import fcntl, os, sys
sys.path.insert(0, {_ROOT!r})
from sandbox_workers import wire, worker
from sandbox_workers.session import host
plan = {{"environment": dict(os.environ), "preload": []}}
worker.prepare(plan)
for place, given in ((3, sys.argv[1]), (4, sys.argv[2])):
    os.dup2(fcntl.fcntl(int(given), fcntl.F_DUPFD, 32), place, inheritable=False)
os.closerange(5, 64)
reader = wire.FrameReader()
call = worker._read_call(reader)
host.serve(call, reader)
"""
_SECONDS = 10.0


class Host:
    """A host of one kind, and what it said."""

    def __init__(self, kind: str, directory: Path) -> None:
        requests, self._requests = os.pipe()
        replies, reply = os.pipe()
        os.close(replies)
        self.process = subprocess.Popen(
            [sys.executable, "-c", _BOOT, str(requests), str(reply)],
            pass_fds=[requests, reply],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            cwd=directory,
            env=os.environ | {"TOOLCELL_OUTBOX": outbox.make(str(_made(directory)))},
            start_new_session=True,
        )
        os.close(requests)
        os.close(reply)
        self.dialogue = Dialogue()
        self.said: list[Message] = []
        self.send(self.dialogue.start(kind, Limits().in_the_cell()))

    def send(self, frame: bytes) -> None:
        """Ask for something."""
        os.write(self._requests, frame)

    def begin(self, code: str, branch: int = 0, stdin: bytes | None = None) -> int:
        """Start a call; returns its number."""
        number, frame = self.dialogue.call(branch, code, stdin)
        self.send(frame)
        return number

    def __call__(self, code: str, branch: int = 0, stdin: bytes | None = None) -> "Outcome":
        """Make a call and wait for its end."""
        return self.end_of(self.begin(code, branch, stdin), branch)

    def end_of(self, number: int, branch: int = 0) -> "Outcome":
        """Wait for the end of a call."""
        return Outcome(number, self.until(Done, Ended, branch=branch), self.said)

    def interrupt(self, number: int, branch: int = 0) -> "Outcome":
        """Interrupt a call until it ends: a bash that is just forking may miss it."""
        for again in (False, *[True] * 20):
            self.send(self.dialogue.interrupt(number, again=again))
            found = self._look_for((Done, Ended), branch, 0.2)
            if found is not None:
                return Outcome(number, found, self.said)
        raise AssertionError(f"it did not heed the interrupts: {self.said}")

    def until(self, *kinds: type[Any], branch: int = 0) -> Any:
        """Wait for a message of one of these kinds that is about a branch, and take it."""
        found = self._look_for(kinds, branch, _SECONDS)
        assert found is not None, f"no {kinds} in time, but {self.said}"
        return found

    def written(self, call: int, text: bytes) -> None:
        """Wait until a call has written a text."""
        end = time.monotonic() + _SECONDS
        while text not in _output(self.said, call, "stdout"):
            assert time.monotonic() < end, f"{text!r} was not written, but {self.said}"
            self._hear(end - time.monotonic())

    def close(self) -> None:
        """End the host, and wait for it."""
        if self._requests >= 0:
            os.close(self._requests)
        self._requests = -1
        self.process.communicate()

    def _look_for(self, kinds: tuple[type[Any], ...], branch: int, seconds: float) -> Any:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for message in self.said:
                if isinstance(message, kinds) and getattr(message, "branch", branch) == branch:
                    self.said.remove(message)
                    return message
            self._hear(end - time.monotonic())
        return None

    def _hear(self, seconds: float) -> None:
        assert self.process.stdout is not None
        fd = self.process.stdout.fileno()
        if select.select([fd], [], [], max(seconds, 0))[0]:
            self.said += said(self.dialogue, os.read(fd, 65536))
            assert self.dialogue.problem is None, self.dialogue.problem


def said(dialogue: Dialogue, data: bytes) -> list[Message]:
    """What some bytes say."""
    dialogue.feed(data)
    return list(iter(dialogue.next, None))


def _made(directory: Path) -> Path:
    place = directory.parent / f"{directory.name}-scratch"
    place.mkdir()
    return place


class Outcome:
    """How a call ended, and what it wrote."""

    def __init__(self, call: int, end: Done | Ended, said: list[Message]) -> None:
        self.end = end
        self.exit = end.exit
        self.out = _output(said, call, "stdout").decode()
        self.err = _output(said, call, "stderr").decode()
        self.earlier = end.earlier.decode() if isinstance(end, Done) else ""
        self.kept = isinstance(end, Done)


def _output(said: list[Message], call: int, stream: str) -> bytes:
    pieces = [each for each in said if isinstance(each, Output)]
    return b"".join(each.data for each in pieces if each.call == call and each.stream == stream)
