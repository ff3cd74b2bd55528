"""Narrowing: a cell that was made with a policy's limits, for a call that may have less.

Limits are built into a cell when it is made, ahead of its call. What arguments of a call take away
of them is taken away of that one cell, and not by a launcher for every value that somebody names:

    memory      the cell's memory group, from here; where there is none, the watch
    cpu         the watch
    processes   the watch
    each        also the worker, which lowers its resource limits before it runs any tool
"""

from toolcell.cells.cell import Cell
from toolcell.model import Limits

_LOWERED = ("cpu", "memory", "processes")


def narrow(cell: Cell, made_with: Limits, limits: Limits) -> None:
    """Give a cell less than it was made with; raises OSError, and it must not be used then."""
    if limits is made_with:
        return
    wide, narrow = made_with.in_the_cell(), limits.in_the_cell()
    cell.narrowed = {name: narrow[name] for name in _LOWERED if narrow[name] < wide[name]}
    if cell.group is not None and limits.memory < made_with.memory:
        cell.group.lower(limits.memory)
