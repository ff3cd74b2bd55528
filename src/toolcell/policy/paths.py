"""Paths as a policy sees them: as written, and where they really lead.

Both are looked at, because either may be the one that matters: a link in the workspace may
lead into .git, and .git may be a link. The answer holds for the moment of the decision; what a
call can reach is kept by its cell.
"""

import os
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

_LONGEST = 4096  # PATH_MAX: no file has a longer one
_ANOTHER_PROCESS = re.compile(r"/(?:proc/[^/]+/(?:cwd|root|fd|task)|dev/(?:fd|stdin))(?:/|$)")
_NOWHERE = "/tmp"  # noqa: S108  # where a cell without a workspace stands


class PatternError(ValueError):
    """A glob, a directory or a regular expression that is none."""


class View(NamedTuple):
    """A path, absolute, and relative to the workspace where it is inside ("." is itself)."""

    absolute: str
    relative: str | None


class Workspace:
    """The directory that relative paths start from, by its name and by where that leads."""

    def __init__(self, place: Path | None) -> None:
        self.given = os.path.normpath(str(place.absolute())) if place else _NOWHERE
        self.real = os.path.realpath(self.given)
        self._seen: dict[str, tuple[View, ...] | None] = {}

    def look_again(self) -> None:
        """Forget where paths led: a new call is decided, and links may lead elsewhere by now."""
        self._seen.clear()

    def views(self, path: str) -> tuple[View, ...] | None:
        """Return how a path can be seen; None where it cannot be a path of any file."""
        if path not in self._seen:
            self._seen[path] = self._look(path)
        return self._seen[path]

    def _look(self, path: str) -> tuple[View, ...] | None:
        if not path or len(path) > _LONGEST or "\0" in path:
            return None
        try:
            lexical = os.path.normpath(os.path.join(self.given, path))  # noqa: PTH118
            # Of the path as written: `..` after a link leads elsewhere than a normalised one.
            real = os.path.realpath(os.path.join(self.given, path))  # noqa: PTH118
        except (OSError, ValueError):
            return None
        if _ANOTHER_PROCESS.match(lexical):  # here they would lead where the controller stands
            return None
        both = (self._view(lexical), self._view(real))
        return both[:1] if both[0] == both[1] else both

    def _view(self, absolute: str) -> View:
        for root in (self.given, self.real):
            if absolute == root:
                return View(absolute, ".")
            if absolute.startswith(root.rstrip("/") + "/"):
                return View(absolute, absolute[len(root.rstrip("/")) + 1 :])
        return View(absolute, None)

    def directory(self, written: str) -> str:
        """Return the real directory that `under` names, relative to the workspace if so written.

        Raises PatternError.
        """
        if "\0" in written:
            raise PatternError(f"{written!r} is not a directory: it has a NUL character")
        return os.path.realpath(os.path.join(self.given, os.path.expanduser(written)))  # noqa: PTH111, PTH118


class Under:
    """The condition that a path lies in one of some directories, really."""

    def __init__(self, directories: Iterable[str], workspace: Workspace) -> None:
        found = [workspace.directory(each) for each in directories]
        self._directories = [(each, each.rstrip("/") + "/") for each in found]

    def __call__(self, view: View) -> bool:
        """Whether one view of a path does."""
        path = view.absolute
        for directory, below in self._directories:
            if path.startswith(below) or path == directory:
                return True
        return False


class PathGlobs:
    """The condition that a path fits one of some globs.

    A glob that begins with "/" or "~" is compared with the absolute path, any other with the one
    relative to the workspace. `dir/**` is the directory too.
    """

    def __init__(self, globs: Iterable[str]) -> None:
        expanded = [os.path.expanduser(each) for each in globs]  # noqa: PTH111
        self._absolute = [glob_pattern(each) for each in expanded if each.startswith("/")]
        self._relative = [glob_pattern(each) for each in expanded if not each.startswith("/")]

    def __call__(self, view: View) -> bool:
        """Whether one view of a path does."""
        if any(match(view.absolute) for match in self._absolute):
            return True
        return view.relative is not None and any(match(view.relative) for match in self._relative)


@lru_cache(maxsize=1024)
def glob_pattern(glob: str) -> Callable[[str], re.Match[str] | None]:
    """Compile a glob: `*` and `?` stay within a directory, `**` does not, [abc] is one of them."""
    text, out, end = glob.removeprefix("./"), "", 0
    if text.endswith("/**"):
        text, tail = text[:-3], "(?:/.*)?"
    else:
        tail = ""
    for found in re.finditer(r"\*\*/|\*+|\?|\[!?+(?:\][^\]/]*|[^\]/]+)\]", text):
        out += re.escape(text[end : found.start()]) + _wild(found[0])
        end = found.end()
    try:
        return re.compile(out + re.escape(text[end:]) + tail, re.DOTALL).fullmatch
    except re.error as error:
        raise PatternError(f"{glob!r} is not a glob: {error}") from None


def _wild(part: str) -> str:
    if part == "**/":
        return "(?:.*/)?"
    if part.startswith("*"):
        return "[^/]*" if part == "*" else ".*"
    if part == "?":
        return "[^/]"
    inside = part[1:-1].replace("\\", r"\\").replace("[", r"\[")
    return f"[^{inside[1:]}/]" if inside.startswith("!") else f"(?!/)[{inside}]"
