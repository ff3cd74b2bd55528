"""What an attack is, and the words that its payload is wrapped in.

A payload says TRY when it starts and then how it ended: REACHED, or `held:` and why, or
`done` where only the host can tell. Anything else is a payload that never was an attack.
"""

import shlex
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest

FULL, LANDLOCK = "full", "landlock"
BOTH = (FULL, LANDLOCK)

_PYTHON = '''
import ctypes, errno, glob, json, mmap, os, shutil, signal, socket, stat, struct, subprocess, sys
from types import SimpleNamespace
T = SimpleNamespace(**{targets!r})
class Held(Exception):
    pass
def processes():
    """Those to look at: of a host that is shared with others, only the tests' own."""
    return T.own or [int(name) for name in os.listdir("/proc") if name.isdigit()]
def need(true, what="it is not so"):
    if not true:
        raise Held(what)
def read(path):
    with open(path, "rb") as file:
        print(file.read(1 << 16).decode(errors="replace"), flush=True)
def write(path, text="written by an attack"):
    with open(path, "w") as file:
        file.write(text)
print("TRY", flush=True)
try:
{body}
except (OSError, Held) as error:
    print("held:", getattr(error, "errno", 0), error)
else:
    print({end!r})
'''

_SHELL = """{targets}
echo TRY
(
set -e
{body}
)
case $? in
0) echo {end} ;;
127) echo BROKEN: no such program ;;
*) echo held: exit code $? ;;
esac
"""


@dataclass(frozen=True)
class Attack:
    """One attempt.

    `line` is the catalogue's, `how` its variation. `code` is Python, `shell` a script, a
    `program` a line for one of the C programs, with {names} of targets, and `uses` names one
    that Python starts. A `tool` is its name and arguments, and `code` the same act for the
    control. `judged` says that only the host can tell what was reached: by the secret in the
    output, a changed tree, or what arrived. `cell` are settings, `prepare` what the host does
    before.

    `root` says that the host lets only root do it, `within` names the namespaces (flags of
    unshare(1)) that the control is made in, `missing` the errnos by which a kernel says
    that it has no such thing, `unless` why a host cannot show it. `deadly` attacks may be
    answered by the death of the process.
    """

    line: str
    how: str
    code: str = ""
    program: str = ""
    uses: str = ""
    shell: str = ""
    tool: tuple[str, dict[str, str]] | None = None
    judged: bool = False
    rungs: tuple[str, ...] = BOTH
    root: bool = False
    within: str = ""
    missing: tuple[int, ...] = (38,)
    unless: Callable[[], str] = str
    deadly: bool = False
    prepare: Callable[[Any], None] | None = None
    cell: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What it is called in reports."""
        return f"{self.line}: {self.how}"

    @property
    def binary(self) -> str:
        """The C program that it needs, or nothing."""
        return self.uses or (self.program.split()[0] if self.program else "")

    def python(self, targets: dict[str, Any]) -> str:
        """The Python payload for some targets."""
        body = textwrap.indent(textwrap.dedent(self.code).strip(), "    ")
        end = "done" if self.judged else "REACHED"
        return _PYTHON.format(targets=targets, body=body, end=end)

    def command(self, targets: dict[str, Any]) -> str:
        """The shell payload for some targets, or the line that starts the program."""
        if self.program:
            words = shlex.split(self.program.format(**targets))
            return f"./{shlex.join(words)}"
        lines = [f"{name.upper()}={shlex.quote(str(value))}" for name, value in targets.items()]
        end = "done" if self.judged else "REACHED"
        return _SHELL.format(targets="\n".join(lines), body=self.shell.strip(), end=end)


def each_on_its_rungs(attacks: Iterable[Attack]) -> pytest.MarkDecorator:
    """Parametrise a test with `rung` and `attack`."""
    return pytest.mark.parametrize(
        ("rung", "attack"),
        [
            pytest.param(rung, attack, id=f"{rung}-{attack.name}")
            for attack in attacks
            for rung in attack.rungs
        ],
    )


def each(attacks: Iterable[Attack]) -> pytest.MarkDecorator:
    """Parametrise a test with `attack`."""
    return pytest.mark.parametrize(
        "attack", [pytest.param(attack, id=attack.name) for attack in attacks]
    )


def not_attacked(lines: Iterable[str], attacks: Iterable[Attack], *tests: str) -> set[str]:
    """The catalogue's lines that no attack is made of, and that no other test names."""
    return set(lines) - {attack.line for attack in attacks} - set(tests)
