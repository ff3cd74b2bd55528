"""The supervisor: one call in one cell, from the request to the report.

The wall clock starts with the request frame. Output is read as it comes, into bounded
memory. The call is over when init's pidfd becomes readable. Where the cell has a PID
namespace, the kernel lets that happen only after every process of it is gone
(zap_pid_ns_processes); where it has none, init ends only when it has ended all of them. So
what is in the pipes then is all that the call wrote.

To end a call, init is asked to, because it can tell what the call used. Where that takes too
long, init is killed, and all go with it; without a PID namespace the launcher is given up then,
and the keeper ends what is left.

What init tells ends the call, whatever it still does: no limit is met after that.
"""

import asyncio
import os
import time
from contextlib import suppress
from functools import partial

from sandbox_workers import wire
from toolcell.cells.account import Account, LastWord
from toolcell.cells.captures import STREAMS, Begin
from toolcell.cells.cell import Cell
from toolcell.cells.conversation import State
from toolcell.cells.parcels import Shelf
from toolcell.cells.pipe import readable_bytes
from toolcell.cells.refusals import in_words
from toolcell.cells.streams import Streams, Tap
from toolcell.cells.watch import Watch
from toolcell.model import Killed, Limits, PreparedToolCall, Report, Usage

_READ = 256 * 1024
_DEATH_SECONDS = 10.0
# How long init has to end everything, and to tell; longer where it has to sweep.
_ACCOUNT_SECONDS, _SWEEP_SECONDS = 0.25, 2.0
# How long init may send nothing while it sends files. Nobody in the cell can hold it up by then,
# and it sends no more than its limits allow, but this process may be slow to take them.
_STALL_SECONDS = 5.0


class Supervisor:
    """Runs one call in one cell; single use, and the cell is closed afterwards."""

    def __init__(
        self,
        cell: Cell,
        limits: Limits,
        tap: Tap | None = None,
        shelf: Shelf | None = None,
        spill: Begin | None = None,
    ) -> None:
        self._cell = cell
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._killed: Killed | None = None
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._unsent = memoryview(b"")
        self._timers: list[asyncio.TimerHandle] = []
        self._watch = Watch(cell, limits, self._kill, self._end_call, self._fail)
        over = partial(self._kill, "output")
        self._streams = Streams(cell, limits.output, tap, spill, over, self._fail)
        self._failed: BaseException | None = None
        self._last_word = LastWord(shelf, limits)
        self._keeping: asyncio.Future[None] | None = None
        self._patience: asyncio.TimerHandle | None = None

    async def run(self, prepared: PreparedToolCall, stdin: bytes | None, wall: float) -> Report:
        """Send the call and wait for its end; `wall` is in seconds.

        Raises WireError where the call is too large to be sent, whatever the tap raised,
        and if it is cancelled. Whatever it raises, the cell is gone by then.
        """
        began = time.perf_counter()
        try:
            frame = self._cell.conversation.ask(prepared, stdin, self._cell.narrowed)
            self._unsent = memoryview(frame)
        except wire.WireError:
            self._cell.close()
            raise
        try:
            self._begin(wall)
            # Shielded: to cancel this task must not make the future look like an end.
            await asyncio.shield(self._ended)
        except BaseException:
            # On cancellation, and on a defect of ours: nothing is left running.
            self.cancel()
            raise
        finally:
            try:
                await self._settle()
                report = await self._with_output(self._report(time.perf_counter() - began))
                left = await self._last_word.files()
            finally:
                self._release()
        if self._failed is not None:
            raise self._failed
        return report.model_copy(update={"left": left})

    def cancel(self) -> None:
        """End the call now; its report says so and keeps the output so far.

        Also one whose processes have ended and whose output is still being taken: whoever asked
        is told that the call was cancelled, and may be the one who takes none of it any more.
        """
        self._kill("cancel")
        self._killed = self._killed or "cancel"
        self._streams.leave_tap()

    def _begin(self, wall: float) -> None:
        cell, loop = self._cell, self._loop
        loop.add_reader(cell.pidfd, self._end)
        loop.add_reader(cell.reply, self._read_reply)
        self._streams.start()
        loop.add_reader(cell.status, self._hear)
        self._send()
        if self._unsent:
            loop.add_writer(cell.request, self._send)
        self._timers.append(loop.call_later(wall, self._deadline))
        self._watch.start()

    def _hear(self) -> None:
        """Take what init tells of the end, and the files that it may send behind that."""
        data, word = _read_some(self._cell.status), self._last_word
        if data is None:
            return
        if data:
            self._keeping = word.feed(data)
            self._kill_in_time()
        if not data or not word.has_files or self._keeping:
            self._loop.remove_reader(self._cell.status)
        if self._keeping:
            self._keeping.add_done_callback(self._hear_on)

    def _hear_on(self, keeping: "asyncio.Future[None]") -> None:
        """Take more, now that what came before is kept."""
        if not keeping.cancelled() and (error := keeping.exception()):
            self._fail(error)
        if not self._ended.done() and self._cell.status >= 0:
            self._kill_in_time()
            self._loop.add_reader(self._cell.status, self._hear)

    def _send(self) -> None:
        cell = self._cell
        try:
            while self._unsent:
                self._unsent = self._unsent[os.write(cell.request, self._unsent) :]
        except BlockingIOError:
            return
        except BrokenPipeError:  # the worker is gone; its end tells more than this
            self._unsent = memoryview(b"")
        self._loop.remove_writer(cell.request)
        cell.close_end("request")

    def _deadline(self) -> None:
        if self._limits.grace and self._killed is None and self._runs:
            self._killed = "wall"
            self._cell.terminate()
            self._timers.append(self._loop.call_later(self._limits.grace, self._kill, "wall"))
        else:
            self._kill("wall")

    @property
    def _runs(self) -> bool:
        """Whether the call can still meet a limit."""
        return not self._ended.done() and not self._last_word.began

    def _kill(self, why: Killed) -> None:
        if self._runs:
            self._killed = self._killed or why
            self._end_call()

    def _end_call(self) -> None:
        self._cell.end()
        self._kill_in_time()

    def _kill_in_time(self) -> None:
        seconds = _SWEEP_SECONDS if self._cell.sweeps else _ACCOUNT_SECONDS
        if self._last_word.has_files:
            seconds = _STALL_SECONDS
        if self._patience is not None:
            self._patience.cancel()
        self._patience = self._loop.call_later(seconds, self._cell.kill)

    def _end(self) -> None:
        self._loop.remove_reader(self._cell.pidfd)
        self._streams.end()
        if not self._ended.done():
            self._ended.set_result(None)

    def _read_reply(self) -> int:
        """Read once; returns the number of bytes, 0 where none came or the pipe ended."""
        data = _read_some(self._cell.reply)
        if data is None:
            return 0
        self._cell.conversation.feed(data)
        if self._cell.conversation.state is State.BROKEN:
            self._kill("reply")  # nothing that it still says can be used
        if not data:
            self._loop.remove_reader(self._cell.reply)
        return len(data)

    def _fail(self, error: BaseException) -> None:
        """Something of the host's or of ours raised: end the call, and raise it then."""
        self._failed = self._failed or error
        self._streams.mute()
        self._kill("cancel")

    async def _settle(self) -> None:
        """Wait until a killed tree is gone, then read what is left in the pipes."""
        until = self._loop.time() + _DEATH_SECONDS
        while not self._ended.done() and (left := until - self._loop.time()) > 0:
            with suppress(asyncio.CancelledError):  # a second one must not skip the drain
                await asyncio.wait([self._ended], timeout=left)
        # What was in the pipes at the end, and no more: a tool may have lent a copy of its
        # end to someone who goes on writing.
        await self._settle_files()
        left = readable_bytes(self._cell.reply)
        while left > 0 and (data := self._read_reply()):
            left -= data
        await self._streams.drain()

    async def _settle_files(self) -> None:
        while True:
            if self._keeping:
                await asyncio.wait([self._keeping])
            told = _read_some(self._cell.status)
            if not told:
                return
            self._keeping = self._last_word.feed(told)

    def _release(self) -> None:
        for timer in filter(None, [*self._timers, self._patience]):
            timer.cancel()
        self._watch.stop()
        self._streams.release()
        self._last_word.arriving.abandon()
        if self._cell.request >= 0:
            self._loop.remove_writer(self._cell.request)
        cell = self._cell
        for fd in (cell.pidfd, cell.reply, cell.stdout, cell.stderr, cell.status):
            self._loop.remove_reader(fd)
        self._cell.close()

    def _report(self, seconds: float) -> Report:
        told = self._last_word.account()
        # Without a word of it, what init was to end may live on.
        self._cell.lost = self._cell.sweeps and told is None
        conversation = self._cell.conversation
        answered = conversation.state is State.ANSWERED
        return Report(
            exit=told and told.code,
            killed=self._killed,
            reply=conversation.answer if answered else None,
            bad_reply=conversation.problem,
            stdout=self._streams.captures.result("stdout"),
            stderr=self._streams.captures.result("stderr"),
            usage=told and self._usage(told),
            memory_kills=self._cell.memory_kills(),
            refused=in_words(told.refused) if told else (),
            at_process_limit=told is not None
            and told.met(self._limits.processes, self._watch.most_tasks),
            scratch_full=told is not None and told.scratch_full,
            answer_bytes=conversation.bytes_heard,
            seconds=seconds,
            gone=self._ended.done() and not self._cell.lost,
            mechanism=self._mechanism(),
        )

    async def _with_output(self, report: Report) -> Report:
        """Finish what was spilled, which says where it is kept."""
        if not self._streams.captures.spilled:
            return report
        await self._streams.captures.finish(cut=not report.ended_by_itself)
        return report.model_copy(
            update={stream: self._streams.captures.result(stream) for stream in STREAMS}
        )

    def _usage(self, told: Account) -> Usage:
        """What init was told by the kernel, or what a look saw where that is more."""
        group = self._cell.group
        peak = group.peak() if group else None
        return Usage(
            cpu_seconds=max(told.cpu_seconds, self._watch.cpu_seconds),
            peak_memory=peak or told.peak_memory,
            processes=told.started if told.started >= 0 else self._watch.most_tasks or None,
        )

    def _mechanism(self) -> str:
        how = "init ended all of it" if self._killed else "the worker ended"
        if self._cell.sweeps:
            return f"{how}; init swept what was below it"
        return f"{how}; the PID namespace ended with init"


def _read_some(fd: int) -> bytes | None:
    """Read once; None says that nothing is there now, empty that the stream ended."""
    try:
        return os.read(fd, _READ)
    except BlockingIOError:
        return None
