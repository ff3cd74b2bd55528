"""The normalizer: whatever happened, one ToolResult.

text        bytes to text, never cut inside a character
truncation  head and tail, redacted, with exact counts of what is left out
verdict     evidence to a category
results     the pieces to a result
"""

from toolcell.normalizer.results import Origin, from_inline, from_report, refused
from toolcell.normalizer.verdict import named

__all__ = ["Origin", "from_inline", "from_report", "named", "refused"]
