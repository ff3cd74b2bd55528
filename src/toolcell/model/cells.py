"""Cells: what the policy asks of one, what it is made of, and the evidence after a run."""

import posixpath
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from toolcell.model.base import SCHEMA_VERSION, Bytes, Count, Frozen, Seconds
from toolcell.model.files import LeftFiles


class Guarantee(StrEnum):
    """What a user can rely on, whatever mechanism gives it."""

    FILESYSTEM = "filesystem"
    NETWORK = "network"
    PROCESS_TREE = "process_tree"
    MEMORY = "memory"
    CPU = "cpu"
    PROCESSES = "processes"
    DISK = "disk"
    SYSCALLS = "syscalls"
    SECRETS = "secrets"


Rung = Literal["full", "landlock", "none"]
"""A kind of cell: namespaces; no namespaces, but Landlock and the system call filter; no walls."""


class Limits(Frozen):
    """Bounds on one call: seconds, bytes and counts.

    `wall`, `output`, `memory` and `cpu` bound the call's whole process tree; `cpu`, `memory`
    and `open_files` also each process; `file_size` each file; `processes` counts
    threads too; `scratch` bounds /tmp and /dev/shm each. `grace` is what SIGTERM gives
    a tool at the deadline before SIGKILL. `artifacts` counts the files that come back with a
    result, `artifact_size` bounds each of them and `artifact_total` all together.
    """

    wall: Annotated[Seconds, Field(gt=0)] = 30.0
    grace: Annotated[Seconds, Field(ge=0, le=30)] = 0.0
    cpu: Annotated[Seconds, Field(ge=1)] = 60.0
    memory: Annotated[Bytes, Field(ge=16 * 1024**2)] = 1024**3
    processes: Annotated[Count, Field(ge=1)] = 256
    open_files: Annotated[Count, Field(ge=16)] = 1024
    file_size: Bytes = 1024**3
    scratch: Annotated[Bytes, Field(ge=64 * 1024)] = 256 * 1024**2
    output: Annotated[Bytes, Field(ge=1024)] = 8 * 1024**3
    artifacts: Count = 16
    artifact_size: Bytes = 32 * 1024**2
    artifact_total: Bytes = 64 * 1024**2

    def in_the_cell(self) -> dict[str, int | bool]:
        """The limits that are built into a cell; the others are the controller's to keep."""
        return {
            "cpu": max(1, round(self.cpu)),
            # RLIMIT_DATA counts what is reserved, such as each thread's whole stack. What
            # is used is watched; this only stops a jump far past the limit.
            "memory": 2 * self.memory,
            "processes": self.processes,
            "open_files": self.open_files,
            "file_size": self.file_size,
            "scratch": self.scratch,
            "graceful": self.grace > 0,
            "artifacts": self.artifacts,
            "artifact_size": self.artifact_size,
            "artifact_total": self.artifact_total,
        }


# What execve(2) and open(2) can be given.
WithoutNul = Annotated[str, Field(pattern=r"^[^\x00]*$")]


def _within(path: str) -> str:
    """Make a directory of the workspace short; it cannot lead out of it."""
    short = posixpath.normpath(path)
    if not path or path.startswith("/") or short.split("/")[0] == "..":
        raise ValueError("expected a directory of the workspace, relative to it")
    return short


WorkspaceDirectory = Annotated[WithoutNul, AfterValidator(_within)]
VariableName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
ModuleName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$")]


class CellSettings(Frozen):
    """The policy's [cell] table.

    `isolation` names the rung; "auto" is the full one where it can be had, otherwise
    landlock, never none. `writable` names the directories of an "rw" workspace that a call may
    change; none is all of it. `read` lends further files and directories read-only, `env` sets
    variables; the environment holds nothing else of the controller's. `preload` names modules
    that are imported once, before cells are made, and are there in each: the operator trusts
    them, because all cells share what they did. `require` names the guarantees without which no
    call runs. `report_changes` has each result say which files of a workspace that is "rw" changed
    while the call ran; it costs a look at all of them before and after.
    """

    isolation: Literal["auto", "full", "landlock", "none"] = "auto"
    workspace: Literal["rw", "ro", "none"] = "rw"
    writable: tuple[WorkspaceDirectory, ...] = ()
    network: Literal["none", "host"] = "none"
    read: tuple[WithoutNul, ...] = ()
    env: dict[VariableName, WithoutNul] = Field(default_factory=dict)
    preload: tuple[ModuleName, ...] = ()
    report_changes: bool = False
    require: tuple[Guarantee, ...] = (
        Guarantee.FILESYSTEM,
        Guarantee.NETWORK,
        Guarantee.PROCESS_TREE,
        Guarantee.SYSCALLS,
        Guarantee.SECRETS,
    )


class Identity(Frozen):
    """User and group inside the cell, and the host's ids that they stand for."""

    inside_uid: int
    inside_gid: int
    outer_uid: int
    outer_gid: int


class Mount(Frozen):
    """A part of the host's tree that the cell sees.

    `owned` asks that a controller that is root lends it id-mapped, so that the cell's
    user has its owner's rights there.
    """

    source: str
    target: str
    writable: bool = False
    owned: bool = False


class Ruleset(Frozen):
    """A Landlock ruleset: the rights it handles, and pairs of a path and the rights below it."""

    files: int
    tcp: int
    scopes: int
    rules: tuple[tuple[str, int], ...]


class Plan(Frozen):
    """Everything that the cells of one kind need, computed outside of them.

    `hidden` are files that an empty one covers. `seccomp` is the filter's program in
    hexadecimal, and `seccomp_silent` the one for a kernel that cannot tell what it refused.
    `scratch` is the directory that holds the cells' scratch space where they have no file
    systems of their own.
    """

    v: Literal[1] = SCHEMA_VERSION
    rung: Rung
    identity: Identity
    mounts: tuple[Mount, ...]
    hidden: tuple[str, ...]
    files: dict[str, str]
    links: dict[str, str]
    environment: dict[str, str]
    network: Literal["none", "host"]
    directory: str
    python_path: tuple[str, ...]
    preload: tuple[str, ...]
    preload_path: tuple[str, ...]
    python_prefix: str
    limits: Limits
    seccomp: str | None
    seccomp_silent: str | None
    landlock: Ruleset | None
    scratch: str | None
    enforcement: "Enforcement"


class Enforcement(Frozen):
    """What was required and what is enforced, two recorded values.

    `rung` names the kind of cell, or is `inline` (no cell: trusted host code), or None (the
    call never ran). `enforced` maps a guarantee to its mechanism; a guarantee that is absent
    is not given. `attested` says that the walls were tried from inside before the first call.
    `stepped_down` says why there is no stronger rung, where the policy would have taken it.
    """

    rung: Rung | Literal["inline"] | None = None
    attested: bool = False
    stepped_down: str = ""
    required: tuple[Guarantee, ...] = ()
    enforced: dict[Guarantee, str] = Field(default_factory=dict)


class Kept(Frozen):
    """Where a stream is kept: the handle, how many bytes of it, their SHA-256.

    `lost` says why not all of it is kept. Where nothing is, `size` is 0.
    """

    handle: str
    size: int
    sha256: str = ""
    lost: str = ""


class Captured(Frozen):
    """What was kept of one output stream: its head, its tail and exact totals.

    `kept` says where the rest went, if anywhere.
    """

    head: bytes = b""
    tail: bytes = b""
    total_bytes: int = 0
    total_lines: int = 0
    kept: Kept | None = None

    @property
    def left_out(self) -> int:
        """Bytes between head and tail that were read and not kept."""
        return self.total_bytes - len(self.head) - len(self.tail)


class Usage(Frozen):
    """What a cell used: CPU seconds; peak bytes of the tree, or of its largest process.

    `processes` is how many processes and threads the call had, worker included: all that it
    ever started where somebody counts, otherwise the most at a time that were seen. None where
    neither is known.
    """

    cpu_seconds: float
    peak_memory: int
    processes: int | None = None


class SessionFacts(Frozen):
    """What a call in a session left of it.

    `state` says whether what earlier calls made is still there, `ended` how it came to its end
    where it did. `earlier` is what calls before this one had left running, and that wrote since.
    `note` says what is to be known of a session that began with the call.
    """

    state: Literal["kept", "lost"]
    ended: str = ""
    earlier: Captured = Captured()
    note: str = ""


Killed = Literal["wall", "cancel", "output", "memory", "cpu", "processes", "reply"]


class Report(Frozen):
    """The evidence after a run; statuses and categories are computed from it alone.

    `exit` is the worker's exit code, negative for a signal, None where init could not
    tell. `killed` is our own flag. `reply` is the worker's claim; `bad_reply` says what
    was wrong with its bytes. `setup` tells a cell that never became ready. `gone` says
    that the whole process tree was seen to have ended, and `mechanism` how.
    `memory_kills` counts processes that the kernel ended at the memory limit. `refused` names
    system calls that the filter refused, `at_process_limit` says that as many processes as
    the limit allows were seen, `scratch_full` that scratch space was full at the end.
    `left` are the files that came of the call, and `answer_bytes` is the size of what it
    returned. `session` is set for a call in a session; with `setup`, that session had ended
    before the call.
    """

    exit: int | None = None
    killed: Killed | None = None
    reply: dict[str, Any] | None = None
    bad_reply: str | None = None
    setup: str | None = None
    remedy: str = ""
    stdout: Captured = Captured()
    stderr: Captured = Captured()
    usage: Usage | None = None
    memory_kills: int = 0
    refused: tuple[str, ...] = ()
    at_process_limit: bool = False
    scratch_full: bool = False
    answer_bytes: int = 0
    seconds: float = 0.0
    gone: bool = True
    mechanism: str = ""
    left: LeftFiles = LeftFiles()
    session: SessionFacts | None = None

    @property
    def ended_by_itself(self) -> bool:
        """Whether its last words are whole: 124 and from 128 on, a command in it was ended."""
        return self.exit is not None and 0 <= self.exit < 124
