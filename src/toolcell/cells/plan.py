"""The plan: what the policy asks, and this machine can give, written down before any cell.

A plan is deny by default: what it does not name is not there. Nothing in it weakens a
guarantee that the policy requires; where one cannot be met, there is no plan.
"""

import os
import platform
import sys
from collections.abc import Iterable
from pathlib import Path

from toolcell.cells.capabilities import Capabilities
from toolcell.cells.landlock import ruleset
from toolcell.cells.lending import (
    SYSTEM,
    controller_code,
    hidden_files,
    is_inside,
    is_kept,
    lent_mounts,
    own_code,
    read_only,
    warn_of_planted_modules,
)
from toolcell.cells.seccomp import compile_filter
from toolcell.cells.workspace import is_shared, resolve_workspace
from toolcell.errors import CellRefused
from toolcell.model import (
    CellSettings,
    Enforcement,
    Guarantee,
    Identity,
    Limits,
    Mount,
    Plan,
    Ruleset,
)

_NETWORK_FILES = ("/etc/resolv.conf", "/etc/gai.conf", "/etc/host.conf")
_LINKS = {
    "/dev/fd": "/proc/self/fd",
    "/dev/stdin": "/proc/self/fd/0",
    "/dev/stdout": "/proc/self/fd/1",
    "/dev/stderr": "/proc/self/fd/2",
    "/dev/ptmx": "pts/ptmx",
    "/etc/mtab": "/proc/self/mounts",
    "/var/tmp": "/tmp",  # noqa: S108  # the cell's own
}
_SCRATCH = "/tmp"  # noqa: S108  # the cell's own
SCRATCH = (_SCRATCH, "/dev/shm")  # noqa: S108  # the cell's own
"""Where a cell has file systems of its own, for one call."""

_USER = "toolcell"
_INSIDE_ID = 1000

# Above every range that systemd documents as in use (UIDS-GIDS: 1879048192 and up is free).
_OUTER_ID = 1_900_000_000
_NOBODY = 65534


def make_plan(
    settings: CellSettings,
    limits: Limits,
    workspace: Path | None,
    capabilities: Capabilities,
    code: Iterable[str] = (),
    protected: Iterable[str] = (),
) -> Plan:
    """Compute a plan.

    `code` are the files and directories of the registered tools' modules, `protected`
    files that stay read-only even inside the workspace (the policy's own file). Raises
    CellRefused where a required guarantee cannot be met, WorkspaceError where the
    workspace cannot be lent.
    """
    enforcement = _enforcement(settings, capabilities)
    place = None if settings.workspace == "none" else resolve_workspace(workspace)
    identity = _identity()
    lent = [path for path in code if place is None or not Path(path).is_relative_to(place)]
    kept = [path for path in protected if is_kept(path, place)]
    mounts = lent_mounts(settings, place, [*lent, *kept, *controller_code(place)])
    warn_of_planted_modules(mounts)
    if settings.network == "host":
        mounts += [read_only(path) for path in _NETWORK_FILES if Path(path).exists()]
    return Plan(
        identity=identity,
        mounts=tuple(mounts),
        hidden=tuple(hidden_files()),
        files=_files(identity),
        links=_links(mounts),
        environment=_environment(settings),
        network=settings.network,
        directory=str(place or _SCRATCH),
        python_path=tuple(_python_path(mounts)),
        python_prefix=sys.prefix,
        limits=limits,
        seccomp=compile_filter(platform.machine(), set_group_id=is_shared(place)).hex(),
        landlock=_landlock(capabilities, mounts, settings),
        enforcement=enforcement,
    )


def _links(mounts: list[Mount]) -> dict[str, str]:
    """The links of every root, less those where something is mounted, and the merged /usr."""
    targets = [Path(mount.target) for mount in mounts]
    free = {
        path: target
        for path, target in _LINKS.items()
        if not any(place.is_relative_to(path) for place in targets)
    }
    return free | {path: str(Path(path).readlink()) for path in SYSTEM if Path(path).is_symlink()}


def _landlock(
    capabilities: Capabilities, mounts: list[Mount], settings: CellSettings
) -> Ruleset | None:
    writable = [mount.target for mount in mounts if mount.writable]
    return ruleset(
        capabilities.landlock_abi,
        (*SCRATCH, *writable),
        open_network=settings.network == "host",
    )


def _enforcement(settings: CellSettings, capabilities: Capabilities) -> Enforcement:
    enforced = dict(capabilities.enforced)
    if settings.network == "host":
        del enforced[Guarantee.NETWORK]
    missing = [guarantee for guarantee in settings.require if guarantee not in enforced]
    if missing:
        raise CellRefused(
            f"the policy requires {', '.join(missing)}, which cannot be enforced here",
            "`toolcell doctor` shows what can; drop the rest from `require` in the policy's "
            "[cell] table only if you can do without it",
        )
    return Enforcement(rung="full", required=settings.require, enforced=enforced)


def _identity() -> Identity:
    """Inside never root; outside the controller's user, or an id that owns nothing."""
    uid, gid = os.geteuid(), os.getegid()
    if uid != 0:
        return Identity(inside_uid=uid, inside_gid=gid, outer_uid=uid, outer_gid=gid)
    outer_uid = _OUTER_ID if _is_mapped("uid", _OUTER_ID) else _NOBODY
    outer_gid = _OUTER_ID if _is_mapped("gid", _OUTER_ID) else _NOBODY
    return Identity(
        inside_uid=_INSIDE_ID, inside_gid=_INSIDE_ID, outer_uid=outer_uid, outer_gid=outer_gid
    )


def _is_mapped(kind: str, number: int) -> bool:
    """Whether an id exists in this process's user namespace, as in a container it may not."""
    for line in Path(f"/proc/self/{kind}_map").read_text().splitlines():
        first, _, count = (int(field) for field in line.split())
        if first <= number < first + count:
            return True
    return False


def _files(identity: Identity) -> dict[str, str]:
    """The few files of /etc that say who and where the tool is; nothing of the host's users."""
    uid, gid = identity.inside_uid, identity.inside_gid
    return {
        "/etc/passwd": f"{_USER}:x:{uid}:{gid}:toolcell:{_SCRATCH}:/bin/sh\n"
        f"nobody:x:{_NOBODY}:{_NOBODY}:nobody:/nonexistent:/usr/sbin/nologin\n",
        "/etc/group": f"{_USER}:x:{gid}:\nnogroup:x:{_NOBODY}:\n",
        "/etc/hosts": "127.0.0.1 localhost cell\n::1 localhost\n",
        "/etc/hostname": "cell\n",
    }


def _python_path(mounts: list[Mount]) -> list[str]:
    """The controller's import path, as far as the cell sees it."""
    targets = [mount.target for mount in mounts]
    path = [str(Path(entry).resolve()) for entry in sys.path if entry]
    seen = [entry for entry in path if is_inside(entry, targets)]
    # The directories that hold the two packages; in a checkout no mount covers them whole.
    own = [str(place.parent) for place in own_code()]
    return list(dict.fromkeys([*seen, *own]))


def _environment(settings: CellSettings) -> dict[str, str]:
    bins = [str(Path(prefix) / "bin") for prefix in (sys.prefix, sys.base_prefix)]
    system = ["/usr/local/bin", "/usr/local/sbin", "/usr/bin", "/usr/sbin", "/bin", "/sbin"]
    environment = {
        "PATH": ":".join(dict.fromkeys([*bins, *system])),
        "HOME": _SCRATCH,
        "TMPDIR": _SCRATCH,
        "USER": _USER,
        "LOGNAME": _USER,
        "SHELL": "/bin/sh",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "PYTHONDONTWRITEBYTECODE": "1",
        "TOOLCELL_CELL": "1",
    }
    if sys.prefix != sys.base_prefix:
        environment["VIRTUAL_ENV"] = sys.prefix
    return environment | settings.env
