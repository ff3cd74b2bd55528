"""Where a key of a TOML text stands: tomllib tells values, not lines."""

import re

Path = tuple[str | int, ...]

_HEADER = re.compile(r"\s*(\[\[?)\s*([^\[\]]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(
    r"""\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*="""
)
_PART = re.compile(r"""[A-Za-z0-9_-]+|"[^"]*"|'[^']*'""")
_STRINGS = re.compile(r"""\"{3}|'{3}|"(?:\\.|[^"\\])*"|'[^']*'|#.*|[\[\]{}]""")


class Lines:
    """The lines of the keys of one TOML text; built once it has been parsed."""

    def __init__(self, text: str) -> None:
        self._found: dict[Path, int] = {(): 1}
        self._counts: dict[Path, int] = {}
        table: Path = ()
        depth, quote = 0, ""
        for number, line in enumerate(text.splitlines(), 1):
            if not depth and not quote:
                if header := _HEADER.match(line):
                    table = self._header(header[1] == "[[", _parts(header[2]))
                    self._found.setdefault(table, number)
                    continue
                if key := _KEY.match(line):
                    self._keep((*table, *_parts(key[1])), number, len(table))
            depth, quote = _state(line, depth, quote)

    def of(self, path: Path) -> int:
        """Return the line of a key, or of the nearest thing around it."""
        for end in range(len(path), -1, -1):
            if line := self._found.get(tuple(path[:end])):
                return line
        return 1

    def _header(self, is_array: bool, parts: Path) -> Path:
        path: Path = ()
        for place, part in enumerate(parts):
            path = (*path, part)
            if is_array and place == len(parts) - 1:
                self._counts[path] = self._counts.get(path, -1) + 1
            if path in self._counts:  # what follows belongs to the last of them
                path = (*path, self._counts[path])
        return path

    def _keep(self, path: Path, number: int, table: int) -> None:
        for end in range(table + 1, len(path) + 1):
            self._found.setdefault(path[:end], number)


def _parts(dotted: str) -> Path:
    return tuple(part.strip("\"'") for part in _PART.findall(dotted))


def _state(line: str, depth: int, quote: str) -> tuple[int, str]:
    """Follow brackets and long strings over the lines that they span."""
    position = 0
    while position < len(line):
        if quote:
            end = line.find(quote, position)
            if end < 0:
                return depth, quote
            position, quote = end + 3, ""
            continue
        found = _STRINGS.search(line, position)
        if found is None:
            return depth, ""
        position = found.end()
        if found[0] in ('"""', "'''"):
            quote = found[0]
        elif found[0] in ("[", "{"):
            depth += 1
        elif found[0] in ("]", "}"):
            depth -= 1
    return depth, quote
