"""Wrappers: which commands start others, and who knows what they start."""

from collections.abc import Callable

from toolcell.shell import feeders, launch, shells
from toolcell.shell.behind import Behind, program
from toolcell.shell.facts import Words
from toolcell.shell.launchers import LAUNCHERS

_SPECIAL: dict[str, Callable[[Words], Behind | None]] = {
    "env": launch.env,
    "flock": launch.flock,
    "script": launch.script,
    "xargs": feeders.xargs,
    "gxargs": feeders.xargs,
    "find": feeders.find,
    "gfind": feeders.find,
    "fd": feeders.fd,
    "fdfind": feeders.fd,
    "parallel": feeders.parallel,
    "jobs": feeders.jobs,
    **dict.fromkeys(shells.SHELLS, shells.shell),
    "eval": shells.eval_,
    "trap": shells.trap,
    "source": shells.source,
    ".": shells.source,
    "mapfile": shells.mapfile,
    "readarray": shells.mapfile,
    "nix-shell": shells.nix_shell,
    "gdb": shells.gdb,
}
WRAPPERS = frozenset(_SPECIAL) | {name.partition(" ")[0] for name in LAUNCHERS}


def look_through(words: Words) -> Behind | None:
    """Return what stands behind a command; None where nothing does."""
    special = _SPECIAL.get(program(words[0]))
    return launch.launched(words) if special is None else special(words)
