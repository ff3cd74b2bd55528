"""Where git writes besides its own store: what its options name, and its settings."""

from toolcell.shell.facts import Unknown, Words
from toolcell.shell.git import GIT_CONFIG, GIT_GLOBAL, config_reads
from toolcell.shell.options import read, shortened, valued
from toolcell.shell.places import Places, within

_OUTPUT = shortened("output")
_NAMED = {
    "archive": rf"-[vl0-9]*o|{_OUTPUT}",
    "format-patch": rf"-[a-zA-Z]*o|{shortened('output-directory')}",
    "init": shortened("separate-git-dir"),
    "clone": shortened("separate-git-dir"),
    "checkout-index": shortened("prefix"),
    "fast-export": shortened("export-marks"),
    "fast-import": shortened("export-marks"),
    "bugreport": rf"-o|{shortened('output-directory')}",
    "mailsplit": r"-o",
}
_TREES = ("format-patch", "checkout-index", "bugreport", "mailsplit")


def versioned(words: Words) -> Places:
    """`git`: the files that its options name, below the directory that -C names."""
    found = read(words[1:], GIT_GLOBAL)
    places = _written(tuple(found.operands))
    for directory in reversed(found.values("C")):
        places = [within(directory, place) for place in places]
    return places


def _written(words: Words) -> Places:
    name = words[0] if words else ""
    if name == "config":
        return _settings(words)
    if name == "bundle":
        return list(words[2:]) if words[1:2] == ("create",) else []
    places = valued(words, _NAMED.get(str(name), _OUTPUT))
    return [*places, Unknown.ANY] if places and name in _TREES else places


def _settings(words: Words) -> Places:
    found = read(words[1:], GIT_CONFIG, permute=True)
    if config_reads(found):
        return []
    files = found.values("f", "file")
    if files or found.has("global", "system"):
        return files
    return [".git/config"]
