"""Programs that run another program when an option, a setting or a script tells them to.

Each entry names only what a careful person would stop at: options that hold a command, and
scripts that can start one. Ordinary use of the same program is not in doubt.
"""

import posixpath
import re
from collections.abc import Callable

from toolcell.shell.behind import program
from toolcell.shell.facts import Unknown, Word, Words, listed
from toolcell.shell.git import git_doubt
from toolcell.shell.options import read, shortened, spec
from toolcell.shell.scripts import awk_danger, read_sed
from toolcell.shell.telling import HARMLESS, PAIR_IS_HARMLESS, SAME, TELLING

_SSH_HARMLESS = re.compile(
    r"(StrictHostKeyChecking|BatchMode|ConnectTimeout|UserKnownHostsFile|IdentitiesOnly|LogLevel"
    r"|ServerAlive\w+|Port|User|IdentityFile|ConnectionAttempts|Compression|ForwardAgent"
    r"|PreferredAuthentications|PasswordAuthentication|HostKeyAlgorithms|RequestTTY)[= ].*",
    re.IGNORECASE,
)
# The first word of tar without a dash, as it was written of old.
_OLD_LETTERS = re.compile(r"\w*[IFg]\w*")
# Options that name what is written, with a value of which nothing is known.
_PLACED = re.compile(
    rf"(?:{shortened('output file directory output-dir output-directory prefix target-directory')}"
    r"|--?(?:o|out|[a-z]+profile)|of)=[^\0]*\0",
    re.DOTALL,
)
_LONGEST = 4096  # characters of one word
_COMPUTED = "an argument that is only known at run time may tell {} to run another program"


def doubt_about(words: Words, *, suspect: bool) -> str:
    """Why a program may run others; `suspect`: variables of the line may hold options."""
    if any(isinstance(word, str) and _PLACED.fullmatch(word) for word in words[1:]):
        return "it writes to a place that is only known at run time"
    called = program(words[0])
    name = SAME.get(called, called)
    if name == "git":
        return git_doubt(words, suspect=suspect)
    if name in ("find", "gfind", "fd", "fdfind"):
        return _find(words, suspect=suspect)
    if name in ("sed", "gsed"):
        return _sed(words, suspect=suspect)
    check = _CHECKS.get(called) or _CHECKS.get(name)
    found = check(words) if check else ""
    if found or name not in TELLING:
        return found
    for place, word in enumerate(words[1:], 1):
        if isinstance(word, Unknown):
            is_first = name == "tar" and place == 1  # letters, with or without a dash
            odd = is_first or _may_be_option(word, suspect=suspect)
            if odd and name in _READS_OPTIONS:
                return _COMPUTED.format(name)
        elif word == "--" and name in _ENDS_OPTIONS:
            break
        elif _tells(name, word, place, words):
            return f"{name} can run another program with {_shown(word)}"
    return ""


# For these, a word that only the run knows is in doubt if it may be an option.
_READS_OPTIONS = listed(
    "tar rsync zip split sort man rg ssh scp sftp make vim sed awk less ag ack npm go cargo rustc"
    " cmake"
)

# make takes variables behind a --, cargo and cmake hand options on.
_ENDS_OPTIONS = _READS_OPTIONS - {"make", "cargo", "cmake"}


def _may_be_option(word: Unknown, *, suspect: bool) -> bool:
    return word is Unknown.ANY or (word is Unknown.ONE and suspect)


def _tells(name: str, word: str, place: int, words: Words) -> bool:
    if name == "tar" and place == 1 and _OLD_LETTERS.fullmatch(word):
        return True
    if len(word) > _LONGEST:
        return True  # too long to be looked at
    if not TELLING[name].fullmatch(word):
        return False
    harmless = HARMLESS.get(name)
    if harmless and harmless.fullmatch(word):
        return False
    pair = PAIR_IS_HARMLESS.get(name)
    value = words[place + 1] if place + 1 < len(words) else ""
    return not (pair and isinstance(value, str) and pair.fullmatch(f"{word} {value}"))


def _shown(word: str) -> str:
    return word if len(word) <= 30 else f"{word[:30]}..."


_UNREAD = "{} runs a script that toolcell does not read"
_AWK = spec(
    "-bcCghkMnNOPrsStV -f: -F: -v: -e: -E: -i: -l: -W: -d? -D? -L? -o? -p? --assign: --bignum"
    " --characters-as-bytes --csv --exec: --field-separator: --file: --include: --load:"
    " --lint? --non-decimal-data --posix --re-interval --sandbox --source: --traditional"
    " --version --help --use-lc-numeric"
)


def _awk(words: Words) -> str:
    found = read(words[1:], _AWK)
    if found.unknown:
        return f"toolcell does not know the option {found.unknown} of awk"
    if found.has("i", "l", "include", "load", "W"):
        return "awk is told to load more code"
    if found.has("d", "D", "o", "p"):
        return "awk is told to write what it knows of the program"
    is_gawk = program(words[0]) == "gawk"
    if is_gawk and found.has("S", "sandbox"):
        return ""
    if found.has("f", "file", "E", "exec"):
        return _UNREAD.format("awk")
    codes = found.values("e", "source")
    if not codes or not is_gawk:
        codes += found.operands[:1]  # other awks pass over an option -e
    if any(isinstance(code, Unknown) for code in codes):
        return "awk code that is only known at run time can run commands"
    return next(filter(None, (awk_danger(str(code)) for code in codes)), "")


SED = spec(
    "-nErsuz -e: -f: -l: -i? --quiet --silent --debug --expression: --file: --follow-symlinks"
    " --in-place? --line-length: --null-data --posix --regexp-extended --sandbox --separate"
    " --unbuffered --zero-terminated --help --version"
)


def sed_code(words: Words) -> tuple[str | None, list[str | Unknown]]:
    """Return the script of a sed command, None where it is computed, and its files."""
    found = read(words[1:], SED, permute=True)
    codes, files = found.values("e", "expression"), found.operands
    if not codes and not found.has("f", "file"):
        codes, files = files[:1], files[1:]
    texts = [code for code in codes if isinstance(code, str)]
    return "\n".join(texts) if len(texts) == len(codes) else None, files


def _sed(words: Words, *, suspect: bool) -> str:
    found = read(words[1:], SED, permute=True)
    if found.unknown:
        return f"toolcell does not know the option {found.unknown} of sed"
    if found.has("sandbox"):
        return ""
    if found.has("f", "file"):
        return _UNREAD.format("sed")
    given = words[1 : words.index("--")] if "--" in words else words[1:]
    if any(isinstance(each, Unknown) and _may_be_option(each, suspect=suspect) for each in given):
        return _COMPUTED.format("sed")
    code, _ = sed_code(words)
    if code is None:
        return "a sed script that is only known at run time can run commands"
    return read_sed(code).doubt


def _ssh(words: Words) -> str:
    for place, word in enumerate(words):
        if not isinstance(word, str) or not re.match(r"-[46AaCfGgKkMNnqsTtVvXxYy]*o", word):
            continue
        value = word.partition("o")[2] or (words[place + 1] if place + 1 < len(words) else "")
        if not (isinstance(value, str) and _SSH_HARMLESS.fullmatch(value)):
            return "ssh can run another program with such an option -o"
    return ""


# Tests of find that take one argument, and may therefore be followed by any word.
_FIND_VALUES = listed(
    "-name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -type -xtype"
    " -maxdepth -mindepth -size -mtime -atime -ctime -mmin -amin -cmin -newer -anewer -cnewer"
    " -user -group -uid -gid -perm -lname -ilname -samefile -inum -links -printf -fstype -used"
    " -newermt -newerct -newerat -context -files0-from"
)


def _find(words: Words, *, suspect: bool) -> str:
    is_value = False
    for word in words[1:]:
        if isinstance(word, Unknown) and (
            word is Unknown.ANY or (not is_value and _may_be_option(word, suspect=suspect))
        ):
            return "an argument that is only known at run time may be an -exec of find"
        is_value = not is_value and word in _FIND_VALUES
    return ""


_MAKE = spec(
    "-bBdehiIkLmnpqrRsStvw -C: -f: -I: -j? -l? -o: -O? -W: -E: --always-make --directory: --debug?"
    " --environment-overrides --eval: --file: --makefile: --help --ignore-errors --include-dir:"
    " --jobs? --keep-going --load-average? --max-load? --check-symlink-times --just-print"
    " --dry-run --recon --old-file: --assume-old: --output-sync? --print-data-base --question"
    " --no-builtin-rules --no-builtin-variables --silent --quiet --no-silent --no-keep-going"
    " --stop --touch --trace --version --print-directory --no-print-directory --what-if:"
    " --new-file: --assume-new: --warn-undefined-variables --shuffle? --jobserver-style:"
)
_STREAM = re.compile(r"-|(.*/)?(stdin|fd/\d+)")


def _is_stream(place: Word) -> bool:
    return isinstance(place, Unknown) or bool(_STREAM.fullmatch(posixpath.normpath(place)))


def _make(words: Words) -> str:
    found = read(words[1:], _MAKE, permute=True)
    if found.unknown:
        return f"toolcell does not know the option {found.unknown} of make"
    if any(_is_stream(file) for file in found.values("f", "file", "makefile")):
        return "make runs what it reads from standard input"
    return ""


def _npm(words: Words) -> str:
    """`npm exec -c` and `npx -c` take a line of a shell."""
    given = words[: words.index("--")] if "--" in words else words
    texts = [word for word in given[1:] if isinstance(word, str)]
    is_exec = program(words[0]) == "npx" or "exec" in texts or "x" in texts
    if is_exec and any(re.fullmatch(r"-c.*|--?cal?l?(=.*)?", text) for text in texts):
        return "npm runs a line of a shell with -c"
    return ""


def _go(words: Words) -> str:
    """`go env -w CC=...` holds for whatever is built later."""
    sets = words[1:2] == ("env",) and any(word in ("-w", "--w") for word in words)
    return "go runs programs that its environment names" if sets else ""


_SQLITE_FLAGS = re.compile(
    r"--?(ascii|bail|batch|box|column|csv|echo|header|html|json|line|list|markdown|noheader|quote"
    r"|readonly|stats|table|tabs|version|help)"
)


def _sqlite(words: Words) -> str:
    """Without SQL on its command line, sqlite3 reads commands, of which some run programs."""
    rest = [w for w in words[1:] if isinstance(w, Unknown) or not _SQLITE_FLAGS.fullmatch(w)]
    sql = rest[1:] and rest[-1]
    if isinstance(sql, str) and re.search(r"^\.|\s|;$", sql) and str(rest[0])[:1] != "-":
        return ""
    is_asked = any(word in ("-version", "--version", "-help", "--help") for word in words)
    return "" if is_asked else "sqlite3 runs the commands that it reads"


def _ed(words: Words) -> str:
    return "ed runs the commands that it reads"


def _at(words: Words) -> str:
    return f"{words[0]} runs the commands that it reads" if len(words) == 1 else ""


_CHECKS: dict[str, Callable[[Words], str]] = {
    **dict.fromkeys(["awk", "gawk", "mawk", "nawk", "original-awk"], _awk),
    **dict.fromkeys(["ssh", "scp", "sftp", "autossh", "ssh-copy-id"], _ssh),
    "make": _make,
    "gmake": _make,
    **dict.fromkeys(["npm", "npx"], _npm),
    "sqlite3": _sqlite,
    "go": _go,
    **dict.fromkeys(["ed", "red", "ex"], _ed),
    **dict.fromkeys(["at", "batch"], _at),
}
DOUBTED = (
    frozenset(TELLING)
    | frozenset(SAME)
    | frozenset(_CHECKS)
    | {"git", "find", "gfind", "fd", "fdfind", "sed", "gsed"}
)
