"""The facts of a line as they are gathered, command by command, in the order of the text.

`Reading` knows nothing of syntax. It is told of commands by their words, of redirections and
of assignments, looks through wrappers, and asks for code inside code to be read in turn.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from toolcell.shell.behind import Behind, Code, Inner, is_system, program
from toolcell.shell.directories import is_socket
from toolcell.shell.doubts import DOUBTED, doubt_about
from toolcell.shell.effects import CHANGERS, SPECIAL, Effect, effect_of
from toolcell.shell.facts import Command, Line, Unknown, Unreadable, Word, Words, listed
from toolcell.shell.given import Given
from toolcell.shell.variables import Values, danger, is_harmless_for, names_in
from toolcell.shell.wrappers import WRAPPERS, look_through
from toolcell.shell.writing import Writing
from toolcell.shell.written import WRITERS

KNOWN = WRAPPERS | WRITERS | DOUBTED | CHANGERS | SPECIAL
# Programs that a line may not take over by a function of the same name without a doubt.
_COMMON = KNOWN | listed(
    "ls cat echo grep egrep fgrep head tail cut tr wc diff cmp date pwd id whoami uname hostname"
    " which type true false test printf sleep seq basename dirname realpath readlink stat file du"
    " df ps kill pkill top free env make cmake ninja python python3 pip pytest tox node npm yarn"
    " pnpm npx deno bun go cargo rustc java javac mvn gradle ruby gem perl php docker podman"
    " kubectl helm terraform aws gcloud az gh hub git svn hg curl wget nc ping dig apt apt-get yum"
    " dnf brew jq yq tree column paste join comm nl tac rev fold fmt expand od xxd hexdump md5sum"
    " sha256sum base64 uv ruff black mypy eslint prettier tsc jest vitest ping mount umount"
)
_MOST_NESTED = 12  # commands behind commands, code inside code
_MOST_DOUBTS = 8  # that one command is told to be in
_MOST_TEXTS = 64  # pieces of code in one line that need the parser
_LATE_NAME = "a variable is set whose name is only known at run time; it may be PATH"
_PLAIN = re.compile(r"[\w@%+:,./ -]*", re.ASCII)
_OF_ONES_OWN = re.compile(r"[A-Za-z_][\w-]*", re.ASCII)

ReadCode = Callable[["Reading", Code, str], None]  # of what, how it is read, its text


@dataclass(slots=True)
class _Found:
    """A command while its doubts are still being gathered."""

    words: Words
    wraps: bool
    doubts: list[str]
    defined: bool | None = None  # a function of the line: surely, perhaps, or not at all

    def command(self) -> Command:
        words = tuple(word if isinstance(word, str) else None for word in self.words)
        return Command(words, self.wraps, "; ".join(dict.fromkeys(filter(None, self.doubts))))


class Reading:
    """What has been found in one line so far."""

    def __init__(self, read_code: ReadCode) -> None:
        """Make an empty one; `read_code` reads code inside the line, and tells this of it."""
        self._read_code = read_code
        self._found: list[_Found] = []
        self._later: dict[str, int] = {}  # a doubt, and the first command that it is about
        self._depth = 0
        self._texts = 0
        self._again: list[int] = []  # where loops and functions begin, which may run again
        self._functions: dict[str, bool] = {}
        self._references: set[str] = set()
        self._certain = True  # False in code that may not run, as that of a trap
        self.names_socket = False  # the line has the text for a path such as /dev/tcp/...
        self.writing = Writing()
        self.values = Values()

    def begins_with(self, name: str, value: str) -> None:
        """Take a variable that is set when the line begins."""
        self._add(("export", f"{name}={value}"), [])
        self.sets(name, value)

    def begins_in(self, directory: str) -> None:
        """Take the directory that the line begins in, for certain."""
        self._add(("cd", directory), [])
        self.writing.directories.enter(directory)
        self.writing.directories.narrow()

    def finish(self) -> Line:
        """Return the facts, with the doubts that only the whole line can tell."""
        commands = self._found
        for doubt, start in self._later.items():
            for each in commands[start:]:
                each.doubts.append(doubt)
        for each in commands:
            self._call(each)
        name = self.values.runs()
        if name:
            doubt = f"bash evaluates {name} here, and runs commands that it may hold"
            commands = [*commands, _Found((Unknown.ANY,), wraps=False, doubts=[doubt])]
        directories = tuple(self.writing.directories.current())
        found = tuple(each.command() for each in commands)
        return Line(found, self.writing.found(), directories=directories)

    def _call(self, each: _Found) -> None:
        """A function of the line's own is looked through; one that hides a program is not."""
        name = each.words[0]
        if each.defined is None or not isinstance(name, str) or name not in self._functions:
            return
        if each.defined and name not in _COMMON and self._functions[name]:
            each.wraps = True
        else:
            each.doubts.append(f"{name} may be the function that the line defines")

    def command(self, words: Words, given: Given | None = None) -> None:
        """Take a simple command that the line's own shell runs."""
        given = given or Given()
        doubts = [given.doubt, *self._prefixed(words, given)]
        effect = effect_of(words, given.sets)
        direct = not given.no_function
        self._command(words, [*doubts, effect.here], given.stdin, direct=direct)
        self._take_effect(effect, surely=given.surely and self._certain)

    def doubt_if(self, words: Words) -> str:
        """Why a command would be in doubt, or one that it starts, if its words were these."""
        other = Reading(lambda *_: None)
        other.command(words)
        return next((each.doubt for each in other.finish().commands if each.doubt), "")

    def _prefixed(self, words: Words, given: Given) -> list[str]:
        stays = words[0] in SPECIAL
        return [
            doubt
            for name, value in given.prefix
            if (doubt := self.assigned(name, value, stays=stays, words=words))
        ]

    def _take_effect(self, effect: Effect, *, surely: bool) -> None:
        self.later(effect.later)
        for name in effect.plain:
            self.values.is_plain(name)
        for name in effect.maps:
            self.values.is_map(name, surely=surely)
        for name in effect.exports:
            if not self.values.is_set(name):
                self.later(danger(name, Unknown.ANY))
        for target, value in effect.sets:
            self.sets(target, value)
        for name in effect.references:
            self.refers(name)
        for subscript in effect.evaluates:
            self.values.evaluates(names_in(subscript))
        for name in effect.integers:
            self.values.is_integer(name)
        if effect.enters is not None:
            self.writing.directories.enter(effect.enters)
        if effect.forgets_functions:
            self._functions = dict.fromkeys(self._functions, False)

    def sets(self, name: str | None, value: Word) -> None:
        """Take an assignment that holds for what follows."""
        if name is None:
            self.later(_LATE_NAME)
            return
        self.values.holds_text(name, value)
        self.later(danger(name, value))

    def refers(self, name: str) -> None:
        """Take `declare -n`: a loop over such a name gives it another target."""
        self._references.add(name)
        if self._again:
            self.later(_LATE_NAME)

    def loops_over(self, name: str) -> None:
        """Take the variable of a loop."""
        self.later(_LATE_NAME if name in self._references else danger(name, Unknown.ANY))

    def assigned(self, name: str, value: Word, *, stays: bool = False, words: Words = ()) -> str:
        """Take an assignment for one command; returns why that command is in doubt."""
        self.values.holds_text(name, value)
        doubt = "" if is_harmless_for(name, value, words) else danger(name, value)
        if stays:
            self.later(doubt)
        return doubt

    def later(self, doubt: str) -> None:
        """Put every command that follows in doubt, and in a loop those before it too."""
        if not doubt:
            return
        start = self._again[0] if self._again else len(self._found)
        if len(self._later) > _MOST_DOUBTS:
            doubt = "many variables are set that can change what the command runs"
        self._later[doubt] = min(start, self._later.get(doubt, start))

    @contextmanager
    def repeated(self) -> Iterator[None]:
        """What is found within may run more than once."""
        self._again.append(len(self._found))
        self.writing.repeated += 1
        try:
            yield
        finally:
            self._again.pop()
            self.writing.repeated -= 1

    def defines(self, name: str, *, surely: bool) -> None:
        """Take the definition of a function; `surely`: every command that follows sees it."""
        surely = surely and self._certain and _OF_ONES_OWN.fullmatch(name) is not None
        self._functions[name] = surely and self._functions.get(name, True)

    def unseen(self, doubt: str) -> None:
        """Take a command of which nothing is known but that it may run."""
        self._add((Unknown.ANY,), [doubt])

    def redirects(self, place: Word, *, out: bool) -> str:
        """Take a redirection to a path; returns why its command is in doubt."""
        if is_socket(place):
            return f"bash opens a network connection for {place}"
        if out:
            self.writing.at(place, implied=False)
        may_be_socket = isinstance(place, Unknown) and self.names_socket
        return "bash may open a network connection here" if may_be_socket else ""

    def _add(self, words: Words, doubts: list[str], *, wraps: bool = False) -> _Found:
        found = _Found(words, wraps, list(doubts))
        self._found.append(found)
        return found

    def _command(
        self, words: Words, doubts: list[str], stdin: str | None, *, direct: bool = False
    ) -> None:
        doubts = [*doubts, doubt_about(words, suspect=self.values.suspect)]
        behind = look_through(words)
        if behind is None:
            found = self._add(words, doubts)
        else:
            wraps = is_system(words[0]) and not behind.own
            found = self._add(words, [*doubts, behind.doubt], wraps=wraps)
        if direct:
            found.defined = self._functions.get(str(words[0]), False)
        self.writing.by_command(words)
        if behind is not None:
            self._behind(words, behind, doubts[:-1], stdin)

    def _behind(self, words: Words, behind: Behind, doubts: list[str], stdin: str | None) -> None:
        for place in behind.writes:
            self.writing.at(place, implied=behind.own)
        for place in behind.directories:
            self.writing.directories.enter(place)
        doubts = [*doubts, *(self.assigned(name, value) for name, value in behind.assigned)]
        with self._deeper() as deep_enough:
            for inner in behind.inner:
                if not deep_enough:
                    self.unseen("commands are nested too deeply here to be read")
                elif isinstance(inner, Code):
                    self._code(inner, doubts, stdin)
                else:
                    self._inner(words, inner, doubts, stdin)

    def _inner(self, outer: Words, inner: Inner, doubts: list[str], stdin: str | None) -> None:
        if program(outer[0]) in ("command", "builtin"):
            doubt = "; ".join(filter(None, doubts))
            self.command(inner.words, Given(stdin=stdin, doubt=doubt, no_function=True))
            return
        self._command(inner.words, [*doubts, inner.doubt], stdin)

    @contextmanager
    def _deeper(self) -> Iterator[bool]:
        self._depth += 1
        try:
            yield self._depth <= _MOST_NESTED
        finally:
            self._depth -= 1

    def code(self, code: Code) -> None:
        """Take code inside the line that its syntax does not show as such."""
        with self._deeper() as deep_enough:
            if deep_enough:
                self._code(code, [], None)
            else:
                self.unseen("commands are nested too deeply here to be read")

    def _code(self, code: Code, doubts: list[str], stdin: str | None) -> None:
        text = stdin if code.stdin else code.text
        start = len(self._found)
        if text is None:
            self.unseen(f"it runs {code.why}, which is only known at run time")
        else:
            self._text(code, text)
        if text is not None and code.dialect == "foreign" and not _PLAIN.fullmatch(text):
            doubts = [*doubts, f"{code.why} may be read otherwise than bash would"]
        for each in self._found[start:]:
            each.doubts += doubts

    def _text(self, code: Code, text: str) -> None:
        self._texts += 1
        self.writing.repeated += code.same_shell  # a trap runs later
        if self._texts > _MOST_TEXTS:
            raise Unreadable("the line has too much code inside code to be read")
        outside, certain, maps = self._functions, self._certain, self.values.maps
        self._certain = not code.same_shell
        if not code.same_shell:
            self._functions, self.values.maps = {}, set()
        try:
            self._read_code(self, code, text)
        except Unreadable as error:
            if not error.lasting:
                raise
            self.unseen(f"{code.why} cannot be read: {error}")
        finally:
            self._functions, self._certain, self.values.maps = outside, certain, maps
            self.writing.repeated -= code.same_shell
