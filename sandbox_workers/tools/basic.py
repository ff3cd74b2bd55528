"""echo: the smallest tool, for trying a set-up."""


def echo(text: str) -> str:
    """Return the text."""
    return text
