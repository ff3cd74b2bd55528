"""Tools that find files, and text in them."""

from typing import Annotated

from pydantic import Field

from toolcell.registry.builtins.declaring import READS, Arguments, PathInWorkspace, declare

Glob = Annotated[
    str, Field(description="Only files whose name or path matches, such as *.py or src/*.")
]


class _ListFiles(Arguments):
    path: PathInWorkspace = "."
    glob: Glob = "*"
    limit: int = Field(default=1000, ge=1, le=10_000, description="At most this many names.")


class _SearchText(Arguments):
    pattern: str = Field(min_length=1, description="A regular expression (Python syntax).")
    path: PathInWorkspace = "."
    glob: Glob = "*"
    limit: int = Field(default=200, ge=1, le=10_000, description="At most this many matches.")


TOOLS = (
    declare(
        "list_files",
        _ListFiles,
        "files",
        "List the files below a directory. Version-control, cache and virtual-environment "
        "directories are passed over.",
        READS,
    ),
    declare(
        "search_text",
        _SearchText,
        "files",
        "Search the text files below a directory for a regular expression; returns file, "
        "line number and line.",
        READS,
    ),
)
