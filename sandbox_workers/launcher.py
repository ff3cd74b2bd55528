"""The launcher: makes the cells of one plan by forking itself.

It is single-threaded, standard library only, runs no tool's code and reads nothing from
a cell: for each request it makes five pipes, forks, and hands the controller its ends
and a pidfd. On the full rung everything it makes lives in PID namespaces nested in its own, so
when it dies the kernel kills every cell; on the others each init is told of its death and
ends its cell (see `init`). Three things end it: the control socket closes (the
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

from sandbox_workers import init, libc, refusals, wire, worker

MAX_MESSAGE = 128 * 1024
"""Largest control message in bytes; below the default socket buffer of Linux (208 KiB)."""

# Descriptors have fixed numbers, so that what uses them can be prepared: the two here, and
# from then on the five pipes of the cell that is being made.
_CONTROL, _OWN = 3, 4
_PIPES = [(5 + 2 * pipe, 6 + 2 * pipe) for pipe in range(5)]
_THEIRS = [_PIPES[0][0], *(write for _, write in _PIPES[1:])]
_OURS = [_PIPES[0][1], *(read for read, _ in _PIPES[1:])]


def main() -> NoReturn:
    """Serve: arguments are the descriptors of the control socket and of the plan."""
    libc.do(libc.prctl(libc.PR_CAP_AMBIENT, libc.PR_CAP_AMBIENT_CLEAR_ALL))
    plan = read_plan(int(sys.argv[2]))
    os.close(int(sys.argv[2]))
    control = _take_places(int(sys.argv[1]))
    try:
        worker.prepare(plan)
        told = plan["seccomp"] is not None and refusals.can_tell()
        # The kernel reaps the inits: their ends are told by pidfd and by the status pipe.
        libc.do(libc.signal(signal.SIGCHLD, signal.SIG_IGN))
        steps = init.Steps(plan, _THEIRS, [*_OURS, _CONTROL, _OWN], told=told)
        control.send(wire.encode({"ready": True}))
        _serve(control, plan, steps)
    except OSError as error:
        control.send(wire.encode({"failed": describe("the launcher", error)}))
    os._exit(0)


def _take_places(inherited: int) -> socket.socket:
    """Bring the control socket and the launcher's own pidfd to their numbers."""
    if inherited != _CONTROL:
        os.dup2(inherited, _CONTROL)
        os.close(inherited)
    os.set_inheritable(_CONTROL, False)
    if os.pidfd_open(os.getpid()) != _OWN:
        raise OSError("a descriptor was inherited that should not have been")
    # The one that was inherited came from outside the walls.
    null = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(null, 0)
    os.close(null)
    # Descriptors in flight are counted per user (unix(7)), against the sender's limit: a
    # cell that parks as many as its own limit allows must not keep this process from sending.
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return socket.socket(fileno=_CONTROL)


def read_plan(memory: int) -> dict[str, Any]:
    """Read the plan from its memory file, from the start and without closing it."""
    size = os.fstat(memory).st_size
    plan: dict[str, Any] = wire.decode(os.pread(memory, size, 0))
    return plan


def describe(stage: str, error: OSError) -> dict[str, Any]:
    """Name what failed, in the words of the system: stage, message, errno."""
    text = str(error) if isinstance(error, libc.SystemCallError) else _plain(error)
    return {"stage": stage, "message": text, "errno": error.errno}


def _plain(error: OSError) -> str:
    where = f" ({error.filename})" if error.filename else ""
    return f"{error.strerror or error}{where}"


def _serve(control: socket.socket, plan: dict[str, Any], steps: init.Steps) -> None:
    gc.collect()
    gc.freeze()  # objects made so far stay out of collections, and their pages stay shared
    while data := control.recv(MAX_MESSAGE):
        number = wire.decode(data)["cell"]
        try:
            _make_cell(control, plan, steps, number)
        except OSError as error:
            control.send(wire.encode({"cell": number, "failed": describe("the fork", error)}))


def _make_cell(
    control: socket.socket, plan: dict[str, Any], steps: init.Steps, number: int
) -> None:
    opened: list[int] = []
    try:
        for expected in _PIPES:
            pair = os.pipe()
            opened += pair
            if pair != expected:
                raise OSError(f"pipe ends {pair} instead of {expected}: a descriptor leaked")
        pid = _fork_cell(plan, steps, number)
        pidfd = os.pidfd_open(pid)
        opened.append(pidfd)
        try:
            socket.send_fds(control, [wire.encode({"cell": number})], [*_OURS, pidfd])
        except OSError:
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            raise
    finally:
        for fd in opened:
            os.close(fd)


def _fork_cell(plan: dict[str, Any], steps: init.Steps, number: int) -> int:
    if plan["rung"] != "full":
        return _fork(plan, steps, number)
    # unshare moves only the children of this process; setns with its own pidfd (Linux
    # 5.8) puts the next fork back, without which a second unshare is EINVAL.
    libc.do(libc.unshare(libc.CLONE_NEWPID))
    try:
        return _fork(plan, steps, number)
    finally:
        libc.do(libc.setns(_OWN, libc.CLONE_NEWPID))


def _fork(plan: dict[str, Any], steps: init.Steps, number: int) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            init.main(plan, steps, number)
        finally:
            os._exit(1)  # whatever happens in there, a fork never comes back here
    return pid
