"""The normalizer: whatever happened, one ToolResult.

lines       a clean stretch of a stream, redacted, line by line
truncation  head and tail with exact counts of what is left out, and where to find it
verdict     evidence to a category
results     the pieces to a result
"""

from toolcell.normalizer.results import Origin, from_inline, from_report, refused
from toolcell.normalizer.verdict import named

__all__ = ["Origin", "from_inline", "from_report", "named", "refused"]
