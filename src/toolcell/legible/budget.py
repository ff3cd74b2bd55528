"""Budgets: how much text a model is given of one stream."""

from collections.abc import Callable
from dataclasses import dataclass, replace

TokenCounter = Callable[[str], int]
"""Returns how many tokens a text takes; a text that is part of another should not take more."""

_CHEAP = bytes(range(ord("a"), ord("z") + 1)) + b" "


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text, cheaply, and rather too many than too few.

    Three bytes of small letters and spaces are taken for one token, and one and a half of all
    else: digits, capitals, punctuation, line ends, bytes of other scripts. Of prose that is half
    as much again as today's tokenizers count; of code, tables, hexadecimal, base64 and East
    Asian text it is close. For exact limits plug in the model's own counter.
    """
    data = text.encode(errors="replace")
    dear = len(data.translate(None, _CHEAP))
    return -(-(len(data) + dear) // 3)


@dataclass(frozen=True, slots=True)
class OutputBudget:
    """How much of one stream, or of one returned value, a result shows.

    At most this many bytes, lines, and tokens as `counter` counts them; None bounds nothing.
    Where not all of it fits, lines longer than `line_bytes` are shown in part. What says that
    something is left out comes on top. Raises ValueError for a number below 0.
    """

    bytes: int = 32 * 1024
    lines: int | None = None
    tokens: int | None = None
    line_bytes: int = 4096
    counter: TokenCounter = estimate_tokens

    def __post_init__(self) -> None:
        for name in ("bytes", "lines", "tokens", "line_bytes"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise ValueError(f"OutputBudget: `{name}` is a number from 0 on, not {value!r}")

    @classmethod
    def of(cls, given: "OutputBudget | int") -> "OutputBudget":
        """Take a number for bytes."""
        return cls(bytes=given) if isinstance(given, int) else given

    def fits(self, text: str) -> bool:
        """Whether a text takes no more tokens than there are."""
        return self.tokens is None or self.counter(text) <= self.tokens

    def smaller(self, text: str) -> "OutputBudget":
        """Return a budget of fewer bytes, for a text that took too many tokens."""
        size = min(self.bytes, len(text.encode(errors="replace")))
        most = size * 9 // 10
        if self.tokens is not None:
            most = min(most, size * self.tokens // max(1, self.counter(text)))
        return replace(self, bytes=most)
