"""The walk inside words: substitutions, expansions, subscripts and arithmetic.

A word can hold whole commands, set variables, and evaluate text that nobody has seen.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from toolcell.shell.arithmetic import sources
from toolcell.shell.behind import Dialect
from toolcell.shell.effects import Set
from toolcell.shell.facts import Unknown, Unreadable
from toolcell.shell.nodes import check, need
from toolcell.shell.parser import Node
from toolcell.shell.reading import Reading
from toolcell.shell.variables import HOLDS_CODE, UNSEEN
from toolcell.shell.words import may_be_option, value_of, word_of

# In "${x:-'...'}" the inner quotes quote nothing: bash expands this, or ends there.
_NOT_QUOTED = re.compile(r"[$`\"\\}\n]|[<>]\(")
_TESTS_NUMBERS = frozenset(["-eq", "-ne", "-lt", "-le", "-gt", "-ge"])
_COMPARES = frozenset(["==", "!=", "<=", ">="])


class WordWalk:
    """Walks words; what a substitution holds is for the walk over commands to read."""

    def __init__(self, reading: Reading, dialect: Dialect) -> None:
        """Make ready to tell `reading` what is found."""
        self._reading = reading
        self._dialect = dialect
        self._quoted = False

    @contextmanager
    def _inside(self, *, quotes: bool) -> Iterator[None]:
        """Walk what stands in double quotes or in a here-document, or code within them."""
        outside, self._quoted = self._quoted, quotes
        yield
        self._quoted = outside

    def _group(self, node: Node) -> None:
        """Walk the commands that a substitution holds."""
        raise NotImplementedError

    def _words(self, words: Iterable[Node]) -> None:
        for each in words:
            self._word(each)

    def _word(self, word: Node | None) -> None:
        if word is not None:
            self._parts(check(word, "Word").get("Parts", ()))

    def _parts(self, parts: Iterable[Node]) -> None:
        for part in parts:
            kind = part.get("Type", "")
            check(part, kind)
            if kind == "DblQuoted":
                with self._inside(quotes=True):
                    self._parts(part.get("Parts", ()))
            elif kind in ("CmdSubst", "ProcSubst"):
                with self._inside(quotes=False):
                    self._group(part)
            elif kind == "SglQuoted":
                self._single(part)
            elif kind == "ParamExp":
                self._parameter(part)
            elif kind == "ArithmExp":
                self._arithmetic(need(part, "X"))
            elif kind == "ExtGlob":
                self._glob(part)
            elif kind != "Lit":
                raise Unreadable(f"the line uses {kind}, which toolcell does not know")

    def _only_in_bash(self, what: str) -> None:
        """Take something that other shells do not read as bash does."""
        if self._dialect != "bash":
            self._reading.unseen(f"shells other than bash may read {what} as a command")

    def _single(self, part: Node) -> None:
        if part.get("Dollar"):
            self._only_in_bash("$'...'")
        if self._quoted and _NOT_QUOTED.search(part.get("Value", "")):
            self._reading.unseen("single quotes inside double quotes do not quote")

    def _glob(self, part: Node) -> None:
        pattern = part.get("Pattern", {}).get("Value", "")
        if HOLDS_CODE.search(pattern):
            self._reading.unseen("a pattern holds code that bash may run")

    def _parameter(self, part: Node) -> None:
        name = part.get("Param", {}).get("Value", "")
        self._subscript(name, part.get("Index"))
        if part.get("Excl") and "Names" not in part and "Index" not in part:
            self._reading.values.evaluates([name] if name.isidentifier() else [UNSEEN])
        if "Slice" in part:
            self._arithmetic(check(need(part, "Slice"), "Slice").get("Offset"))
            self._arithmetic(need(part, "Slice").get("Length"))
        if "Repl" in part:
            self._word(check(need(part, "Repl"), "Replace").get("Orig"))
            self._word(need(part, "Repl").get("With"))
        if "Exp" in part:
            target = None if part.get("Excl") else name
            self._expansion(target, check(need(part, "Exp"), "Expansion"))

    def _expansion(self, name: str | None, node: Node) -> None:
        word = node.get("Word")
        self._word(word)
        if node.get("Op") == "@" and word is not None and "P" in str(word_of(word)):
            self._reading.unseen(f"${{{name or '!...'}@P}} runs commands that the value holds")
        if node.get("Op") in (":=", "="):
            value = value_of(word) if word is not None else ""
            self._reading.sets(name, self._computed(name, word or {}) if value is None else value)

    def _subscript(self, name: str | None, node: Node | None) -> None:
        """Walk a subscript, which is arithmetic unless the array is known to be a map."""
        if node is None:
            return
        if name in self._reading.values.maps and node.get("Type") == "Word":
            self._word(node)
            self._reading.values.in_map(str(name), sources(node.get("Parts", ())))
        else:
            self._arithmetic(node)

    def _arithmetic(self, node: Node | None) -> None:
        if node is None:
            return
        kind = node.get("Type", "")
        check(node, kind)
        if kind == "Word":
            self._word(node)
            self._reading.values.evaluates(sources(node.get("Parts", ())))
            return
        operator = node.get("Op", "")
        if operator in ("++", "--") or (operator.endswith("=") and operator not in _COMPARES):
            self._counts(need(node, "X"))
        for side in ("X", "Y"):
            self._arithmetic(node.get(side))

    def _counts(self, target: Node) -> None:
        name = word_of(target) if target.get("Type") == "Word" else Unknown.ANY
        if isinstance(name, str):
            self._reading.sets(name, "0")

    def _test(self, node: Node) -> None:
        kind = node.get("Type", "")
        if kind == "Word":
            self._word(node)
            return
        check(node, kind)
        sides = [node[side] for side in ("X", "Y") if side in node]
        for side in sides:
            self._test(side)
            if side.get("Type") == "Word" and node.get("Op") in _TESTS_NUMBERS:
                self._reading.values.evaluates(sources(side.get("Parts", ())))
            elif side.get("Type") == "Word" and node.get("Op") in ("-v", "-R"):
                self._named(side)

    def _named(self, word: Node) -> None:
        """Take the name of a variable, whose subscript is evaluated."""
        name = word_of(word)
        if isinstance(name, Unknown) or HOLDS_CODE.search(name):
            self._reading.values.evaluates([UNSEEN])

    def _assignment(self, node: Node) -> Set:
        """Walk an assignment; returns the variable and what is known of its value."""
        check(node, "Assign")
        name = node.get("Name", {}).get("Value")
        value = node.get("Value")
        self._subscript(name, node.get("Index"))
        if "Array" in node:
            self._array(node["Array"], name)
            return name, "()"
        if value is None:
            return name, ""
        self._word(value)
        text = value_of(value)
        return name, self._computed(name, value) if text is None else text

    def _computed(self, name: str | None, value: Node) -> Unknown:
        found = sources(value.get("Parts", ()))
        if may_be_option(value.get("Parts", ())):
            self._reading.values.suspect = True
        if name is not None:
            self._reading.values.holds(name, found)
        return Unknown.ANY if UNSEEN in found else Unknown.SAFE

    def _array(self, node: Node, name: str | None) -> None:
        for each in check(node, "ArrayExpr").get("Elems", ()):
            check(each, "ArrayElem")
            self._subscript(name, each.get("Index"))
            if "Value" in each:
                self._word(each["Value"])
                self._computed(name, each["Value"])
