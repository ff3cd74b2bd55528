"""The redactor: everything that hides one set of secrets."""

from collections.abc import Iterable, Mapping
from typing import Any

from toolcell.redaction.finder import Finder, mark
from toolcell.redaction.known import forms
from toolcell.redaction.shapes import SHAPES
from toolcell.redaction.stream import StreamRedactor
from toolcell.redaction.values import redact_text, redact_value


class Redactor(Finder):
    """Puts `[redacted: WHAT]` in the place of secrets: a variable's name, or a kind of token.

    What has been redacted stays as it is, no text makes it raise, and the time it takes is in
    proportion to the text. It is no wall: a tool that wants to tell a secret writes it
    backwards. It keeps what is printed by accident from models, people and files.
    """

    def __init__(self, secrets: Mapping[str, str] | None = None, *, shapes: bool = True) -> None:
        """Take values by the names of their variables, and whether to look for tokens too.

        Blank space around a value is no part of it, and an empty one hides nothing. Raises
        PolicyError for a value that is too short to be told from ordinary text.
        """
        needles: dict[bytes, str] = {}
        for name, value in (secrets or {}).items():
            if hidden := value.strip():
                needles |= {form: name for form in forms(name, hidden) if form not in needles}
        triggers = [(trigger, shape) for shape in SHAPES for trigger in shape.triggers]
        super().__init__(needles.items(), triggers if shapes else ())

    @classmethod
    def from_environment(
        cls, names: Iterable[str], environment: Mapping[str, str], *, shapes: bool = True
    ) -> "Redactor":
        """Take the values of the named variables; one that is not set hides nothing."""
        known = {name: environment[name] for name in names if name in environment}
        return cls(known, shapes=shapes)

    def text(self, text: str, *, cut: bool = False) -> str:
        """Redact text; of text that was `cut`, also an end that may be a part of a secret."""
        return redact_text(self, text, cut=cut)

    def data(self, data: bytes) -> bytes:
        """Redact bytes that are whole."""
        return mark(data, self.find(data))

    def value(self, value: Any) -> Any:
        """Redact a JSON value: its texts, its keys, and the numbers that are known values."""
        return redact_value(self, value)

    def stream(self) -> StreamRedactor:
        """Return a redactor of one stream of bytes that come in pieces."""
        return StreamRedactor(self)


no_redaction = Redactor(shapes=False)
"""Changes nothing."""
