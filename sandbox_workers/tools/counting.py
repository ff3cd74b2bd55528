"""Numbers with their nouns, for answers that a model reads: 1 file, 2 files."""


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun in the singular or the plural."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"
