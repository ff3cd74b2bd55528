"""Legible: bytes that a tool wrote, as a model can read them.

characters  UTF-8 that is never cut inside a character
sequences   what a terminal would act on, and how it is recognised
terminal    one line as a terminal would show it in the end
cleaning    all of it at once, and which bytes each part of the text stands for
budget      how much text a model is given: bytes, lines, estimated tokens
"""

from toolcell.legible.budget import OutputBudget, TokenCounter, estimate_tokens
from toolcell.legible.characters import decode
from toolcell.legible.cleaning import Cleaned, clean, clean_text, legible, stripped

__all__ = [
    "Cleaned",
    "OutputBudget",
    "TokenCounter",
    "clean",
    "clean_text",
    "decode",
    "estimate_tokens",
    "legible",
    "stripped",
]
