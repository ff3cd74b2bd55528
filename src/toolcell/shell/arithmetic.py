"""Where a value comes from, as far as the syntax tells: what arithmetic would evaluate."""

import re
from collections.abc import Iterator, Sequence

from toolcell.shell.facts import Unknown, Word
from toolcell.shell.parser import Node
from toolcell.shell.variables import UNSEEN, names_in
from toolcell.shell.words import word_of

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_COUNTS = frozenset(["#", "?", "$", "!", "-"])


def sources(parts: Sequence[Node]) -> set[str]:
    """The variables that a word's value is made of; UNSEEN for what only the run knows."""
    found: set[str] = set()
    for part in parts:
        found |= _sources_of(part)
    return found


def _sources_of(part: Node) -> set[str]:
    kind = part.get("Type")
    if kind == "Lit":
        value = part.get("Value", "")
        return {UNSEEN} if "\\" in value else names_in(value if value != "$" else "")
    if kind == "SglQuoted":
        return names_in(part.get("Value", "")) | ({UNSEEN} if part.get("Dollar") else set())
    if kind == "DblQuoted":
        return sources(part.get("Parts", ()))
    if kind == "ArithmExp":
        return set()
    if kind == "ParamExp":
        return _expanded(part)
    is_number = kind == "CmdSubst" and prints_number(part.get("Stmts", ()))
    return set() if is_number else {UNSEEN}


def _expanded(part: Node) -> set[str]:
    name = part.get("Param", {}).get("Value", "")
    if part.get("Length") or name in _COUNTS:
        return set()
    if not _NAME.fullmatch(name) or part.get("Excl"):
        return {UNSEEN}
    found = {name}
    for word in _words_in(part):
        found |= sources(word.get("Parts", ()))
    return found


def _words_in(part: Node) -> Iterator[Node]:
    expansion, replacement = part.get("Exp"), part.get("Repl")
    if expansion and "Word" in expansion and expansion.get("Op") != "@":
        yield expansion["Word"]
    if replacement and "With" in replacement:
        yield replacement["With"]


def prints_number(statements: Sequence[Node]) -> bool:
    """Whether a substitution surely gives a number: `wc -l < f`, `date +%s`, `... | wc -l`."""
    if len(statements) != 1:
        return False
    command = statements[0].get("Cmd", {})
    while command.get("Type") == "BinaryCmd" and command.get("Op") in ("|", "|&"):
        command = command.get("Y", {}).get("Cmd", {})
    if command.get("Type") != "CallExpr" or "Assigns" in command:
        return False
    words = [word_of(word) for word in command.get("Args", ())]
    if any(isinstance(word, Unknown) for word in words):
        return False
    return (
        re.fullmatch(
            r"wc( -[lcwm])+|nproc|date \+%[sYmdHMSjNu]|id -[ug]|expr [\d +*/%-]+|tr -(dc|cd) 0-9"
            r"|grep -c(iE|i|E|F|v|w)? [^ -]\S*( [^ -]\S*)?",
            " ".join(map(str, words)),
        )
        is not None
    )


def ends_let(node: Node) -> bool:
    """Whether an argument of `let` has what bash takes for the end of it, outside quotes."""
    operator = str(node.get("Op", ""))
    if node.get("Type") == "ParenArithm" or set(operator) & set("&|<>"):
        return True
    return any(ends_let(node[side]) for side in ("X", "Y") if isinstance(node.get(side), dict))


def expression(node: Node) -> Word:
    """An argument of `let`, which the parser has read as arithmetic, as a word again."""
    if node.get("Type") == "Word":
        return word_of(node)
    sides = [expression(node[side]) for side in ("X", "Y") if side in node]
    texts = [each for each in sides if isinstance(each, str)]
    if len(texts) < len(sides):
        return Unknown.SAFE
    operator = str(node.get("Op", ""))
    if len(texts) == 1:
        return texts[0] + operator if node.get("Post") else operator + texts[0]
    return operator.join(texts)
