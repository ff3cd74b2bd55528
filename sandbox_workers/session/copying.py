"""Copying: how an interpreter forks, and what would be lost or shared by that.

The process forks a child, which forks the copies and ends: so they become the host's children,
which is told how each of them ends. All of them hold the writing end of one pipe until they have
said how it went, so at its end everything is known: only where each copy is ready there are any.
Where one is not, the host lets go of the channels of all, by which the ready ones end.
"""

import fcntl
import io
import os
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from sandbox_workers import claims, wire

_NAMED = 20
_LONGEST = 200
_LONGEST_WORDS = 500  # with its frame in what a pipe takes at once, so that none is torn


def make(copies: list[dict[str, Any]], become: Callable[[dict[str, Any]], None]) -> list[int] | str:
    """Fork; returns the PIDs of the copies, or why there are none; in a copy, an empty list.

    `become` makes a copy ready. Raises OSError where this process cannot fork at all.
    """
    _occupy()
    near, far = os.pipe()
    try:
        child = os.fork()
    except OSError:
        os.close(near)
        os.close(far)
        raise
    if child == 0:
        try:
            os.close(near)
            _fork(copies, far, become)
        except BaseException:  # noqa: BLE001  # nothing of a copy may go on as its original
            os._exit(1)
        return []
    os.close(far)
    with io.FileIO(near) as told:
        said = told.readall()
    with suppress(ChildProcessError):  # the tool's code ignores SIGCHLD
        os.waitpid(child, 0)
    return _outcome(said)


def _occupy() -> None:
    """Keep what is opened here from the places of the standard streams: the tool may close its."""
    while (fd := os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)) <= 2:
        pass
    os.close(fd)


def _fork(copies: list[dict[str, Any]], far: int, become: Callable[[dict[str, Any]], None]) -> None:
    """In the child: fork them, tell their PIDs or what failed, and end; returns in a copy."""
    pids: list[int] = []
    for copy in copies:
        try:
            pid = os.fork()
        except OSError as error:
            _tell(far, failed=f"{len(pids)} of {len(copies)} copies could be made: {error}")
            os._exit(1)
        if pid == 0:
            _get_ready(copy, far, become)
            return
        pids.append(pid)
    _tell(far, pids=pids)
    os._exit(0)


def _get_ready(copy: dict[str, Any], far: int, become: Callable[[dict[str, Any]], None]) -> None:
    try:
        os.setpgid(0, 0)
        become(copy)
    except BaseException as error:  # noqa: BLE001  # the tool may have changed what this calls
        words = claims.words(error)[:_LONGEST_WORDS]
        _tell(far, failed=f"a copy could not go on: {type(error).__name__}: {words}")
        os._exit(1)
    _tell(far, ready=os.getpid())
    os.close(far)


def _tell(far: int, **said: Any) -> None:
    os.write(far, wire.frame(said))


def _outcome(said: bytes) -> list[int] | str:
    reader = wire.FrameReader()
    reader.feed(said)
    pids: list[int] | None = None
    ready: set[int] = set()
    while (message := reader.next()) is not None:
        if "failed" in message:
            return str(message["failed"])
        pids = message.get("pids", pids)
        ready.add(message.get("ready", 0))
    if pids is None or not ready.issuperset(pids):
        return "a copy ended before it was ready"
    return pids


def hindrance() -> str:
    """Why a fork would lose something that runs; empty where it would not."""
    count = len(os.listdir("/proc/self/task"))  # noqa: PTH208  # numbers
    if count == 1:
        return ""
    own = []
    if threading := sys.modules.get("threading"):
        own = [each.name for each in threading.enumerate() if each is not threading.main_thread()]
    if own:
        names = ", ".join(map(_spelled, own[:_NAMED]))
        return f"threads run, which no fork carries along: {names}"
    return (
        f"{count - 1} threads of a library run, which no fork carries along; some libraries start "
        'none when told to before they are imported, such as by os.environ["OPENBLAS_NUM_THREADS"]'
        ' = "1"'
    )


def written_files() -> list[str]:
    """The files that are open for writing: copies share them, and the place in them."""
    found = []
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208  # numbers
        with suppress(OSError):  # that of the listing
            fd = int(name)
            writes = fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY
            if fd > 2 and writes and stat.S_ISREG(os.fstat(fd).st_mode):
                found.append(os.readlink(f"/proc/self/fd/{fd}"))  # noqa: PTH115  # no pathlib here
    return [_spelled(name) for name in found[:_NAMED]]


def _spelled(name: object) -> str:
    """A name as text that a frame can carry: it may be any bytes, and of any length."""
    text = claims.words(name)
    return text if len(text) <= _LONGEST else f"…{text[-_LONGEST:]}"


def random_state() -> Any:
    """The state of `random`, which seeds itself anew in every fork; None where it is not in use."""
    random = sys.modules.get("random")
    return random.getstate() if random else None


def reseed() -> None:
    """Go on with other random numbers than all other copies."""
    for name in ("random", "numpy.random"):
        if module := sys.modules.get(name):
            module.seed()
