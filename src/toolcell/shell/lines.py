"""A line of bash as facts: the commands that it may run and the files that it may write.

Plain words are split here; every other line goes to the parser, once, and the facts are
remembered. What cannot be read, and what only the run knows, is said in the facts and never
left out: whoever decides about the line sees every doubt.
"""

import asyncio
import re
from functools import lru_cache

from toolcell.shell.around import NOTHING_AROUND, Around
from toolcell.shell.behind import Code, Dialect, program
from toolcell.shell.directories import names_socket
from toolcell.shell.facts import Command, Line, Unreadable, Write, listed
from toolcell.shell.given import Given
from toolcell.shell.parser import parse
from toolcell.shell.reading import KNOWN, Reading
from toolcell.shell.tree import Walk

__all__ = ["Command", "Line", "Write", "read_in_thread", "read_line"]

_REMEMBERED = 1024  # lines
_LONGEST_REMEMBERED = 4096  # characters
_PLAIN = re.compile(r" *[\w@%+=:,./-]+(?: +[\w@%+=:,./-]+)* *", re.ASCII)
# Words that the grammar reads otherwise where a command begins.
_GRAMMAR = listed(
    "if then else elif fi for while until do done case esac in function select time coproc"
    " declare typeset local export readonly nameref let --"
)


def read_line(text: str, around: Around = NOTHING_AROUND) -> Line:
    """Return the facts of one line; never raises. Reading a new one may take milliseconds."""
    try:
        if sum(map(len, (text, *around.texts()))) <= _LONGEST_REMEMBERED:
            return _remembered(text, around)
        return _read(text, around)
    except Unreadable as error:
        return Line(unreadable=str(error))
    except RecursionError:
        return Line(unreadable="the line is nested too deeply to be read")


async def read_in_thread(text: str, around: Around = NOTHING_AROUND) -> Line:
    """Return the facts of one line; the parser, if it is needed, blocks a thread of its own."""
    if _plain_words(text) is not None and not around.stdin:
        return read_line(text, around)
    return await asyncio.to_thread(read_line, text, around)


@lru_cache(maxsize=_REMEMBERED)
def _remembered(text: str, around: Around) -> Line:
    """What is remembered is the answer; a parser that was late or absent is asked again."""
    try:
        return _read(text, around)
    except Unreadable as error:
        if not error.lasting:
            raise
        return Line(unreadable=str(error))


def _read(text: str, around: Around = NOTHING_AROUND) -> Line:
    words = _plain_words(text)
    if words is None:
        return parsed(text, around)
    if around == NOTHING_AROUND and program(words[0]) not in KNOWN:
        return Line((Command(words),))
    reading = Reading(_read_code)
    _begin(reading, around)
    # The one command reads all of the input; of several, none is sure to have its beginning.
    reading.command(words, Given(stdin=around.stdin))
    return reading.finish()


def parsed(text: str, around: Around = NOTHING_AROUND) -> Line:
    """Read a line by the parser, plain or not; raises Unreadable."""
    reading = Reading(_read_code)
    _begin(reading, around)
    _walk(reading, "bash", text)
    return reading.finish()


def _begin(reading: Reading, around: Around) -> None:
    reading.names_socket = names_socket("\n".join(around.texts()))
    for name, value in around.variables:
        reading.begins_with(name, value)
    if around.directory not in ("", "."):
        reading.begins_in(around.directory)


def _plain_words(text: str) -> tuple[str, ...] | None:
    """Split a line that no shell could read otherwise; None for any other."""
    if not _PLAIN.fullmatch(text):
        return None
    words = tuple(text.split())
    return None if "=" in words[0] or words[0] in _GRAMMAR else words


def _read_code(reading: Reading, code: Code, text: str) -> None:
    words = _plain_words(text)
    if words is not None:
        reading.command(words)
    else:
        _walk(reading, code.dialect, text)


def _walk(reading: Reading, dialect: Dialect, text: str) -> None:
    reading.names_socket = reading.names_socket or names_socket(text)
    Walk(reading, dialect).file(parse(text))
