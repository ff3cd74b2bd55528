"""cgroup: a memory limit that counts a whole tree, where this process may make groups.

Counted are resident pages, files in scratch space, memory files, shared memory and socket
buffers, of all processes of a cell together; the kernel ends what goes over, and says so.

    version 2   memory.max, memory.swap.max; memory.events tells kills, memory.peak the peak
    version 1   memory.limit_in_bytes, memory.memsw.limit_in_bytes; memory.oom_control,
                memory.max_usage_in_bytes

Whether groups can be made is found out by making one. A group is named after the process
that made it; what a controller that was killed left behind is swept by the next one.
"""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from toolcell.cells.leftovers import left_behind

_PREFIX = "toolcell"
_TRIAL_BYTES = 64 * 1024**2


@dataclass(frozen=True, slots=True)
class _Files:
    """What the files of a memory controller are called in one version."""

    limit: str
    swap_limit: str
    swap_value: str | None  # None: the same number, which counts memory and swap together
    kills: str
    peak: str


_VERSIONS = {
    1: _Files(
        limit="memory.limit_in_bytes",
        swap_limit="memory.memsw.limit_in_bytes",
        swap_value=None,
        kills="memory.oom_control",
        peak="memory.max_usage_in_bytes",
    ),
    2: _Files(
        limit="memory.max",
        swap_limit="memory.swap.max",
        swap_value="0",
        kills="memory.events",
        peak="memory.peak",
    ),
}


class Group:
    """One group, for one cell at a time."""

    def __init__(self, path: Path, version: int, limit: int) -> None:
        """Make the group with a limit in bytes; raises OSError."""
        self._path = path
        self._files = _VERSIONS[version]
        self._limit = limit
        self._lowered = False
        path.mkdir()
        try:
            self._set_limit(limit)
            self._set_swap_limit(limit)
            self._kills_before = self._kills()
        except OSError:
            self.remove()
            raise

    def add(self, pid: int) -> None:
        """Move a process in; what it starts from then on is in as well. Raises OSError."""
        (self._path / "cgroup.procs").write_text(str(pid))

    def is_empty(self) -> bool:
        """Whether no process is in it, so that another cell can have it."""
        return not (self._path / "cgroup.procs").read_text()

    def kills(self) -> int:
        """How many processes the kernel ended for this limit since the group was last begun."""
        return self._kills() - self._kills_before

    def peak(self) -> int | None:
        """The most bytes that were in use, or None where the kernel does not tell (before 5.19)."""
        try:
            return int((self._path / self._files.peak).read_text())
        except OSError:
            return None

    def lower(self, limit: int) -> None:
        """Give the cell that has it less than the group was made with; raises OSError."""
        self._lowered = True
        self._set_limit(limit)
        self._set_swap_limit(limit)

    def begin_again(self) -> None:
        """Make an empty group fit for the next cell; raises OSError."""
        if self._lowered:
            # Version 1 wants memory and swap together to be no less than memory at any time.
            self._set_swap_limit(self._limit)
            self._set_limit(self._limit)
            self._lowered = False
        self._kills_before = self._kills()
        with suppress(OSError):  # version 2 cannot set it back before Linux 6.12
            (self._path / self._files.peak).write_text("0")

    def remove(self) -> None:
        """Remove the group; one that is not empty yet is left to the next sweep."""
        with suppress(OSError):
            self._path.rmdir()

    def _set_limit(self, limit: int) -> None:
        (self._path / self._files.limit).write_text(str(limit))

    def _set_swap_limit(self, limit: int) -> None:
        with suppress(FileNotFoundError):  # a kernel without swap accounting
            swap = self._files.swap_value or str(limit)
            (self._path / self._files.swap_limit).write_text(swap)

    def _kills(self) -> int:
        for line in (self._path / self._files.kills).read_text().splitlines():
            name, _, value = line.partition(" ")
            if name == "oom_kill":
                return int(value)
        return 0


@dataclass(slots=True)
class Groups:
    """A place where groups can be made."""

    parent: Path
    version: int
    _number: int = 0

    def make(self, limit: int) -> Group:
        """Make a group with a limit in bytes; raises OSError."""
        self._number += 1
        name = f"{_PREFIX}-{os.getpid()}-{self._number}"
        return Group(self.parent / name, self.version, limit)


def find_groups() -> Groups | None:
    """Find a place by making a group there, and sweep it; None where there is none."""
    for place, version in _candidates():
        groups = Groups(place, version)
        try:
            groups.make(_TRIAL_BYTES).remove()
        except OSError:  # not delegated, read-only, or without a memory controller
            continue
        _sweep(place)
        return groups
    return None


def _sweep(place: Path) -> None:
    for path in left_behind(place, _PREFIX):
        with suppress(OSError):
            path.rmdir()


def _candidates() -> list[tuple[Path, int]]:
    """This process's own groups; in version 2 also those above, which may hold others."""
    own = dict(_own_groups())
    places: list[tuple[Path, int]] = []
    for kind, options, root, point in _mounts():
        if kind == "cgroup" and "memory" in options and "memory" in own:
            places.append((_below(own["memory"], root, point), 1))
        elif kind == "cgroup2" and "" in own:
            here = _below(own[""], root, point)
            above = [parent for parent in here.parents if parent.is_relative_to(point)]
            places += [(place, 2) for place in (here, *above) if _gives_memory(place)]
    return places


def _own_groups() -> list[tuple[str, str]]:
    """Controller and path of each line of /proc/self/cgroup (cgroups(7)); "" is version 2."""
    lines = [line.split(":", 2) for line in _read("/proc/self/cgroup").splitlines()]
    return [(name, path) for _, names, path in lines for name in names.split(",")]


def _mounts() -> list[tuple[str, list[str], str, Path]]:
    """Kind, options, root and mount point of the cgroup mounts (proc_pid_mountinfo(5))."""
    found = []
    for line in _read("/proc/self/mountinfo").splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        if kind in ("cgroup", "cgroup2"):
            root, point = before.split()[3:5]
            found.append((kind, options.split(","), root, Path(point)))
    return found


def _below(path: str, root: str, point: Path) -> Path:
    inside = os.path.relpath(path, root)
    return point if inside.startswith("..") else point / inside


def _gives_memory(place: Path) -> bool:
    return "memory" in _read(str(place / "cgroup.subtree_control")).split()


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
