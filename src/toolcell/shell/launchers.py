"""The programs that start the command which their own words end with, and how to find it.

Options are described as in `options.spec`. `skip` operands stand before the command.
`idle` options mean that no command is started, `alone` ones that none has to be given;
`code` options hold shell code to run.
`own`: the program does more than to start a command, and needs a rule of its own as well.
"""

from dataclasses import dataclass
from functools import cached_property

from toolcell.shell.options import Spec, spec


@dataclass(frozen=True)
class Launcher:
    """How one program is told what to start."""

    options: str = ""
    skip: int = 0
    assigns: bool = False  # NAME=VALUE may stand before the command
    own: bool = False
    numbers: bool = False
    idle: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    directory: tuple[str, ...] = ()
    joins: bool = False  # the words are joined and given to a shell
    each: bool = False  # every operand is code for a shell
    or_shell: bool = False  # starts a shell where no command is given
    blind: bool = False  # its options cannot be told from the command

    @cached_property
    def spec(self) -> Spec:
        """The options, ready to be read with."""
        return spec(self.options, numbers=self.numbers)


def _own(options: str = "", **more: object) -> Launcher:
    return Launcher(options, own=True, **more)  # type: ignore[arg-type]  # passed on as they are


_SUDO = (
    "-AbBEeHiKklnNPSsVv -a: -C: -c: -D: -g: -h: -p: -R: -r: -T: -t: -U: -u: --askpass --background"
    " --bell --chdir: --chroot: --close-from: --edit --group: --help --host: --list --login"
    " --non-interactive --no-update --other-user: --preserve-env? --preserve-groups --prompt:"
    " --remove-timestamp --reset-timestamp --role: --set-home --shell --stdin --type: --user:"
    " --validate --version --command-timeout:"
)
_NAMESPACES = (
    " --mount? --uts? --ipc? --net? --pid? --user? --cgroup? --time? --root: --wd: --wdns:"
    " --setuid: --setgid: --fork --kill-child? --map-root-user --map-current-user --map-user:"
    " --map-group: --map-auto --mount-proc? --propagation: --setgroups: --keep-caps"
    " --monotonic: --boottime: --target: --all --no-fork --preserve-credentials"
)

LAUNCHERS: dict[str, Launcher] = {
    "env": Launcher(
        "-i0v -u: -C: -S: -a: --ignore-environment --null --unset: --chdir: --split-string:"
        " --argv0: --block-signal? --default-signal? --ignore-signal? --list-signal-handling"
        " --debug",
        assigns=True,
        directory=("C", "chdir"),
    ),
    "command": Launcher("-pvV", idle=("v", "V")),
    "builtin": Launcher(),
    "exec": Launcher("-cl -a:"),
    "nice": Launcher("-n: --adjustment:", numbers=True),
    "ionice": Launcher(
        "-t -c: -n: -p: -P: -u: --class: --classdata: --ignore --pid: --pgid: --uid:",
        idle=("p", "P", "u", "pid", "pgid", "uid"),
    ),
    "nohup": Launcher(),
    "time": Launcher(
        "-apqvVh -o: -f: --append --portability --quiet --verbose --output: --format:",
        writes=("o", "output"),
    ),
    "timeout": Launcher(
        "-vfp -k: -s: --kill-after: --signal: --preserve-status --foreground --verbose", skip=1
    ),
    "stdbuf": Launcher("-i: -o: -e: --input: --output: --error:"),
    "setsid": Launcher("-cfw --ctty --fork --wait"),
    "chrt": Launcher(
        "-abdfimorRv -p -T: -P: -D: --all-tasks --batch --deadline --fifo --idle --max --other"
        " --pid --rr --reset-on-fork --sched-runtime: --sched-period: --sched-deadline: --verbose",
        skip=1,
        idle=("p", "pid", "m", "max"),
    ),
    "taskset": Launcher("-acp --all-tasks --cpu-list --pid", skip=1, idle=("p", "pid")),
    "unbuffer": Launcher("-p"),
    "watch": Launcher(
        "-bcCegprtwx -d? -n: -q: --beep --color --no-color --differences? --errexit --chgexit"
        " --equexit: --interval: --precise --no-rerun --no-title --no-wrap --exec",
        joins=True,
    ),
    "busybox": Launcher("--list --list-full --install", idle=("list", "list-full", "install")),
    "toybox": Launcher("--long", idle=("long",)),
    "flock": Launcher(
        "-sexunoFv -w: -E: -c: --shared --exclusive --unlock --nonblock --close --no-fork"
        " --verbose --timeout: --conflict-exit-code: --command:",
        skip=1,
    ),
    **dict.fromkeys(
        ["linux32", "linux64", "x86_64", "i386", "i486", "i586", "i686", "uname26"],
        Launcher("-R3BFILTXZSvhV --4gb --uname-2.6 --verbose --32bit --fdpic-funcptrs"),
    ),
    "choom": Launcher("-n: -p: --adjust: --pid:", alone=("p", "pid")),
    "ssh-agent": _own("-csDdkTuUx -a: -t: -E: -P: -O:", alone=("k",)),
    "gpg-agent": _own(
        "-vqsc --daemon --verbose --quiet --sh --csh --homedir: --options: --version --help"
        " --enable-ssh-support --default-cache-ttl: --max-cache-ttl: --no-detach --no-grab"
    ),
    "dbus-run-session": Launcher("--config-file: --dbus-daemon:", own=True),
    "xvfb-run": _own("-al -e: -f: -n: -p: -s: --auto-servernum --server-args: --error-file:"),
    "eatmydata": Launcher(),
    "catchsegv": Launcher(),
    "tini": Launcher("-gsvw -p: -e:"),
    "dumb-init": Launcher("-cv -r: --single-child --verbose --rewrite:"),
    "rlwrap": _own("-acimnNorRtvW -f: -H: -l: -s: -S: -p?"),
    "faketime": _own("-fm", skip=1),
    # What follows changes who runs the command or what it can do.
    "sudo": _own(
        _SUDO,
        assigns=True,
        directory=("D", "chdir"),
        idle=("l", "list", "e", "edit", "v", "validate", "V", "K"),
        alone=("k", "reset-timestamp"),
        or_shell=True,
    ),
    "doas": _own("-Lns -a: -C: -u:", or_shell=True),
    "pkexec": _own("--user: --disable-internal-agent --keep-cwd"),
    "su": _own(
        "-lmpfPT -c: -C: -g: -G: -s: -w: --command: --session-command: --login"
        " --preserve-environment --fast --group: --supp-group: --shell: --pty --no-pty"
        " --whitelist-environment:",
        code=("c", "command", "session-command"),
        or_shell=True,
    ),
    "runuser": _own(
        "-lmpfP -c: -g: -G: -s: -u: -w: --command: --session-command: --login"
        " --preserve-environment --fast --group: --supp-group: --shell: --user: --pty"
        " --whitelist-environment:",
        code=("c", "command", "session-command"),
        or_shell=True,
    ),
    "gosu": _own(skip=1),
    "su-exec": _own(skip=1),
    "chroot": _own("--userspec: --groups: --skip-chdir", skip=1, or_shell=True),
    "unshare": _own("-muinpUCTfrc -S: -G: -R: -w: -l:" + _NAMESPACES, or_shell=True),
    "nsenter": _own(
        "-aZFe -t: -m? -u? -i? -n? -p? -C? -U? -T? -r? -w? -S: -G: -W: --env --follow-context"
        + _NAMESPACES,
        or_shell=True,
    ),
    "setpriv": _own(
        "-d --dump --nnp --no-new-privs --reuid: --regid: --ruid: --euid: --rgid: --egid:"
        " --clear-groups --keep-groups --init-groups --groups: --inh-caps: --ambient-caps:"
        " --bounding-set: --securebits: --selinux-label: --apparmor-profile: --pdeathsig:"
        " --reset-env --list-caps --landlock-access: --landlock-rule: --seccomp-filter:",
        idle=("d", "dump", "list-caps"),
    ),
    "runcon": _own("-c -t: -u: -r: -l: --compute --type: --user: --role: --range:", skip=1),
    "prlimit": _own("-p: --pid: --noheadings --raw --verbose", idle=("p", "pid")),
    "numactl": _own(
        "-alsHb -i: -N: -C: -m: -p: --interleave: --cpunodebind: --physcpubind: --membind:"
        " --localalloc --preferred: --all --show --hardware",
        idle=("s", "show", "H", "hardware"),
    ),
    "systemd-run": _own(
        "-dGPqrSt -E: -p: -M: -H: -u: --user --system --scope --unit: --property: --description:"
        " --slice: --uid: --gid: --nice: --working-directory: --setenv: --pty --pipe --quiet --wait"
        " --collect --no-block --same-dir --shell --on-active: --on-boot: --on-calendar:",
        or_shell=True,
    ),
    "strace": _own(
        "-cCdDfFhiknqrtTvVwxyYzZ -a: -b: -e: -E: -I: -o: -O: -p: -P: -s: -S: -u: -U: -X:"
        " --output: --trace: --follow-forks --string-limit: --output-separately --summary",
        idle=("V",),
        writes=("o", "output"),
    ),
    "ltrace": _own(
        "-bcCfhiLrStTV -a: -A: -D: -e: -F: -l: -n: -o: -p: -s: -u: -w: -x:",
        idle=("V",),
        writes=("o",),
    ),
    "valgrind": _own("-dqv --quiet --verbose --tool: --log-file: --leak-check? --track-origins?"),
    "fakeroot": _own("-huv -l: -f: -i: -s: -b: --lib: --faked: --unknown-is-real --version"),
    "torsocks": _own("-iq -u: -p: -a: -P: --isolate --quiet --user: --pass: --address: --port:"),
    "proxychains": _own("-q -f:"),
    "proxychains4": _own("-q -f:"),
    "caffeinate": Launcher("-dimsu -t: -w:"),
    "entr": _own("-acdnprxz"),  # not -s, which gives the words to a shell
    "hyperfine": _own(
        "-iN -w: -m: -M: -r: -p: -s: -c: -S: --warmup: --runs: --min-runs: --max-runs: --prepare:"
        " --setup: --cleanup: --conclude: --shell: --ignore-failure? --show-output --export-json:"
        " --export-csv: --export-markdown: --command-name: -n: --style: --time-unit: -u:",
        code=("p", "prepare", "s", "setup", "c", "cleanup", "conclude"),
        writes=("export-json", "export-csv", "export-markdown"),
        each=True,
    ),
    **dict.fromkeys(
        [
            *["capsh", "setarch", "firejail", "bwrap", "proot", "cgexec", "start-stop-daemon"],
            *["sg", "ld.so", "ld-linux.so.2", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"],
            *["ld-linux-armhf.so.3", "ld-musl-x86_64.so.1", "ld-musl-aarch64.so.1"],
        ],
        Launcher(own=True, blind=True),
    ),
    # These start what follows their subcommand, in an environment of their own.
    "uv run": _own(
        "-mqsv -p: -w: --active --all-extras --dev --directory: --env-file: --exact --extra:"
        " --frozen --group: --index-url: --isolated --locked --no-dev --no-project --no-sync"
        " --offline --only-group: --package: --project: --python: --quiet --refresh --script"
        " --verbose --with: --with-editable: --with-requirements: --module --gui-script",
    ),
    "poetry run": _own("-qvn -C: -P: --directory: --project: --quiet --no-interaction"),
    "pipenv run": _own(),
    "pdm run": _own("-qs -p: --project: --site-packages --quiet"),
    "hatch run": _own(),
    "rye run": _own("-lv"),
    "conda run": _own("-v -n: -p: --name: --prefix: --cwd: --no-capture-output --live-stream"),
    "bundle exec": _own("--keep-file-descriptors --gemfile:"),
    "direnv exec": _own(skip=1),
    "dotenv run": _own("-f: -e --override --no-override"),
    "mise exec": _own("-j: --jobs:"),
    "perf stat": _own("-adiv -e: -o: -p: -r: -x: --event: --output: --repeat:"),
    "perf record": _own("-agv -e: -F: -o: -p: -c: --event: --output: --freq:"),
}
