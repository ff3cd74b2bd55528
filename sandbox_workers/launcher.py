"""The launcher: makes the cells of one plan by forking itself.

    controller ──starts──> keeper ──forks──> launcher (PID 1 of its own PID namespace)
        │                                        │
        └────── control socket (SEQPACKET) ──────┘   per call: fork ──> init ──> worker

The launcher is single-threaded, standard library only, runs no tool's code and reads
nothing from a cell: it receives a cell's pipe ends from the controller, forks, and
hands back a pidfd. Everything it makes lives in PID namespaces nested in its own, so
when it dies the kernel kills every cell. Three things end it: the control socket
closes (the controller closed it or died), the keeper sees the controller's pidfd end
(also when a stray copy of the socket is still open elsewhere), or the keeper dies
(parent-death signal).

Messages on the control socket are single JSON objects, one a packet:

    controller: the plan          launcher: {"ready": true} or {"failed": {...}}
    controller: {"cell": N}       with five descriptors: request, reply, stdout, stderr, status
    launcher:   {"cell": N}       with one descriptor: the pidfd of the cell's init,
                                  or {"cell": N, "failed": {...}} with none
"""

import gc
import os
import select
import signal
import socket
import sys
from typing import Any, NoReturn

from sandbox_workers import init, libc, root, wire

MAX_MESSAGE = 128 * 1024
"""Largest control message in bytes; below the default socket buffer of Linux (208 KiB)."""

CELL_DESCRIPTORS = 5


def main() -> NoReturn:
    """Be the keeper: build the walls, fork the launcher, and outlive neither end."""
    control = socket.socket(fileno=int(sys.argv[1]))
    controller = int(sys.argv[2])
    os.umask(0o022)
    watch = os.pidfd_open(controller)
    if os.getppid() != controller:  # it died before the pidfd was opened
        os._exit(0)
    plan = wire.decode(control.recv(MAX_MESSAGE))
    try:
        root.enter(plan)
        pid = os.fork()
    except OSError as error:
        control.send(wire.encode({"failed": describe("the launcher", error)}))
        os._exit(1)
    if pid == 0:
        os.close(watch)
        _be_launcher(control, plan)
    control.close()
    _keep(watch, pid)


def describe(stage: str, error: OSError) -> dict[str, Any]:
    """Name what failed, in the words of the system: stage, message, errno."""
    text = str(error) if isinstance(error, libc.SystemCallError) else _plain(error)
    return {"stage": stage, "message": text, "errno": error.errno}


def _plain(error: OSError) -> str:
    where = f" ({error.filename})" if error.filename else ""
    return f"{error.strerror or error}{where}"


def _keep(watch: int, launcher: int) -> NoReturn:
    poller = select.poll()
    poller.register(watch, select.POLLIN)
    launched = os.pidfd_open(launcher)
    poller.register(launched, select.POLLIN)
    ended = {fd for fd, _ in poller.poll()}
    if launched not in ended:
        signal.pidfd_send_signal(launched, signal.SIGKILL)
    os.waitpid(launcher, 0)
    os._exit(0)


def _be_launcher(control: socket.socket, plan: dict[str, Any]) -> NoReturn:
    libc.prctl(libc.PR_SET_PDEATHSIG, signal.SIGKILL)
    # The kernel reaps the inits: their ends are told by pidfd and by the status pipe.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        root.pivot()
        init.prepare(plan)
        control.send(wire.encode({"ready": True}))
        _serve(control, plan)
    except OSError as error:
        try:
            control.send(wire.encode({"failed": describe("the launcher", error)}))
        except OSError:  # the controller is gone: nobody is left to tell
            os._exit(1)
    os._exit(0)


def _serve(control: socket.socket, plan: dict[str, Any]) -> None:
    own = os.pidfd_open(os.getpid())
    gc.collect()
    gc.freeze()  # objects made so far stay out of collections, and their pages stay shared
    while True:
        data, descriptors, _, _ = socket.recv_fds(
            control, MAX_MESSAGE, CELL_DESCRIPTORS, socket.MSG_CMSG_CLOEXEC
        )
        if not data:
            return
        number = wire.decode(data)["cell"]
        try:
            pid = _fork_cell(plan, descriptors, [control.fileno(), own], own)
            pidfd = os.pidfd_open(pid)
        except OSError as error:
            control.send(wire.encode({"cell": number, "failed": describe("the fork", error)}))
        else:
            socket.send_fds(control, [wire.encode({"cell": number})], [pidfd])
            os.close(pidfd)
        finally:
            for fd in descriptors:
                os.close(fd)


def _fork_cell(plan: dict[str, Any], descriptors: list[int], mine: list[int], own: int) -> int:
    # unshare moves only the children of this process; setns with its own pidfd (Linux
    # 5.8) puts the next fork back, without which a second unshare is EINVAL.
    libc.unshare(libc.CLONE_NEWPID)
    try:
        pid = os.fork()
        if pid == 0:
            for fd in mine:
                os.close(fd)
            init.main(plan, descriptors)
        return pid
    finally:
        libc.setns(own, libc.CLONE_NEWPID)
