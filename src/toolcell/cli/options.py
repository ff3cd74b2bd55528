"""Options that several commands take."""

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from typer.core import TyperCommand

Kind = TypeVar("Kind", bound=StrEnum)

FLAG = " "  # typer would write <bool>, as if a flag took a value

Policy = Annotated[
    str,
    typer.Option(
        "--policy",
        "-p",
        metavar="NAME|FILE",
        envvar="TOOLCELL_POLICY",
        show_envvar=False,
        help="A shipped policy (default, strict, ci, open) or a TOML file; TOOLCELL_POLICY names "
        "another default.",
    ),
]
Workspace = Annotated[
    Path | None,
    typer.Option(
        "--workspace",
        "-w",
        metavar="DIR",
        help="The directory that the call may see. Default: this one.",
    ),
]
ToolFile = Annotated[
    str | None,
    typer.Option(
        "--tool-file",
        "-t",
        metavar="TOOLS",
        help="Tools of your own: module, module:registry, or file.py[:registry].",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", metavar=FLAG, help="Print JSON on stdout.")]


def one_of(kinds: type[Kind]) -> Callable[[str], Kind]:
    """Return what reads an option that takes one of these; typer's own words name an exception."""

    def read(text: str) -> Kind:
        try:
            return kinds(text)
        except ValueError:
            choices = ", ".join(repr(kind.value) for kind in kinds)
            raise typer.BadParameter(f"{text!r} is not one of {choices}") from None

    return read


def choices(kinds: type[StrEnum]) -> str:
    """Return what stands for the value of such an option in the help."""
    return f"[{'|'.join(kinds)}]"


class TakesDiff(TyperCommand):
    """A command whose last argument may be a diff, which begins as an option does."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Put a diff behind the options, where nothing is taken for one."""
        diffs = [each for each in args if each.startswith("--- ")]
        if diffs and "--" not in args:
            args = [*(each for each in args if each not in diffs), "--", *diffs]
        return super().parse_args(ctx, args)
