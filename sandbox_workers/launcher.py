"""The launcher: makes the cells of one plan by forking itself.

It is single-threaded, standard library only, runs no tool's code and reads nothing from
a cell: for each request it makes five pipes, forks, and hands the controller its ends
and a pidfd. Everything it makes lives in PID namespaces nested in its own, so when it
dies the kernel kills every cell. Three things end it: the control socket closes (the
controller closed it or died), the keeper sees the controller end (also where a stray
copy of the socket is still open), or the keeper dies (parent-death signal).

Messages on the control socket are single JSON objects, one a packet:

    launcher:   {"ready": true}, or {"failed": {...}} from it or the keeper
    controller: {"cell": N}
    launcher:   {"cell": N} with six descriptors: request, reply, stdout, stderr, status
                and the pidfd of the cell's init; or {"cell": N, "failed": {...}}
"""

import gc
import os
import resource
import signal
import socket
import sys
from typing import Any, NoReturn

from sandbox_workers import init, libc, wire

MAX_MESSAGE = 128 * 1024
"""Largest control message in bytes; below the default socket buffer of Linux (208 KiB)."""


def main() -> NoReturn:
    """Serve: arguments are the descriptors of the control socket and of the plan."""
    libc.prctl(libc.PR_CAP_AMBIENT, libc.PR_CAP_AMBIENT_CLEAR_ALL)
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    with os.fdopen(int(sys.argv[2]), "rb") as memory:
        plan = wire.decode(memory.read())
    # The kernel reaps the inits: their ends are told by pidfd and by the status pipe.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    # Descriptors in flight are counted per user (unix(7)), against the sender's limit: a
    # cell that parks as many as its own limit allows must not keep this process from sending.
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        init.prepare(plan)
        control.send(wire.encode({"ready": True}))
        _serve(control, plan)
    except OSError as error:
        control.send(wire.encode({"failed": describe("the launcher", error)}))
    os._exit(0)


def describe(stage: str, error: OSError) -> dict[str, Any]:
    """Name what failed, in the words of the system: stage, message, errno."""
    text = str(error) if isinstance(error, libc.SystemCallError) else _plain(error)
    return {"stage": stage, "message": text, "errno": error.errno}


def _plain(error: OSError) -> str:
    where = f" ({error.filename})" if error.filename else ""
    return f"{error.strerror or error}{where}"


def _serve(control: socket.socket, plan: dict[str, Any]) -> None:
    own = os.pidfd_open(os.getpid())
    gc.collect()
    gc.freeze()  # objects made so far stay out of collections, and their pages stay shared
    while data := control.recv(MAX_MESSAGE):
        number = wire.decode(data)["cell"]
        try:
            _make_cell(control, plan, number, own)
        except OSError as error:
            control.send(wire.encode({"cell": number, "failed": describe("the fork", error)}))


def _make_cell(control: socket.socket, plan: dict[str, Any], number: int, own: int) -> None:
    opened: list[int] = []
    try:
        request_r, request_w = _pipe(opened)
        pairs = [_pipe(opened) for _ in range(4)]  # reply, stdout, stderr, status
        theirs = [request_r, *(write for _, write in pairs)]
        ours = [request_w, *(read for read, _ in pairs)]
        pid = _fork_cell(plan, theirs, [*ours, control.fileno(), own], own)
        pidfd = os.pidfd_open(pid)
        opened.append(pidfd)
        try:
            socket.send_fds(control, [wire.encode({"cell": number})], [*ours, pidfd])
        except OSError:
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            raise
    finally:
        for fd in opened:
            os.close(fd)


def _pipe(opened: list[int]) -> tuple[int, int]:
    pair = os.pipe()
    opened += pair
    return pair


def _fork_cell(plan: dict[str, Any], theirs: list[int], not_theirs: list[int], own: int) -> int:
    # unshare moves only the children of this process; setns with its own pidfd (Linux
    # 5.8) puts the next fork back, without which a second unshare is EINVAL.
    libc.unshare(libc.CLONE_NEWPID)
    try:
        pid = os.fork()
        if pid == 0:
            for fd in not_theirs:
                os.close(fd)
            init.main(plan, theirs)
        return pid
    finally:
        libc.setns(own, libc.CLONE_NEWPID)
