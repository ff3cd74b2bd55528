"""The plan: what the policy asks, and this machine can give, written down before any cell.

A plan is deny by default: what it does not name is not there. Nothing in it weakens a
guarantee that the policy requires; where one cannot be met, there is no plan.
"""

import os
import platform
import stat
import sys
import sysconfig
import warnings
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import sandbox_workers
import toolcell
from toolcell.cells.capabilities import Capabilities
from toolcell.cells.landlock import ruleset
from toolcell.cells.seccomp import compile_filter
from toolcell.errors import CellRefused, ImportPathWarning, WorkspaceError
from toolcell.model import CellSettings, Enforcement, Guarantee, Identity, Limits, Mount, Plan

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_ETC_DIRECTORIES = (
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/fonts",
    "/etc/ld.so.conf.d",
    "/etc/pki/tls/certs",
    "/etc/pki/ca-trust",
    "/etc/ssl/certs",
    "/etc/terminfo",
)
# Programs that keep what they need to start under /etc, by the names distributions use.
_ETC_GLOBS = ("java*", "python3*", "perl", "npm", "nodejs", "matplotlib*")
_ETC_FILES = (
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/debian_version",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/protocols",
    "/etc/services",
    "/etc/ssl/openssl.cnf",
    "/etc/pki/tls/openssl.cnf",
    "/etc/timezone",
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
    files = _files(identity)
    lent = [path for path in code if place is None or not Path(path).is_relative_to(place)]
    kept = [path for path in protected if _is_kept(path, place)]
    mounts = _mounts(settings, place, [*lent, *kept, *_controller_code(place)])
    _warn_of_planted_modules(mounts)
    links = {path: target for path, target in _LINKS.items() if not _is_above(path, mounts)}
    for path in _SYSTEM:
        if Path(path).is_symlink():
            links[path] = str(Path(path).readlink())
    if settings.network == "host":
        mounts += [_read_only(path) for path in _NETWORK_FILES if Path(path).exists()]
    writable = [_SCRATCH, "/dev/shm", *(mount.target for mount in mounts if mount.writable)]  # noqa: S108
    return Plan(
        identity=identity,
        mounts=tuple(mounts),
        hidden=tuple(_hidden()),
        files=files,
        links=links,
        environment=_environment(settings),
        network=settings.network,
        directory=str(place or _SCRATCH),
        python_path=tuple(_python_path(mounts)),
        python_prefix=sys.prefix,
        limits=limits,
        seccomp=compile_filter(platform.machine(), set_group_id=_is_shared(place)).hex(),
        landlock=ruleset(
            capabilities.landlock_abi, tuple(writable), open_network=settings.network == "host"
        ),
        enforcement=enforcement,
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


def resolve_workspace(workspace: Path | None) -> Path:
    """Resolve the workspace; refuses what would hand the whole machine or home to a tool."""
    if workspace is None:
        raise WorkspaceError(
            'the policy lends a workspace and none was given; name one, or set workspace = "none"'
        )
    place = workspace.resolve()
    if not place.is_dir():
        raise WorkspaceError(f"the workspace {workspace} is not a directory")
    reserved = ["/", "/proc", "/dev", "/sys", "/etc", "/tmp", *_SYSTEM]  # noqa: S108
    home = Path(os.path.expanduser("~")).resolve()  # noqa: PTH111  # Path.home() raises without one
    if str(place) in reserved or home.is_relative_to(place):
        raise WorkspaceError(
            f"{place} as a workspace would lend a tool far more than one project; "
            "use a directory below it"
        )
    if any(place.is_relative_to(path) for path in ("/proc", "/dev", "/sys")):
        raise WorkspaceError(f"{place} is part of the kernel's own tree, not a place for files")
    return place


def _is_shared(workspace: Path | None) -> bool:
    """Whether a group shares the workspace by set-group-id directories, as with chmod g+s.

    Its tools then have to keep that bit on what they copy. Not for root's own group.
    """
    if workspace is None:
        return False
    found = workspace.stat()
    return bool(found.st_mode & stat.S_ISGID) and found.st_gid != 0


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


def _mounts(settings: CellSettings, workspace: Path | None, read_only: list[str]) -> list[Mount]:
    mounts: dict[str, Mount] = {}
    for path in (*_SYSTEM, *_ETC_DIRECTORIES, *_etc_extras(), *_ETC_FILES):
        # A link is made again as a link (the merged /usr), or its target is lent.
        if Path(path).exists() and not (path in _SYSTEM and Path(path).is_symlink()):
            mounts[path] = _read_only(path)
    if workspace is not None:
        writable = settings.workspace == "rw"
        mounts[str(workspace)] = Mount(
            source=str(workspace), target=str(workspace), writable=writable, owned=True
        )
    for path in [*_interpreter(), *map(str, _own_code()), *settings.read, *read_only]:
        place = Path(os.path.expanduser(path)).resolve()  # noqa: PTH111  # as below
        if not place.exists():
            raise CellRefused(
                f"{path} is to be lent to the cell and does not exist",
                "correct `read` in the policy's [cell] table",
            )
        if not _is_read_only(mounts, place):
            for pin in _between(workspace, place) if settings.workspace == "rw" else ():
                mounts.setdefault(pin, Mount(source=pin, target=pin, writable=True, owned=True))
            mounts[str(place)] = Mount(source=str(place), target=str(place), owned=True)
    return list(mounts.values())


def _is_kept(path: str, workspace: Path | None) -> bool:
    """Whether a protected file lies in the workspace; outside, the cell does not see it at all.

    A path that goes through a link inside the workspace is refused: a tool could replace
    the link, and the controller would read another file at its next start.
    """
    if workspace is None:
        return False
    place = Path(path).absolute()
    for part in (place, *place.parents):
        if part.is_symlink() and part.parent.resolve().is_relative_to(workspace):
            raise CellRefused(
                f"{path} goes through the link {part} in the workspace, which a tool could replace",
                "name the file itself, or keep it outside the workspace",
            )
    return place.resolve().is_relative_to(workspace)


def _is_above(path: str, mounts: list[Mount]) -> bool:
    return any(Path(mount.target).is_relative_to(path) for mount in mounts)


def _warn_of_planted_modules(mounts: list[Mount]) -> None:
    """Warn where a tool may write what this program imports before the standard library."""
    table = {mount.target: mount for mount in mounts}
    for entry in sys.path:
        place = Path(entry or ".").resolve()
        if str(place) == sysconfig.get_path("stdlib"):
            return
        if any(str(part) in table for part in (place, *place.parents)) and not _is_read_only(
            table, place
        ):
            warnings.warn(
                f"tools may write in {place}, and this program imports from it: a module planted "
                "there, under the name of one of the standard library, runs outside of any cell "
                "at the next start. Give tools a directory of their own, lend it read-only, or "
                "start Python with -P",
                ImportPathWarning,
                stacklevel=2,
            )
            return


def _is_read_only(mounts: dict[str, Mount], place: Path) -> bool:
    """Whether the nearest mount at or above a place shows it, and read-only, already."""
    for path in (place, *place.parents):
        if mount := mounts.get(str(path)):
            return not mount.writable
    return False


def _controller_code(workspace: Path | None) -> list[str]:
    """What the controller itself imported from inside the workspace.

    A tool that could change it would run its change outside the cell, at the
    controller's next start; the same goes for a forged cache of compiled code, so the
    cache is there, and read-only, before a tool can make one.
    """
    if workspace is None:
        return []
    found: dict[str, None] = {}
    for module in list(sys.modules.values()):
        file = Path(getattr(module, "__file__", None) or "/").resolve()
        if workspace not in file.parents:
            continue
        top = file
        while (top.parent / "__init__.py").exists() and top.parent != workspace:
            top = top.parent
        found[str(top)] = None
        if top == file:
            cache = top.parent / "__pycache__"
            if cache.is_symlink():
                raise CellRefused(
                    f"{cache} is a symbolic link, and lending it read-only would lend "
                    "whatever it points to",
                    "remove it; it was not made by Python",
                )
            with suppress(OSError):  # not writable for us: nor for the tool, which is us
                cache.mkdir(exist_ok=True)
            if cache.is_dir():
                found[str(cache)] = None
    return list(found)


def _read_only(path: str) -> Mount:
    return Mount(source=str(Path(path).resolve()), target=path)


def _etc_extras() -> list[str]:
    return [str(path) for glob in _ETC_GLOBS for path in Path("/etc").glob(glob)]


def _interpreter() -> list[str]:
    """The controller's own Python, wherever it lies: prefix, virtual environment, executable."""
    places = [sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix]
    places.append(str(Path(sys.executable).resolve().parent))
    return list(dict.fromkeys(places))


def _hidden() -> list[str]:
    """Files beside the interpreter that may hold the passwords of package indexes."""
    prefixes = dict.fromkeys((sys.prefix, sys.base_prefix))
    places = [(Path(prefix) / "pip.conf").resolve() for prefix in prefixes]
    return [str(place) for place in places if place.is_file()]


def _own_code() -> list[Path]:
    return [Path(sandbox_workers.__file__).parent, Path(toolcell.__file__).parent]


def _between(workspace: Path | None, place: Path) -> list[str]:
    """The directories strictly between the workspace and a place inside it.

    Each is mounted on itself: a mount point cannot be renamed (EBUSY), so a tool cannot
    move a read-only mount away with its parent and put another file in its place.
    """
    if workspace is None or workspace not in place.parents:
        return []
    return [str(parent) for parent in place.parents if workspace in parent.parents]


def _is_inside(place: str, roots: Iterable[str]) -> bool:
    return any(Path(place).is_relative_to(root) for root in roots)


def _python_path(mounts: list[Mount]) -> list[str]:
    """The controller's import path, as far as the cell sees it."""
    targets = [mount.target for mount in mounts]
    path = [str(Path(entry).resolve()) for entry in sys.path if entry]
    seen = [entry for entry in path if _is_inside(entry, targets)]
    # The directories that hold the two packages; in a checkout no mount covers them whole.
    own = [str(place.parent) for place in _own_code()]
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
