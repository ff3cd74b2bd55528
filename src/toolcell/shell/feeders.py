"""Commands that start others once for each thing that they find or are given."""

import re

from toolcell.shell.behind import (
    UNSURE,
    Behind,
    Code,
    Inner,
    joined,
    known,
    not_known,
    started,
)
from toolcell.shell.facts import Unknown, Word, Words
from toolcell.shell.options import read, spec

_XARGS = spec(
    "-0oprtx -a: -d: -E: -I: -L: -n: -P: -s: -i? -e? -l? --null --open-tty --interactive"
    " --no-run-if-empty --verbose --exit --show-limits --arg-file: --delimiter: --eof?"
    " --replace? --max-lines? --max-args: --max-procs: --max-chars: --process-slot-var:"
)
_PARALLEL = spec(
    "-0kmNrtuvXqz -a: -d: -E: -I: -j: -L: -n: -N: -P: -S: -s: -i? -C: --null --arg-file: --bar"
    " --colsep: --delay: --delimiter: --dry-run --dryrun --eta --group --halt: --halt-on-error:"
    " --header: --jobs: --joblog: --keep-order --line-buffer --lb --link --max-args:"
    " --max-procs: --memfree: --nice: --no-notice --will-cite --no-run-if-empty --pipe --progress"
    " --quote --res: --results: --resume --retries: --shuf --silent --tag --timeout: --ungroup"
    " --verbose --xargs --citation"
)
_PLACEHOLDER = re.compile(r"\{[^{}\s]*\}")
_SOURCES = frozenset([":::", ":::+", "::::", "::::+"])
_STARTS = frozenset(["-exec", "-execdir", "-ok", "-okdir"])


def xargs(words: Words) -> Behind:
    """`xargs`: its command gets words from standard input, at the end or in place of others."""
    found = read(words[1:], _XARGS)
    if found.unknown:
        return not_known("xargs", found.unknown)
    command = tuple(found.operands) or ("echo",)
    places = [known(value) or "{}" for value in found.values("I", "i", "replace")]
    unsure = any(isinstance(value, Unknown) for _, value in found.options)
    if places:
        command = tuple(_filled(word, places[-1]) for word in command)
    if not places or found.has("n", "L", "l", "max-args", "max-lines"):  # these undo -I
        command = (*command, Unknown.ANY)
    return Behind((started(command, unsure=unsure),))


def _filled(word: Word, place: str) -> Word:
    if not isinstance(word, str) or place not in word:
        return word
    # What comes from standard input may be an option, or the rest of one.
    return Unknown.ANY if word.startswith((place, "-", ";", "+")) else Unknown.SAFE


def find(words: Words) -> Behind | None:
    """`find`: it is a command of its own, and starts one for each -exec."""
    inner = []
    place = 1
    while place < len(words):
        place += 1
        if words[place - 1] in _STARTS:
            command, place = _until_end(words, place)
            inner.append(_each(command))
    return Behind(tuple(inner), own=True) if inner else None


def _until_end(words: Words, start: int) -> tuple[Words, int]:
    """Return the words up to a lone `;` or a `{} +`, and where what follows begins."""
    for place in range(start, len(words)):
        if words[place] == ";" or (words[place] == "+" and words[place - 1] == "{}"):
            return words[start:place], place + 1
    return words[start:], len(words)


def _each(command: Words) -> Inner:
    # What find puts there begins as its starting point does, mostly with a dot or a slash.
    filled = tuple(
        Unknown.SAFE if isinstance(word, str) and "{}" in word else word for word in command
    )
    if not filled:
        return Inner((Unknown.ANY,), doubt="find is told to run nothing")
    return started(filled, unsure=_may_end(filled))


def _may_end(command: Words) -> bool:
    """Whether a word that only the run knows may be the end, with another -exec behind it."""
    late = next((n for n, word in enumerate(command) if word in (Unknown.ONE, Unknown.ANY)), None)
    return late is not None and any(
        isinstance(word, str) and re.match(r"-(exec|ok|delete|f?print|fls)", word)
        for word in command[late:]
    )


def fd(words: Words) -> Behind | None:
    """`fd`: everything behind -x or -X is a command, up to a lone `;`."""
    inner = []
    place = 1
    while place < len(words):
        word, place = words[place], place + 1
        if word in ("-x", "-X", "--exec", "--exec-batch"):
            command, place = _until_end(words, place)
            inner.append(_feed(command))
        elif isinstance(word, str) and re.match(r"--exec(-batch)?=|-[A-Za-z]*[xX]", word):
            return not_known("fd", word, own=True)
    return Behind(tuple(inner), own=True) if inner else None


def _feed(command: Words) -> Inner:
    if not command:
        return Inner((Unknown.ANY,), doubt="fd is told to run nothing")
    places = [isinstance(word, str) and bool(_PLACEHOLDER.search(word)) for word in command]
    filled = tuple(
        Unknown.ONE if place else word for word, place in zip(command, places, strict=True)
    )
    return started(filled if any(places) else (*filled, Unknown.ONE))


def parallel(words: Words) -> Behind:
    """GNU parallel: its words are shell code with places to fill, or each input is code."""
    found = read(words[1:], _PARALLEL)
    if found.unknown:
        return not_known("parallel", found.unknown)
    cut = next((n for n, word in enumerate(found.operands) if word in _SOURCES), None)
    template = tuple(found.operands[:cut])
    inputs = tuple(found.operands[cut:]) if cut is not None else ()
    writes = tuple(found.values("joblog", "results", "res"))
    for option in ("I", "S"):
        if found.has(option):
            return not_known("parallel", f"-{option}")
    if template:
        code = joined(template)
        return Behind((Code(_with_places(code), "what parallel is given"),), writes=writes)
    given = [word for word in inputs if word not in _SOURCES]
    if not given or inputs[0] in ("::::", "::::+"):
        return Behind((Code(None, "what parallel reads"),), writes=writes)
    return Behind(tuple(Code(known(w), "what parallel is given") for w in given), writes=writes)


def _with_places(code: str | None) -> str | None:
    """Write a quoted parameter where parallel puts a quoted input; None where it may run it."""
    if code is None or "{=" in code:
        return None  # what stands in {= ... =} is Perl
    filled, count = _PLACEHOLDER.subn('"$1"', code)
    if count and re.search(r"['\"`\\]", code):
        return None  # quotes of the template undo those of parallel
    return filled if count else f'{filled} "$1"'


def jobs(words: Words) -> Behind | None:
    """`jobs -x COMMAND`, a way to start a command that few know."""
    if len(words) > 2 and words[1] == "-x":
        return Behind((started(words[2:]),))
    return None if Unknown.ANY not in words else Behind((), own=True, doubt=UNSURE)
