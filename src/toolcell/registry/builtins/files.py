"""Tools that read and write files."""

from pydantic import Field

from toolcell.registry.builtins.declaring import (
    READS,
    REPLACES,
    Arguments,
    PathInWorkspace,
    declare,
)


class _ReadFile(Arguments):
    path: PathInWorkspace
    start_line: int = Field(default=1, ge=1, description="First line to return, from 1.")
    end_line: int | None = Field(default=None, ge=1, description="Last line to return.")


class _WriteFile(Arguments):
    path: PathInWorkspace
    content: str = Field(description="The whole new content.")


TOOLS = (
    declare(
        "read_file",
        _ReadFile,
        "reading",
        "Return the content of a text file, or some of its lines.",
        READS,
    ),
    declare(
        "write_file",
        _WriteFile,
        "writing",
        "Write a whole text file, replacing what was there.",
        REPLACES,
    ),
)
