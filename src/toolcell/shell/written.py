"""Where programs that are known to write will write, by their operands and options.

Too much rather than too little: of a command with an option that is not known here, every
word counts as a place that it writes.
"""

import re
from collections.abc import Callable
from itertools import pairwise

from toolcell.shell.behind import program
from toolcell.shell.copied import converted, copied, installed, linked, moved, transferred
from toolcell.shell.doubts import SED, sed_code
from toolcell.shell.downloads import curled, fetched
from toolcell.shell.facts import Unknown, Word, Words
from toolcell.shell.options import Spec, read, shortened, spec, valued
from toolcell.shell.packed import (
    PACKERS,
    UNPACKERS,
    archived,
    cpio,
    packed,
    unpacked,
    unzipped,
    zipped,
)
from toolcell.shell.places import Places, everything, within
from toolcell.shell.scripts import read_sed
from toolcell.shell.versioned import versioned


def written_by(words: Words) -> Places:
    """Return the paths that a command writes, Unknown where only the run knows."""
    name = program(words[0])
    if name not in _NAMES and name.startswith("g"):
        name = name[1:]  # GNU's, where the system has others
    special = _SPECIAL.get(name)
    if special is not None:
        return special(words)
    plain = _PLAIN.get(name)
    if plain is not None:
        options, skip = plain
        found = read(words[1:], options, permute=True)
        return everything(words) if found.unknown else found.operands[skip:]
    return _named(name, words)


def _operands(options: str, skip: int = 0) -> tuple[Spec, int]:
    return spec(options), skip


# Programs that write every operand, but for the first few.
_PLAIN: dict[str, tuple[Spec, int]] = {
    "tee": _operands("-aip --append --ignore-interrupts --output-error?"),
    "touch": _operands(
        "-acfhm -d: -r: -t: --date: --no-create --no-dereference --reference: --time:"
    ),
    "mkdir": _operands("-pvZ -m: --mode: --parents --verbose --context?"),
    "rm": _operands(
        "-dfiIrRv --dir --force --interactive? --no-preserve-root --one-file-system"
        " --preserve-root? --recursive --verbose"
    ),
    "rmdir": _operands("-pv --ignore-fail-on-non-empty --parents --verbose"),
    "unlink": _operands(""),
    "shred": _operands(
        "-fuvxz -n: -s: --exact --force --iterations: --random-source: --remove? --size:"
        " --verbose --zero"
    ),
    "truncate": _operands("-co -r: -s: --io-blocks --no-create --reference: --size:"),
    "fallocate": _operands(
        "-cdinpvxz -l: -o: --length: --offset: --keep-size --punch-hole --zero-range"
    ),
    "mkfifo": _operands("-Z -m: --mode: --context?"),
    "chattr": _operands("-RVf -v: -p: -aAcCdDeFijmPsStTux", 0),
    "setfacl": _operands("-bkdRLP -m: -x: -M: -X: --modify: --remove: --set: --recursive"),
    "sponge": _operands("-a"),
    "dos2unix": _operands("-klqs --keepdate --quiet"),
    "unix2dos": _operands("-klqs --keepdate --quiet"),
    "mknod": _operands("-Z -m: --mode: --context?"),
    "uniq": _operands(
        "-cdDiuz -f: -s: -w: --count --repeated --all-repeated? --skip-fields: --group?"
        " --ignore-case --skip-chars: --unique --zero-terminated --check-chars:",
        1,
    ),
    "ed": _operands("-EGlrsv -p: --quiet --silent --extended-regexp", 0),
}
_MODES = re.compile(r"-[rwxXstugoa]+(,.*)?")


def _changed(words: Words) -> Places:
    """chmod, chown, chgrp: what follows the mode or the owner."""
    given = [w for w in words[1:] if isinstance(w, Unknown) or _MODES.fullmatch(w) or w[:1] != "-"]
    has_reference = any(isinstance(w, str) and w.startswith("--ref") for w in words)
    return given if has_reference else given[1:]


def _sed(words: Words) -> Places:
    found = read(words[1:], SED, permute=True)
    if found.unknown:
        return everything(words)
    code, files = sed_code(words)
    places: Places = list(read_sed(code).writes) if code is not None else []
    backups = [_backup(suffix, file) for suffix in found.values("i", "in-place") for file in files]
    edited = files if found.has("i", "in-place") else []
    return [*places, *edited, *(each for each in backups if each)]


def _backup(suffix: Word, file: Word) -> Word:
    """What `sed -i` leaves of a file: below another name, or anywhere by a suffix such as d/*."""
    if suffix == "":
        return ""
    if not isinstance(suffix, str) or not isinstance(file, str) or re.search(r"[/*]", suffix):
        return Unknown.ANY
    return file + suffix


def _in_place(words: Words) -> Places:
    """perl, ruby: every word, where an option -i says that files are edited in place."""
    texts = [word for word in words[1:] if isinstance(word, str)]
    is_edit = any(re.match(r"-[0-9acFlnpswWE]*i", text) for text in texts)
    if not is_edit:
        return []
    code = [n for n, word in enumerate(words) if re.fullmatch(r"-[a-zA-Z0]*[eE]", str(word))]
    return everything(tuple(word for n, word in enumerate(words) if n - 1 not in code))


_PATCH = spec(
    "-bceEflNnRstTuvZ -B: -d: -D: -F: -g: -i: -o: -p: -r: -V: -x: -Y: -z: --backup"
    " --backup-if-mismatch --no-backup-if-mismatch --prefix: --context --directory: --ifdef:"
    " --dry-run --remove-empty-files --force --fuzz: --input: --ignore-whitespace --normal"
    " --forward --output: --strip: --reject-file: --reverse --quiet --silent --batch --unified"
    " --verbose --posix --merge? --follow-symlinks --binary --suffix: --version-control:"
)


def _patch(words: Words) -> Places:
    found = read(words[1:], _PATCH, permute=True)
    if found.has("dry-run"):
        return []
    if found.unknown:
        return [*everything(words), Unknown.ANY]
    named = found.values("o", "output", "r", "reject-file")
    places = [*named, *(found.operands[:1] or [Unknown.ANY])]  # without a file, the patch names it
    for directory in found.values("d", "directory"):
        places = [within(directory, place) for place in places]
    return places


def _split(words: Words) -> Places:
    found = read(
        words[1:],
        spec(
            "-duxez -a: -b: -C: -l: -n: -t: --bytes: --lines: --number:"
            " --numeric-suffixes? --additional-suffix: --verbose"
        ),
        permute=True,
    )
    if found.unknown:
        return everything(words)
    prefix = found.operands[1] if len(found.operands) > 1 else "x"
    return [prefix if isinstance(prefix, Unknown) else f"{prefix}aa"]


# find has its own words; what it deletes lies below where it starts.
_FIND_FILES = frozenset(["-fprint", "-fprint0", "-fls", "-fprintf"])
_ONLY_READ = frozenset(["ls", "cat", "grep", "head", "tail", "wc", "file", "stat", "echo", "pwd"])


def _find(words: Words) -> Places:
    places: Places = [words[n + 1] for n in range(len(words) - 1) if words[n] in _FIND_FILES]
    for before, runs in pairwise(words):
        # It runs in the directory of each file that is found.
        if before in ("-execdir", "-okdir") and program(runs) not in _ONLY_READ:
            places.append(Unknown.ANY)
    if "-delete" not in words:
        return places
    starts = _starts(words)
    return [*places, *starts, *(Unknown.ANY for _ in filter(_holds_all, starts))]


def _holds_all(start: Word) -> bool:
    """Whether the line's own directory may lie in there, and all that somebody guards."""
    return not isinstance(start, str) or bool(re.match(r"\.?/*$|/|(.*/)?\.\.(/|$)", start))


def _starts(words: Words) -> Places:
    starts: Places = []
    for word in words[1:]:
        if isinstance(word, str) and (word[:1] in ("-", "(", "!")):
            if word in ("-H", "-L", "-P"):
                continue
            break
        starts.append(word)
    return starts or ["."]


_MKTEMP = spec("-dqut -p: --directory --quiet --dry-run --suffix: --tmpdir?")


def _temporary(words: Words) -> Places:
    """`mktemp`: a new name in the directory of temporary files, or where it is told."""
    found = read(words[1:], _MKTEMP, permute=True)
    if found.unknown:
        return everything(words)
    names = found.operands or ["new"]
    directories = [each for each in found.values("p", "tmpdir") if each]
    if directories:
        return [within(directories[-1], name) for name in names]
    return found.operands


_OUTPUT = shortened("output")
_COMPILERS = ("gcc", "g++", "cc", "c++", "clang", "clang++", "ld", "rustc", "gfortran")
# Programs that write where one option says.
_NAMED: dict[str, str] = {
    "sort": rf"-[bdfgihMnRrVcCmsuz]*o|{_OUTPUT}",
    "shuf": rf"-[erz]*o|{_OUTPUT}",
    "tree": r"-o",
    "iconv": rf"-[cs]*o|{_OUTPUT}",
    "gpg": rf"-[a-z]*o|{_OUTPUT}",
    "pandoc": rf"-o|{_OUTPUT}",
    "openssl": r"--?(?:out|keyout|writerand)(?![^=])",
    "ssh-keygen": r"-[a-zA-Z]*f",
    "yq": r"-o",
    "less": r"-[oO]|--log-file|--LOG-FILE",
    "ctags": r"-[of]",
    "tcpdump": r"-w",
    "go": r"--?(?:o|coverprofile|cpuprofile|memprofile|blockprofile|mutexprofile|trace)(?![^=])",
    "xxd": r"(?!)",
    **dict.fromkeys(_COMPILERS, r"-o"),
}


def _named(name: str, words: Words) -> Places:
    pattern = _NAMED.get(name)
    return [] if pattern is None else [each for each in valued(words, pattern) if each != "-"]


def _history(words: Words) -> Places:
    """history -w FILE, which writes what history -s has put there."""
    saves = [word for word in words[1:] if isinstance(word, str) and re.match(r"-\w*[aw]", word)]
    return list(words[2:]) or [Unknown.ANY] if saves else []


def _second(words: Words) -> Places:
    """xxd IN OUT."""
    return [w for w in words[1:] if isinstance(w, Unknown) or w[:1] != "-"][1:]


_SPECIAL: dict[str, Callable[[Words], Places]] = {
    "cp": copied,
    "mv": moved,
    "ln": linked,
    "link": lambda words: list(words[1:]),
    "install": installed,
    "dd": converted,
    **dict.fromkeys(["chmod", "chown", "chgrp", "setcap"], _changed),
    "sed": _sed,
    **dict.fromkeys(["perl", "ruby", "yq"], _in_place),
    "patch": _patch,
    **dict.fromkeys(["rsync", "scp"], transferred),
    "git": versioned,
    "curl": curled,
    "wget": fetched,
    **dict.fromkeys(["tar", "bsdtar"], unpacked),
    "unzip": unzipped,
    "zip": zipped,
    "split": _split,
    "find": _find,
    **dict.fromkeys([*PACKERS, *UNPACKERS], packed),
    "csplit": lambda words: [Unknown.ANY],
    "xxd": _second,
    "cpio": cpio,
    "ar": archived,
    "mktemp": _temporary,
    "history": _history,
}
# Programs that one lets run to read, and that write where an option says so.
_MOSTLY_READ = (
    *("sed", "perl", "ruby", "yq", "sort", "shuf", "uniq", "xxd", "find", "git", "tree"),
    *("iconv", "less", "history", "curl"),
)
READERS = frozenset([*_MOSTLY_READ, *(f"g{name}" for name in _MOSTLY_READ)])
_NAMES = frozenset(_SPECIAL) | frozenset(_PLAIN) | frozenset(_NAMED)
WRITERS = _NAMES | {f"g{name}" for name in _NAMES}
