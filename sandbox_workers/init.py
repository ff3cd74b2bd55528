"""The cell's init: the process above the worker, which ends the call and tells how it ended.

It makes what each call has for itself, forks the worker, gives up its rights, and waits.
On the full rung it is PID 1 of the call's own PID namespace, with mounts, IPC, host name
and network of its own: when it ends, the kernel kills whatever is left in the namespace
before anyone can see init's own end, so a readable pidfd means an empty cell. On the other
rungs it is a subreaper that ends everything below it (see `sweep`) before it ends.

The worker cannot trace it, and of the signals it sends none has an effect: init keeps the
launcher's user namespace, or is outside the worker's Landlock domain. The controller's
signals are read from a descriptor:

    SIGUSR1   end the call now, and tell what it used
    SIGTERM   where the policy gives tools a grace: pass it on to all of them

Where the kernel can tell of the system calls that the filter refuses, the worker sends init
the descriptor that tells, and init answers them (see `refusals`).

Everything that can be is prepared in the launcher, before the fork (see `libc`).
"""

import os
import resource
import select
import signal
import socket
import struct
import time
from contextlib import suppress
from typing import Any, NoReturn

from sandbox_workers import (
    confine,
    jail,
    libc,
    outbox,
    private,
    refusals,
    scratch,
    sweep,
    wire,
    worker,
)
from sandbox_workers.libc import Call

END = signal.SIGUSR1
"""What the controller sends to end a call."""

_SIG_DFL, _SIG_IGN = 0, 1
_SIGNAL_INFO = 128  # bytes of a struct signalfd_siginfo
_SIGNAL_HEAD = struct.Struct("=IiiI")  # its number, errno, code and the sender's PID

_CLEAR_SECONDS = 1.0
_LOOK_MS = 50


class Steps:
    """What the inits and workers of one plan do, prepared once in the launcher."""

    def __init__(
        self, plan: dict[str, Any], theirs: list[int], ours: list[int], *, told: bool
    ) -> None:
        """Prepare for pipe ends of these numbers: request, reply, stdout, stderr, status.

        `told` says that refused system calls can be told.
        """
        *self.worker_ends, self.status = theirs
        self.reply = theirs[1]
        self.full = plan["rung"] == "full"
        self.scratch: str | None = plan["scratch"]
        self.graceful = plan["limits"]["graceful"]
        self.processes: int = plan["limits"]["processes"]
        scopes = plan["landlock"]["scopes"] if plan["landlock"] else 0
        self.scoped = not self.full and bool(scopes & confine.LANDLOCK_SCOPE_SIGNAL)
        self.launcher = os.getpid()
        free = private.Free([0, 1, 2, *theirs])
        self.signals = free.take()
        self.private = [
            *(libc.close(fd) for fd in ours),
            # The launcher ignores it, so that the kernel reaps its children; init waits.
            libc.signal(signal.SIGCHLD, _SIG_DFL),
            libc.signal_mask(libc.SIG_BLOCK, signal.SIGCHLD, END, signal.SIGTERM),
            libc.signal_descriptor(signal.SIGCHLD, END, signal.SIGTERM).returns(self.signals),
            *(
                [*private.namespaces(plan, free), *private.mounts(plan, free)]
                if self.full
                else _adopt()
            ),
            *(_keep_signals_inside(free) if self.scoped else []),
        ]
        self.load = free.take()
        self.private.append(libc.open_file("/proc/loadavg", os.O_RDONLY).returns(self.load))
        # A pair of sockets: the worker sends the descriptor that tells through it.
        self.telling: int | None = None
        far = None
        if told:
            self.telling, far = free.take(), free.take()
            self.private.append(libc.socket_pair(socket.AF_UNIX, socket.SOCK_SEQPACKET))
        self.rights = [
            *(libc.close(fd) for fd in self.worker_ends if fd != self.reply),
            *([libc.close(far)] if far is not None else []),
            # The interpreter's own handler would let SIGINT from inside end the cell.
            libc.signal(signal.SIGINT, _SIG_IGN),
            libc.prctl(libc.PR_SET_DUMPABLE, 0),
            libc.prctl(libc.PR_SET_NO_NEW_PRIVS, 1),
            confine.clear_capabilities(),
        ]
        self.jail = jail.prepare(plan, self.worker_ends, far)


def _adopt() -> list[Call]:
    """Be the one that orphans below go to, and end them all when the launcher ends."""
    return [
        libc.prctl(libc.PR_SET_CHILD_SUBREAPER, 1),
        libc.prctl(libc.PR_SET_PDEATHSIG, END),
    ]


def _keep_signals_inside(free: private.Free) -> list[Call]:
    """Enter a Landlock domain, in which all that the call starts will be, for the sweep."""
    ruleset, place = free.take(), free.take()
    free.release(ruleset)
    free.release(place)
    # Every ruleset denies to link and rename between directories where no rule allows it.
    refer = confine.LANDLOCK_ACCESS_FS_REFER
    return [
        libc.prctl(libc.PR_SET_NO_NEW_PRIVS, 1),
        confine.landlock_ruleset(refer, 0, confine.LANDLOCK_SCOPE_SIGNAL).returns(ruleset),
        libc.open_file("/", os.O_PATH).returns(place),
        confine.landlock_rule(ruleset, place, refer, "/"),
        libc.close(place),
        confine.landlock_restrict(ruleset),
        libc.close(ruleset),
    ]


def main(plan: dict[str, Any], steps: Steps, number: int) -> NoReturn:
    """Run one cell."""
    place = f"{steps.scratch}/{number}" if steps.scratch else None
    try:
        libc.do(*steps.private)
        if place:
            if os.getppid() != steps.launcher:  # it died before its death could be told
                os._exit(1)
            scratch.make_one(place)
            os.chdir(place)
        pid = os.fork()
        if pid == 0:
            try:
                worker.main(plan, steps.jail)
            finally:
                os._exit(1)  # as above: never back into init's code
        libc.do(*steps.rights)
    except OSError as error:
        os.write(steps.reply, worker.failed("init", error))
        os._exit(1)
    os.close(steps.reply)
    watch = _Watch(steps, pid)
    watch.wait()
    scratch_place = place or private.SCRATCH[0]
    files = outbox.is_used(scratch_place)
    with suppress(BrokenPipeError):  # a cell that was made ready and given up
        os.write(steps.status, watch.account() + (b"\n" if files else b""))
        if files:
            outbox.send(scratch_place, steps.status, plan["limits"])
    if place:
        os.chdir("/")
        scratch.clear(place, _CLEAR_SECONDS)
    os._exit(0)


class _Watch:
    """Waits for the worker's end, or brings it about; counts what the filter refused."""

    def __init__(self, steps: Steps, worker_pid: int) -> None:
        self._steps = steps
        self._worker = worker_pid
        self._poller = select.poll()
        self._poller.register(steps.signals, select.POLLIN)
        if steps.telling is not None:
            self._poller.register(steps.telling, select.POLLIN)
        self._statuses: dict[int, int] = {}
        self._teller = refusals.Teller()
        self._own_before = _own_seconds()
        self._all_before = 0 if steps.full else self._all_tasks()
        self._looked = 0.0
        self._alive = 0
        self._scratch_full = False

    def wait(self) -> None:
        """Return when the call is over and nothing of it is left."""
        over = False
        pause = None if self._steps.full else _LOOK_MS
        while not over:
            ready = self._poller.poll(pause)
            if not self._steps.full and self._too_many():
                break
            for fd, events in ready:
                if fd == self._steps.signals:
                    over = self._take_signal()
                elif fd == self._steps.telling:
                    self._take_teller(fd)
                # To ask where nobody is left to be told of would block.
                elif not (events & select.POLLIN and self._teller.answer(fd)):
                    self._poller.unregister(fd)
        # Why it may have failed, as long as that can be seen.
        self._alive = max(self._alive, self._count_alive())
        if self._worker in self._statuses and self._code() != 0:
            self._scratch_full = self._steps.full and any(map(_is_full, private.SCRATCH))
        if sweep.reap(self._statuses):
            alone = self._steps.full or (self._steps.scoped and not sweep.reaches_outside())
            self._statuses |= sweep.end_descendants(alone=alone)

    def account(self) -> bytes:
        """What is said on the status pipe, in numbers, and then what was refused as JSON.

        The worker's exit code (negative: signal), CPU microseconds and peak resident bytes
        of all that was waited for, processes and threads ever started (negative: nobody
        counted), the most that are known to have been alive, whether scratch is full.
        """
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = int((usage.ru_utime + usage.ru_stime + _own_seconds() - self._own_before) * 1e6)
        started = self._started() if self._steps.full else -1
        end = (self._alive, self._scratch_full)
        line = b"%d %d %d %d %d %d " % (self._code(), cpu, usage.ru_maxrss * 1024, started, *end)
        refused = self._teller.listed()
        return line + (wire.encode(refused) if refused else b"[]")

    def _code(self) -> int:
        return os.waitstatus_to_exitcode(self._statuses[self._worker])

    def _take_signal(self) -> bool:
        """Do what one signal says; whether the call is over."""
        head = os.read(self._steps.signals, _SIGNAL_INFO)
        number, _, code, sender = _SIGNAL_HEAD.unpack_from(head)
        # What is outside of a PID namespace has no PID in it, and only a signal by kill(2) or
        # by pidfd has the code 0, which cannot be forged (rt_sigqueueinfo(2)).
        if self._steps.full and number != signal.SIGCHLD and (sender or code):
            return False
        if number == END:
            return True
        if number == signal.SIGCHLD:
            sweep.reap(self._statuses)
        elif self._steps.graceful:
            self._pass_on(number)
        return self._worker in self._statuses

    def _pass_on(self, number: int) -> None:
        if self._steps.full:
            with suppress(ProcessLookupError):
                os.kill(-1, number)
        else:
            for pid in sweep.descendants():
                sweep.send(pid, number)

    def _take_teller(self, fd: int) -> None:
        """Take the descriptor that tells of refused calls from the worker."""
        self._poller.unregister(fd)
        with socket.socket(fileno=fd) as near:
            _, descriptors, _, _ = socket.recv_fds(near, 1, 1)
        for teller in descriptors:
            self._poller.register(teller, select.POLLIN)

    def _count_alive(self) -> int:
        """Processes and threads of the call; counted only where there ever were several.

        The worker, which has just ended, takes the place of init in what /proc lists.
        """
        if not self._steps.full:
            return sweep.tasks() + 1
        started = self._started()
        if started < 2:
            return started
        return sum(len(sweep.threads(pid)) for pid in sweep.everything())

    def _too_many(self) -> bool:
        """Whether the call has more processes and threads than it may, where no kernel counts.

        They are counted where all of the host's have become more by as many: that is one number
        to read. The controller looks as well, less often and in any case.
        """
        if time.monotonic() - self._looked < _LOOK_MS / 1000:
            return False
        self._looked = time.monotonic()
        if self._all_tasks() - self._all_before <= self._steps.processes:
            return False
        self._alive = sweep.tasks()
        return self._alive > self._steps.processes

    def _all_tasks(self) -> int:
        """How many processes and threads the host has (proc_loadavg(5))."""
        return int(self._load()[3].split(b"/")[1])

    def _started(self) -> int:
        """How many processes and threads this PID namespace has had, without init.

        The last PID given out is the fifth field of /proc/loadavg (proc_loadavg(5)), and a
        namespace gives them out one after another.
        """
        return int(self._load()[4]) - 1

    def _load(self) -> list[bytes]:
        return os.pread(self._steps.load, 128, 0).split()


def _own_seconds() -> float:
    """CPU time of init itself: it is the tool that gives it work."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _is_full(place: str) -> bool:
    found = os.statvfs(place)
    return found.f_bfree == 0 or found.f_ffree == 0
