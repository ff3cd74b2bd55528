"""Variables that change what runs, and those whose value bash may run as code.

Arithmetic in bash evaluates what its variables hold, array subscripts included, and a
subscript may hold `$(command)`. So a value that nobody has seen must not get there.
"""

import re
from collections.abc import Iterable

from toolcell.shell.behind import program
from toolcell.shell.facts import Unknown, Word, Words, listed

_EXACT = listed(
    # what the shell finds and how it reads
    "PATH BASH_ENV ENV IFS SHELLOPTS BASHOPTS PS4 PROMPT_COMMAND CDPATH SHELL HOME EXECIGNORE"
    " BASH_CMDS BASH_ALIASES BASH_COMPAT BASH_LOADABLES_PATH POSIXLY_CORRECT FPATH ZDOTDIR"
    " TEXTDOMAIN TEXTDOMAINDIR NLSPATH LOCPATH GCONV_PATH GLIBC_TUNABLES"
    # what programs start
    " VISUAL BROWSER RSYNC_RSH CVS_RSH SVN_SSH SSH_ASKPASS SUDO_ASKPASS TAR_OPTIONS LESSOPEN"
    " LESSCLOSE LESS MORE VIMINIT EXINIT GVIMINIT MYVIMRC VIM VIMRUNTIME EMACSLOADPATH"
    " RIPGREP_CONFIG_PATH FZF_DEFAULT_COMMAND FZF_DEFAULT_OPTS GREP_OPTIONS ZIPOPT UNZIP"
    " UNZIPOPT ZIPINFOOPT TAPE RSH"
    " RSYNC_CONNECT_PROG SVN_EDITOR HGEDITOR HGRCPATH HGMERGE BZR_EDITOR TERMCMD TERMINAL"
    " MAILER MAILCAPS LESSKEY LESSKEYIN SYSTEMD_LESS MANROFFOPT MANPATH"
    " MANLESS NROFF TROFF GROFF_COMMAND_PREFIX DELTA_FEATURES BAT_CONFIG_PATH"
    " ACK_OPTIONS ACKRC AG_OPTIONS FD_OPTIONS"
    # what compilers and builds start and load
    " COMPILER_PATH LIBRARY_PATH COLLECT_GCC COLLECT_LTO_WRAPPER COLLECT_GCC_OPTIONS"
    " DEPENDENCIES_OUTPUT SUNPRO_DEPENDENCIES CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH"
    " OBJC_INCLUDE_PATH CFLAGS CXXFLAGS CPPFLAGS LDFLAGS LDLIBS FFLAGS FCFLAGS ARFLAGS YACC LEX"
    " RANLIB STRIP OBJCOPY NM HOSTCC HOSTCXX LIBTOOL MAKE MAKESHELL MAKE_COMMAND"
    " SCONSFLAGS ANT_OPTS ANT_ARGS SBT_OPTS JAVA_OPTS JVM_OPTS LEIN_JVM_OPTS JAVA_HOME"
    " MAVEN_ARGS MAVEN_CONFIG GRADLE_USER_HOME KOTLIN_COMPILER NINJA TOX_CONFIG_FILE"
    " NOX_DEFAULT_VENV_BACKEND TEXINPUTS TEXMFHOME TEXMFCNF BIBINPUTS"
    # what programs load
    " AWKLIBPATH AWKPATH PSQLRC PGSERVICEFILE PGSYSCONFDIR MYSQL_HOME"
    " LIBMYSQL_PLUGIN_DIR SQLITE_HISTORY GDBINIT GDBHISTFILE LLDBINIT SCREENRC"
    " NETRC PROJ_LIB GDAL_DRIVER_PATH ODBCINI"
    " ODBCSYSINI SASL_PATH GST_PLUGIN_PATH GIO_EXTRA_MODULES GDK_PIXBUF_MODULE_FILE QML_IMPORT_PATH"
    " MAGICK_CONFIGURE_PATH MAGICK_CODER_MODULE_PATH MAGIC GS_LIB GS_OPTIONS GNUPLOT_DRIVER_DIR"
    " OCTAVE_SITE_INITFILE MATLABPATH GUILE_LOAD_PATH EMACSDATA DENO_DIR"
    " BUN_INSTALL TS_NODE_PROJECT"
    " ELIXIR_ERL_OPTIONS MIX_EXS OPAMROOT OCAMLPARAM CAML_LD_LIBRARY_PATH GHCRTS"
    " GHC_PACKAGE_PATH COMPOSER_HOME PERLLIB PERLDB_OPTS ANSIBLE_CONFIG TF_CLI_CONFIG_FILE"
    " HELM_PLUGINS DOCKER_CLI_PLUGIN_EXTRA_DIRS CONTAINERS_CONF SSH_CONFIG NVIM_APPNAME"
    " CLASSPATH JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS MAVEN_OPTS GRADLE_OPTS"
    " NODE_OPTIONS NODE_PATH MAKEFLAGS MFLAGS GNUMAKEFLAGS MAKEFILES GOFLAGS GOROOT GOPATH"
    " GOENV GOCACHEPROG"
    " PYTEST_ADDOPTS PYTEST_PLUGINS PHPRC PHP_INI_SCAN_DIR DOTNET_STARTUP_HOOKS OPENSSL_CONF"
    " OPENSSL_ENGINES OPENSSL_MODULES CURL_HOME WGETRC KUBECONFIG DOCKER_CONFIG DOCKER_HOST"
    " AWS_CONFIG_FILE GTK_MODULES QT_PLUGIN_PATH INPUTRC RUSTFLAGS RUSTDOCFLAGS CC CXX CPP LD"
    " AR AS FC NVCC MANOPT TERMINFO GNUPGHOME TCLLIBPATH R_HOME ERL_LIBS"
)
_PREFIXES = (
    *["LD_", "DYLD_", "GIT_", "PYTHON", "PERL5", "RUBY", "BASH_FUNC_", "XDG_", "LUA_", "CARGO_"],
    *["GCC_", "LESSKEY", "CCACHE_", "DISTCC_", "SCCACHE_", "AFL_", "MESON", "CGO_", "GOTOOL"],
    *["GDB", "TF_CLI_ARGS", "ANSIBLE_", "POETRY_", "PIPX_", "CONDA_", "VIRTUALENV_", "TOX_"],
    *["MSBUILD", "DOTNET_", "NUGET_", "PHP_", "COMPOSER_", "GRADLE_", "PNPM_", "COREPACK_"],
    *["RUSTC", "RUSTUP_", "YARN_", "COR_", "CORECLR_", "R_PROFILE"],
    *["R_ENVIRON", "JULIA_", "ERL_", "PKG_CONFIG", "CMAKE_", "PIP_", "UV_", "BUNDLE_"],
)
_SUFFIXES = ("PAGER", "EDITOR", "_ASKPASS", "_WRAPPER", "_LAUNCHER")

# Some settings that everybody makes, and the values with which they run nothing.
_HARMLESS = [
    (re.compile(name), re.compile(value, re.DOTALL))
    for name, value in [
        (r"(\w+_)?PAGER", r"cat|less|more|"),
        (r"(GIT_)?(SEQUENCE_)?EDITOR|VISUAL", r"true|false|:|cat|"),
        (r"GIT_(AUTHOR|COMMITTER)_(NAME|EMAIL|DATE)", r".*"),
        (r"GIT_(TERMINAL_PROMPT|MERGE_AUTOEDIT|OPTIONAL_LOCKS|LFS_SKIP_SMUDGE)", r".*"),
        (r"GIT_(TRACE\w*|CURL_VERBOSE)", r"[012]|true|false|"),
        (r"PYTHON(UNBUFFERED|DONTWRITEBYTECODE|HASHSEED|IOENCODING|UTF8|FAULTHANDLER)", r".*"),
        (r"PYTHON(NOUSERSITE|OPTIMIZE|ASYNCIODEBUG|DEVMODE|TRACEMALLOC|SAFEPATH|MALLOC)", r".*"),
        (r"PYTHONWARNINGS", r"(error|ignore|always|default|module|once)(::\w*Warning)?"),
        (r"LESS", r"-?[a-zA-Z]*"),
        (r"NODE_OPTIONS", r"(--(max-old-space-size=\d+|no-warnings|trace-warnings) ?)*"),
        (r"MAKEFLAGS", r"-?-?j ?\d*|-?s"),
        (r"GOFLAGS", r"-mod=\w+|"),
        (r"CC|CXX|CPP|LD|AR", r"(gcc|g\+\+|cc|c\+\+|clang|clang\+\+|ld|lld|ar|llvm-ar)(-\d+)?"),
        (r"RUSTFLAGS", r"-D ?warnings|"),
        (r"(C|CXX|CPP)FLAGS", r"(-(O[0-3sgz]?|g\d?|W[\w-]+|std=[\w+]+|D\w+(=\w*)?)( |$))*"),
        (r"DOTNET_(CLI_TELEMETRY_OPTOUT|NOLOGO|SKIP_FIRST_TIME_EXPERIENCE)", r".*"),
        (r"CGO_ENABLED", r"[01]"),
        (r"ANSIBLE_(NOCOLOR|FORCE_COLOR|HOST_KEY_CHECKING)", r".*"),
        (r"POETRY_(NO_INTERACTION|VIRTUALENVS_\w+)", r"(true|false|0|1)"),
        (r"CARGO_(TERM_COLOR|INCREMENTAL|NET_OFFLINE|TARGET_DIR|BUILD_JOBS)", r".*"),
        (r"PIP_(NO_INPUT|DISABLE_PIP_VERSION_CHECK|NO_CACHE_DIR|QUIET|NO_COLOR)", r".*"),
        (r"UV_(OFFLINE|NO_CACHE|NO_PROGRESS|FROZEN|LINK_MODE)", r".*"),
        (r"XDG_(RUNTIME_DIR|SESSION_\w+|CACHE_HOME)", r".*"),
        (r"npm_config_(loglevel|yes|audit|fund|progress)", r".*"),
    ]
]
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
HOLDS_CODE = re.compile(r"[$`]|[<>]\(")  # text that runs something when bash expands it
# Bash itself gives these a value that may come from anywhere.
GIVEN = listed(
    "_ REPLY BASH_REMATCH BASH_COMMAND BASH_EXECUTION_STRING BASH_ARGV BASH_ARGV0 BASH_SOURCE"
    " FUNCNAME DIRSTACK MAPFILE COPROC PWD OLDPWD OPTARG READLINE_LINE COMP_WORDS COMP_LINE"
)
UNSEEN = ""  # in a graph of names: a value that only the run knows


def danger(name: str, value: Word) -> str:
    """Why setting a variable may change what runs; "" where it does not."""
    is_known = name in _EXACT or name.startswith(_PREFIXES) or name.endswith(_SUFFIXES)
    if not is_known and not name.lower().startswith("npm_config_"):  # npm takes any case
        return ""
    if isinstance(value, str) and any(
        n.fullmatch(name) and v.fullmatch(value) for n, v in _HARMLESS
    ):
        return ""
    if name == "PATH":
        return "PATH is set, so the command may be another program"
    return f"{name} is set, which can change what the command runs"


class Values:
    """Which variables hold what nobody has seen, and which are evaluated."""

    def __init__(self) -> None:
        self._held: dict[str, set[str]] = {}
        self._evaluated: set[str] = set()
        self._integers: set[str] = set()
        self.maps: set[str] = set()  # associative arrays, whose subscripts are no arithmetic
        self._plain: set[str] = set()  # declared as something else, once
        self._subscripts: dict[str, set[str]] = {}  # of maps: what they are made of
        self.suspect = False  # a value may begin with a dash, or nobody has seen it

    def holds(self, name: str, sources: Iterable[str], *, files: bool = False) -> None:
        """Note that a variable gets its value from others, or from UNSEEN: names of `files`."""
        sources = set(sources)
        self._held.setdefault(name, set()).update(sources)
        self.suspect = self.suspect or (UNSEEN in sources and not files)

    def holds_text(self, name: str, text: Word) -> None:
        """Note a value that stands in the line; SAFE is one that was noted by its sources."""
        if isinstance(text, Unknown):
            self.holds(name, [] if text is Unknown.SAFE else [UNSEEN])
            return
        if text.startswith("-") and not text[1:].isdigit():
            self.suspect = True
        self._held.setdefault(name, set()).update(names_in(text))

    def is_integer(self, name: str) -> None:
        """Note `declare -i`: from then on every value is evaluated."""
        self._integers.add(name)

    def is_set(self, name: str) -> bool:
        """Whether the line itself gives the variable a value."""
        return name in self._held

    def is_map(self, name: str, *, surely: bool) -> None:
        """Note `declare -A`, which fails for what is an array already."""
        if surely and name not in self._plain and name not in self._held:
            self.maps.add(name)
        else:
            self.is_plain(name)

    def is_plain(self, name: str) -> None:
        """Note that a variable may be no map: what were its subscripts are arithmetic."""
        self._plain.add(name)
        self.maps.discard(name)
        self.evaluates(self._subscripts.get(name, ()))

    def in_map(self, name: str, sources: Iterable[str]) -> None:
        """Note the subscript of a map."""
        self._subscripts.setdefault(name, set()).update(sources)

    def evaluates(self, names: Iterable[str]) -> None:
        """Note that arithmetic evaluates variables, or UNSEEN text."""
        self._evaluated.update(names)

    def runs(self) -> str:
        """Return the variable whose unseen value arithmetic runs, "" if there is none."""
        waiting = sorted(self._evaluated | (self._integers & self._held.keys()))
        seen: set[str] = set()
        while waiting:
            name = waiting.pop()
            if name == UNSEEN:
                return "a value"
            if name not in seen:
                seen.add(name)
                held = self._held.get(name, set())
                if UNSEEN in held or name in GIVEN:
                    return name
                waiting += held
        return ""


def names_in(text: str) -> set[str]:
    """The variables that text names when arithmetic evaluates it."""
    return {UNSEEN} if HOLDS_CODE.search(text) else set(_NAME.findall(text))


def is_harmless_for(name: str, value: Word, words: Words) -> bool:
    """Some variables change nothing for the command that they are set for alone."""
    command = words[0] if words else ""
    if name == "IFS":
        return command in ("read", "mapfile", "readarray")
    if (
        name == "PYTHONPATH"
        and isinstance(value, str)
        and not re.search(r"(^|:)(/|~|.*\.\.)", value)
    ):
        # These load code from the workspace in any case.
        return command in ("pytest", "py.test") or (
            program(command).startswith("python") and words[1:2] in (("-m",), ("-c",))
        )
    return False
