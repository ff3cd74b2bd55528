"""Capabilities: what this machine can give a cell, and what to do where it cannot.

    full       namespaces: each cell has a root, a network, PIDs and IPC of its own
    landlock   none of these, as in a plain container or where AppArmor restricts user
               namespaces: Landlock and the system call filter are the walls, and init
               sweeps what the call started
    none       no walls, where a policy says so by name

Whether the walls of a rung stand is found out by building them, when a plan's launcher
starts. What is decided beforehand is only what no attempt could tell well (the system, its
architecture, what a kernel's Landlock covers), and afterwards what a failed attempt means.
"""

import errno
import os
import platform
import re
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sandbox_workers import confine
from toolcell.cells import landlock
from toolcell.cells.cgroup import Groups, find_groups
from toolcell.errors import CellRefused, WallsNotBuilt
from toolcell.model import CellSettings, Guarantee, Rung

ARCHITECTURES = ("x86_64", "aarch64")
_OLDEST = (5, 12)  # mount_setattr(2)
_PROCESS_COUNT = (5, 14)  # RLIMIT_NPROC counted per user namespace

_APPARMOR = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
_USERNS_SWITCH = Path("/proc/sys/kernel/unprivileged_userns_clone")
_USERNS_COUNT = Path("/proc/sys/user/max_user_namespaces")

# What a failed attempt says where the machine does not allow namespaces, or mounts in them, at
# all; the last two only of unshare, where they mean that there are none, or none left to make.
_BUILDING = re.compile(r"(?:^|: )(unshare|mount|pivot_root|the id maps)\b")
_NOT_ALLOWED = (errno.EPERM, errno.EACCES, errno.ENOSYS)
_NONE_THERE = (errno.EINVAL, errno.ENOSPC)

WEAKER: dict[Rung, tuple[str, ...]] = {
    "full": (),
    "landlock": (
        "modes, times and groups of files outside can be changed where the tool's user owns them",
        "whether a file is there can be found out, though not what it or a directory holds; "
        "the directories of tools' own modules can be listed",
        "the host's processes are seen with their arguments, its connections, users and name",
        "no loopback of its own: no sockets at all, unless the policy opens the network, and then "
        "no unix sockets",
        "processes are counted by looking at them, twenty times a second",
        "scratch space is a directory of the host's without a size; /tmp and /dev/shm are closed",
        "no terminals (pty), System V IPC, POSIX message queues or shared memory (and so no locks "
        "of multiprocessing), inotify",
        "a controller that is root runs tools as the workspace's owner: as root without "
        "capabilities, where that is root",
    ),
    "none": ("there are no walls: a tool can do whatever the controller's user can",),
}
"""What a rung leaves open that the full one does not."""


@dataclass(frozen=True)
class Capabilities:
    """What each rung enforces here, by guarantee and mechanism; a rung not here cannot be had.

    `missing` says why not, by rung: cause and remedy.
    """

    landlock_abi: int
    enforced: dict[Rung, dict[Guarantee, str]]
    missing: dict[Rung, CellRefused]
    groups: Groups | None = None


@cache
def capabilities() -> Capabilities:
    """Return what cells can enforce on this machine; raises CellRefused where none can be made."""
    if sys.platform != "linux":
        raise CellRefused(
            f"toolcell isolates calls with Linux namespaces, and this is {sys.platform}",
            "run it on Linux 5.12 or later; on other systems a Linux virtual machine will do",
        )
    if platform.machine() not in ARCHITECTURES:
        raise CellRefused(
            f"toolcell does not know the architecture {platform.machine()}",
            f"it runs on {' and '.join(ARCHITECTURES)}",
        )
    kernel = kernel_version(platform.release())
    if kernel < _OLDEST:
        raise CellRefused(
            f"this kernel is Linux {kernel[0]}.{kernel[1]}, and a cell's mounts need 5.12",
            "upgrade the kernel",
        )
    abi = confine.landlock_abi()
    groups = find_groups()
    limits = _limits(groups)
    enforced: dict[Rung, dict[Guarantee, str]] = {"full": _full(kernel, abi) | limits}
    missing: dict[Rung, CellRefused] = {}
    if abi:
        enforced["landlock"] = _without_namespaces(abi) | limits
    else:
        missing["landlock"] = CellRefused(
            "this kernel has no Landlock, or it is switched off",
            'add "landlock" to the kernel\'s lsm= parameter, or allow user namespaces',
        )
    enforced["none"] = limits
    return Capabilities(abi, enforced, missing, groups)


def rungs(settings: CellSettings) -> tuple[Rung, ...]:
    """The rungs that a policy accepts, the strongest first."""
    return ("full", "landlock") if settings.isolation == "auto" else (settings.isolation,)


def kernel_version(release: str) -> tuple[int, int]:
    """Read "6.18.44-distro" as (6, 18); (0, 0) where it is not of that form."""
    match = re.match(r"(\d+)\.(\d+)", release)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _full(kernel: tuple[int, int], landlock_abi: int) -> dict[Guarantee, str]:
    second = f", and Landlock (ABI {landlock_abi})" if landlock_abi else ""
    enforced = {
        Guarantee.FILESYSTEM: f"mount namespace with a private root{second}",
        Guarantee.NETWORK: "network namespace with its own loopback only",
        Guarantee.PROCESS_TREE: "PID namespace that ends with its init",
        Guarantee.DISK: "sized scratch file systems, RLIMIT_FSIZE",
        Guarantee.SYSCALLS: "seccomp filter, a list of what is allowed",
        Guarantee.SECRETS: "environment built from nothing, credentials not in the root",
    }
    if kernel >= _PROCESS_COUNT:
        enforced[Guarantee.PROCESSES] = "RLIMIT_NPROC counted in an own user namespace"
    return enforced


def _without_namespaces(abi: int) -> dict[Guarantee, str]:
    tcp = f" and Landlock (ABI {abi}) on TCP" if abi >= 4 else ""
    enforced = {
        Guarantee.NETWORK: f"seccomp filter: no sockets{tcp}",
        Guarantee.SYSCALLS: "seccomp filter, a list of what is allowed",
        Guarantee.SECRETS: "environment built from nothing, Landlock on files and on /proc",
    }
    # Before, a tool could cut off any file of its user's (truncate(2)).
    if abi >= landlock.COVERS_TRUNCATE:
        enforced[Guarantee.FILESYSTEM] = (
            f"Landlock (ABI {abi}): what files hold; not their names and modes"
        )
    # Before, a tool could end the processes that are to end it.
    if abi >= landlock.SCOPED:
        enforced[Guarantee.PROCESS_TREE] = "subreaper that sweeps; Landlock keeps signals inside"
    return enforced


def _limits(groups: Groups | None) -> dict[Guarantee, str]:
    return {
        Guarantee.MEMORY: f"memory cgroup (version {groups.version}) around the tree"
        if groups
        else "RLIMIT_DATA on each process, the tree's own memory watched",
        Guarantee.CPU: "RLIMIT_CPU on each process, the tree's own time watched",
    }


def may_step_down(refusal: CellRefused) -> bool:
    """Whether a failed start means that this machine does not allow a rung's walls.

    Then a policy that accepts it may have the next one. Anything else, such as too few
    descriptors or a wall that did not hold, is told and not worked around.
    """
    if not isinstance(refusal, WallsNotBuilt):
        return False
    building = _BUILDING.search(refusal.cause)
    if building is None:
        return False
    none_there = building[1] == "unshare" and refusal.errno in _NONE_THERE
    return none_there or refusal.errno in _NOT_ALLOWED


def explain(failure: WallsNotBuilt) -> CellRefused:
    """Say what a failed start means: the system's words as the cause, and a remedy."""
    cause = f"the cell's walls could not be built: {failure.cause}"
    return CellRefused(cause, _remedy(failure.cause, failure.errno))


def _remedy(message: str, number: int) -> str:
    denied = number in (errno.EPERM, errno.EACCES)
    if "id maps" in message or (
        message.startswith("unshare") and (denied or number == errno.ENOSPC)
    ):
        return _user_namespace_remedy()
    if message.startswith("mount proc") and denied:
        return (
            "this looks like a container that masks /proc; start it with "
            "--security-opt systempaths=unconfined (Docker, Podman), or run toolcell on the host"
        )
    if number == errno.ENOENT:
        return "a file or directory that the plan lends is missing; check the path"
    if message.startswith(("open_tree", "mount", "move_mount")) and denied:
        return (
            "the container or security module around this process forbids mounts; run toolcell "
            "on the host, or allow mounts in user namespaces there"
        )
    return "`toolcell doctor` shows what this machine can enforce"


def _user_namespace_remedy() -> str:
    if _reads(_APPARMOR, "1"):
        return (
            "AppArmor restricts user namespaces; allow them with "
            "`sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`"
        )
    if _reads(_USERNS_SWITCH, "0"):
        return (
            "user namespaces are switched off; allow them with "
            "`sudo sysctl -w kernel.unprivileged_userns_clone=1`"
        )
    if _reads(_USERNS_COUNT, "0"):
        return (
            "user namespaces are switched off; allow them with "
            "`sudo sysctl -w user.max_user_namespaces=10000`"
        )
    as_root = " (this process is root, and still may not)" if os.geteuid() == 0 else ""
    return (
        f"user namespaces are not allowed here{as_root}: a container's seccomp filter or a "
        "sandbox around this process forbids them; run toolcell on the host, or start the "
        "container with --security-opt seccomp=unconfined --security-opt systempaths=unconfined"
    )


def _reads(path: Path, value: str) -> bool:
    try:
        return path.read_text().strip() == value
    except OSError:  # a switch that this kernel does not have is not the cause
        return False
