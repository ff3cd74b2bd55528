"""Archives and compressed files: what is made, and where it is taken out again.

An archive names the files in it, and nobody has read it: the place is said where they go, and
that more is written of which only the run knows.
"""

import re

from toolcell.shell.facts import Unknown, Words
from toolcell.shell.options import shortened, valued
from toolcell.shell.places import Places

_CHANGES = shortened("create append update concatenate delete")
_TAKE_WORDS = "bfCFgHIKLNTVX"  # letters of tar whose values follow the letters


def unpacked(words: Words) -> Places:
    """`tar`: the archive that is made, or where its files go."""
    first = words[1] if len(words) > 1 else ""
    letters = str(first) if isinstance(first, str) else ""
    archive = valued(words, rf"-[A-Za-z]*f|{shortened('file')}")
    if letters[:1] != "-" and "f" in letters:
        taking = [letter for letter in letters if letter in _TAKE_WORDS]
        archive += words[2 : 2 + len(taking)]  # in the order of the letters
    if _tar_does(words, letters, "P", shortened("absolute-names")):
        return [Unknown.ANY]
    if _tar_does(words, letters, "x", shortened("extract get")):
        directories = valued(words, rf"-[A-Za-z]*C|{shortened('directory')}")
        return [*(directories or ["."]), Unknown.ANY]
    makes = _tar_does(words, letters, "cruA", _CHANGES)
    return [each for each in archive if each != "-"] if makes else []


def _tar_does(words: Words, letters: str, modes: str, long: str) -> bool:
    if letters[:1] != "-" and set(letters) & set(modes):
        return True
    texts = [word for word in words[1:] if isinstance(word, str)]
    return any(re.match(rf"-[A-Za-z]*[{modes}]|{long}", text) for text in texts)


def unzipped(words: Words) -> Places:
    """`unzip`: where the files of the archive go."""
    texts = [word for word in words[1:] if isinstance(word, str)]
    if any(re.fullmatch(r"-[A-Za-z]*[lptvZz][A-Za-z]*", text) for text in texts):
        return []
    return [*(valued(words, "-d") or ["."]), Unknown.ANY]


def zipped(words: Words) -> Places:
    """`zip`: the archive."""
    return [w for w in words[1:] if isinstance(w, Unknown) or w[:1] != "-"][:1]


_PACKED = re.compile(r"(.+)\.(gz|bz2|xz|lzma|zst|Z|lz4)")
PACKERS = ("gzip", "bzip2", "xz", "zstd", "lz4", "compress")
UNPACKERS = ("gunzip", "bunzip2", "unxz", "unzstd", "uncompress")


def packed(words: Words) -> Places:
    """gzip and its kin replace a file by another; which way round is not told apart."""
    texts = [word for word in words[1:] if isinstance(word, str)]
    if any(re.match(r"-[a-zA-Z0-9]*c|--std|--to-std|-[a-zA-Z]*[lt]$", text) for text in texts):
        return []
    places: Places = []
    for word in words[1:]:
        if isinstance(word, Unknown):
            places.append(word)
        elif word[:1] != "-":
            bare = _PACKED.fullmatch(word)
            places += [word, bare[1]] if bare else [word, f"{word}.gz"]
    return places


def cpio(words: Words) -> Places:
    """`cpio`: where the files of an archive go, or the archive."""
    texts = [word for word in words[1:] if isinstance(word, str)]
    takes_out = any(re.match(r"-[A-Za-z]*[ip]|--extract|--pass", text) for text in texts)
    if takes_out:
        return [*(valued(words, rf"-D|{shortened('directory')}") or ["."]), Unknown.ANY]
    return valued(words, rf"-[A-Za-z]*[OF]|{shortened('file')}")


def archived(words: Words) -> Places:
    """`ar`: the archive, and with x files that it names."""
    mode = words[1] if len(words) > 1 else Unknown.ANY
    if isinstance(mode, Unknown):
        return [Unknown.ANY]
    if re.match(r"-?[a-zA-Z]*x", mode):
        return [Unknown.ANY]
    return [] if re.fullmatch(r"-?[tpvO]+|--(version|help)", mode) else list(words[2:])
