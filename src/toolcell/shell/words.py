"""Words of a syntax tree as the program would get them, or None where only the run knows."""

import re
from collections.abc import Iterable, Sequence

from toolcell.shell.facts import Unknown, Word
from toolcell.shell.parser import Node
from toolcell.shell.variables import GIVEN

_QUOTED = "q"  # stands for a quoted character where only unquoted ones count
_GLOB = re.compile(r"[*?]|\[.*\]", re.DOTALL)  # a lone [ is the command
_BRACES = re.compile(r"\{.*(?:,|\.\.).*\}", re.DOTALL)
_SUSPECT = "-;+*?["  # with these an option begins, the end of an -exec, or a glob
_PRINTS_NO_OPTION = re.compile(
    r"pwd|nproc|whoami|hostname|uname( -\w)?|id -[ugn]+|date (-u )?\+%?\w.*"
    r"|git rev-parse (--short )?(HEAD|--show-toplevel)|git branch --show-current"
    r"|git merge-base [\w./]\S* [\w./]\S*"
)
_FILLED = GIVEN - {"PWD", "OLDPWD"}  # by bash, with words of the line; these begin with a slash
_KEEPS_BEGINNING = frozenset(["%", "%%", "^", "^^", ",", ",,"])
_DEFAULTS = frozenset([":-", "-", ":=", "=", ":+", "+"])
NAMED_VALUE = re.compile(r"-{0,2}[A-Za-z_.][\w.-]*=", re.ASCII)
_HOME = re.compile(r"^~|[=:]~")
_TILDE = re.compile(r"^~|:~")
_SIMPLE_ESCAPES = {
    **{"n": "\n", "t": "\t", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f"},
    **{"r": "\r", "v": "\v", "\\": "\\", "'": "'", '"': '"', "?": "?"},
}
_ESCAPE = re.compile(
    r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|(.))", re.DOTALL
)


def word_of(word: Node) -> Word:
    """Return what an argument becomes, quoting undone, or what is known of it."""
    parts = word.get("Parts", ())
    read = _read(parts)
    if read is None:
        return _unknown(parts)
    text, mask = read
    if _BRACES.search(mask):
        return Unknown.ANY
    if _HOME.search(mask) or _GLOB.search(mask):
        return Unknown.SAFE if mask[0] not in "-*?[" else Unknown.ANY
    return text


def _unknown(parts: Sequence[Node]) -> Unknown:
    """Tell by the first part whether an expansion may become an option, or many words."""
    if not all(_is_one(part) for part in parts):
        return Unknown.ANY
    if parts[0].get("Type") in ("ProcSubst", "ArithmExp"):
        return Unknown.SAFE
    begin = beginning(parts)
    if begin:
        return Unknown.SAFE if begin[0] not in _SUSPECT else _suspect(begin)
    return Unknown.ANY if may_be_option(parts) else Unknown.ONE


def _suspect(begin: str) -> Unknown:
    """What begins as an option does; if its name is whole, only its value is not known."""
    return Unknown.ONE if NAMED_VALUE.match(begin) else Unknown.ANY


def may_be_option(parts: Iterable[Node]) -> bool:
    """Whether a value may begin as an option does for more reasons than variables in it."""
    waiting = list(parts)
    while waiting:
        part = waiting.pop(0)
        if part.get("Type") == "DblQuoted" and not part.get("Dollar"):
            waiting[:0] = part.get("Parts", ())
        elif part.get("Type") == "ParamExp":
            if _may_become_option(part):
                return True
        elif part.get("Type") == "ArithmExp" or _prints_no_option(part):
            return False
        else:
            read = _read([part])
            if read is None or read[0]:
                return read is None or read[0][0] in _SUSPECT
    return False


def _prints_no_option(part: Node) -> bool:
    """Whether a part is a substitution such as `$(date +%F)`."""
    statements: list[Node] = part.get("Stmts", []) if part.get("Type") == "CmdSubst" else []
    command = statements[0].get("Cmd", {}) if len(statements) == 1 else {}
    if command.get("Type") != "CallExpr" or "Assigns" in command:
        return False
    words = map(word_of, command.get("Args", ()))
    return _PRINTS_NO_OPTION.fullmatch(" ".join(map(str, words))) is not None


def _may_become_option(part: Node) -> bool:
    operator = part.get("Exp", {}).get("Op", "-")
    is_other = part.keys() & {"Excl", "Names", "Repl", "Slice"}
    if is_other or operator not in _DEFAULTS | _KEEPS_BEGINNING:
        return True
    if operator in _KEEPS_BEGINNING:
        return False
    return may_be_option(part.get("Exp", {}).get("Word", {}).get("Parts", ()))


def beginning(parts: Iterable[Node]) -> str:
    """The text with which a word begins, as far as it is written out, quoting undone."""
    text = ""
    for part in parts:
        read = _read([part])
        if read is None:
            inner = part.get("Parts", ()) if part.get("Type") == "DblQuoted" else ()
            return text + (beginning(inner) if not part.get("Dollar") else "")
        text += read[0]
    return text


def _is_one(part: Node) -> bool:
    """Whether a part cannot split its word: literal text without braces, or quoted."""
    kind = part.get("Type")
    if kind == "Lit":
        return "{" not in part.get("Value", "")
    if kind == "DblQuoted":
        return not part.get("Dollar") and all(map(_is_single, part.get("Parts", ())))
    return kind in ("SglQuoted", "ProcSubst", "ArithmExp")


def _is_single(part: Node) -> bool:
    """Whether a part inside double quotes stays one word: not "$@", not "${list[@]}"."""
    if part.get("Type") != "ParamExp":
        return True
    name = part.get("Param", {}).get("Value", "")
    if name in _FILLED:
        return False
    return re.fullmatch(r"[A-Za-z_]\w*", name) is not None and not (
        part.keys() & {"Index", "Excl", "Names", "Exp", "Repl", "Slice"}
    )


def value_of(word: Node) -> str | None:
    """Return what an assigned value becomes: no globs and no braces, but home directories."""
    read = _read(word.get("Parts", ()))
    return None if read is None or _TILDE.search(read[1]) else read[0]


def document(redirect: Node) -> str | None:
    """Return the body of a here-document; None where it is computed."""
    body = redirect.get("Hdoc")
    if body is None:
        return ""
    parts = body.get("Parts", ())
    if any(part.get("Type") != "Lit" for part in parts):
        return None
    raw = "".join(part.get("Value", "") for part in parts)
    if redirect.get("Op") == "<<-":
        raw = re.sub(r"(?m)^\t+", "", raw)
    return raw if _delimiter_is_quoted(redirect) else re.sub(r"\\([$`\\])", r"\1", raw)


def here_string(redirect: Node) -> str | None:
    """Return what `<<<` gives to a command; None where it is computed."""
    read = _read(redirect.get("Word", {}).get("Parts", ()))
    return None if read is None or _TILDE.search(read[1]) else f"{read[0]}\n"


def _delimiter_is_quoted(redirect: Node) -> bool:
    parts = redirect.get("Word", {}).get("Parts", ())
    return any(part.get("Type") != "Lit" or "\\" in part.get("Value", "") for part in parts)


def _read(parts: Iterable[Node]) -> tuple[str, str] | None:
    """Return the text of word parts, and the same with each quoted character masked."""
    text, mask = "", ""
    for part in parts:
        kind = part.get("Type")
        if kind == "Lit":
            more, masked = _unquoted(part.get("Value", ""))
            text, mask = text + more, mask + masked
            continue
        quoted = _quoted(part) if kind in ("SglQuoted", "DblQuoted") else None
        if quoted is None:
            return None
        text, mask = text + quoted, mask + _QUOTED * len(quoted)
    return text, mask


def _unquoted(value: str) -> tuple[str, str]:
    if "\\" not in value:
        return value, value
    value = value.replace("\\\n", "")
    return (
        re.sub(r"\\(.)", r"\1", value, flags=re.DOTALL),
        re.sub(r"\\.", _QUOTED, value, flags=re.DOTALL),
    )


def _quoted(part: Node) -> str | None:
    value = part.get("Value", "")
    if part.get("Type") == "SglQuoted":
        return ansi(value) if part.get("Dollar") else value
    inner = part.get("Parts", ())
    if part.get("Dollar") or any(piece.get("Type") != "Lit" for piece in inner):
        return None  # $"..." is looked up in a catalogue of translations
    return re.sub(r'\\([$`"\\])', r"\1", "".join(piece.get("Value", "") for piece in inner))


def ansi(value: str) -> str | None:
    """Decode the inside of $'...'; None where it depends on the locale or is cut at a NUL."""
    decoded = []
    end = 0
    for match in _ESCAPE.finditer(value):
        character = _escaped(match)
        if character is None:
            return None
        decoded += [value[end : match.start()], character]
        end = match.end()
    return "".join([*decoded, value[end:]])


def _escaped(match: re.Match[str]) -> str | None:
    octal, short, *wide, other = match.groups()
    if other is not None:
        # \c, and \x or \u without digits, are left to the shell.
        return None if other in "cxuU" else _SIMPLE_ESCAPES.get(other, "\\" + other)
    number = int(octal, 8) if octal else int(short or wide[0] or wide[1], 16)
    return chr(number) if 0 < number < 0x80 else None
