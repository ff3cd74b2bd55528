"""The walk over redirections: what a command reads, and where the shell itself writes."""

import re

from toolcell.shell.arithmetic import sources
from toolcell.shell.expansions import WordWalk
from toolcell.shell.facts import Unknown, Unreadable, Word
from toolcell.shell.given import Given
from toolcell.shell.nodes import check, need
from toolcell.shell.parser import Node
from toolcell.shell.words import document, here_string, word_of

_OUT = frozenset([">", ">>", ">|", "&>", "&>>", "<>", ">&"])
_IN = frozenset(["<", "<&"])
_COPIES = frozenset([">&", "<&"])
_ONLY_IN_BASH = frozenset(["&>", "&>>", "<<<"])
_EXPANDS = re.compile(r"[$`~*?\[{<>]")
_DOCUMENTS = frozenset(["<<", "<<-", "<<<"])
_DESCRIPTOR = re.compile(r"\d*-?")


class RedirectionWalk(WordWalk):
    """Walks the redirections of one statement."""

    def _redirection(self, node: Node, given: Given) -> None:
        check(node, "Redirect")
        kind, number = node.get("Op"), node.get("N", {}).get("Value", "")
        if kind in _ONLY_IN_BASH or number.startswith("{"):
            self._only_in_bash(f"{number}{kind}")
        if number.startswith("{"):
            self._reading.sets(number.strip("{}"), "10")
        if kind in _DOCUMENTS:
            if number in ("", "0"):
                given.stdin = here_string(node) if kind == "<<<" else document(node)
            return
        if kind not in _OUT | _IN:
            raise Unreadable(f"the line redirects with {kind}, which toolcell does not know")
        is_input = number in ("", "0") and kind not in _OUT - {"<>"}
        if is_input or number == "0":
            given.stdin = None
        if _copies_input(node) or (kind in _IN - _COPIES and not is_input):
            self._reading.writing.output_may_be_input = True
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


def _copies_input(redirect: Node) -> bool:
    """Whether `>&0` or the like makes another descriptor of what standard input is."""
    copied = word_of(need(redirect, "Word")) if redirect.get("Op") in _COPIES else ""
    return isinstance(copied, Unknown) or copied[:1] == "0"
