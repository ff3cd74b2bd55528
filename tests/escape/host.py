"""What listens and lives on the host, for no cell to reach."""

import os
import secrets
import socket
import subprocess
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

OUTER_ID = 1_900_000_000
"""Whom cells are outside, where the controller is root."""


class Host:
    """What listens and lives on the host, for no cell to reach."""

    def __init__(self, place: Path, secret: str, stack: ExitStack) -> None:
        self._stack = stack
        self._sockets: list[socket.socket] = []
        mark = secrets.token_hex(6)
        self.named = {
            "tcp": self._inet(socket.AF_INET, socket.SOCK_STREAM, "127.0.0.1"),
            "udp": self._inet(socket.AF_INET, socket.SOCK_DGRAM, "127.0.0.1"),
            "tcp6": self._inet(socket.AF_INET6, socket.SOCK_STREAM, "::1"),
            "udp6": self._inet(socket.AF_INET6, socket.SOCK_DGRAM, "::1"),
            "everywhere": self._inet(socket.AF_INET, socket.SOCK_STREAM, "0.0.0.0"),
            "stream": self._unix(socket.SOCK_STREAM, str(place / "docker.sock")),
            "dgram": self._unix(socket.SOCK_DGRAM, str(place / "log")),
            "packet": self._unix(socket.SOCK_SEQPACKET, str(place / "bus")),
            "agent": self._unix(socket.SOCK_STREAM, str(place / "agent")),
            "abstract": self._unix(socket.SOCK_STREAM, f"\0escape-{mark}")[1:],
            "abstract_dgram": self._unix(socket.SOCK_DGRAM, f"\0escape-log-{mark}")[1:],
            "mark": f"bystander-{mark}",
        }
        self._terminal, side = os.openpty()
        self.named["terminal"] = os.ttyname(side)
        os.set_blocking(self._terminal, False)
        for end in (self._terminal, side):
            stack.callback(os.close, end)
        self._place, self._secret = place, secret
        self._bystander: subprocess.Popen[str] | None = None
        self._signals = 0

    def arrived(self) -> bool:
        """Whether anything came to a socket or the terminal since it was last asked."""
        came = False
        with suppress(BlockingIOError):
            while os.read(self._terminal, 4096):
                came = True
        for listener in self._sockets:
            with suppress(BlockingIOError):
                while True:
                    if listener.type == socket.SOCK_DGRAM:
                        listener.recv(4096)
                    else:
                        listener.accept()[0].close()
                    came = True
        return came

    def bystander(self, program: Path) -> dict[str, Any]:
        """Start, once, a process that holds secrets; returns what an attacker would know of it."""
        if self._bystander is None or self._bystander.poll() is not None:
            secret = self._place / "bystanders-secret"
            secret.write_text(self._secret)
            # Its user is the one that cells are outside: what keeps it must not be its owner.
            user = {"user": OUTER_ID, "group": OUTER_ID, "extra_groups": []}
            self._bystander = subprocess.Popen(
                [program, str(secret), self.named["mark"]],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                bufsize=1,
                cwd=self._place,
                env={"BYSTANDER_TOKEN": self._secret},
                start_new_session=True,
                **(user if os.geteuid() == 0 else {}),  # type: ignore[arg-type]
            )
            self._stack.callback(_end, self._bystander)
            assert self._bystander.stdout is not None
            address, descriptor = self._bystander.stdout.readline().split()
            self._known = {
                "bystander": self._bystander.pid,
                "address": int(address),
                "descriptor": int(descriptor),
                "length": len(self._secret),
            }
            self._signals = 0
        return self._known

    def signalled(self) -> bool:
        """Whether the bystander was sent a signal, or ended, since it was last asked."""
        process = self._bystander
        if process is None:
            return False
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(BrokenPipeError):
            process.stdin.write("\n")
        answer = process.stdout.readline()
        before, self._signals = self._signals, int(answer or -1)
        return self._signals != before

    def _inet(self, family: int, kind: int, address: str) -> int:
        if (listener := self._bound(family, kind, (address, 0))) is None:
            return 0
        port: int = listener.getsockname()[1]
        return port

    def _unix(self, kind: int, address: str) -> str:
        self._bound(socket.AF_UNIX, kind, address)
        if not address.startswith("\0"):
            Path(address).chmod(0o777)
        return address

    def _bound(self, family: int, kind: int, address: Any) -> socket.socket | None:
        try:
            listener = self._stack.enter_context(socket.socket(family, kind))
            listener.bind(address)
        except OSError:  # a host without IPv6
            return None
        if kind != socket.SOCK_DGRAM:
            listener.listen(64)
        listener.setblocking(False)
        self._sockets.append(listener)
        return listener


def _end(process: "subprocess.Popen[str]") -> None:
    for stream in (process.stdin, process.stdout):
        if stream:
            with suppress(BrokenPipeError):
                stream.close()
    process.kill()
    process.wait()
