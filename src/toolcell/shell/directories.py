"""Where a relative path may lie: the directories that a line may be in, the links it makes."""

import posixpath
import re
from collections.abc import Iterable
from itertools import pairwise

from toolcell.shell.facts import Unknown, Word

_MOST = 8  # directories to keep apart; with more, the place counts as unknown
_DEVICES = re.compile(
    r"/dev/(?:null|zero|full|stdin|stdout|stderr|tty|fd/\d+)|/proc/(?:self|\d+)/fd/\d+"
)
_SOCKETS = re.compile(r"/dev/(?:tcp|udp)/")
_HOME = re.compile(r"~")


def is_socket(path: Word) -> bool:
    """Whether bash opens a connection when it redirects to this path."""
    return isinstance(path, str) and _SOCKETS.match(_tidy(path)) is not None


class Directories:
    """Every directory that may be the current one so far: a `cd` may also have failed."""

    def __init__(self) -> None:
        self._current = [""]
        self._unsure = False
        self._links: list[tuple[str, str | None]] = []

    def enter(self, directory: Word) -> None:
        """Note a `cd`; an Unknown one may lead anywhere."""
        if isinstance(directory, Unknown) or directory in ("", "-") or _HOME.match(directory):
            self._unsure = True
            return
        entered = [posixpath.join(each, directory) for each in self._current]
        self._current += [each for each in dict.fromkeys(entered) if each not in self._current]
        if len(self._current) > _MOST:
            del self._current[_MOST:]
            self._unsure = True

    def link(self, name: Word, target: Word) -> None:
        """Note a symbolic link: what is written below its name is written below its target."""
        for path in self.paths(name):
            parent = posixpath.dirname(path or "")
            there = posixpath.join(parent, target) if isinstance(target, str) else None
            if path is not None and len(self._links) < _MOST**2:
                self._links.append((path, _tidy(there) if there is not None else None))

    def paths(self, word: Word) -> list[str | None]:
        """Every path that a word may mean; None for one that only the run knows."""
        if isinstance(word, Unknown):
            return [None]
        if _DEVICES.fullmatch(_tidy(word)) or not word:
            return []
        found: list[str | None] = []
        for directory in self._current:
            found += _spellings(posixpath.join(directory, word))
        if self._unsure and not word.startswith("/"):
            found.append(None)
        return list(dict.fromkeys(found))

    def through_links(self, paths: Iterable[str | None]) -> list[str | None]:
        """Add where paths lie when they lead through links that the line makes."""
        found = list(dict.fromkeys(paths))
        if len(self._links) == _MOST**2 and None not in found:
            found.append(None)  # more links than are kept apart
        for path in found:  # grows: a link may lead to another
            for name, target in self._links if path is not None and len(found) < _MOST**2 else ():
                is_below = path == name or str(path).startswith(f"{name}/")
                rest = str(path)[len(name) + 1 :]
                there = _tidy(posixpath.join(target, rest)) if target is not None else None
                if is_below and there not in found:
                    found.append(there)
        return found


def _spellings(path: str) -> list[str]:
    """A path made short, and as it is where `..` may lead out of a link instead."""
    tidy = _tidy(path)
    parts = [part for part in path.split("/") if part not in ("", ".")]
    climbs = any(after == ".." != before for before, after in pairwise(parts))
    return [tidy, path] if climbs else [tidy]


def _tidy(path: str) -> str:
    tidy = posixpath.normpath(path)
    return f"/{tidy.lstrip('/')}" if tidy.startswith("//") else tidy
