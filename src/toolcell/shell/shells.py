"""Shells and the built-in commands that run text as code: sh -c, eval, trap, source."""

import re

from toolcell.shell.behind import Behind, Code, Dialect, Inner, joined, known, not_known, program
from toolcell.shell.facts import Unknown, Word, Words, listed
from toolcell.shell.options import read, spec

SHELLS: dict[str, Dialect] = {
    "bash": "bash",
    "rbash": "bash",
    **dict.fromkeys(["sh", "dash", "ash"], "posix"),
    **dict.fromkeys(
        ["zsh", "ksh", "ksh93", "mksh", "oksh", "yash", "fish", "csh", "tcsh", "rc", "hush"],
        "foreign",
    ),
}
_OPTIONS = spec(
    "-abefhiklmnprstuvxBCDEHPTc -o: -O: --debug --debugger --dump-po-strings --dump-strings"
    " --help --init-file: --login --noediting --noprofile --norc --posix --pretty-print"
    " --rcfile: --restricted --verbose --version",
    plus=True,
)
_STDIN = re.compile(r"-|/dev/stdin|/(?:dev|proc/self)/fd/0")
_DESCRIPTOR = re.compile(r"/(?:dev|proc/\w+)/fd/\d+|/dev/\w+")
_HARMLESS_SHOPT = listed(
    "extglob nullglob globstar dotglob failglob nocaseglob nocasematch inherit_errexit lastpipe"
    " pipefail errexit nounset xtrace verbose noglob noclobber noexec allexport notify"
    " checkwinsize huponexit globasciiranges globskipdots progcomp promptvars interactive_comments"
    " cmdhist histappend lithist mailwarn patsub_replacement emacs vi braceexpand monitor"
)
_READS = "what it reads from standard input"


def is_harmless(option: Word) -> bool:
    """Whether an option of the shell leaves it reading commands as before."""
    return option in _HARMLESS_SHOPT


def shell(words: Words) -> Behind | None:
    """A shell: code behind -c, a file, or what it reads from standard input."""
    name = program(words[0])
    found = read(words[1:], _OPTIONS)
    if found.unknown:
        return not_known(name, found.unknown)
    doubt = _doubt(name, found.values("o", "O"), rc=found.has("rcfile", "init-file"))
    first = found.operands[0] if found.operands else None
    if found.has("c"):
        if first is None:
            return None
        code = Code(known(first), f"what {name} -c is given", SHELLS[name])
        return Behind((code,), doubt=doubt)
    if first is None or found.has("s") or (isinstance(first, str) and _STDIN.fullmatch(first)):
        if found.has("version", "help"):
            return None
        return Behind((Code(None, _READS, SHELLS[name], stdin=True),), doubt=doubt)
    if isinstance(first, Unknown) or _DESCRIPTOR.fullmatch(first):
        return Behind((Code(None, f"a file for {name}"),), doubt=doubt)
    return Behind((), own=True, doubt=doubt) if doubt else None


def _doubt(name: str, options: list[Word], *, rc: bool) -> str:
    if rc:
        return f"{name} runs the file that it is given to start with"
    odd = [option for option in options if not is_harmless(option)]
    return f"{name} is told to read commands in another way" if odd else ""


def eval_(words: Words) -> Behind | None:
    """`eval`: its words, with spaces between them, are code."""
    rest = words[2:] if words[1:2] == ("--",) else words[1:]
    return Behind((Code(joined(rest), "what eval is given", same_shell=True),)) if rest else None


def trap(words: Words) -> Behind | None:
    """`trap CODE SIGNAL`: code that runs later."""
    rest = words[2:] if words[1:2] == ("--",) else words[1:]
    if len(rest) < 2 or rest[0] in ("-", "", "-l", "-p"):
        return (
            None
            if Unknown.ANY not in rest
            else Behind((Code(None, "what trap is given", same_shell=True),))
        )
    return Behind((Code(known(rest[0]), "what trap is given", same_shell=True),))


def source(words: Words) -> Behind | None:
    """`source FILE`: a command like another, unless the file is no file of a known name."""
    rest = words[2:] if words[1:2] == ("--",) else words[1:]
    first = rest[0] if rest else ""
    if isinstance(first, str) and _STDIN.fullmatch(first) and first != "-":
        return Behind((Code(None, _READS, stdin=True, same_shell=True),))
    if isinstance(first, Unknown) or _DESCRIPTOR.fullmatch(first):
        return Behind((Code(None, "a file for source"),))
    return None


def mapfile(words: Words) -> Behind | None:
    """`mapfile -C CODE`: code that runs for the lines read."""
    found = read(words[1:], spec("-t -d: -n: -O: -s: -u: -C: -c:"))
    code = found.values("C")
    if not code:
        return None
    text = known(code[-1])
    filled = None if text is None else f'{text} "$1"'
    return Behind((Code(filled, "what mapfile -C is given", same_shell=True),), own=True)


def nix_shell(words: Words) -> Behind | None:
    """`nix-shell --run CODE`."""
    code = [words[n + 1] for n in range(len(words) - 1) if words[n] in ("--run", "--command")]
    return Behind(tuple(Code(known(each), "what nix-shell is given") for each in code), own=True)


def gdb(words: Words) -> Behind | None:
    """`gdb --args COMMAND`; what else it is told may run anything."""
    for place, word in enumerate(words):
        if word in ("--args", "-args") and words[place + 1 :]:
            return Behind((Inner(words[place + 1 :]),), own=True)
    return None
