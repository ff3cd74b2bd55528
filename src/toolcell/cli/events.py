"""`toolcell events`: what the event log holds, as lines, as one call's account, as numbers."""

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from toolcell.cli.exits import FAILED, SUCCEEDED
from toolcell.cli.options import FLAG, AsJson
from toolcell.cli.quantities import age_of, is_age, size_of
from toolcell.errors import StoreError
from toolcell.events import Event, EventLog, EventReader, verify
from toolcell.events.chain import Row
from toolcell.events.statistics import statistics
from toolcell.events.table import Wanted
from toolcell.events.timeline import call_of
from toolcell.visible import visible_json, visible_line

app = typer.Typer(
    help="Look into the event log: one event at each border of a call's path, chained by hashes.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

_NOTED = re.compile(r"(\d{1,18}):([0-9a-f]{64})")

Log = Annotated[
    Path | None,
    typer.Option("--log", metavar="FILE", help="The log. Default: the one in the state directory."),
]
Since = Annotated[
    str | None,
    typer.Option(
        "--since", metavar="AGE|TIME", help="Only events since then: 90s, 1h, 7d or an ISO time."
    ),
]


@app.command()
def tail(
    number: Annotated[
        int, typer.Option("-n", "--lines", min=0, metavar="N", help="How many of the last.")
    ] = 20,
    follow: Annotated[
        bool,
        typer.Option("--follow", "-f", metavar=FLAG, help="Then print new ones as they come."),
    ] = False,
    call: Annotated[
        str, typer.Option("--call", metavar="ID", help="Only of this call, by its id or key.")
    ] = "",
    run: Annotated[str, typer.Option("--run", metavar="ID", help="Only of this run.")] = "",
    log: Log = None,
    as_json: AsJson = False,
) -> None:
    """Print the last events, one a line, newest last; --json prints the lines of `export`."""
    from toolcell.cli.event_views import line_of

    reader, wanted = EventReader(log), Wanted(call=call, run=run)
    if not reader.exists():
        _say(f"no events: {reader.path} is not there yet")
    rows = reader.last(number, wanted)
    after = rows[-1].sequence if rows else None
    if follow and not rows:
        after = max((row.sequence for row in reader.last(1)), default=None)
    for row, event in _events(rows):
        print(row.line if as_json else line_of(row, event), flush=True)
    if follow:
        for row, event in _events(reader.follow(wanted, after)):
            print(row.line if as_json else line_of(row, event), flush=True)


@app.command()
def show(
    call: Annotated[str, typer.Argument(metavar="CALL", help="The call's id, or its key.")],
    log: Log = None,
    as_json: AsJson = False,
) -> None:
    """Print what happened to one call, step by step, and how long each stage took.

    Of several calls with this id it is the last; the others are named by their keys.
    """
    from toolcell.cli.event_views import document_of_call, print_call

    reader = EventReader(log)
    calls: dict[tuple[str, ...], list[tuple[Row, Event]]] = {}
    for row, event in _events(reader.rows(Wanted(call=call)) if call else ()):
        if key := call_of(event):
            calls.setdefault(key, []).append((row, event))
    if not calls:
        there = "has no event of this call" if reader.exists() else "is not there yet"
        _say(f"{reader.path} {there}: {call!r}")
        raise typer.Exit(FAILED)
    *others, last = calls.values()
    wanted = calls.get((call,), last)  # a key names one call, an id may name several
    if others and (call,) not in calls:
        _say(f"{len(others)} more with this id; the one shown is the last. {_names(others)}")
    if as_json:
        print(json.dumps(document_of_call(wanted), indent=2))
    else:
        print_call([event for _, event in wanted])


@app.command()
def export(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="A file to make. Default: standard output."),
    ] = None,
    jsonl: Annotated[
        bool,
        typer.Option(
            "--jsonl",
            metavar=FLAG,
            show_default=False,
            help="One JSON object a line: the only form.",
        ),
    ] = True,
    since: Since = None,
    log: Log = None,
) -> None:
    """Write events as lines of JSON: each is the event with its `seq` and `hash`.

    Anybody can check the chain. A `hash` is the SHA-256 of the hash in the line before, its 64
    digits as text, followed by its own line without `,"hash":"..."`. Before the event with `seq`
    1 there are 64 zeros.
    """
    del jsonl  # it says what is done anyway
    reader, wanted = EventReader(log), Wanted(since=_moment(since))
    if not reader.exists():
        _say(f"no events: {reader.path} is not there yet")
    with reader.at_one_moment():
        lines = (row.line for row, _ in _events(reader.rows(wanted)))
        if file is None:
            for line in lines:
                print(line)
        else:
            _write(file, lines)


@app.command(name="verify")
def verify_log(
    noted: Annotated[
        str | None,
        typer.Option(
            "--noted",
            metavar="N:HASH",
            help="The last event and its hash, as printed earlier: it has to be there.",
        ),
    ] = None,
    log: Log = None,
    as_json: AsJson = False,
) -> None:
    """Check that no event was changed, removed, added or moved since it was written.

    The exit code is 0 if the log is intact, and 1 if it is not, or is not there.
    """
    from toolcell.cli.event_views import print_verification

    found = verify(log, noted=_noted(noted))
    if as_json:
        print(visible_json(found.model_dump(mode="json"), indent=2))
    else:
        print_verification(found)
    raise typer.Exit(SUCCEEDED if found.intact else FAILED)


@app.command()
def stats(since: Since = None, log: Log = None, as_json: AsJson = False) -> None:
    """Print the slowest tools, why calls did not succeed, and what their time went into."""
    from toolcell.cli.event_views import print_statistics

    reader = EventReader(log)
    if not reader.exists():
        _say(f"no events: {reader.path} is not there yet")
    rows = reader.rows(Wanted(since=_moment(since)))
    found = statistics(event for _, event in _events(rows))
    if as_json:
        print(visible_json(found.model_dump(mode="json"), indent=2))
    else:
        print_statistics(found)


@app.command()
def prune(
    older_than: Annotated[
        str | None, typer.Option("--older-than", metavar="AGE", help="Such as 30d or 12h.")
    ] = None,
    keep_bytes: Annotated[
        str | None,
        typer.Option("--keep-bytes", metavar="SIZE", help="What the log may take, as 64MiB."),
    ] = None,
    log: Log = None,
    as_json: AsJson = False,
) -> None:
    """Remove the oldest events and give their room back; the chain goes on from there.

    Events that do not fit the chain are not removed.
    """
    if older_than is None and keep_bytes is None:
        raise typer.BadParameter("say what may go: --older-than 30d, or --keep-bytes 64MiB")
    age = age_of(older_than) if older_than is not None else None
    size = size_of(keep_bytes) if keep_bytes is not None else None
    rows, through = 0, 0
    if EventReader(log).exists():
        events = EventLog(log, keep_days=None, keep_bytes=None)
        done = events.prune(older_than=age, keep_bytes=size)
        events.close()
        rows, through = done.rows, done.through
    if as_json:
        print(json.dumps({"pruned": rows, "through": through}))
    else:
        print(f"{rows} events removed; the log begins after event {through}")


def _events(rows: Iterable[Row]) -> Iterator[tuple[Row, Event]]:
    """Yield rows with their events; what was edited into something else is told of and left out."""
    for row in rows:
        try:
            event = row.event
        except ValueError:
            _say(f"row {row.sequence} is no event; see `toolcell events verify`")
            continue
        yield row, event


def _names(others: list[list[tuple[Row, Event]]]) -> str:
    """How to ask for the other calls of an id, as far as they have a key."""
    keys = [visible_line(found[0][1].key) for found in others]
    named = [key for key in keys if key][-5:]
    return f"Show another by its key: {', '.join(named)}" if named else ""


def _write(file: Path, lines: Iterable[str]) -> None:
    """Make a file that only its owner can read, whole or not at all."""
    try:
        fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreError(f"{file} cannot be made: {error.strerror}; name another file") from None
    try:
        with os.fdopen(fd, "w", encoding="utf-8", newline="\n") as stream:
            stream.writelines(f"{line}\n" for line in lines)
    except BaseException:
        file.unlink()
        raise


def _moment(text: str | None) -> datetime | None:
    """Read an age, which is before now, or an ISO time, which is local where it names no zone."""
    if text is None:
        return None
    if is_age(text):
        return datetime.now(UTC) - age_of(text)
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        raise typer.BadParameter(
            f"{text!r} is neither an age such as 90s, 1h or 7d nor an ISO time"
        ) from None


def _noted(text: str | None) -> tuple[int, str] | None:
    if text is None:
        return None
    match = _NOTED.fullmatch(text.strip())
    if not match:
        raise typer.BadParameter("--noted takes N:HASH, as `toolcell events verify` prints it")
    return int(match[1]), match[2]


def _say(text: str) -> None:
    print(f"toolcell: {visible_line(text.rstrip())}", file=sys.stderr)
