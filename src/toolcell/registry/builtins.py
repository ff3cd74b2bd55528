"""The built-in tools as the model sees them; their handlers live in `sandbox_workers.tools`.

They are declared rather than derived, so that the controller never imports what runs
in a cell.
"""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from toolcell.model import HandlerRef, ToolAnnotations, ToolDefinition, ToolSpec
from toolcell.registry.signature import schema_of

_HANDLERS = "sandbox_workers.tools"
_READS = ToolAnnotations(read_only=True, idempotent=True, open_world=False)
_WRITES = ToolAnnotations(read_only=False, destructive=True, open_world=False)

PathInWorkspace = Annotated[
    str, Field(min_length=1, description="Path inside the workspace, absolute or relative to it.")
]
Glob = Annotated[
    str, Field(description="Only files whose name or path matches, such as *.py or src/*.")
]


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Echo(_Arguments):
    text: str = Field(description="What to return.")


class _Shell(_Arguments):
    command: str = Field(min_length=1, description="A command line for bash.")


class _Python(_Arguments):
    code: str = Field(description="Python source, run as a program; print what you want to see.")


class _ReadFile(_Arguments):
    path: PathInWorkspace
    start_line: int = Field(default=1, ge=1, description="First line to return, from 1.")
    end_line: int | None = Field(default=None, ge=1, description="Last line to return.")


class _ListFiles(_Arguments):
    path: PathInWorkspace = "."
    glob: Glob = "*"
    limit: int = Field(default=1000, ge=1, le=10_000, description="At most this many names.")


class _SearchText(_Arguments):
    pattern: str = Field(min_length=1, description="A regular expression (Python syntax).")
    path: PathInWorkspace = "."
    glob: Glob = "*"
    limit: int = Field(default=200, ge=1, le=10_000, description="At most this many matches.")


class _WriteFile(_Arguments):
    path: PathInWorkspace
    content: str = Field(description="The whole new content.")


def builtin_tools() -> list[ToolDefinition]:
    """Return the definitions of echo, shell, python and the file tools."""
    return [
        _define("echo", _Echo, "basic", "Return the given text. For trying a set-up.", _READS),
        _define(
            "shell",
            _Shell,
            "shell",
            "Run a command line with bash in the workspace. Returns what it prints; a "
            "non-zero exit code is a failure. There is no network, and nothing that runs "
            "in the background outlives the call.",
            _WRITES,
            answers="exit",
            shell_line="command",
        ),
        _define(
            "python",
            _Python,
            "python",
            "Run Python source as a program in the workspace. Returns what it prints; an "
            "uncaught exception is a failure. There is no network and no state from one "
            "call to the next.",
            _WRITES,
            answers="exit",
        ),
        _define(
            "read_file",
            _ReadFile,
            "files",
            "Return the content of a text file, or some of its lines.",
            _READS,
        ),
        _define(
            "list_files",
            _ListFiles,
            "files",
            "List the files below a directory. Version-control, cache and virtual-environment "
            "directories are passed over.",
            _READS,
        ),
        _define(
            "search_text",
            _SearchText,
            "files",
            "Search the text files below a directory for a regular expression; returns file, "
            "line number and line.",
            _READS,
        ),
        _define(
            "write_file",
            _WriteFile,
            "files",
            "Write a whole text file, replacing what was there.",
            _WRITES.model_copy(update={"idempotent": True}),
        ),
    ]


def _define(
    name: str,
    model: type[BaseModel],
    module: str,
    description: str,
    annotations: ToolAnnotations,
    **options: Any,
) -> ToolDefinition:
    return ToolDefinition(
        spec=ToolSpec(
            name=name,
            description=description,
            input_schema=schema_of(model),
            annotations=annotations,
        ),
        handler=HandlerRef(module=f"{_HANDLERS}.{module}", function=name),
        idempotent=bool(annotations.idempotent),
        paths=("path",) if "path" in model.model_fields else (),
        arguments_model=model,
        **options,
    )
