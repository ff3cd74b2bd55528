"""What is known of a shell line: its commands, what it writes, and every doubt about both."""

from dataclasses import dataclass, field
from enum import Enum


class Unknown(Enum):
    """A word that only the run knows, and what is known of it all the same."""

    SAFE = "begins with a character that is not a dash, so it is no option"
    ONE = "is exactly one word"
    ANY = "may be several words, or none"


Word = str | Unknown
Words = tuple[Word, ...]  # while a line is read; in its facts None stands for every Unknown


def listed(text: str) -> frozenset[str]:
    """A table of names, written as one text with spaces between them."""
    return frozenset(text.split())


@dataclass(frozen=True, slots=True)
class Command:
    """One simple command of a line, in the order of the text.

    `words` are as the program gets them, quoting undone; None is a word that only the run
    knows (a variable, a substitution, a glob, ...), and may turn out as several or none.
    `wraps` says that the command only starts others, which are in the list as well.
    `doubt` says, for a person, why the command may do another thing than its words say.
    """

    words: tuple[str | None, ...]
    wraps: bool = False
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class Write:
    """A path that the line writes, below the line's directory unless absolute.

    None is a path that only the run knows. `implied` says that a program writes there whose
    purpose it is to write, such as cp; not that the shell does by a redirection, nor a program
    that mostly reads by an option, such as `sort -o`.
    """

    path: str | None
    implied: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """The facts of one line; `unreadable` says why there are none, or none that are whole.

    `directories` are those that the shell may be in at the line's end, as far as they are known,
    "" for the one that it began in.
    """

    commands: tuple[Command, ...] = ()
    writes: tuple[Write, ...] = ()
    unreadable: str = ""
    directories: tuple[str, ...] = field(default=(), compare=False)


class Unreadable(Exception):  # noqa: N818  # an answer about a line, not a fault of ours
    """A line that cannot be read; `lasting` is False where another try may succeed."""

    def __init__(self, reason: str, *, lasting: bool = True) -> None:
        super().__init__(reason)
        self.lasting = lasting
