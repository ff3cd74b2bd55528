"""Pages of kept outputs: what a model, or a person, is shown of one at a time.

lines    where the lines of an output are
pattern  what a search looks for, in time that is in proportion to the text
page     a page of lines, or of bytes
search   the lines that match
reader   the answers of the tool `read_output`
threads  where they are made
"""

from toolcell.pages.lines import Lines
from toolcell.pages.pattern import Pattern, PatternError
from toolcell.pages.reader import OutputReader
from toolcell.pages.search import matching

__all__ = ["Lines", "OutputReader", "Pattern", "PatternError", "matching"]
