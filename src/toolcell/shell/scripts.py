"""Small programs inside a line, those of sed and awk: do they run commands, do they write?"""

import re
from dataclasses import dataclass

from toolcell.shell.facts import listed

_RUNS = re.compile(
    r"@|(?<![A-Za-z_])(?:system|getline)(?!\w)|\b[0-9]\w*(?:system|getline)\b", re.ASCII
)
_PRINTS = re.compile(r"(?<![A-Za-z_])printf?(?!\w)", re.ASCII)
_STREAM = "\N{SECTION SIGN}"  # stands for a standard stream, as no program of awk writes it
_TO_STREAM = re.compile(rf"[^>]*>>?\s*{_STREAM}\s*")
_UNCLEAR = "@"  # stands for what is not understood, and is as bad
_STREAMS = frozenset(['"/dev/stderr"', '"/dev/stdout"'])
_CONTINUED = re.compile(r"(,|&&|\|\||\?|:)\s*\n\s*")
_IN_PARENTHESES = re.compile(r"\([^(){}\n]*\)")
# After these words a slash may begin a regex or divide; after any other word it divides.
_KEYWORDS = listed(
    "print printf return exit else do in case default delete length func function switch next"
    " nextfile getline BEGIN END BEGINFILE ENDFILE break continue while for if"
)
_WORD_BEFORE = re.compile(r"(\w+)$", re.ASCII)
_REGEX_SET = re.compile(r"\[(?:\^\]|\]|\^(?!\])|(?![\]^]))(?:\[:\w+:\]|[^][])*\]")
_MOST_READINGS = 100
_LONGEST = 8_000  # characters of one program
_MOST_MARKS = 500  # in it that begin texts, divide, or hold what is in parentheses


def awk_danger(code: str) -> str:
    """Why awk code may run commands or write files; "" where it does neither."""
    if "\\\n" in code and "#" in code:
        return "awk code with comments and continued lines is not read"
    if len(code) > _LONGEST or len(re.findall(r'["/#(]', code)) > _MOST_MARKS:
        return "awk code of this size is not read"
    readings = _readings(code.replace("\\\n", ""))
    if not readings:
        return "toolcell cannot tell that the awk code runs nothing"
    return next(filter(None, map(_danger, readings)), "")


def _danger(bare: str) -> str:
    """The same of code without its texts."""
    if _RUNS.search(bare):
        return "awk code can run commands"
    if re.search(r"(?<!\|)\|(?!\|)", bare):
        return "awk code can run commands through a pipe"
    bare = _CONTINUED.sub(r"\1 ", bare)
    inner = 1
    while inner:  # what stands in parentheses compares
        bare, inner = _IN_PARENTHESES.subn(" ", bare)
    for statement in re.split(r"[;{}\n]", bare):
        printed = _PRINTS.search(statement)
        rest = statement[printed.end() :] if printed else ""
        if ">" in rest and not _TO_STREAM.fullmatch(rest):
            return "awk code can write files"
    return ""


def _readings(code: str) -> list[str]:
    """The code without texts, for every way to read its slashes that awk could take."""
    readings: list[str] = []
    begun = [(0, "")]
    while begun:
        place, bare = begun.pop()
        if len(readings) + len(begun) > _MOST_READINGS:
            return []
        if place >= len(code):
            readings.append(bare)
        elif code[place] in '"/#':
            begun += _text(code, place, bare)
        else:
            end = next((n for n in range(place, len(code)) if code[n] in '"/#'), len(code))
            begun.append((end, bare + code[place:end]))
    return readings


def _text(code: str, place: int, bare: str) -> list[tuple[int, str]]:
    """Read past a text, a comment or a slash: where one may go on, and the code before that."""
    if code[place] == "#":
        end = code.find("\n", place)
        return [(end if end >= 0 else len(code), bare)]
    ways = []
    if code[place] == "/" and _may(bare, "divide"):
        ways.append((place + 1, f"{bare}/"))
    if code[place] == '"' or _may(bare, "match"):
        ways += _masked(code, place, bare)
    return ways


def _masked(code: str, place: int, bare: str) -> list[tuple[int, str]]:
    end = _closing(code, place)
    if end is None:
        return []  # no awk takes this
    if code[place] == "/" and not _is_closed(code[place + 1 : end]):
        return [(len(code), f"{bare}{_UNCLEAR}")]
    text = _STREAM if code[place : end + 1] in _STREAMS else '"'
    return [(end + 1, f"{bare}{text}")]


def _may(bare: str, what: str) -> bool:
    """Whether a slash may `divide` or begin a regex to `match`, by what stands before it."""
    before = bare.rstrip(" \t")[-64:]  # longer than any keyword
    word = _WORD_BEFORE.search(before)
    unclear = bool(word and word[1] in _KEYWORDS) or before.endswith((")", "++", "--", "}"))
    value = word is not None or before.endswith(("]", '"', ".", _STREAM))
    return unclear or (value if what == "divide" else not value)


def _is_closed(regex: str) -> bool:
    """Whether a regex ends outside of brackets, in which some awks let a slash be."""
    return "[" not in _REGEX_SET.sub("", re.sub(r"\\.", "x", regex))


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
    r"\s*(?:(?:\d+(?:~\d+)?|\$|/(?:\\.|[^/\n\\])*/[IM]*"
    r"|\\([^\n\\])(?:\\.|(?!\1)[^\n\\])*\1[IM]*)"
    r"(?:\s*,\s*(?:[+~]?\d+|\$|/(?:\\.|[^/\n\\])*/[IM]*))?)?\s*!*\s*"
)
_SIMPLE = re.compile(r"[=dDgGhHnNpPxzF]|[lqQL]\s*\d*|[:btT][ \t]*[\w.-]*(?=[\s;}]|$)", re.ASCII)
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
