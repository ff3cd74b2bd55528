"""What a plan lends: the mounts of a cell, and what in the workspace stays read-only.

The system's programs and the controller's own Python are lent read-only, the workspace
as the policy says, and nothing else that is not named. Inside a writable workspace, what
the controller itself reads or runs is mounted over, read-only.
"""

import os
import sys
import sysconfig
import warnings
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import sandbox_workers
import toolcell
from toolcell.errors import CellRefused, ImportPathWarning
from toolcell.model import CellSettings, Mount

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
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


def lent_mounts(settings: CellSettings, workspace: Path | None, fixed: list[str]) -> list[Mount]:
    """Return the mounts of a cell; `fixed` are places that stay read-only. Raises CellRefused."""
    mounts: dict[str, Mount] = {}
    writable: list[str] = []
    for path in (*SYSTEM, *_ETC_DIRECTORIES, *_etc_extras(), *_ETC_FILES):
        # A link is made again as a link (the merged /usr), or its target is lent.
        if Path(path).exists() and not (path in SYSTEM and Path(path).is_symlink()):
            mounts[path] = read_only(path)
    if workspace is not None:
        writable = writable_places(settings, workspace)
        for lent in dict.fromkeys([str(workspace), *writable]):
            mounts[lent] = Mount(source=lent, target=lent, writable=lent in writable, owned=True)
    for path in settings.read:
        refuse_links(os.path.expanduser(path), workspace)  # noqa: PTH111  # as below
    for path in [*_interpreter(), *map(str, own_code()), *settings.read, *fixed]:
        place = Path(os.path.expanduser(path)).resolve()  # noqa: PTH111  # pathlib raises for an unknown user
        if not place.exists():
            raise _missing(path, kept=path in fixed)
        if not is_read_only(mounts, place):
            for pin in _between(writable, place):
                mounts.setdefault(pin, Mount(source=pin, target=pin, writable=True, owned=True))
            mounts[str(place)] = Mount(source=str(place), target=str(place), owned=True)
    return list(mounts.values())


def _missing(path: str, *, kept: bool) -> CellRefused:
    if kept:  # without it, a tool could put another in its place
        return CellRefused(
            f"{path} is to stay read-only in the workspace, and is not there any more",
            "put it back, or start the controller without it",
        )
    return CellRefused(
        f"{path} is to be lent to the cell and does not exist",
        "correct `read` in the policy's [cell] table, or --read",
    )


def is_read_only(mounts: dict[str, Mount], place: Path) -> bool:
    """Whether the nearest mount at or above a place shows it, and read-only, already."""
    for path in (place, *place.parents):
        if mount := mounts.get(str(path)):
            return not mount.writable
    return False


def read_only(path: str) -> Mount:
    """Lend what a path leads to, under the path's own name, read-only."""
    return Mount(source=str(Path(path).resolve()), target=path)


def _etc_extras() -> list[str]:
    return [str(path) for glob in _ETC_GLOBS for path in Path("/etc").glob(glob)]


def _interpreter() -> list[str]:
    """The controller's own Python, wherever it lies: prefix, virtual environment, executable."""
    places = [sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix]
    places.append(str(Path(sys.executable).resolve().parent))
    return list(dict.fromkeys(places))


def own_code() -> list[Path]:
    """The two packages of toolcell itself."""
    return [Path(sandbox_workers.__file__).parent, Path(toolcell.__file__).parent]


def hidden_files() -> list[str]:
    """Files beside the interpreter that may hold the passwords of package indexes."""
    prefixes = dict.fromkeys((sys.prefix, sys.base_prefix))
    places = [(Path(prefix) / "pip.conf").resolve() for prefix in prefixes]
    return [str(place) for place in places if place.is_file()]


def writable_places(settings: CellSettings, workspace: Path) -> list[str]:
    """The workspace, or those of its directories that a call may change; raises CellRefused."""
    if settings.workspace != "rw":
        return []
    found = []
    for name in settings.writable or (".",):
        place = Path(os.path.normpath(workspace / name))
        refuse_links(str(place), workspace)
        if not place.is_relative_to(workspace):
            raise CellRefused(
                f"{name} is to be writable and is outside of the workspace {workspace}",
                "correct `writable` in the policy: it names directories of the workspace",
            )
        if not place.is_dir():
            raise CellRefused(
                f"{place} is to be writable, and there is no such directory",
                "make it, or correct `writable` in the policy",
            )
        found.append(str(place))
    return found


def _between(writable: list[str], place: Path) -> list[str]:
    """The directories strictly between a writable one and a place inside it.

    Each is mounted on itself: a mount point cannot be renamed (EBUSY), so a tool cannot
    move a read-only mount away with its parent and put another file in its place.
    """
    return [
        str(parent)
        for top in map(Path, writable)
        if top in place.parents
        for parent in place.parents
        if top in parent.parents
    ]


def is_inside(place: str, roots: Iterable[str]) -> bool:
    """Whether a place is one of the roots or below one."""
    return any(Path(place).is_relative_to(root) for root in roots)


def is_kept(path: str, workspace: Path | None) -> bool:
    """Whether a protected file lies in the workspace; outside, the cell does not see it at all.

    A path that goes through a link inside the workspace is refused: a tool could replace
    the link, and the controller would read another file at its next start.
    """
    if workspace is None:
        return False
    refuse_links(path, workspace)
    return Path(path).resolve().is_relative_to(workspace)


def refuse_links(path: str, workspace: Path | None) -> None:
    """Refuse a path that goes through a link in the workspace: a tool could have made it."""
    if workspace is None:
        return
    place = Path(path).absolute()
    for part in (place, *place.parents):
        if part.is_symlink() and part.parent.resolve().is_relative_to(workspace):
            raise CellRefused(
                f"{path} goes through the link {part} in the workspace, which a tool could replace",
                "name the file itself, or keep it outside the workspace",
            )


def controller_code(workspace: Path | None) -> list[str]:
    """What the controller itself imported from inside the workspace.

    A tool that could change it would run its change outside the cell, at the
    controller's next start; the same goes for a forged cache of compiled code, so the
    cache is there, and read-only, before a tool can make one.
    """
    if workspace is None:
        return []
    found: dict[str, None] = {}
    for module in list(sys.modules.values()):
        name = getattr(module, "__file__", None) or "/"
        file = Path(name).resolve()
        if _is_no_file(name) or workspace not in file.parents:
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


def _is_no_file(name: str) -> bool:
    """Whether Python made up the name, as "<stdin>" for a program that it reads from a pipe.

    What it did read from a file has an absolute name, also where the file is gone by now.
    """
    return name.startswith("<") and name.endswith(">") and os.sep not in name


def warn_of_planted_modules(mounts: list[Mount]) -> None:
    """Warn where a tool may write what this program imports before the standard library."""
    table = {mount.target: mount for mount in mounts}
    for entry in sys.path:
        place = Path(entry or ".").resolve()
        if str(place) == sysconfig.get_path("stdlib"):
            return
        if any(str(part) in table for part in (place, *place.parents)) and not is_read_only(
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
