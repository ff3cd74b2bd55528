"""Paths as words, and what is taken for one where a program is not understood."""

import posixpath

from toolcell.shell.facts import Unknown, Word, Words

Places = list[Word]


def everything(words: Words) -> Places:
    """Every word that could be a path; values behind an equals sign too."""
    places: Places = []
    for word in words[1:]:
        if isinstance(word, Unknown) or not word.startswith("-"):
            places.append(word)
        elif "=" in word:
            places.append(word.partition("=")[2])
    return places


def below(directory: Word, name: Word) -> Word:
    """The path of `name` in a directory, by its last part, as cp and mv make it."""
    if isinstance(directory, Unknown) or isinstance(name, Unknown):
        return Unknown.ANY
    base = posixpath.basename(name.rstrip("/"))
    return posixpath.join(directory, base) if base else directory


def within(directory: Word, path: Word) -> Word:
    """The path that a program writes when it is told to work in a directory."""
    if isinstance(directory, Unknown) or isinstance(path, Unknown):
        return Unknown.ANY
    return posixpath.join(directory, path)
