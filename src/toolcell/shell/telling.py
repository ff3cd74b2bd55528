"""Tables of options and other words by which programs are told to run others.

Each entry names only what a careful person would stop at: options that hold a command, and
scripts that can start one. Ordinary use of the same program is not in doubt.
"""

import re

from toolcell.shell.options import shortened

# Words of a command line that tell a program to run another. Long options may be shortened.
_TELLING: dict[str, str] = {
    "tar": r"-[^\WIFfCTXbgHKLNV]*[IFg].*",
    "rsync": r"-[A-Za-z]*e.*",
    "zip": r"-TT.*|--unzip-command.*|-[A-Za-z]*TT.*",
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
    "sftp": r"-[A-Za-z0-9]*[FSDb].*",
    "curl": r"-[#0-9aBfgGiIjJklLMnNOpqRsSvV]*K.*|--config.*|--engine.*",
    "wget": r"-[bcdEFHkKLmNnpqrSvVx46hi]*e.*|--exec.*|--use-askpass.*|--config.*",
    "make": r"(SHELL|\.SHELLFLAGS|MAKEFLAGS)\s*[:?+]*=.*|-[A-Za-z]*E.*|[^-]\S*\s*!=.*|.*\$.*",
    "cmake": r"-[EP]|-P.*|-C.*|(SHELL|\.SHELLFLAGS|MAKEFLAGS)\W*=.*|--eval.*"
    r"|(-D)?\w*(COMMAND|COMPILER_LAUNCHER|LINKER_LAUNCHER|EMULATOR|MAKE_PROGRAM).*=.*",
    "vim": r"-c.*|-S.*|-s.*|-u.*|--cmd.*|\+\D.*|-[a-zA-Z]*es?.*|--remote.*",
    "emacs": r"--ev.*|-eval|--exec.*|-l|--load.*|-f|--funcall.*|--script.*|--batch|-batch",
    "gdb": r"--?(ex|ix|iex|eval|com|ini|bat).*|-x.*",
    "lldb": r"-o.*|-s.*|-S.*|-O.*|-k.*|--one-line.*|--source.*",
    "gcc": r"-wrapper|-fplugin=.*|-specs=.*|--specs=.*|-B.*|@.*",
    "go": r"--?(toolexec|exec|vettool|overlay|compiler).*|.*-ext(ld|ar)\b.*",
    "cargo": r"--config.*|-Z.*|-Clinker.*|linker=.*",
    "rustc": r"-C|-Clinker.*|linker=.*|-Z.*",
    "npm": r"--?(scr|node-o|shell|globalc|userc).*|--?git(=.*)?",
    "nmap": r"--script.*",
    "tcpdump": r"-[A-Za-z]*z.*",
    "openssl": r"--?(engine|provider.*|config)|engine",
    "sqlite3": r"(?:.*\n)?[ \t]*\.[a-z]*(sh|sy|im|ou|on|lo|re|ex|ed|op|sa|ba|ar|cl|du).*"
    r"|.*(load_extension|readfile|writefile|edit)\s*\(.*|--?init|--?cmd",
    "psql": r".*(\\!|\\o|\\g|\\w|\\i|\\e|\\copy|\b[Pp][Rr][Oo][Gg][Rr][Aa][Mm]\b).*|-o.*"
    r"|--output.*|-L.*",
    "mysql": r".*(\\!|\\T|\\P).*|(?:.*;)?\s*(system|source|tee|pager)\b.*|--pager.*"
    r"|--tee.*",
    "lftp": r".*!.*|-f.*",
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
    "compgen": r"-[A-Za-z]*[CFWP].*",
    "jobs": r"-[a-z]*x.*",
    "bind": r"-.*",
    "fc": r".*",
}
SAME = {
    **{"gtar": "tar", "gsort": "sort", "gsplit": "split", "gmake": "make", "ripgrep": "rg"},
    **dict.fromkeys(["vi", "nvim", "view", "ex", "rvim", "vimdiff", "gvim"], "vim"),
    **dict.fromkeys(["g++", "cc", "c++", "clang", "clang++", "ld"], "gcc"),
    **dict.fromkeys(["pnpm", "yarn", "npx"], "npm"),
    **{"batcat": "bat", "mariadb": "mysql"},
}
# The same by long options, which the program takes cut short as well.
_LONG: dict[str, str] = {
    "tar": "checkpoint-|action to-command use-compress-program info-script new-volume-script"
    " rsh-command rmt-command index-file one-top-level remove-files list|ed-incremental"
    " transform xform",
    "bsdtar": "use-compress-program",
    "sort": "compress-program",
    "man": "pager html config-file",
    "zip": "unzip-command",
    "curl": "config engine",
    "wget": "execute use-askpass config",
    "mysql": "pager tee init-command",
    "split": "filter",
    "install": "strip|-program",
    "rsync": "rsh rsync-path daemon config",
    "make": "eval",
}
_PATTERNS = _TELLING | {
    name: f"{_TELLING.get(name, r'(?!)')}|{shortened(names)}.*" for name, names in _LONG.items()
}
TELLING = {name: re.compile(pattern, re.DOTALL) for name, pattern in _PATTERNS.items()}
# Options that look like one of the above and run nothing, or a compressor at most.
HARMLESS = {
    "tar": re.compile(
        r"-[^\WIFfCTXbgHKLNV]*I(zstd|gzip|pigz|xz|bzip2|pbzip2|lz4|lzma)"
        r"|--(format|file|files-from|force-local|full-time).*"
    ),
    "rsync": re.compile(r"(-[^\We]*e|--rsh=)ssh|--(exclude|existing|executability).*"),
    "vim": re.compile(r"--version|--help"),
    "at": re.compile(r"-l|-V"),
    "jobs": re.compile(r"-x"),  # known as a command that starts another
    "crontab": re.compile(r"-l"),
    "complete": re.compile(r"-p"),
    "fc": re.compile(r"-l.*|-?\d+"),
    "bind": re.compile(r"-[lpPsSvV]"),
    "rustc": re.compile(r"-C"),
}
# Pairs of an option and the next word that are as harmless.
PAIR_IS_HARMLESS = {
    "tar": re.compile(r"-[^\WIFfCTXbgHKLNV]*I (zstd|gzip|pigz|xz|bzip2|pbzip2|lz4|lzma)"),
    "rsync": re.compile(r"-[^\We]*e ssh"),
}
