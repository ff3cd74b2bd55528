"""The writes of a line as they are gathered: by the shell, by its commands, through its links."""

from toolcell.shell.behind import program
from toolcell.shell.copied import LN
from toolcell.shell.directories import Directories
from toolcell.shell.facts import Word, Words, Write
from toolcell.shell.options import read
from toolcell.shell.places import below
from toolcell.shell.written import READERS, written_by

_LINKERS = frozenset(["ln", "gln", "cp", "gcp"])


class Writing:
    """What has been found so far, by the directories that may be current."""

    def __init__(self) -> None:
        """Begin in the directory of the line."""
        self.directories = Directories()
        self.repeated = 0  # more than 0 in what may run again later, as in a function
        self._again: dict[tuple[Word, bool], None] = {}
        self.output_may_be_input = False  # a descriptor opened to read stands for it
        self._writes: dict[Write, None] = {}
        self._links: dict[Write, None] = {}

    def at(self, place: Word, *, implied: bool) -> None:
        """Take a path that is written."""
        if self.repeated:
            self._again[place, implied] = None
        for path in self.directories.paths(place):
            self._writes[Write(path, implied)] = None

    def by_command(self, words: Words) -> None:
        """Take what a command writes; a link itself lies where it is made, not where it leads."""
        name, written = program(words[0]), written_by(words)
        if name not in _LINKERS:
            for place in written:
                self.at(place, implied=name not in READERS)
            return
        if self.repeated:
            self._again.update(((place, True), None) for place in written)
        places = [path for place in written for path in self.directories.paths(place)]
        places = self.directories.through_links(places)
        self._links.update(dict.fromkeys(Write(path, implied=True) for path in places))
        self._link(words)

    def found(self) -> tuple[Write, ...]:
        """Return every write, and where those that lead through links of the line end."""
        for place, implied in self._again:  # by now, the directory may be another
            for path in self.directories.paths(place):
                self._writes[Write(path, implied)] = None
        found = dict(self._links)
        if self.output_may_be_input and self.directories.reopens_output:
            found[Write(None)] = None
        for write in self._writes:
            for path in self.directories.through_links([write.path]):
                found[Write(path, write.implied)] = None
        return tuple(found)

    def _link(self, words: Words) -> None:
        """Remember the names under which `ln -s` and `cp -s` make a path known."""
        found = read(words[1:], LN, permute=True)
        if not found.has("s", "symbolic", "symbolic-link"):
            return
        directories = found.values("t", "target-directory")
        sources = found.operands if directories else found.operands[:-1] or found.operands
        targets = directories or (found.operands[-1:] if len(found.operands) > 1 else ["."])
        for source in sources:
            for target in targets:
                self.directories.link(target, source)
                self.directories.link(below(target, source), source)
