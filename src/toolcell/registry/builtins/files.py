"""Tools that read, write, edit, patch, move and delete files."""

from pydantic import Field

from toolcell.registry.builtins.declaring import (
    READS,
    REPLACES,
    WRITES,
    Arguments,
    PathInWorkspace,
    declare,
)


class _ReadFile(Arguments):
    path: PathInWorkspace
    start_line: int = Field(default=1, ge=1, description="First line to return, from 1.")
    end_line: int | None = Field(
        default=None, ge=1, description="Last line to return; by default the last of the file."
    )
    line_numbers: bool = Field(
        default=False, description="Put its number and a tab before each line."
    )


class _WriteFile(Arguments):
    path: PathInWorkspace
    content: str = Field(description="The whole new content.")
    parents: bool = Field(default=False, description="Make missing directories above it.")


class _EditFile(Arguments):
    path: PathInWorkspace
    old_text: str = Field(
        min_length=1,
        description="The text to replace, exactly as it stands in the file, indentation too, "
        "with enough lines around it to be unique.",
    )
    new_text: str = Field(description="The text to put in its place; may be empty.")
    replace_all: bool = Field(default=False, description="Replace every place where it stands.")


class _ApplyPatch(Arguments):
    patch: str = Field(
        min_length=1,
        description="A unified diff, as of `git diff` or `diff -u`, of one or more files: `---` "
        "and `+++` lines, then hunks that begin with `@@ -1,3 +1,4 @@` and have context lines. "
        "/dev/null stands for a file that is new or deleted; renames are written as git does.",
    )


class _Move(Arguments):
    source: PathInWorkspace
    destination: PathInWorkspace = Field(
        description="The whole new path, with the new name; not the directory to move into."
    )
    overwrite: bool = Field(default=False, description="Replace a file that is there already.")
    parents: bool = Field(default=False, description="Make missing directories above it.")


class _Delete(Arguments):
    path: PathInWorkspace
    recursive: bool = Field(
        default=False, description="Delete a directory with everything that is in it."
    )


TOOLS = (
    declare(
        "read_file",
        _ReadFile,
        "reading",
        "Return the content of a text file, or some of its lines: at most 28,000 bytes of whole "
        "lines, with where to read on if there is more. Binary files and images are named with "
        "their type and size. Notes stand in brackets on the last line.",
        READS,
    ),
    declare(
        "write_file",
        _WriteFile,
        "writing",
        "Write a whole text file, replacing what was there. Keeps the mode, encoding and line "
        "endings of a file that it replaces. To change a part of a file use edit_file.",
        REPLACES,
    ),
    declare(
        "edit_file",
        _EditFile,
        "editing",
        "Replace a piece of text in a file, which has to stand there exactly once, and return the "
        "diff. Where it is not found, the closest places are returned.",
        WRITES,
    ),
    declare(
        "apply_patch",
        _ApplyPatch,
        "patching",
        "Apply a unified diff to one or more files, all of it or nothing. Hunks may have moved; "
        "those that do not apply are told one by one.",
        WRITES,
        patch="patch",
    ),
    declare(
        "move",
        _Move,
        "moving",
        "Move or rename a file or directory. A link is moved itself.",
        WRITES,
        paths=("source", "destination"),
    ),
    declare(
        "delete",
        _Delete,
        "moving",
        "Delete a file, a link or a directory. A link is deleted itself.",
        WRITES,
    ),
)
