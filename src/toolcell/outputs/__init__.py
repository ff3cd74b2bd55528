"""Outputs: what a result cannot show in full, kept on disk and found again by its handle.

stored      what is known of one output, and what a handle looks like
directory   the files: which are there, which may go, how much room is left
sequences   secrets that an escape sequence goes through
writer      one output while it is written
store       all of it: begin, read, list, prune
keeper      what one call keeps, without holding up the event loop
"""

from toolcell.outputs.keeper import Keeper, kept, with_keeper, writing
from toolcell.outputs.sequences import through_sequences
from toolcell.outputs.store import OpenOutput, OutputStore, no_outputs
from toolcell.outputs.stored import Kind, Pruned, Stored
from toolcell.outputs.writer import OutputWriter

__all__ = [
    "Keeper",
    "Kind",
    "OpenOutput",
    "OutputStore",
    "OutputWriter",
    "Pruned",
    "Stored",
    "kept",
    "no_outputs",
    "through_sequences",
    "with_keeper",
    "writing",
]
