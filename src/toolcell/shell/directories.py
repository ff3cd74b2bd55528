"""Where a relative path may lie: the directories that a line may be in, the links it makes."""

import posixpath
import re
from collections.abc import Iterable
from itertools import pairwise

from toolcell.shell.facts import Unknown, Word

_MOST = 8  # directories to keep apart; with more, the place counts as unknown
_DEVICES = re.compile(r"/dev/(?:null|zero|full|tty)")
_OUTPUTS = re.compile(r"/dev/(?:stdout|stderr|fd/[12])|/proc/(?:self|thread-self)/fd/[12]")
# These lead to a file, or a directory, that something else has opened or is in.
_OPENED = re.compile(
    r"/dev/(?:fd|stdin|stdout|stderr)(?:/|$)|/proc/[^/]+/(?:.*/)?(?:fd|cwd|root|task|map_files)(?:/|$)"
)
_SOCKETS = re.compile(r"/dev/(?:tcp|udp)/")
_SOCKET_PARTS = re.compile(
    r"/dev(?!/(?:null|zero|full|u?random|shm|tty|std(?:in|out|err)|fd)\b)(?:/|\b)"
    r"|\b(?:tcp|udp)/"
)
_HOME = re.compile(r"~")


def names_socket(text: str) -> bool:
    """Whether a line can make a path out of its text for which bash opens a connection."""
    return _SOCKET_PARTS.search(re.sub(r"[\\'\"]", "", text)) is not None


def is_socket(path: Word) -> bool:
    """Whether bash opens a connection when it redirects to this path."""
    return isinstance(path, str) and _SOCKETS.match(_tidy(path)) is not None


class Directories:
    """Every directory that may be the current one so far: a `cd` may also have failed."""

    def __init__(self) -> None:
        self._current = [""]
        self._entered: list[str] = []  # by the last `cd`
        self._unsure = False
        self.reopens_output = False  # by a name such as /dev/stdout
        self._links: list[tuple[str, str | None]] = []

    def enter(self, directory: Word) -> None:
        """Note a `cd`; an Unknown one may lead anywhere."""
        if isinstance(directory, Unknown) or directory in ("", "-") or _HOME.match(directory):
            self._unsure = True
            return
        entered = [posixpath.join(each, directory) for each in self._current]
        self._unsure = self._unsure or any(map(_is_opened, entered))
        self._entered = entered
        self.widen(entered)

    def current(self) -> list[str]:
        """Every directory that may be the current one, as far as they are known."""
        return list(self._current)

    def narrow(self) -> None:
        """Note that the last `cd` has succeeded."""
        self._current = list(dict.fromkeys(self._entered)) or self._current

    def widen(self, directories: list[str]) -> None:
        """Note that the current directory may also be one of these."""
        self._current = list(dict.fromkeys([*self._current, *directories]))
        if len(self._current) > _MOST:
            del self._current[_MOST:]
            self._unsure = True

    def link(self, name: Word, target: Word) -> None:
        """Note a symbolic link: what is written below its name is written below its target."""
        for path in self.paths(name):
            parent = posixpath.dirname(path or "")
            there = posixpath.join(parent, target) if isinstance(target, str) else None
            there = None if there is not None and _is_opened(there) else there
            if path is not None and len(self._links) < _MOST**2:
                self._links.append((path, _tidy(there) if there is not None else None))

    def paths(self, word: Word) -> list[str | None]:
        """Every path that a word may mean; None for one that only the run knows."""
        if isinstance(word, Unknown):
            return [None]
        if _DEVICES.fullmatch(_tidy(word)) or not word:
            return []
        if _OUTPUTS.fullmatch(_tidy(word)):
            self.reopens_output = True
            return []
        found: list[str | None] = []
        for directory in self._current:
            path = posixpath.join(directory, word)
            found += [None] if _is_opened(path) else _spellings(path)
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
                there = None if there is not None and _is_opened(there) else there
                if is_below and there not in found:
                    found.append(there)
        return found


def _is_opened(path: str) -> bool:
    return _OPENED.match(_tidy(path)) is not None or _OPENED.match(_without_dots(path)) is not None


def _without_dots(path: str) -> str:
    """A path without what changes nothing, but with every `..`, which may leave a link."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    return "/".join(["", *parts] if path.startswith("/") else parts)


def _spellings(path: str) -> list[str]:
    """A path made short, and as it is where `..` may lead out of a link instead."""
    tidy = _tidy(path)
    parts = [part for part in path.split("/") if part not in ("", ".")]
    climbs = any(after == ".." != before for before, after in pairwise(parts))
    return [tidy, path] if climbs else [tidy]


def _tidy(path: str) -> str:
    tidy = posixpath.normpath(path)
    return f"/{tidy.lstrip('/')}" if tidy.startswith("//") else tidy
