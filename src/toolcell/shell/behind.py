"""What stands behind a command: the commands it starts, as words or as code for a shell."""

import posixpath
from dataclasses import dataclass
from typing import Literal

from toolcell.shell.facts import Unknown, Word, Words

_SYSTEM = frozenset(["/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"])

UNSURE = "a word before it is only known at run time"
# bash; shells that read the same text a little otherwise; those that read it quite otherwise
Dialect = Literal["bash", "posix", "foreign"]


@dataclass(frozen=True, slots=True)
class Inner:
    """A command that is started, by its words."""

    words: Words
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class Code:
    """Code that a shell runs; `text` is None where only the run knows it.

    `why` tells a person what is run then. `stdin`: it is what the command reads.
    `same_shell`: the shell that runs the line runs it, not another one.
    """

    text: str | None
    why: str
    dialect: Dialect = "bash"
    stdin: bool = False
    same_shell: bool = False


@dataclass(frozen=True, slots=True)
class Behind:
    """The commands behind a command, and what it does on the way to them.

    `own`: it does more than to start them, and needs a rule of its own. `assigned` are
    variables that they get, `writes` are files that it writes itself.
    """

    inner: tuple[Inner | Code, ...]
    own: bool = False
    doubt: str = ""
    assigned: tuple[tuple[str, str], ...] = ()
    writes: tuple[Word, ...] = ()
    directories: tuple[Word, ...] = ()


def program(word: Word) -> str:
    """The name of the program that a command word names, without its directory."""
    return posixpath.basename(word) if isinstance(word, str) else ""


def is_system(word: Word) -> bool:
    """Whether a command word names a program of the system, not a file of the workspace."""
    return isinstance(word, str) and ("/" not in word or posixpath.dirname(word) in _SYSTEM)


def known(word: Word) -> str | None:
    """A word where it is known, else None."""
    return word if isinstance(word, str) else None


def joined(words: Words) -> str | None:
    """Words with spaces between them, as `eval` reads them; None where one is not known."""
    texts = [word for word in words if isinstance(word, str)]
    return " ".join(texts) if len(texts) == len(words) else None


def not_known(name: str, option: str, *, own: bool = False) -> Behind:
    """The answer where an option is not known: what follows it may be its value."""
    what = f"the option {option} of {name}" if option else f"how {name} is told what to run"
    return Behind((Inner((Unknown.ANY,)),), own=own, doubt=f"toolcell does not know {what}")


def started(words: Words, *, unsure: bool = False) -> Inner:
    """The command that the rest of a wrapper's words are."""
    first = words[0]
    if isinstance(first, str) and first.startswith("-"):
        return Inner((Unknown.ANY,), doubt=f"{first} stands where a command should")
    return Inner(words, doubt=UNSURE if unsure else "")


def assignments(words: Words) -> tuple[tuple[tuple[str, str], ...], Words]:
    """Split NAME=VALUE words off the front of a command."""
    assigned: list[tuple[str, str]] = []
    for place, word in enumerate(words):
        if not (isinstance(word, str) and "=" in word):  # env takes any such word, even =x
            return tuple(assigned), words[place:]
        name, _, value = word.partition("=")
        assigned.append((name, value))
    return tuple(assigned), ()
