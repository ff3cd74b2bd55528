"""Git: the settings, options and commands by which it runs other programs."""

import re

from toolcell.shell.facts import Unknown, Words, listed
from toolcell.shell.options import Found, read, spec

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
_GIT_GLOBAL = spec(
    "-pPhv -C: -c: --config-env: --exec-path? --git-dir: --work-tree: --namespace: --paginate"
    " --no-pager --no-replace-objects --no-lazy-fetch --no-optional-locks --no-advice --bare"
    " --literal-pathspecs --glob-pathspecs --noglob-pathspecs --icase-pathspecs --html-path"
    " --man-path --info-path --version --help --super-prefix: --list-cmds: --attr-source:"
)
_GIT_TELLING = {
    "clone": r"-u.*|--upload-p.*|-c.*|--config.*|--templ.*|ext::.*",
    "fetch": r"--upload-p.*|ext::.*",
    "pull": r"--upload-p.*|ext::.*",
    "push": r"--receive-p.*|--exec.*|ext::.*",
    "ls-remote": r"--upload-p.*|--exec.*|ext::.*",
    "remote": r"ext::.*",
    "submodule": r"foreach|ext::.*",
    "rebase": r"-x.*|--ex.*|-i.*|--interactive",
    "bisect": r"run",
    "grep": r"-O.*|--open.*",
    "difftool": r".*",
    "mergetool": r".*",
    "filter-branch": r".*",
    "archive": r"--exec.*|--remote.*",
    "diff": r"--ext-d.*",
    "log": r"--ext-d.*",
    "show": r"--ext-d.*",
    "send-email": r".*",
    "instaweb": r".*",
    "hook": r"run",
    "init": r"--templ.*",
    "upload-pack": r".*",
    "receive-pack": r".*",
    "for-each-repo": r".*",
    "difftool--helper": r".*",
    "web--browse": r".*",
    "help": r"-w.*|--web|-m.*",
    "svn": r".*",
    "p4": r".*",
    "shell": r".*",
}


_HELD_IN_ARGUMENTS = frozenset(["clone", "fetch", "pull", "push", "ls-remote", "grep", "rebase"])


def git_doubt(words: Words, *, suspect: bool) -> str:
    """Why a git command may run other programs; `suspect`: variables may hold options."""
    found = read(words[1:], _GIT_GLOBAL)
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
    odd = Unknown.ANY in rest or (suspect and Unknown.ONE in rest)
    if odd and name in _HELD_IN_ARGUMENTS:
        return f"an argument that is only known at run time may tell git {name} to run a program"
    return ""


_CONFIG_READS = listed(
    "get list -l --list --get --get-all --get-regexp --get-urlmatch --name-only --show-origin"
    " --unset --unset-all --remove-section unset"
)


def _git_config(rest: Words) -> str:
    """Setting a name that git runs something by is as good as running it later."""
    if any(word in _CONFIG_READS for word in rest):
        return ""
    names = [word for word in rest if isinstance(word, str) and not word.startswith("-")]
    names = [name for name in names if name != "set"]
    if names and _GIT_HARMLESS.fullmatch(names[0]) and rest[-1] != "-e":
        return ""
    if len(rest) == 1 and names:
        return ""  # only shows what is set
    return "git runs programs that are named in its configuration"
