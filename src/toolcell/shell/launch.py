"""Launchers at work: from the words of `nice -n 5 make` to those of `make`."""

import re

from toolcell.shell.behind import (
    Behind,
    Code,
    Inner,
    assignments,
    joined,
    known,
    not_known,
    program,
    started,
)
from toolcell.shell.facts import Unknown, Word, Words
from toolcell.shell.launchers import LAUNCHERS, Launcher
from toolcell.shell.options import Found, read, spec

_PLAIN = re.compile(r"[\w@%+=:,./ -]*", re.ASCII)
_MOST_SPLITS = 8
_LOGINS = frozenset(["su", "runuser"])


def launched(words: Words) -> Behind | None:
    """Return what a launcher starts; None where it is none, or starts nothing."""
    name = program(words[0])
    launcher = LAUNCHERS.get(name)
    if launcher is not None:
        return _launch(name, words[1:], launcher)
    second = words[1] if len(words) > 1 else ""
    launcher = LAUNCHERS.get(f"{name} {second}") if isinstance(second, str) else None
    return None if launcher is None else _launch(f"{name} {second}", words[2:], launcher)


def _launch(name: str, words: Words, launcher: Launcher) -> Behind | None:
    found = read(words, launcher.spec, permute=name in _LOGINS)
    if launcher.blind or found.unknown:
        return not_known(name, found.unknown, own=launcher.own)
    if found.has(*launcher.idle) or (found.has(*launcher.alone) and not found.operands):
        return None
    given = _given(found)
    rest = tuple(found.operands)
    assigned, rest = assignments(rest) if launcher.assigns else ((), rest)
    inner = _inner(name, launcher, found, rest, [*given, *rest[: launcher.skip]])
    if not inner and not found.values(*launcher.writes):
        return None
    return Behind(
        inner,
        own=launcher.own or not inner,
        assigned=assigned,
        writes=tuple(found.values(*launcher.writes)),
        directories=tuple(found.values(*launcher.directory)),
    )


def _given(found: Found) -> list[Word]:
    return [value for _, value in found.options]


def _inner(
    name: str, launcher: Launcher, found: Found, rest: Words, before: list[Word]
) -> tuple[Inner | Code, ...]:
    codes = tuple(
        Code(known(value), f"what {name} is given", "posix")
        for value in found.values(*launcher.code)
    )
    if name in _LOGINS and not found.has("u", "user"):
        users = [word for word in rest if word != "-"]
        return codes if codes and len(users) < 2 else (Code(None, "a shell"),)
    if launcher.each:
        return codes + tuple(Code(known(word), f"what {name} is given", "posix") for word in rest)
    rest = _skipped(name, launcher, rest)
    if not rest:
        return (*codes, Code(None, "a shell")) if launcher.or_shell and not codes else codes
    if launcher.joins and not found.has("x", "exec"):
        return (*codes, Code(joined(rest), f"what {name} is given", "posix"))
    if name == "uv run" and found.has("m", "module"):
        rest = ("python", "-m", *rest)
    return (*codes, started(rest, unsure=any(isinstance(word, Unknown) for word in before)))


def _skipped(name: str, launcher: Launcher, rest: Words) -> Words:
    if name == "chrt" and rest and not (isinstance(rest[0], str) and rest[0].isdigit()):
        return rest  # some policies need no priority
    return rest[launcher.skip :]


def env(words: Words) -> Behind | None:
    """`env`, whose -S splits its value into more words of its own."""
    launcher = LAUNCHERS["env"]
    rest = list(words[1:])
    for _ in range(_MOST_SPLITS):
        found = read(tuple(rest), launcher.spec)
        if found.unknown:
            return not_known("env", found.unknown)
        split = found.values("S", "split-string")
        if not split:
            break
        text = known(split[0])
        if text is None or not _PLAIN.fullmatch(text):
            return not_known("env", "-S with such a value")
        rest = [*_before(found), *text.split(), *found.operands]
    else:
        return not_known("env", "-S inside -S")
    operands = found.operands
    if operands[:1] == ["-"]:  # an old way to write -i
        operands = operands[1:]
    return _launch("env", (*_before(found), "--", *operands), launcher)


def _before(found: Found) -> list[Word]:
    """The options that were read, written out again, without -S."""
    again: list[Word] = []
    for name, value in found.options:
        if name not in ("S", "split-string"):
            again += _again(name, value)
    return again


def _again(name: str, value: Word) -> list[Word]:
    dashes = "--" if len(name) > 1 else "-"
    if value == "":
        return [f"{dashes}{name}"]
    if isinstance(value, Unknown):
        return [f"{dashes}{name}", value]
    return [f"--{name}={value}" if len(name) > 1 else f"-{name}{value}"]


_FLOCK = spec("-c: --command:")


def flock(words: Words) -> Behind | None:
    """`flock FILE COMMAND` and `flock FILE -c CODE`; the file is made if it is not there."""
    launcher = LAUNCHERS["flock"]
    found = read(words[1:], launcher.spec)
    if found.unknown:
        return not_known("flock", found.unknown)
    code = found.values("c", "command")
    file, rest = found.operands[:1], tuple(found.operands[1:])
    if rest[:1] in (("-c",), ("--command",)):
        code, rest = list(rest[1:2]), ()
    is_number = bool(file) and isinstance(file[0], str) and file[0].isdigit()
    unsure = any(isinstance(word, Unknown) for word in (*_given(found), *file))
    inner: tuple[Inner | Code, ...] = tuple(
        Code(known(text), "what flock is given", "posix") for text in code
    )
    if rest:
        inner = (*inner, started(rest, unsure=unsure))
    return Behind(inner, own=not inner, writes=() if is_number else tuple(file))


_SCRIPT = spec(
    "-aefqVh -c: -E: -I: -B: -O: -o: -T: -m: -t? --append --command: --echo: --return --flush"
    " --force --log-io: --log-in: --log-out: --log-timing: --logging-format: --output-limit:"
    " --quiet --timing?"
)


def script(words: Words) -> Behind:
    """`script`, which writes a file of all that its command, or a shell, prints."""
    found = read(words[1:], _SCRIPT, permute=True)
    if found.unknown:
        return not_known("script", found.unknown, own=True)
    code = found.values("c", "command")
    files = [
        *found.values("I", "B", "O", "T", "log-io", "log-in", "log-out", "log-timing"),
        *(found.operands[:1] or ["typescript"]),
    ]
    if len(found.operands) > 1:
        return not_known("script", "", own=True)
    inner = [Code(known(text), "what script is given", "posix") for text in code] or [
        Code(None, "a shell")
    ]
    return Behind(tuple(inner), writes=tuple(files))
