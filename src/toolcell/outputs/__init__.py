"""Outputs: what a result cannot show in full, kept on disk and found again by its handle.

stored      what is known of one output, and what a handle looks like
directory   the files: which are there, which may go, how much room is left
writer      one output while it is written
store       all of it: begin, read, list, prune
"""

from toolcell.outputs.store import OutputStore
from toolcell.outputs.stored import Kind, Pruned, Stored
from toolcell.outputs.writer import OutputWriter

__all__ = ["Kind", "OutputStore", "OutputWriter", "Pruned", "Stored"]
