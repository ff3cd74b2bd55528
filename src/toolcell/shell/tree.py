"""The walk over a syntax tree: every command in it, wherever it hides, is told to a Reading.

Nothing is passed over in silence: a node or a field that is not known here makes the line
unreadable, so that a newer parser can never hide what it has learnt to read.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from toolcell.shell.arithmetic import ends_let, expression, sources
from toolcell.shell.behind import Code, Dialect
from toolcell.shell.expansions import WordWalk
from toolcell.shell.facts import Unknown, Unreadable, Word
from toolcell.shell.nodes import check, need, need_text
from toolcell.shell.parser import Node
from toolcell.shell.reading import Given, Reading
from toolcell.shell.variables import HOLDS_CODE, UNSEEN, danger
from toolcell.shell.words import document, here_string, word_of

_MOST_NESTED = 60
_OUT = frozenset([">", ">>", ">|", "&>", "&>>", "<>", ">&"])
_IN = frozenset(["<", "<&"])
_COPIES = frozenset([">&", "<&"])
_EXPANDS = re.compile(r"[$`~*?\[{<>]")
_DOCUMENTS = frozenset(["<<", "<<-", "<<<"])
_DESCRIPTOR = re.compile(r"\d*-?")
_TESTS_NUMBERS = frozenset(["-eq", "-ne", "-lt", "-le", "-gt", "-ge"])
_AMBIGUOUS = "shells other than bash may read {} as a command"


class Walk(WordWalk):
    """One walk; `dialect` says whether the shell may not be bash, which reads some otherwise."""

    def __init__(self, reading: Reading, dialect: Dialect) -> None:
        """Make ready to tell `reading` what is found."""
        super().__init__(reading)
        self._dialect = dialect
        self._nested = 0
        self._perhaps = 0  # how many things decide whether what is read now runs at all
        self._commands: dict[str, Callable[[Node], None]] = {
            "CallExpr": self._call,
            "DeclClause": self._declaration,
            "LetClause": self._let,
            "ArithmCmd": self._arithmetic_command,
            "TestClause": self._test_clause,
            "Subshell": self._group,
            "Block": self._block,
            "IfClause": self._if,
            "WhileClause": self._while,
            "ForClause": self._for,
            "CaseClause": self._case,
            "BinaryCmd": self._binary,
            "FuncDecl": self._function,
            "TimeClause": self._time,
            "CoprocClause": self._coprocess,
        }
        self._given = Given()

    def file(self, tree: Node) -> None:
        """Walk a whole tree."""
        self._statements(check(tree, "File").get("Stmts", ()))

    def _statements(self, statements: Iterable[Node]) -> None:
        for each in statements:
            self._statement(each)

    def _statement(self, node: Node) -> None:
        check(node, "Stmt")
        self._nested += 1
        if self._nested > _MOST_NESTED:
            raise Unreadable("the line is nested too deeply to be read")
        redirections = node.get("Redirs", ())
        given = Given()
        for each in redirections:
            self._redirection(each, given)
        command = node.get("Cmd")
        with self._maybe(bool(node.get("Background"))):
            if command is not None:
                self._command(command, given)
            elif given.doubt:
                self._reading.unseen(given.doubt)
        for each in redirections:
            self._word(need(each, "Word"))
            self._word(each.get("Hdoc"))
        self._nested -= 1

    def _command(self, node: Node, given: Given) -> None:
        kind = node.get("Type", "")
        check(node, kind)
        walk = self._commands.get(kind)
        if walk is None:
            raise Unreadable(f"the line uses {kind}, which toolcell does not know")
        if given.doubt and kind not in ("CallExpr", "DeclClause"):
            self._reading.unseen(given.doubt)
        self._given = given
        walk(node)

    def _redirection(self, node: Node, given: Given) -> None:
        check(node, "Redirect")
        kind, number = node.get("Op"), node.get("N", {}).get("Value", "")
        if number.startswith("{"):
            self._reading.sets(number.strip("{}"), "10")
        if kind in _DOCUMENTS:
            if number in ("", "0"):
                given.stdin = here_string(node) if kind == "<<<" else document(node)
            return
        if kind not in _OUT | _IN:
            raise Unreadable(f"the line redirects with {kind}, which toolcell does not know")
        if kind in _IN and number in ("", "0"):
            given.stdin = None
        place = self._descriptor(node) if kind in _COPIES else word_of(need(node, "Word"))
        if place is None:
            return
        doubt = self._reading.redirects(place, out=kind in _OUT)
        given.doubt = given.doubt or doubt

    def _descriptor(self, node: Node) -> Word | None:
        """Return the file that >& names, None where it is the number of a descriptor."""
        place, parts = word_of(need(node, "Word")), need(node, "Word").get("Parts", ())
        if isinstance(place, str) and _DESCRIPTOR.fullmatch(place):
            return None
        if parts[0].get("Value", "").startswith("-"):
            # For bash >&- is a whole operator, and what follows it is a word of the command.
            raise Unreadable(f"the line has a word directly behind {node['Op']}-")
        # Bash expands this word twice, what is quoted in it as well (seen with 5.2).
        self._reading.values.evaluates(sources(parts))
        return Unknown.ANY if not isinstance(place, str) or _EXPANDS.search(place) else place

    def _call(self, node: Node) -> None:
        given = self._given
        assigned = [self._assignment(each) for each in node.get("Assigns", ())]
        arguments = node.get("Args", ())
        if not arguments:
            for name, value in assigned:
                self._reading.sets(name, value)
            if given.doubt:
                self._reading.unseen(given.doubt)
            return
        words = tuple(word_of(each) for each in arguments)
        if words[0] == "--":
            raise Unreadable("a command begins with --, which bash may pass over")
        self._negated_group(arguments[0])
        given.prefix = [(str(name), value) for name, value in assigned]
        self._reading.command(words, given)
        self._words(arguments)

    def _negated_group(self, word: Node) -> None:
        """`!(git push)` is a glob for shfmt; without extglob bash runs what is in it."""
        first: Node = next(iter(word.get("Parts", ())), {})
        if first.get("Type") == "ExtGlob" and first.get("Op") == "!(":
            code = first.get("Pattern", {}).get("Value", "")
            self._reading.code(Code(code, "what is negated", self._dialect, same_shell=True))

    def _declaration(self, node: Node) -> None:
        given = self._given
        words: list[Word] = [need_text(node, "Variant")]
        given.sets = []
        for each in node.get("Args", ()):
            name, value = self._assignment(each)
            if not each.get("Naked"):
                given.sets.append((name, value))
                is_text = isinstance(value, str) and "Array" not in each
                words.append(f"{name}={value}" if is_text else Unknown.SAFE)
                continue
            word: Word = word_of(each["Value"]) if "Value" in each else str(name)
            given.sets += [(None, Unknown.ANY)] if isinstance(word, Unknown) else []
            words.append(word)
        self._reading.command(tuple(words), given)

    def _let(self, node: Node) -> None:
        expressions = node.get("Exprs", ())
        if any(map(ends_let, expressions)):
            # Without quotes these end the command for bash, but not for shfmt.
            raise Unreadable("`let` has one of & | < > ( ) outside quotes")
        words = [expression(each) for each in expressions]
        self._reading.command(("let", *words), self._given)
        for each in expressions:
            self._arithmetic(each)

    def _arithmetic_command(self, node: Node) -> None:
        if self._dialect != "bash":
            self._reading.unseen(_AMBIGUOUS.format("((...))"))
        self._arithmetic(need(node, "X"))

    def _test_clause(self, node: Node) -> None:
        if self._dialect != "bash":
            self._reading.unseen(_AMBIGUOUS.format("[[...]]"))
        self._test(need(node, "X"))

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

    def _group(self, node: Node) -> None:
        with self._maybe(True):
            self._statements(node.get("Stmts", ()))

    def _block(self, node: Node) -> None:
        self._statements(node.get("Stmts", ()))

    def _if(self, node: Node) -> None:
        branch: Node | None = node
        with self._maybe(True):
            while branch is not None:
                check(branch, "IfClause")
                self._statements(branch.get("Cond", ()))
                self._statements(branch.get("Then", ()))
                branch = branch.get("Else")

    def _while(self, node: Node) -> None:
        with self._maybe(True), self._reading.repeated():
            self._statements(node.get("Cond", ()))
            self._statements(node.get("Do", ()))

    def _for(self, node: Node) -> None:
        loop = need(node, "Loop")
        check(loop, loop.get("Type", ""))
        with self._maybe(True), self._reading.repeated():
            if loop.get("Type", "") == "CStyleLoop":
                for part in ("Init", "Cond", "Post"):
                    self._arithmetic(loop.get(part))
            else:
                self._iteration(loop)
            self._statements(node.get("Do", ()))

    def _iteration(self, loop: Node) -> None:
        name, items = need_text(loop, "Name"), loop.get("Items", ())
        self._reading.later(danger(name, Unknown.ANY))
        if "InPos" not in loop:  # goes through the arguments of the shell or the function
            self._reading.values.holds(name, [UNSEEN])
        for item in items:
            word = word_of(item)
            if isinstance(word, Unknown):
                is_glob = all(part.get("Type") == "Lit" for part in item.get("Parts", ()))
                found = {UNSEEN} if is_glob else sources(item.get("Parts", ()))
                self._reading.values.holds(name, found, files=is_glob)
            else:
                self._reading.values.holds_text(name, word)
        self._words(items)

    def _case(self, node: Node) -> None:
        self._word(need(node, "Word"))
        with self._maybe(True):
            for item in node.get("Items", ()):
                check(item, "CaseItem")
                self._words(item.get("Patterns", ()))
                self._statements(item.get("Stmts", ()))

    def _binary(self, node: Node) -> None:
        """Walk `a && b && c`, which leans to the left, without going deeper for each."""
        chain = [node]
        while (left := need(chain[-1], "X")).get("Cmd", {}).get("Type") == "BinaryCmd" and (
            "Redirs" not in left and not left.get("Background")
        ):
            check(left, "Stmt")
            chain.append(check(need(left, "Cmd"), "BinaryCmd"))
        with self._maybe(True):
            self._statement(need(chain[-1], "X"))
            for each in reversed(chain):
                self._statement(need(each, "Y"))

    def _function(self, node: Node) -> None:
        name = need_text(node, "Name")
        is_word = node.get("RsrvWord") and self._dialect != "bash"
        surely = not self._perhaps and not is_word
        with self._maybe(True), self._reading.repeated():
            self._statement(need(node, "Body"))
        self._reading.defines(name, surely=surely)

    def _time(self, node: Node) -> None:
        if "Stmt" in node:
            self._statement(need(node, "Stmt"))

    def _coprocess(self, node: Node) -> None:
        name = word_of(node["Name"]) if "Name" in node else "COPROC"
        self._reading.sets(None if isinstance(name, Unknown) else name, "0")
        self._word(node.get("Name"))
        with self._maybe(True):
            self._statement(need(node, "Stmt"))

    @contextmanager
    def _maybe(self, perhaps: bool) -> Iterator[None]:
        """What is walked within may not run, or not in the shell that runs what follows."""
        self._perhaps += perhaps
        yield
        self._perhaps -= perhaps
