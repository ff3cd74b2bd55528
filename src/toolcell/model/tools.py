"""Tools: what the model sees of one, and what the runtime needs to run it."""

import hashlib
import json
from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from toolcell.model.base import SCHEMA_VERSION, Frozen, Seconds

LimitName = Literal["wall", "cpu", "memory", "processes", "output"]
"""The limits that an argument of a call can narrow: seconds, seconds, bytes, a count, bytes."""


def _below(glob: str) -> str:
    """Take a glob that stays below the directory that it is for."""
    parts = glob.split("/")
    if not glob or glob.startswith("/") or "\0" in glob or {"", ".", ".."} & set(parts):
        raise ValueError("expected a glob of files below the workspace, relative to it")
    if "{" in glob and "," in glob:
        raise ValueError("braces stand for themselves in such a glob; write one for each")
    return glob


ArtifactGlob = Annotated[str, AfterValidator(_below)]
ToolName = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]


def canonical_json(value: Any) -> str:
    """Write a JSON value in its one canonical form: sorted keys, no spaces, UTF-8 text."""
    return json.dumps(
        value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False
    )


def digest_of(value: Any) -> str:
    """Return the SHA-256 of a value's canonical JSON, as "sha256:" and 64 hexadecimal digits."""
    return "sha256:" + hashlib.sha256(canonical_json(value).encode()).hexdigest()


class ToolAnnotations(Frozen):
    """Hints about a tool's effects, as in the Model Context Protocol; never a guarantee."""

    title: str | None = None
    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None


class ToolSpec(Frozen):
    """What the model sees: a name, a description and JSON Schemas."""

    v: Literal[1] = SCHEMA_VERSION
    name: ToolName
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None = None
    annotations: ToolAnnotations = ToolAnnotations()


class HandlerRef(Frozen):
    """Where a handler is found inside a cell.

    `module` and `function` (dotted inside the module) name it. `file` is set for a
    function of the controller's own script, which has no importable name. `root` goes
    first on the cell's import path, and `code` are the files and directories that have
    to be visible for the import, both absolute.
    """

    module: str
    function: str
    file: str | None = None
    root: str | None = None
    code: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.module}:{self.function}"


class ToolDefinition(Frozen):
    """What the runtime sees of a tool.

    `timeout` is in seconds and can only shorten the policy's wall limit. `answers` says
    how the outcome is told: by the returned `value`, or by the process's `exit` code.
    `retries` (further tries after a passing fault) needs `idempotent`, which says that a second
    run does no harm. `arguments_model` validates calls; without one
    the spec's input schema does. `typed` names the parameters whose annotation asks for an
    object rather than JSON's own types, which the cell builds. `shell_line` names the argument
    that is a line for a shell, `patch` the one that is a unified diff, and `paths` those that
    are paths, for policies that look into them; one whose schema has the format "path" need not
    be named. `limit_arguments` maps arguments that are numbers to the limit of the call that each
    narrows, and never widens. `shell_directory`, `shell_variables` and `shell_input` name what a
    tool with a `shell_line` takes besides: where the line runs, the variables that it finds set,
    and what it reads. `artifacts` are globs of files below the workspace, which come back with the
    result where the call made or changed them. `poll` names the tool that takes the `handle` of an
    answer that is waiting, and settles it. `session` names the kind of session that its calls run
    in, by their argument `session`. `isolation` is "controller" for the tools that
    toolcell answers itself. `function` is set for inline tools only.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    spec: ToolSpec
    handler: HandlerRef
    isolation: Literal["cell", "inline", "controller"] = "cell"
    timeout: Annotated[Seconds, Field(gt=0)] | None = None
    retries: Annotated[int, Field(ge=0, le=10)] = 0
    idempotent: bool = False
    answers: Literal["value", "exit"] = "value"
    typed: tuple[str, ...] = ()
    shell_line: str | None = None
    patch: str | None = None
    paths: tuple[str, ...] = ()
    limit_arguments: dict[str, LimitName] = Field(default_factory=dict)
    shell_directory: str | None = None
    shell_variables: str | None = None
    shell_input: str | None = None
    artifacts: tuple[ArtifactGlob, ...] = ()
    poll: ToolName | None = None
    session: Literal["python", "shell"] | None = None
    arguments_model: type[BaseModel] | None = Field(default=None, exclude=True, repr=False)
    function: Callable[..., Any] | None = Field(default=None, exclude=True, repr=False)

    @model_validator(mode="after")
    def _names_its_arguments(self) -> "ToolDefinition":
        unknown = self.limit_arguments.keys() - self.spec.input_schema.get("properties", {}).keys()
        if unknown:
            raise ValueError(f"limit_arguments names {min(unknown)!r}, which is no argument of it")
        return self

    @model_validator(mode="after")
    def _may_run_again(self) -> "ToolDefinition":
        if self.retries and not self.idempotent:
            raise ValueError(
                f"retries={self.retries} needs idempotent=True: it says that a second run of the "
                "tool does no harm"
            )
        return self

    @property
    def asked_by(self) -> str | None:
        """The tool that takes the handle of an answer that waits: its `poll`, or one like that."""
        asks = "handle" in self.spec.input_schema.get("properties", {})
        return self.poll or (self.name if asks else None)

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.spec.name
