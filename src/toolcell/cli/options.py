"""Options that several commands take."""

from pathlib import Path
from typing import Annotated

import typer

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
