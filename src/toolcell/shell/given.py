"""What stands around a simple command of a line, as the walk tells it to a Reading."""

from dataclasses import dataclass, field

from toolcell.shell.effects import Set
from toolcell.shell.facts import Word


@dataclass(slots=True)
class Given:
    """What stands around a command: assignments before it, a here-document, a doubt.

    `stdin` is the text it reads, None where that is not in the line. `sets` are what a
    declaration sets, where the parser has told the words apart. `no_function`: it is the
    program even where a function has its name.
    """

    prefix: list[tuple[str, Word]] = field(default_factory=list)
    stdin: str | None = None
    doubt: str = ""
    sets: list[Set] | None = None
    surely: bool = False  # it runs before all that follows, and nothing can keep it from it
    no_function: bool = False
