"""A cell in one line, for people who decide about a call."""

from toolcell.model import CellSettings, Limits


def in_words(cell: CellSettings, limits: Limits) -> str:
    """Say what a call could change and reach, and for how long it could run."""
    workspace = {"rw": "may be changed", "ro": "read-only", "none": "not there"}[cell.workspace]
    if cell.workspace == "rw" and cell.writable:
        workspace = f"only {', '.join(cell.writable)} may be changed"
    return (
        f"workspace: {workspace}; network: {cell.network}; {limits.wall:g} s, "
        f"{limits.memory // 2**20:,} MiB, {limits.processes} processes"
    )
