"""Redaction: secrets out of what is shown to a model or kept.

shape       how one kind of token is recognised
shapes      what tokens look like
known       the forms in which a known value may appear
finder      where both are in some bytes
values      the same for text and for JSON values
stream      the same for bytes that come in pieces
redactor    all of it, for one set of secrets
"""

from toolcell.redaction.finder import Span, mark, merged, outside
from toolcell.redaction.redactor import Redactor, no_redaction
from toolcell.redaction.stream import StreamRedactor

__all__ = ["Redactor", "Span", "StreamRedactor", "mark", "merged", "no_redaction", "outside"]
