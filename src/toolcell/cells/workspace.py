"""The workspace: the one directory of the host that a policy may let a tool change."""

import os
import stat
from pathlib import Path

from toolcell.cells.lending import SYSTEM
from toolcell.errors import WorkspaceError
from toolcell.visible import visible_line

_RESERVED = (
    *("/", "/proc", "/dev", "/sys", "/etc", "/tmp", "/var", "/home", "/root", "/opt", "/srv"),  # noqa: S108
    *("/boot", "/run", "/mnt", "/media", "/usr/local", "/var/lib", "/var/log", *SYSTEM),
)


def resolve_workspace(workspace: Path | None) -> Path:
    """Resolve the workspace; refuses what would hand the whole machine or home to a tool."""
    if workspace is None:
        raise WorkspaceError(
            'the policy lends a workspace and none was given; name one, or set workspace = "none"'
        )
    place = workspace.resolve()
    if not place.is_dir():
        raise WorkspaceError(f"the workspace {workspace} is not a directory")
    home = Path(os.path.expanduser("~")).resolve()  # noqa: PTH111  # Path.home() raises without one
    if str(place) in _RESERVED or home.is_relative_to(place):
        raise WorkspaceError(
            f"{place} as a workspace would lend a tool far more than one project; "
            "use a directory below it"
        )
    if any(place.is_relative_to(path) for path in ("/proc", "/dev", "/sys", "/etc", "/boot")):
        raise WorkspaceError(f"{place} is part of the system, not a place for a tool's files")
    return place


def place_name(workspace: str | Path | None) -> str:
    """Return a workspace's path as it stands in what is kept; "" where there is none.

    Spelled, because a path may hold bytes that no text of ours can.
    """
    return visible_line(str(Path(workspace).resolve())) if workspace else ""


def is_shared(workspace: Path | None) -> bool:
    """Whether a group shares the workspace by set-group-id directories, as with chmod g+s.

    Its tools then have to keep that bit on what they copy. Not for root's own group.
    """
    if workspace is None:
        return False
    found = workspace.stat()
    return bool(found.st_mode & stat.S_ISGID) and found.st_gid != 0
