"""Git: the settings, options and commands by which it runs other programs."""

import re

from toolcell.shell.facts import Unknown, Words, listed
from toolcell.shell.options import Found, read, shortened, spec

_GIT_HARMLESS = re.compile(
    r"(user|author|committer|color|advice|log|column|i18n|status|branch|tag|stash|versionsort)\..*"
    r"|core\.(quotepath|autocrlf|eol|filemode|ignorecase|safecrlf|whitespace|abbrev|longpaths"
    r"|compression|precomposeunicode|symlinks|checkstat|bare|logallrefupdates|commentchar)"
    r"|init\.defaultbranch|safe\.directory|diff\.(renames|renamelimit|algorithm|colormoved|noprefix"
    r"|mnemonicprefix|context|submodule)|push\.(default|autosetupremote|followtags)"
    r"|pull\.(rebase|ff)|fetch\.(prune|parallel)|merge\.(ff|conflictstyle|renames)"
    r"|rebase\.(autostash|autosquash)|commit\.(gpgsign|verbose)|tag\.gpgsign|rerere\.\w+"
    r"|http\.(postbuffer|sslverify|version|lowspeedlimit|lowspeedtime)|gc\.\w+|pack\.\w+"
    r"|submodule\.recurse|help\.autocorrect|clone\.defaultremotename|protocol\.version"
    r"|remote\.\w+\.url|branch\.[\w./-]+\.(remote|merge|rebase)|feature\.\w+",
    re.IGNORECASE,
)
GIT_GLOBAL = spec(
    "-pPhv -C: -c: --config-env: --exec-path? --git-dir: --work-tree: --namespace: --paginate"
    " --no-pager --no-replace-objects --no-lazy-fetch --no-optional-locks --no-advice --bare"
    " --literal-pathspecs --glob-pathspecs --noglob-pathspecs --icase-pathspecs --html-path"
    " --man-path --info-path --version --help --super-prefix: --list-cmds: --attr-source:"
)
_FAR = f"{shortened('upload-pack receive-pack exec')}.*.*"
_GIT_TELLING = {
    "clone": rf"-[lnqsv46]*[uc].*|{shortened('upload-pack config template')}.*|ext::.*",
    "fetch": rf"{_FAR}|ext::.*",
    "pull": rf"{_FAR}|ext::.*",
    "push": rf"{_FAR}|ext::.*",
    "ls-remote": rf"{_FAR}|ext::.*",
    "fetch-pack": _FAR,
    "send-pack": _FAR,
    "remote": r"ext::.*",
    "submodule": r"foreach|ext::.*",
    "rebase": rf"-[^\WXsCS]*[xi].*|{shortened('exec interactive')}.*",
    "bisect": r"run",
    "grep": rf"-[^\WefmABC]*O.*|{shortened('open-files-in-pager')}.*",
    "archive": f"{shortened('exec remote')}.*",
    "init": f"{shortened('template separate-git-dir')}.*",
    "hook": r"run",
    "help": rf"-w.*|-m.*|{shortened('web man')}.*",
    **dict.fromkeys(["diff", "log", "show", "stash", "whatchanged"], f"{shortened('ext-diff')}.*"),
    **dict.fromkeys(
        listed(
            "difftool mergetool filter-branch send-email instaweb upload-pack receive-pack"
            " for-each-repo difftool--helper web--browse svn p4 shell remote-ext remote-fd"
        ),
        r".*",
    ),
}
_HELD_IN_ARGUMENTS = listed(
    "clone fetch pull push ls-remote fetch-pack send-pack grep rebase archive init diff log show"
    " whatchanged format-patch"
)


def git_doubt(words: Words, *, suspect: bool) -> str:
    """Why a git command may run other programs; `suspect`: variables may hold options."""
    found = read(words[1:], GIT_GLOBAL)
    if found.unknown:
        return f"toolcell does not know the option {found.unknown} of git"
    return _setting(found) or _command(tuple(found.operands), suspect=suspect)


def _setting(found: Found) -> str:
    for name, value in found.options:
        setting = value.partition("=")[0] if isinstance(value, str) else ""
        if name == "c" and not _GIT_HARMLESS.fullmatch(setting):
            return "git can run programs by such a setting with -c"
        if name in ("config-env", "git-dir") or (name == "exec-path" and value != ""):
            return f"git can run other programs with --{name}"
    return ""


def _command(words: Words, *, suspect: bool) -> str:
    command, rest = words[:1], words[1:]
    if command == ("config",):
        return _git_config(rest)
    name = command[0] if command and isinstance(command[0], str) else ""
    telling = _GIT_TELLING.get(name)
    if telling is None:
        return ""
    texts = [word for word in rest if isinstance(word, str)]
    if telling == ".*" or any(re.fullmatch(telling, each, re.DOTALL) for each in texts):
        return f"git {name} can run another program"
    given = rest[: rest.index("--")] if "--" in rest else rest
    odd = Unknown.ANY in given or (suspect and Unknown.ONE in given)
    if odd and name in _HELD_IN_ARGUMENTS:
        return f"an argument that is only known at run time may tell git {name} to run a program"
    return ""


GIT_CONFIG = spec(
    "-lez -f: -t: --file: --global --system --local --worktree --blob: --get --get-all"
    " --get-regexp --get-urlmatch --get-color --get-colorbool --replace-all --add --unset"
    " --unset-all --rename-section --remove-section --list --edit --type: --bool --int"
    " --bool-or-int --bool-or-str --path --expiry-date --null --name-only --show-origin"
    " --show-scope --includes --no-includes --default: --comment: --fixed-value --all --regexp"
    " --value: --url: --append --show-names --no-type"
)
_CONFIG_READS = ("l", "list", "get", "get-all", "get-regexp", "get-urlmatch", "get-color")
_CONFIG_REMOVES = ("unset", "unset-all", "remove-section")


def config_reads(found: Found) -> bool:
    """Whether `git config` only shows what is set; a value may look as if it said so."""
    acts = found.has("add", "replace-all", "edit", "e", "rename-section", *_CONFIG_REMOVES)
    if acts or found.unknown:
        return False
    first = found.operands[:1]
    is_read = found.has(*_CONFIG_READS, "get-colorbool") or first in (["get"], ["list"])
    return is_read or len(found.operands) < 2


def _git_config(rest: Words) -> str:
    """Setting a name that git runs something by is as good as running it later."""
    found = read(rest, GIT_CONFIG, permute=True)
    names = found.operands[1:] if found.operands[:1] in (["set"], ["unset"]) else found.operands
    removes = found.operands[:1] == ["unset"] or found.has(*_CONFIG_REMOVES)
    if config_reads(found) or (removes and not found.unknown):
        return ""
    name = names[0] if names else ""
    is_harmless = isinstance(name, str) and _GIT_HARMLESS.fullmatch(name)
    if is_harmless and not found.unknown and not found.has("e", "edit", "rename-section"):
        return ""
    return "git runs programs that are named in its configuration"
