"""The plan: what the policy asks, and this machine can give, written down before any cell.

A plan is deny by default: what it does not name is not there. Nothing in it weakens a
guarantee that the policy requires; where one cannot be met, there is no plan.
"""

import os
import platform
import secrets
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from toolcell.cells.capabilities import Capabilities
from toolcell.cells.landlock import only_wall, second_wall
from toolcell.cells.lending import (
    SYSTEM,
    controller_code,
    hidden_files,
    is_inside,
    is_kept,
    is_read_only,
    lent_mounts,
    own_code,
    read_only,
    warn_of_planted_modules,
)
from toolcell.cells.seccomp import Variant, compile_filter
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
    Rung,
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
_HERE = "."  # where a worker stands that has a scratch directory: in it
SCRATCH = (_SCRATCH, "/dev/shm")  # noqa: S108  # the cell's own
"""Where a cell has file systems of its own, for one call."""

# What a cell that shares the host's root sees of it besides what is lent: who has which name.
_SHARED_FILES = ("/etc/passwd", "/etc/group", "/etc/hosts", "/etc/hostname")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")

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
    *,
    rung: Rung = "full",
) -> Plan:
    """Compute a plan.

    `code` are the files and directories of the registered tools' modules, `protected`
    files that stay read-only even inside the workspace (the policy's own file). Raises
    CellRefused where the rung or a required guarantee cannot be had, WorkspaceError where the
    workspace cannot be lent.
    """
    enforcement = _enforcement(settings, capabilities, rung)
    place = None if settings.workspace == "none" else resolve_workspace(workspace)
    identity = _identity(place, rung)
    lent = [path for path in code if place is None or not Path(path).is_relative_to(place)]
    kept = [path for path in protected if is_kept(path, place)]
    mounts = lent_mounts(settings, place, [*lent, *kept, *controller_code(place)])
    warn_of_planted_modules(mounts)
    if settings.network == "host":
        mounts += [read_only(path) for path in _NETWORK_FILES if Path(path).exists()]
    own_root = rung == "full"
    if rung == "landlock":
        _refuse_holes(mounts)
    return Plan(
        rung=rung,
        identity=identity,
        mounts=tuple(mounts),
        hidden=tuple(hidden_files()) if own_root else (),
        files=_files(identity) if own_root else {},
        links=_links(mounts, workspace, place) if own_root else {},
        environment=_environment(settings, own_root=own_root),
        network=settings.network,
        directory=str(place or (_SCRATCH if own_root else _HERE)),
        python_path=tuple(_python_path(mounts)),
        python_prefix=sys.prefix,
        preload=settings.preload,
        preload_path=tuple(_fixed_path(mounts)),
        limits=limits,
        seccomp=_filter(settings, place, rung, told=True),
        seccomp_silent=_filter(settings, place, rung, told=False),
        landlock=_landlock(capabilities, mounts, settings, rung, lent),
        scratch=None if own_root else _scratch(mounts, rung),
        enforcement=enforcement,
    )


def _refuse_holes(mounts: list[Mount]) -> None:
    """Refuse what is to be otherwise than the place that it lies in: only a mount can do that."""
    for path in hidden_files():
        raise CellRefused(
            f"{path} may hold passwords of package indexes and lies in what is lent, and without "
            "mounts nothing can cover it",
            "move it to ~/.config/pip/pip.conf",
        )
    writable = [mount.target for mount in mounts if mount.writable]
    for mount in mounts:
        if not mount.writable and is_inside(mount.target, writable):
            raise CellRefused(
                f"{mount.target} lies in the workspace and is to stay read-only, which needs "
                "mounts, and the landlock rung has none",
                "keep it outside of the workspace, lend another directory as the workspace, or "
                'set workspace = "ro"',
            )


def _filter(
    settings: CellSettings, workspace: Path | None, rung: Rung, *, told: bool
) -> str | None:
    if rung == "none":
        return None
    variant = Variant(
        set_group_id=is_shared(workspace),
        namespaces=rung == "full",
        open_network=settings.network == "host",
        told=told,
    )
    return compile_filter(platform.machine(), variant).hex()


def _scratch(mounts: list[Mount], rung: Rung) -> str:
    """A directory that the keeper will make; the sweep of the next one reads the name."""
    place = Path(tempfile.gettempdir()).resolve()
    # What is lent can be read by every call, and scratch is of one call.
    if rung == "landlock" and is_inside(str(place), [mount.source for mount in mounts]):
        raise CellRefused(
            f"the temporary directory {place} lies in what is lent to tools, and without mounts "
            "the scratch space of each call would be open to the others",
            "set TMPDIR to a directory elsewhere, such as /tmp",
        )
    return str(place / f"toolcell-{os.getpid()}-{secrets.token_hex(8)}")


def _links(mounts: list[Mount], named: Path | None, place: Path | None) -> dict[str, str]:
    """The links of every root, less those where something is mounted, and the merged /usr.

    And one where the workspace was named by a link: a model may have the path from there.
    """
    targets = [Path(mount.target) for mount in mounts]
    links = dict(_LINKS)
    if named and place and named != place and not is_inside(str(named), map(str, targets)):
        links[str(named)] = str(place)
    free = {
        path: target
        for path, target in links.items()
        if not any(place.is_relative_to(path) for place in targets)
    }
    return free | {path: str(Path(path).readlink()) for path in SYSTEM if Path(path).is_symlink()}


def _landlock(
    capabilities: Capabilities,
    mounts: list[Mount],
    settings: CellSettings,
    rung: Rung,
    code: list[str],
) -> Ruleset | None:
    writable = [mount.target for mount in mounts if mount.writable]
    open_network = settings.network == "host"
    if rung == "none":
        return None
    if rung == "full":
        places = (*SCRATCH, *writable)
        return second_wall(capabilities.landlock_abi, places, open_network=open_network)
    return only_wall(
        capabilities.landlock_abi,
        [mount.source for mount in mounts if not mount.writable]
        + [str(Path(path).resolve()) for path in _SHARED_FILES if Path(path).exists()],
        writable,
        [path for path in _DEVICES if Path(path).exists()],
        sorted({str(Path(path).resolve().parent) for path in [*code, *map(str, own_code())]}),
        open_network=open_network,
    )


def _enforcement(settings: CellSettings, capabilities: Capabilities, rung: Rung) -> Enforcement:
    if rung in capabilities.missing:
        raise capabilities.missing[rung]
    enforced = dict(capabilities.enforced[rung])
    if settings.network == "host":
        enforced.pop(Guarantee.NETWORK, None)
    missing = [guarantee for guarantee in settings.require if guarantee not in enforced]
    if missing:
        stronger = 'namespaces would do: isolation = "auto" takes them where they are allowed; '
        raise CellRefused(
            f"the policy requires {', '.join(missing)}, which the {rung} rung cannot enforce here",
            ("" if rung == "full" else stronger)
            + "`toolcell doctor` shows what can be had; drop the rest from `require` in the "
            "policy's [cell] table only if you can do without it",
        )
    return Enforcement(rung=rung, required=settings.require, enforced=enforced)


def _identity(workspace: Path | None, rung: Rung) -> Identity:
    """Inside never root; outside the controller's user, or an id that owns nothing.

    Without namespaces no owner can be mapped: a controller that is root runs a tool as the
    workspace's owner, which may be root, but without any capability.
    """
    uid, gid = os.geteuid(), os.getegid()
    if rung != "full" and uid == 0 and workspace is not None:
        uid, gid = workspace.stat().st_uid, workspace.stat().st_gid
    if uid != 0 or rung != "full":
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


def _fixed_path(mounts: list[Mount]) -> list[str]:
    """The import path as far as no tool can write there: what the launcher may import from."""
    table = {mount.target: mount for mount in mounts}
    writable = [mount.target for mount in mounts if mount.writable]
    return [
        entry
        for entry in _python_path(mounts)
        if (is_read_only(table, Path(entry)) or not is_inside(entry, table))
        and not any(is_inside(place, [entry]) for place in writable)
    ]


def _environment(settings: CellSettings, *, own_root: bool) -> dict[str, str]:
    bins = [str(Path(prefix) / "bin") for prefix in (sys.prefix, sys.base_prefix)]
    system = ["/usr/local/bin", "/usr/local/sbin", "/usr/bin", "/usr/sbin", "/bin", "/sbin"]
    environment = {
        "PATH": ":".join(dict.fromkeys([*bins, *system])),
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
    if own_root:
        environment |= {"HOME": _SCRATCH, "TMPDIR": _SCRATCH}
    else:
        # It is there, and git gives up where it may not be read.
        environment["GIT_CONFIG_NOSYSTEM"] = "1"
    return environment | settings.env
