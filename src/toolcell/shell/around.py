"""What stands around a whole line: what its tool does before bash reads it.

A tool can go to a directory, set variables and give an input, each by an argument of the call.
They are read as if the line said so: as `export NAME=value` and `cd directory` before it, and a
here-document behind it.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Around:
    """The directory that the line runs in, the variables that it finds, the text it may read."""

    directory: str = ""
    variables: tuple[tuple[str, str], ...] = ()
    stdin: str | None = None

    def texts(self) -> tuple[str, ...]:
        """All that is written in it."""
        values = (value for pair in self.variables for value in pair)
        return (self.directory, *values, self.stdin or "")


NOTHING_AROUND = Around()
