"""The tool that reads on in what a result did not show; toolcell answers it itself."""

from pydantic import Field

from toolcell.registry.builtins.declaring import READS, Arguments, declare


class _ReadOutput(Arguments):
    handle: str = Field(min_length=1, max_length=100, description="As a result named it: out-...")
    start_line: int | None = Field(default=None, ge=1, description="First line, from 1.")
    end_line: int | None = Field(default=None, ge=1, description="Last line.")
    start_byte: int | None = Field(
        default=None, ge=0, description="First byte, from 0; for lines too long to be shown."
    )
    end_byte: int | None = Field(default=None, ge=1, description="Byte to stop before.")
    search: str | None = Field(
        default=None,
        min_length=1,
        max_length=1000,
        description="A regular expression: return only the lines that match, with their numbers.",
    )
    literal: bool = Field(default=False, description="Take the search as plain text.")
    limit: int = Field(
        default=200, ge=1, le=10_000, description="At most this many matching lines."
    )


TOOLS = (
    declare(
        "read_output",
        _ReadOutput,
        "toolcell.pages",
        "Read output of an earlier call that its result did not show in full, or a text file "
        "that a call left: some of its lines or bytes, or the lines that match a regular "
        "expression. Returns a page, and says how to go on.",
        READS,
        isolation="controller",
    ),
)
