"""The walk over a syntax tree: every command in it, wherever it hides, is told to a Reading.

Nothing is passed over in silence: a node or a field that is not known here makes the line
unreadable, so that a newer parser can never hide what it has learnt to read.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from toolcell.shell.arithmetic import ends_let, expression, sources
from toolcell.shell.behind import Code, Dialect
from toolcell.shell.facts import Unknown, Unreadable, Word, Words
from toolcell.shell.given import Given
from toolcell.shell.nodes import check, need, need_text
from toolcell.shell.parser import Node
from toolcell.shell.reading import Reading
from toolcell.shell.redirections import RedirectionWalk
from toolcell.shell.variables import UNSEEN
from toolcell.shell.words import NAMED_VALUE, beginning, word_of

_MOST_NESTED = 60
_SOME_VALUE = "\0"  # which no program takes for a harmless one


class Walk(RedirectionWalk):
    """One walk; `dialect` says whether the shell may not be bash, which reads some otherwise."""

    def __init__(self, reading: Reading, dialect: Dialect) -> None:
        """Make ready to tell `reading` what is found."""
        super().__init__(reading, dialect)
        self._nested = 0
        self._perhaps = 0  # how many things decide whether what is read now runs at all
        self._reached = False
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
        statements = check(tree, "File").get("Stmts", ())
        starts = [each.get("Pos", {}).get("Line", 0) for each in statements]
        ends = [0, *(each.get("End", {}).get("Line", 0) for each in statements)]
        is_one = all(start <= end for start, end in zip(starts[1:], ends[1:], strict=False))
        for each, start, end in zip(statements, starts, ends, strict=False):
            # Where an expansion fails, bash passes over the rest of the line.
            self._reached = is_one or start > end
            self._statement(each)

    def _statements(self, statements: Iterable[Node]) -> None:
        for each in statements:
            self._statement(each)

    def _statement(self, node: Node) -> None:
        check(node, "Stmt")
        self._nested += 1
        if self._nested > _MOST_NESTED:
            raise Unreadable("the line is nested too deeply to be read")
        redirections = node.get("Redirs", ())
        command = node.get("Cmd")
        with self._maybe(bool(node.get("Background") or redirections)):
            given = Given(surely=self._surely())
            for each in redirections:
                self._redirection(each, given)
            if command is not None:
                self._command(command, given)
            elif given.doubt:
                self._reading.unseen(given.doubt)
        for each in redirections:
            self._word(need(each, "Word"))
            with self._inside(quotes=True):
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
        given.doubt = given.doubt or self._named_values(words, arguments)
        given.prefix = [(str(name), value) for name, value in assigned]
        self._reading.command(words, given)
        self._words(arguments)

    def _named_values(self, words: Words, arguments: Sequence[Node]) -> str:
        """Why `make SHELL="$x"` is in doubt, where only the value of an option is not known."""
        begins = [beginning(each.get("Parts", ())) for each in arguments]
        filled = [
            f"{begin}{_SOME_VALUE}"
            if isinstance(word, Unknown) and NAMED_VALUE.match(begin)
            else word
            for word, begin in zip(words, begins, strict=True)
        ]
        return self._reading.doubt_if(tuple(filled)) if filled != list(words) else ""

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
        self._only_in_bash("((...))")
        self._arithmetic(need(node, "X"))

    def _test_clause(self, node: Node) -> None:
        self._only_in_bash("[[...]]")
        self._test(need(node, "X"))

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
        self._reading.loops_over(name)
        if "InPos" not in loop:  # goes through the arguments of the shell or the function
            self._reading.values.holds(name, [UNSEEN])
        for item in items:
            word = word_of(item)
            if isinstance(word, Unknown):
                is_glob = all(part.get("Type") == "Lit" for part in item.get("Parts", ()))
                found = {UNSEEN} if is_glob else sources(item.get("Parts", ()))
                text = "".join(str(part.get("Value", "")) for part in item.get("Parts", ()))
                is_names = is_glob and not ("{" in text and "-" in text)
                self._reading.values.holds(name, found, files=is_names)
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
        if any(each.get("Op") == "|&" for each in chain):
            self._only_in_bash("|&")
        with self._maybe(True):
            self._chain(chain)

    def _chain(self, chain: list[Node]) -> None:
        """Walk a list from left to right: behind `cd DIRECTORY &&` that has succeeded."""
        directories = self._reading.writing.directories
        last, seen, all_succeeded = need(chain[-1], "X"), directories.current(), True
        self._statement(last)
        for each in reversed(chain):
            all_succeeded = all_succeeded and each.get("Op") == "&&"
            seen += directories.current()
            if not all_succeeded:
                directories.widen(seen)
            elif _is_plain_cd(last):
                directories.narrow()
            last = need(each, "Y")
            self._statement(last)
        directories.widen(seen)

    def _function(self, node: Node) -> None:
        name = need_text(node, "Name")
        is_word = node.get("RsrvWord") and self._dialect != "bash"
        surely = self._surely() and not is_word
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

    def _surely(self) -> bool:
        """Whether what is walked runs before all that follows, come what may."""
        return self._nested == 1 and not self._perhaps and self._reached

    @contextmanager
    def _maybe(self, perhaps: bool) -> Iterator[None]:
        """What is walked within may not run, or not in the shell that runs what follows."""
        self._perhaps += perhaps
        yield
        self._perhaps -= perhaps


def _is_plain_cd(statement: Node) -> bool:
    command = statement.get("Cmd", {})
    if statement.get("Negated") or statement.get("Background") or "Assigns" in command:
        return False
    words = [word_of(each) for each in command.get("Args", ())]
    return (
        command.get("Type") == "CallExpr"
        and len(words) == 2
        and words[0] == "cd"
        and isinstance(words[1], str)
        and re.match(r"[\w./]", words[1]) is not None
    )
