"""The keeper: builds the walls of one plan, starts the launcher behind them, and watches.

    controller ──starts──> keeper ──forks, executes──> launcher (PID 1 of a PID namespace)
        └────────────────── control socket ───────────────┘

It is the one process that begins outside. When the walls stand it forks; the child takes
the new root and executes the interpreter again from there, because /proc/self/exe keeps
the mount that a process was executed from, and the host's own may be writable
(CVE-2019-5736 used that). The keeper then only waits: for the controller to end, upon
which it kills the launcher, or for the launcher to end.

On the rungs without namespaces there are no walls to share: the cells have theirs in the
jail. There the keeper owns the scratch directory, is the subreaper of all that the launcher
leaves behind, and ends it.
"""

import os
import select
import signal
import socket
import sys
from pathlib import Path
from typing import Any, NoReturn

from sandbox_workers import confine, libc, root, scratch, sweep, wire
from sandbox_workers.launcher import describe, read_plan

_INIT_SECONDS = 0.5
_CLEAR_SECONDS = 1.0
_CLEAR_LATER_SECONDS = 600.0

_BOOT = (
    "import sys; sys.path.insert(0, {place!r}); from sandbox_workers.launcher import main; main()"
)


def main() -> NoReturn:
    """Be the keeper: arguments are two descriptors, control socket and plan, and the
    controller's PID.
    """
    control = socket.socket(fileno=int(sys.argv[1]))
    memory = int(sys.argv[2])
    controller = int(sys.argv[3])
    os.umask(0o022)
    # A host that ignores the ends of its children hands that on, and nobody could be waited for.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    watch = os.pidfd_open(controller)
    if os.getppid() != controller:  # it died before the pidfd was opened
        os._exit(0)
    try:
        plan = read_plan(memory)
        full = plan["rung"] == "full"
        confine.join_session_keyring()
        if full:
            root.enter(plan)
        else:
            _begin_without_walls(plan)
        pid = os.fork()
        if pid == 0:
            _become_launcher(plan, control, memory)
    except OSError as error:
        if os.getppid() == controller and plan["scratch"]:  # not the launcher-to-be
            scratch.clear_as_owner(plan["scratch"], _CLEAR_SECONDS)
        control.send(wire.encode({"failed": describe("the keeper", error)}))
        os._exit(1)
    control.close()
    if not full:
        scratch.sweep_left_behind(plan["scratch"])
    _watch(watch, pid)
    if not full:
        # Each init ends its own first, and better: it was told of the launcher's death.
        sweep.wait_for_ends(_INIT_SECONDS)
        sweep.end_descendants()
        scratch.clear_as_owner(plan["scratch"], _CLEAR_SECONDS)
        scratch.clear_later(plan["scratch"], _CLEAR_LATER_SECONDS)
    os._exit(0)


def _begin_without_walls(plan: dict[str, Any]) -> None:
    identity = plan["identity"]
    if os.geteuid() == 0 and set(os.getgroups()) - {identity["outer_gid"]}:
        os.setgroups([])
    libc.do(libc.prctl(libc.PR_SET_CHILD_SUBREAPER, 1))
    scratch.make(plan["scratch"], identity["outer_uid"], identity["outer_gid"])


def _become_launcher(plan: dict[str, Any], control: socket.socket, memory: int) -> NoReturn:
    if plan["rung"] == "full":
        root.pivot()
        # Ambient: the only capabilities that an execve of a plain program keeps (Linux 4.3).
        libc.do(*confine.ambient_capabilities())
    else:
        root.change_user(plan["identity"])
    # Not before: a change of user takes it back (prctl(2)).
    libc.do(libc.prctl(libc.PR_SET_PDEATHSIG, signal.SIGKILL))
    os.set_inheritable(control.fileno(), True)
    os.set_inheritable(memory, True)
    place = str(Path(__file__).absolute().parents[1])
    python = [sys.executable, "-I", "-S", "-X", "utf8", "-c", _BOOT.format(place=place)]
    try:
        command = [*python, str(control.fileno()), str(memory)]
        os.execv(sys.executable, command)  # noqa: S606  # the interpreter itself, by no shell
    except OSError as error:
        who = f"user {os.getuid()}, as whom tools are to run, cannot execute {sys.executable}"
        raise OSError(error.errno, f"{who}: {error.strerror}") from error


def _watch(controller: int, launcher: int) -> None:
    """Wait for the end of the launcher, or bring it about when the controller has ended."""
    launched = os.pidfd_open(launcher)
    poller = select.poll()
    poller.register(controller, select.POLLIN)
    poller.register(launched, select.POLLIN)
    ended = {fd for fd, _ in poller.poll()}
    if launched not in ended:
        signal.pidfd_send_signal(launched, signal.SIGKILL)
    os.waitpid(launcher, 0)
