"""Small programs inside a line, those of sed and awk: do they run commands, do they write?"""

import re
from dataclasses import dataclass

_RUNS = re.compile(r"\bsystem\b|\bgetline\b|@\w|@$")
_PRINTS = re.compile(r"\bprintf?\b")
_TO_FILE = re.compile(r">(?!\s*\?)")  # not to a standard stream
_STREAMS = frozenset(['"/dev/stderr"', '"/dev/stdout"'])
_STARTS_REGEX = frozenset(["", *"(,{;~!&|\n"])


def awk_danger(code: str) -> str:
    """Why awk code may run commands or write files; "" where it does neither."""
    bare = _without_texts(code)
    if bare is None or _RUNS.search(bare):
        return "awk code can run commands"
    if re.search(r"(?<!\|)\|(?!\|)", bare):
        return "awk code can run commands through a pipe"
    for statement in re.split(r"[;{}\n]", bare):
        printed = _PRINTS.search(statement)
        if printed and _TO_FILE.search(statement, printed.end()):
            return "awk code can write files"
    return ""


def _without_texts(code: str) -> str | None:
    """Blank out strings, regular expressions and comments; None where one does not end."""
    bare: list[str] = []
    place, before = 0, ""  # the last character that is no blank
    while place < len(code):
        character = code[place]
        if character == '"' or (character == "/" and before in _STARTS_REGEX):
            end = _closing(code, place)
            if end is None:
                return None
            bare.append("?" if code[place : end + 1] in _STREAMS else "_")
            place, before = end + 1, "_"
        elif character == "#":
            place = len(code) if "\n" not in code[place:] else code.index("\n", place)
        else:
            bare.append(character)
            place, before = place + 1, before if character in " \t" else character
    return "".join(bare)


def _closing(code: str, start: int) -> int | None:
    """Find the mark that ends what begins at `start`; a newline may not come before it."""
    place = start + 1
    while place < len(code) and code[place] != "\n":
        if code[place] == code[start]:
            return place
        place += 2 if code[place] == "\\" else 1
    return None


@dataclass(slots=True)
class SedScript:
    """What a script of sed does beside editing: the files it writes, why it is in doubt."""

    writes: list[str]
    doubt: str = ""


_SED_ODD = "toolcell cannot tell that the sed script runs nothing"
_ADDRESS = re.compile(
    r"\s*(?:(?:\d+(?:~\d+)?|\$|/(?:\\.|[^/\n\\])*/[IM]*|\\([^\n\\])(?:(?!\1)[^\n])*\1[IM]*)"
    r"(?:\s*,\s*(?:[+~]?\d+|\$|/(?:\\.|[^/\n\\])*/[IM]*))?)?\s*!*\s*"
)
_SIMPLE = re.compile(r"[=dDgGhHnNpPxzF]|[lqQL]\s*\d*|[:btT][^;\n]*")
_TEXT = re.compile(r"[aic](?:[^\n\\]|\\.)*", re.DOTALL)
_FILE = re.compile(r"[rRwW]\s*([^\n]*)")
_END = re.compile(r"[\s;}]*")
_FLAGS = re.compile(r"([gpiImM0-9]*)(?:(w)\s*([^\n]*))?")


def read_sed(code: str) -> SedScript:
    """Read a script of sed command by command, as far as it is understood."""
    script = SedScript([])
    place = _END.match(code).end()  # type: ignore[union-attr]  # it matches nothing as well
    while place < len(code):
        place = _ADDRESS.match(code, place).end()  # type: ignore[union-attr]  # so does this
        end = _sed_command(code, place, script)
        if end is None or end <= place:
            script.doubt = _SED_ODD
            return script
        place = _END.match(code, end).end()  # type: ignore[union-attr]
    return script


def _sed_command(code: str, place: int, script: SedScript) -> int | None:
    """Read one command without its address; returns where it ends."""
    if code[place : place + 1] == "{":
        return place + 1
    if code[place : place + 1] == "#":
        return code.find("\n", place) if "\n" in code[place:] else len(code)
    if code[place : place + 1] in ("s", "y"):
        return _substitution(code, place, script)
    file = _FILE.match(code, place)
    if file:
        if code[place] in "wW":
            script.writes.append(file[1])
        return file.end()
    plain = _SIMPLE.match(code, place) or _TEXT.match(code, place)
    return plain.end() if plain else None


def _substitution(code: str, place: int, script: SedScript) -> int | None:
    delimiter = code[place + 1 : place + 2]
    if delimiter in ("", "\\", "\n"):
        return None
    end = place + 1
    for _ in range(2):
        end += 1
        while end < len(code) and code[end] != delimiter:
            end += 2 if code[end] == "\\" else 1
        if end >= len(code):
            return None
    flags = _FLAGS.match(code, end + 1)
    if flags is None:
        return None
    if flags[2]:
        script.writes.append(flags[3])
    after = code[flags.end() : flags.end() + 1]
    return flags.end() if after in ("", ";", "}", "\n", " ", "\t", "#") else None
