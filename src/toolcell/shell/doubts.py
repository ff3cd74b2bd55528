"""Programs that run another program when an option, a setting or a script tells them to.

Each entry names only what a careful person would stop at: options that hold a command, and
scripts that can start one. Ordinary use of the same program is not in doubt.
"""

import re
from collections.abc import Callable
from itertools import pairwise

from toolcell.shell.behind import program
from toolcell.shell.facts import Unknown, Words, listed
from toolcell.shell.git import git_doubt
from toolcell.shell.options import read, spec
from toolcell.shell.scripts import awk_danger, read_sed

# Words of a command line that tell a program to run another. Long options may be shortened.
_TELLING: dict[str, str] = {
    "tar": r"--checkpoint-a.*|--to-c.*|--use-c.*=?|--info-s.*|--new-v.*|--rsh-c.*|--rmt-c.*"
    r"|-[^\WIFfCTXbgHKLNV]*[IF].*",
    "bsdtar": r"--use-compress-program.*",
    "rsync": r"--rsh.*|--rsync-p.*|-[A-Za-z]*e.*|--daemon|--config.*",
    "zip": r"-TT.*|--unzip-command.*|-[A-Za-z]*TT.*",
    "split": r"--fi.*",
    "sort": r"--co.*",
    "install": r"--strip-p.*",
    "man": r"-P.*|--pager.*|-H.*|--html.*|-[a-zA-Z]*P.*|-C.*|--config-file.*",
    "less": r"\+.*!.*|--lesskey.*|-k.*",
    "more": r"\+.*!.*",
    "rg": r"--pre(=.*)?|--hostname-bin.*|--search-zip-bin.*",
    "ag": r"--pager.*",
    "ack": r"--pager.*|--ackrc.*|--env",
    "bat": r"--pager.*|--map-syntax-pager.*",
    "fzf": r"--preview.*|--bind.*|--execute.*",
    "ssh": r"-[A-Za-z0-9]*F.*|-[A-Za-z0-9]*I.*|ProxyCommand.*",
    "scp": r"-[A-Za-z0-9]*[FSD].*",
    "sftp": r"-[A-Za-z0-9]*[FSD].*",
    "curl": r"-[#0-9aBfgGiIjJklLMnNOpqRsSvV]*K.*|--config.*|--engine.*",
    "wget": r"-[bcdEFHkKLmNnpqrSvVx46hi]*e.*|--exec.*|--use-askpass.*|--config.*",
    "make": r"--ev.*|SHELL=.*|\.SHELLFLAGS=.*|-[A-Za-z]*E.*|MAKEFLAGS=.*",
    "cmake": r"-E|-C.*|-D\w*(COMMAND|COMPILER_LAUNCHER|LINKER_LAUNCHER|EMULATOR).*=.*",
    "vim": r"-c.*|-S.*|-s.*|-u.*|--cmd.*|\+\D.*|-[a-zA-Z]*es?.*|--remote.*",
    "emacs": r"--ev.*|-eval|--exec.*|-l|--load.*|-f|--funcall.*|--script.*|--batch|-batch",
    "gdb": r"--?ex.*|--?ix.*|--?iex.*|-x|--?command.*|--?init-.*|--?batch.*",
    "lldb": r"-o.*|-s.*|-S.*|-O.*|-k.*|--one-line.*|--source.*",
    "gcc": r"-wrapper|-fplugin=.*|-specs=.*|--specs=.*|-B.*|@.*",
    "go": r"-?-toolexec.*|-?-exec.*|-?-vettool.*|-?-overlay.*",
    "cargo": r"--config.*|-Z.*",
    "rustc": r"-C|-Clinker.*|linker=.*|-Z.*",
    "npm": r"--script-shell.*|--node-options.*|--shell.*|--git=.*|--globalconfig.*"
    r"|--userconfig.*",
    "nmap": r"--script.*",
    "tcpdump": r"-[A-Za-z]*z.*",
    "openssl": r"-engine|-provider.*|engine",
    "sqlite3": r"(?:.*\n)?[ \t]*\.[a-z]*(sh|sy|im|ou|on|lo|re|ex|ed|op|sa|ba|ar|cl|du).*"
    r"|.*(load_extension|readfile|writefile|edit)\s*\(.*|--?init|--?cmd",
    "psql": r".*(\\!|\\o|\\g|\\w|\\i|\\e|\\copy|\b[Pp][Rr][Oo][Gg][Rr][Aa][Mm]\b).*|-o.*"
    r"|--output.*|-L.*",
    "mysql": r".*(\\!|\\T|\\P).*|(?:.*;)?\s*(system|source|tee|pager)\b.*|--pager.*"
    r"|--tee.*",
    "lftp": r".*!.*|-f.*",
    "ed": r"!.*",
    "crontab": r".*",
    "at": r".*",
    "batch": r".*",
    "tmux": r"run-shell|run|new-session|new|new-window|neww|split-window|splitw|send-keys|send"
    r"|respawn-.*|if-shell|if|pipe-pane|source-file|source|-f.*|-c.*|display-popup|popup",
    "screen": r"-X|-dm.*|-c.*|-[a-zA-Z]*S.*",
    "kubectl": r"--kubeconfig.*",
    "enable": r"-[a-z]*f.*|-[a-z]*n.*",
    "hash": r"-[a-z]*p.*",
    "complete": r".*",
    "compgen": r"-[CFWP].*",
    "bind": r"-.*",
    "fc": r".*",
}
_SAME = {
    **{"gtar": "tar", "gsort": "sort", "gsplit": "split", "gmake": "make", "ripgrep": "rg"},
    **dict.fromkeys(["vi", "nvim", "view", "ex", "rvim", "vimdiff", "gvim"], "vim"),
    **dict.fromkeys(["g++", "cc", "c++", "clang", "clang++", "ld"], "gcc"),
    **dict.fromkeys(["pnpm", "yarn", "npx"], "npm"),
    **{"batcat": "bat", "mariadb": "mysql", "red": "ed"},
}
_COMPILED = {name: re.compile(pattern, re.DOTALL) for name, pattern in _TELLING.items()}
# Options that look like one of the above and run nothing, or a compressor at most.
_HARMLESS = {
    "tar": re.compile(
        r"-[a-zA-Z]*I(zstd|gzip|pigz|xz|bzip2|pbzip2|lz4|lzma)|--use-compress-program=\w+"
        r"|--(format|file|files-from|force-local|full-time).*"
    ),
    "rsync": re.compile(r"(-[A-Za-z]*e|--rsh=)ssh|--(exclude|existing|executability).*"),
    "vim": re.compile(r"--version|--help"),
    "at": re.compile(r"-l|-V"),
    "crontab": re.compile(r"-l"),
    "complete": re.compile(r"-p"),
    "fc": re.compile(r"-l.*|-?\d+"),
    "bind": re.compile(r"-[lpPsSvV]"),
    "rustc": re.compile(r"-C"),
}
_VALUE_IS_HARMLESS = {
    ("tar", "I"): re.compile(r"zstd|gzip|pigz|xz|bzip2|pbzip2|lz4|lzma"),
    ("rsync", "e"): re.compile(r"ssh"),
}
_OLD_LETTERS = re.compile(r"[A-Za-z]*[IF][A-Za-z]*")  # without a dash, in the first word only
_SSH_HARMLESS = re.compile(
    r"(StrictHostKeyChecking|BatchMode|ConnectTimeout|UserKnownHostsFile|IdentitiesOnly|LogLevel"
    r"|ServerAlive\w+|Port|User|IdentityFile|ConnectionAttempts|Compression|ForwardAgent"
    r"|PreferredAuthentications|PasswordAuthentication|HostKeyAlgorithms|RequestTTY)[= ].*",
    re.IGNORECASE,
)
_LONGEST = 4096  # characters of one word
_COMPUTED = "an argument that is only known at run time may tell {} to run another program"


def doubt_about(words: Words, *, suspect: bool) -> str:
    """Why a program may run others; `suspect`: variables of the line may hold options."""
    name = program(words[0])
    name = _SAME.get(name, name)
    if name == "git":
        return git_doubt(words, suspect=suspect)
    if name in ("find", "gfind", "fd", "fdfind"):
        return _find(words, suspect=suspect)
    check = _CHECKS.get(name)
    found = check(words) if check else ""
    if found or name not in _COMPILED:
        return found
    for place, word in enumerate(words[1:], 1):
        if isinstance(word, Unknown):
            if _may_be_option(word, suspect=suspect) and name in _READS_OPTIONS:
                return _COMPUTED.format(name)
        elif word == "--" and name in _READS_OPTIONS:
            break
        elif _tells(name, word, place, words):
            return f"{name} can run another program with {_shown(word)}"
    return ""


# For these, a word that only the run knows is in doubt if it may be an option.
_READS_OPTIONS = listed("tar rsync zip split sort man rg ssh scp sftp make vim sed awk less ag ack")


def _may_be_option(word: Unknown, *, suspect: bool) -> bool:
    return word is Unknown.ANY or (word is Unknown.ONE and suspect)


def _tells(name: str, word: str, place: int, words: Words) -> bool:
    if name == "tar" and place == 1 and _OLD_LETTERS.fullmatch(word):
        return True
    if len(word) > _LONGEST:
        return True  # too long to be looked at
    if not _COMPILED[name].fullmatch(word):
        return False
    harmless = _HARMLESS.get(name)
    if harmless and harmless.fullmatch(word):
        return False
    value = words[place + 1] if place + 1 < len(words) else ""
    allowed = _VALUE_IS_HARMLESS.get((name, word[-1:] if word[:2] != "--" else word))
    return not (allowed and isinstance(value, str) and allowed.fullmatch(value))


def _shown(word: str) -> str:
    return word if len(word) <= 30 else f"{word[:30]}..."


_STREAM = re.compile(r"-|/dev/(stdin|fd/\d+)|/proc/\w+/fd/\d+")
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
    if found.has("i", "l", "include", "load"):
        return "awk is told to load more code"
    if found.has("S", "sandbox"):
        return ""
    files = found.values("f", "file", "E", "exec")
    if any(isinstance(file, Unknown) or _STREAM.fullmatch(file) for file in files):
        return "awk runs what it reads"
    codes = found.values("e", "source")
    if not codes and not files:
        codes = found.operands[:1]
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


def _sed(words: Words) -> str:
    found = read(words[1:], SED, permute=True)
    if found.unknown:
        return f"toolcell does not know the option {found.unknown} of sed"
    if found.has("sandbox"):
        return ""
    files = found.values("f", "file")
    if any(isinstance(file, Unknown) or _STREAM.fullmatch(file) for file in files):
        return "sed runs the script that it reads"
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
    for before, word in pairwise(words):
        is_value = before in _FIND_VALUES
        if isinstance(word, Unknown) and not is_value and _may_be_option(word, suspect=suspect):
            return "an argument that is only known at run time may be an -exec of find"
    return ""


def _make(words: Words) -> str:
    for place, word in enumerate(words):
        is_file = isinstance(word, str) and re.fullmatch(r"-[A-Za-z]*f|--file|--makefile", word)
        if is_file and place + 1 < len(words) and words[place + 1] in ("-", "/dev/stdin"):
            return "make runs what it reads from standard input"
        if word in ("-f-", "-f/dev/stdin", "--file=-", "--makefile=-"):
            return "make runs what it reads from standard input"
    return ""


_CHECKS: dict[str, Callable[[Words], str]] = {
    **dict.fromkeys(["awk", "gawk", "mawk", "nawk", "original-awk"], _awk),
    **dict.fromkeys(["sed", "gsed"], _sed),
    **dict.fromkeys(["ssh", "scp", "sftp", "autossh", "ssh-copy-id"], _ssh),
    "make": _make,
    "gmake": _make,
}
DOUBTED = (
    frozenset(_COMPILED)
    | frozenset(_SAME)
    | frozenset(_CHECKS)
    | {"git", "find", "gfind", "fd", "fdfind"}
)
