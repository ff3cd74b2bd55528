r"""Globs: one language for the arguments of tools and, without braces, for ignore files.

    *        any characters of one name        [a-z]    one of these; [!a-z] none of them;
    ?        one character of a name                    [[:alpha:]] and its like
    **       between slashes: any directories  {a,b}    either (not in ignore files)
    \x       x itself

A glob without a slash, but for one at its end, is for names at every depth; with one it is for
the whole path. This is what git does with the lines of .gitignore.

The regular expressions made here take linear time on a path, whatever the glob: between two
stars the leftmost fit is as good as any, so it is taken for good (an atomic group).
"""

import re
from collections.abc import Callable, Iterator
from itertools import pairwise

_MAX_BRANCHES = 200
_POSIX = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": " \\t",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": "\\s",
    "upper": "A-Z",
    "xdigit": "0-9a-fA-F",
}
_STAR = ""


class GlobError(Exception):
    """A glob that can match nothing, because it is not one."""


class Glob:
    """What names and paths a glob with braces is for; paths are relative, with slashes."""

    def __init__(self, text: str) -> None:
        names: list[str] = []
        paths: list[str] = []
        for branch in braces(text):
            branch = branch.removeprefix("./") + ("**" if branch.endswith("/") else "")
            (paths if "/" in branch else names).append(expression(branch.removeprefix("/")))
        self._all = "[^/]*" in names or "(?s:.+)" in names
        self._fits_name = _fits(names)
        self._fits_path = _fits(paths)

    def matches(self, path: str, name: str) -> bool:
        """Say whether the glob is for something with this path and name."""
        return self._all or bool(self._fits_name(name) or self._fits_path(path))


def _fits(sources: list[str]) -> Callable[[str], object]:
    """Return what is true of a text that one of some expressions fits as a whole."""
    return re.compile("|".join(sources) or "(?!)").fullmatch


def braces(text: str) -> list[str]:
    """Write out the braces of a glob; those that hold no comma, or are not closed, stay."""
    found, ahead = [], [text]
    while ahead:
        branch = ahead.pop()
        group = _first_group(branch)
        if group is None:
            found.append(branch)
        else:
            start, end, cuts = group
            edges = [start, *cuts, end]
            ahead += [
                branch[:start] + branch[low + 1 : high] + branch[end + 1 :]
                for low, high in pairwise(edges)
            ]
        if len(found) + len(ahead) > _MAX_BRANCHES:
            raise GlobError(f"its braces stand for more than {_MAX_BRANCHES} globs")
    return found


def _first_group(text: str) -> tuple[int, int, list[int]] | None:
    """Find the first braces with a comma at their own level: start, end and the commas."""
    open_: list[tuple[int, list[int]]] = []
    closed: list[tuple[int, int, list[int]]] = []
    at = 0
    while at < len(text):
        sign = text[at]
        if sign == "\\":
            at += 1
        elif sign == "[":
            at = max(at, _class_end(text, at))
        elif sign == "{":
            open_.append((at, []))
        elif sign == "," and open_:
            open_[-1][1].append(at)
        elif sign == "}" and open_:
            start, cuts = open_.pop()
            if cuts:
                closed.append((start, at, cuts))
        at += 1
    return min(closed, default=None)


def expression(glob: str) -> str:
    """Return the source of a regular expression that fits what a glob without braces is for."""
    if "/" not in glob:
        return "(?s:.+)" if glob == "**" else "".join(_segment(glob))
    groups: list[list[str]] = [[]]
    for segment in _split(glob):
        if segment == "**":
            groups.append([])
        else:
            groups[-1].append("".join(_segment(segment)))
    return "".join(_joined(groups))


def _split(glob: str) -> Iterator[str]:
    """Cut a path at its slashes, but for those in a class, where they fit nothing."""
    start = at = 0
    while at < len(glob):
        if glob.startswith("\\/", at):
            yield glob[start:at]
            start = at + 2
        elif glob[at] == "/":
            yield glob[start:at]
            start = at + 1
        elif glob[at] == "[":
            at = max(at, _class_end(glob, at))
        at += 2 if glob[at] == "\\" else 1
    yield glob[start:]


def _joined(groups: list[list[str]]) -> Iterator[str]:
    """Put the segments between `**` together; each group but the first can begin at any depth."""
    last = len(groups) - 1
    for number, group in enumerate(groups):
        body = "/".join(group)
        if number == last:
            if number:
                yield "(?:[^/]+/)*" if group else "(?s:.+)"
            yield body
        elif number == 0:
            yield f"{body}/" if group else ""
        elif group:
            yield f"(?>(?:[^/]+/)*?{body}/)"


def _segment(text: str) -> Iterator[str]:
    """Render one name; the chunks between two stars are taken where they first fit."""
    chunks: list[list[str]] = [[]]
    for part in _parts(text):
        if part == _STAR:
            chunks.append([])
        else:
            chunks[-1].append(part)
    first, *middle = chunks
    yield "".join(first)
    for chunk in middle[:-1]:
        if chunk:
            yield f"(?>[^/]*?{''.join(chunk)})"
    if middle:
        yield "[^/]*" + "".join(middle[-1])


def _parts(text: str) -> Iterator[str]:
    """Render each character of a name for itself."""
    at = 0
    while at < len(text):
        sign = text[at]
        if sign == "\\":
            at += 1
            if at == len(text):
                raise GlobError("it ends in a backslash")
            yield re.escape(text[at])
        elif sign == "[":
            end = _class_end(text, at)
            if end < 0:
                raise GlobError("its [ is not closed; write \\[ for the character")
            yield _class(text[at + 1 : end])
            at = end
        else:
            yield {"*": _STAR, "?": "[^/]"}.get(sign, re.escape(sign))
        at += 1


def _class_end(text: str, at: int) -> int:
    """Return where the class that begins at a place ends, or -1."""
    at += 1
    at += text[at : at + 1] in ("!", "^")
    first = at
    while at < len(text):
        if end := _posix_end(text, at):
            at = end - 1
        elif text[at] == "\\":
            at += 1
        elif text[at] == "]" and at > first:
            return at
        at += 1
    return -1


def _posix_end(text: str, at: int) -> int:
    """Return where a class such as [:alpha:] ends, or 0 where none begins."""
    end = text.find("]", at + 2) if text.startswith("[:", at) else -1
    return end + 1 if end > at + 2 and text[end - 1] == ":" else 0


def _class(body: str) -> str:
    negated = body[:1] in ("!", "^")
    members = "".join(_members(body[negated:]))
    if negated:
        return f"[^/{members}]"
    return f"(?!/)[{members}]" if members else "(?!)"


def _members(body: str) -> Iterator[str]:
    at = 0
    while at < len(body):
        if end := _posix_end(body, at):
            if body[at + 2 : end - 2] not in _POSIX:
                raise GlobError(f"{body[at:end]} is not a class")
            yield _POSIX[body[at + 2 : end - 2]]
            at = end
            continue
        low, at = _member(body, at)
        if body[at : at + 1] == "-" and at + 1 < len(body):
            high, at = _member(body, at + 1)
            # One that runs backwards still holds its first character, as in git.
            yield f"{re.escape(low)}-{re.escape(max(low, high))}"
        else:
            yield re.escape(low)


def _member(body: str, at: int) -> tuple[str, int]:
    at += body[at] == "\\" and at + 1 < len(body)
    return body[at], at + 1
