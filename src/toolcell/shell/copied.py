"""Copies, moves and links: what is put where."""

import posixpath
import re

from toolcell.shell.facts import Unknown, Word, Words
from toolcell.shell.options import Found, read, shortened, spec, valued
from toolcell.shell.places import Places, below, everything

_CP = spec(
    "-abdfHilLnPpRrsuvxZT -t: -S: --archive --attributes-only --backup? --copy-contents --debug"
    " --dereference --force --interactive --link --keep-directory-symlink --no-clobber"
    " --no-dereference --no-preserve: --no-target-directory --one-file-system --parents"
    " --preserve? --recursive --reflink? --remove-destination --sparse: --strip-trailing-slashes"
    " --suffix: --symbolic-link --target-directory: --update? --verbose --context?"
)
_MV = spec(
    "-bfinuvTZ -t: -S: --backup? --debug --exchange --force --interactive --no-clobber --no-copy"
    " --no-target-directory --strip-trailing-slashes --suffix: --target-directory: --update?"
    " --verbose --context"
)
LN = spec(
    "-bdFfiLnPrsvT -t: -S: --backup? --directory --force --interactive --logical"
    " --no-dereference --physical --relative --symbolic --suffix: --target-directory:"
    " --no-target-directory --verbose"
)
_INSTALL = spec(
    "-bcCDdpsvTZ -g: -m: -o: -t: -S: --backup? --compare --context? --directory --group:"
    " --mode: --owner: --preserve-context --preserve-timestamps --strip --strip-program:"
    " --suffix: --target-directory: --no-target-directory --verbose"
)


# With these whole trees are copied, and what is in them is not known.
_TREES = ("r", "R", "a", "recursive", "archive")


def destinations(found: Found) -> tuple[Places, Places]:
    """Split the operands of cp, mv or ln into what is taken and where it is put."""
    directories = found.values("t", "target-directory")
    sources = found.operands if directories else found.operands[:-1]
    targets = directories or found.operands[-1:]
    into = [below(target, source) for target in targets for source in sources]
    return sources, [*targets, *into]


def copied(words: Words) -> Places:
    """`cp`: the destination, and what may lie in it afterwards."""
    found = read(words[1:], _CP, permute=True)
    if found.unknown:
        return everything(words)
    sources, places = destinations(found)
    if found.has("parents"):
        texts = [each for each in sources if isinstance(each, str)]
        places += [posixpath.join(str(places[0]), each.lstrip("/")) for each in texts]
    if found.has("l", "link"):
        places += sources  # the copy is the same file
    return [*places, Unknown.ANY] if found.has(*_TREES) else places


def moved(words: Words) -> Places:
    """`mv`: the sources are gone afterwards, which is a write as well."""
    found = read(words[1:], _MV, permute=True)
    if found.unknown:
        return everything(words)
    sources, places = destinations(found)
    return [*sources, *places]


def linked(words: Words) -> Places:
    """`ln`: the link."""
    found = read(words[1:], LN, permute=True)
    if found.unknown:
        return everything(words)
    if len(found.operands) == 1 and not found.has("t", "target-directory"):
        return [below(".", found.operands[0]), *_hard(found, found.operands)]
    sources, places = destinations(found)
    return [*places, *_hard(found, sources)]


def _hard(found: Found, sources: list[Word]) -> Places:
    """A hard link is the file itself under another name: whoever makes one may write it."""
    return [] if found.has("s", "symbolic") else list(sources)


def installed(words: Words) -> Places:
    """`install`: the copies, or with -d directories."""
    found = read(words[1:], _INSTALL, permute=True)
    if found.unknown:
        return everything(words)
    return found.operands if found.has("d", "directory") else destinations(found)[1]


def converted(words: Words) -> Places:
    """`dd of=FILE`."""
    texts = [word for word in words[1:] if isinstance(word, str)]
    places: Places = [word.partition("=")[2] for word in texts if word.startswith("of=")]
    return [*places, *(word for word in words[1:] if isinstance(word, Unknown))]


_RSYNC_FILES = (
    "-T|--log-file|--backup-dir|--write-batch|--only-write-batch|--partial-dir|--temp-dir"
)


_DEEP = rf"-[^-\We]*[ra]|{shortened('recursive archive files-from')}"


def _is_remote(place: Word) -> bool:
    return isinstance(place, str) and ":" in place.partition("/")[0]


def transferred(words: Words) -> Places:
    """rsync, scp: the last operand, unless it lies on another machine."""
    operands = [word for word in words[1:] if isinstance(word, Unknown) or word[:1] != "-"]
    texts = [word for word in words[1:] if isinstance(word, str)]
    files = valued(words, f"(?:{_RSYNC_FILES})")
    if not operands or _is_remote(operands[-1]):
        return files
    target, sources = operands[-1], operands[:-1]
    places = [*files, target, *(below(target, source) for source in sources)]
    is_tree = any(re.match(_DEEP, text) for text in texts)
    return [*places, Unknown.ANY] if is_tree else places
