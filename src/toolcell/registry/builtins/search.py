"""Tools that find files, and text in them."""

from typing import Annotated

from pydantic import Field

from toolcell.registry.builtins.declaring import READS, Arguments, PathInWorkspace, declare

Glob = Annotated[
    str,
    Field(
        min_length=1,
        description="Only what it fits: *.py (a name at any depth), src/**/*.{ts,tsx} (a path "
        "from `path` on).",
    ),
]
Hidden = Annotated[bool, Field(description="Take names that begin with a dot too (never .git).")]
Ignored = Annotated[
    bool,
    Field(description="Take what .gitignore and .ignore leave out too, and node_modules and such."),
]


class _ListFiles(Arguments):
    path: PathInWorkspace = "."
    glob: Glob = "*"
    depth: int | None = Field(
        default=None, ge=1, description="How many levels down; 1 is the directory alone."
    )
    hidden: Hidden = False
    ignored: Ignored = False
    limit: int = Field(default=1000, ge=1, le=10_000, description="At most this many lines.")


class _SearchText(Arguments):
    pattern: str = Field(
        min_length=1,
        description="A regular expression for one line, as for ripgrep or grep -E, without "
        "backreferences and look-around.",
    )
    path: PathInWorkspace = "."
    glob: Glob = "*"
    literal: bool = Field(default=False, description="Take the pattern as plain text.")
    ignore_case: bool = Field(default=False, description="Upper and lower case are the same.")
    before: int = Field(default=0, ge=0, le=100, description="Lines to show before each match.")
    after: int = Field(default=0, ge=0, le=100, description="Lines to show after each match.")
    hidden: Hidden = False
    ignored: Ignored = False
    limit: int = Field(default=200, ge=1, le=10_000, description="At most this many matches.")


TOOLS = (
    declare(
        "list_files",
        _ListFiles,
        "listing",
        "List the files and directories below a directory, in order, a path on each line: files "
        "with their size in bytes, directories with a slash, links with their target. The last "
        "line counts them, and what is left out.",
        READS,
    ),
    declare(
        "search_text",
        _SearchText,
        "searching",
        "Search a text file, or all those below a directory, for lines that match. Answers as "
        "grep does: path:line:text, and path-line-text for the lines around. The last line "
        "counts all matches, and what is not shown or not searched.",
        READS,
    ),
)
