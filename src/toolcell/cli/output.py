"""`toolcell output`: what results did not show in full: read it, list it, remove it."""

import codecs
import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from toolcell.cli.exits import FAILED
from toolcell.cli.options import FLAG, AsJson
from toolcell.cli.quantities import age_of, range_of, shown_age, shown_size, size_of
from toolcell.errors import UnknownOutputError
from toolcell.outputs import OpenOutput, OutputStore, Stored
from toolcell.pages import Lines, Pattern, PatternError, matching
from toolcell.visible import visible, visible_line

app = typer.Typer(
    help="Output that a result did not show in full, and files that calls left, by their handles.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

_AT_ONCE = 1024**2

Store = Annotated[
    Path | None,
    typer.Option(
        "--store", metavar="DIR", help="Where outputs are kept. Default: in the state directory."
    ),
]


@app.command()
def show(
    handle: Annotated[str, typer.Argument(metavar="HANDLE", help="As a result named it.")],
    lines: Annotated[
        str | None,
        typer.Option("--lines", metavar="A:B", help="Only these lines, from 1, B among them."),
    ] = None,
    bytes_: Annotated[
        str | None,
        typer.Option("--bytes", metavar="A:B", help="Only these bytes, from 0, up to B."),
    ] = None,
    search: Annotated[
        str | None,
        typer.Option(
            "--search",
            metavar="PATTERN",
            help="Only the lines that match a regular expression, with their numbers.",
        ),
    ] = None,
    literal: Annotated[
        bool, typer.Option("--literal", metavar=FLAG, help="Take PATTERN as plain text.")
    ] = False,
    raw: Annotated[
        bool,
        typer.Option("--raw", metavar=FLAG, help="Send it to a terminal as the tool wrote it."),
    ] = False,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Print an output: its bytes; to a terminal, with all that it would act on spelled.

    --json prints what is known of it instead.
    """
    if literal and not search:
        raise typer.BadParameter("--literal says how to take --search, which is not given")
    if bytes_ and (lines or search):
        raise typer.BadParameter("--bytes goes with neither --lines nor --search")
    try:
        with OutputStore(store).opened(handle) as output:
            if as_json:
                print(output.stored.model_dump_json(indent=2))
            elif search:
                _print_matches(output, search, lines, literal=literal)
            else:
                _print_bytes(output, *_places(output, lines, bytes_), raw=raw)
    except UnknownOutputError as error:
        _say(str(error))
        raise typer.Exit(FAILED) from None
    if output.stored.lost and not as_json:
        _say(f"of {output.stored.total_bytes:,} bytes that were written: {output.stored.lost}")


@app.command(name="list")
def list_outputs(store: Store = None, as_json: AsJson = False) -> None:
    """List what is kept, the oldest first."""
    found = OutputStore(store)
    if store is not None and not store.is_dir():  # the default is made with the first output
        raise typer.BadParameter(f"--store: there is no directory {store}")
    stored = found.list()
    if as_json:
        print(json.dumps([each.model_dump(mode="json") for each in stored], indent=2))
    elif stored:
        _print_table(stored)
    else:
        _say(f"no outputs: there are none in {found.path}")


@app.command()
def prune(
    handles: Annotated[
        list[str] | None, typer.Argument(metavar="[HANDLE]...", help="Remove these.")
    ] = None,
    older_than: Annotated[
        str | None, typer.Option("--older-than", metavar="AGE", help="Such as 30d or 12h.")
    ] = None,
    keep_bytes: Annotated[
        str | None,
        typer.Option("--keep-bytes", metavar="SIZE", help="What outputs may take, as 64MiB."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", metavar=FLAG, help="Remove all.")] = False,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Remove outputs, and what processes that died left half written; the oldest go first."""
    if everything and (handles or older_than or keep_bytes):
        raise typer.BadParameter("--all leaves nothing: it goes with nothing that says what may go")
    if not (handles or older_than or keep_bytes or everything):
        raise typer.BadParameter(
            "say what may go: handles, --older-than 30d, --keep-bytes 64MiB, or --all"
        )
    done = OutputStore(store).prune(
        older_than=age_of(older_than) if older_than else None,
        keep_bytes=size_of(keep_bytes) if keep_bytes else None,
        handles=handles or (),
        everything=everything,
    )
    if as_json:
        print(done.model_dump_json())
    else:
        print(f"{len(done.handles)} outputs removed, {shown_size(done.size)}")
    if unknown := sorted({*(handles or ())} - {*done.handles}):
        _say(f"not there: {', '.join(unknown)}")
        raise typer.Exit(FAILED)


def _places(output: OpenOutput, lines: str | None, bytes_: str | None) -> tuple[int, int]:
    """Return from where up to where to print."""
    size = output.stored.size
    if lines:
        first, last = range_of(lines, "--lines")
        index = Lines(output)
        return index.start_of(first or 1), size if last is None else index.start_of(last + 1)
    start, end = range_of(bytes_, "--bytes") if bytes_ else (None, None)
    return start or 0, size if end is None else min(end, size)


def _print_bytes(output: OpenOutput, start: int, end: int, *, raw: bool) -> None:
    pieces = (
        output.read(at, min(_AT_ONCE, end - at)) for at in range(start, max(start, end), _AT_ONCE)
    )
    if raw or not sys.stdout.isatty():
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
        return
    ended = True
    for text in _decoded(pieces):
        print(visible(text), end="")
        ended = text.endswith("\n")
    if not ended:
        print()


def _decoded(pieces: Iterator[bytes]) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for piece in pieces:
        yield decoder.decode(piece)
    yield decoder.decode(b"", final=True)


def _print_matches(output: OpenOutput, search: str, lines: str | None, *, literal: bool) -> None:
    try:
        pattern = Pattern(search, literal=literal)
    except PatternError as error:
        raise typer.BadParameter(str(error)) from None
    first, last = range_of(lines, "--lines") if lines else (None, None)
    for number, text, _ in matching(Lines(output), pattern, first or 1, last):
        print(f"{number}:{visible_line(text) if sys.stdout.isatty() else text}")


def _print_table(stored: list[Stored]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.markup import escape
    from rich.table import Table

    from toolcell.cli.table import console_for_tables

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("handle", "kind", "size", "age", "call", "tool", "name"):
        table.add_column(heading, overflow="fold", justify="right" if heading == "size" else "left")
    now = datetime.now(UTC)
    for each in stored:
        size = shown_size(each.size)
        if each.lost:
            size += f" of {shown_size(each.total_bytes)}"
        words = (each.handle, each.kind, size, shown_age(now - each.created), each.call_id)
        row = (*words, each.tool_name, each.name)
        table.add_row(*(escape(visible_line(word)) for word in row))
    console_for_tables().print(table)


def _say(text: str) -> None:
    print(f"toolcell: {visible_line(text.rstrip())}", file=sys.stderr)
