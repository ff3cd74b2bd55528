"""Proposals: a prepared call as the rules look at it, and the parts that are decided one by one.

A shell line is as many parts as it has simple commands and files that it writes. Any
other call is one part.
"""

import posixpath
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from toolcell.model import PreparedToolCall, ToolDefinition
from toolcell.policy.patches import files_named
from toolcell.policy.paths import Workspace
from toolcell.policy.schemas import path_arguments, values_at
from toolcell.shell import Around, Command, Line, listed, read_line

_OF_THE_SHELL = listed(
    ": true false test [ exit return break continue pwd shift wait cd pushd popd dirs echo printf"
    " read local declare typeset export readonly unset set let getopts times"
)
"""Builtins that touch nothing outside of the shell; what they change in it is a doubt, or a
directory, of what follows."""

_IN_A_SESSION = (
    "an earlier call of the session may have changed what this means: the directory, aliases, "
    "functions, PATH"
)


@dataclass(frozen=True, slots=True)
class Part:
    """What is decided by itself; the strictest decision of all parts is the call's.

    Not `required` is what no rule needs to allow: a wrapper, whose command is a part of its
    own, a builtin that only concerns the shell, and what a program that was allowed writes. They
    can still be asked about or denied.
    """

    kind: Literal["call", "command", "write", "unreadable"]
    words: tuple[str | None, ...] = ()
    path: str | None = None
    required: bool = True
    doubt: str = ""

    def __str__(self) -> str:
        if self.kind == "command":
            return " ".join("..." if word is None else word or "''" for word in self.words)
        if self.kind == "write":
            return f"writing {self.path if self.path is not None else 'to a computed path'}"
        return "the line" if self.kind == "unreadable" else "the call"


CALL = (Part("call"),)


class Proposal:
    """A call, with what its tool's schema says of its arguments; the line is read when needed."""

    def __init__(
        self,
        definition: ToolDefinition,
        arguments: dict[str, Any],
        workspace: Workspace,
        read: Line | None = None,
        visited: tuple[str, ...] = (),
    ) -> None:
        self.definition = definition
        self.arguments = arguments
        self.workspace = workspace
        self._read = read
        self._visited = visited
        workspace.look_again()

    @classmethod
    def of(
        cls,
        prepared: PreparedToolCall,
        workspace: Workspace,
        read: Line | None = None,
        visited: tuple[str, ...] = (),
    ) -> "Proposal":
        """Look at a prepared call; `read` is its line where that was read already.

        `visited` are the directories that the session of the call may be in, besides its first.
        """
        return cls(prepared.definition, prepared.arguments, workspace, read, visited)

    @property
    def line(self) -> str | None:
        """The shell line that the call would run, where its tool takes one."""
        name = self.definition.shell_line
        value = self.arguments.get(name) if name else None
        return value if isinstance(value, str) else None

    @property
    def around(self) -> Around | None:
        """What the call puts around its line; None where that cannot be read."""
        directory = self._beside(self.definition.shell_directory)
        variables = self._beside(self.definition.shell_variables) or {}
        stdin = self._beside(self.definition.shell_input)
        texts = [each for each in (directory, stdin) if each is not None]
        if not isinstance(variables, dict):
            return None
        if not all(isinstance(each, str) for each in [*texts, *variables, *variables.values()]):
            return None
        return Around(directory or "", tuple(sorted(variables.items())), stdin)

    def _beside(self, name: str | None) -> Any:
        return self.arguments.get(name) if name else None

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The parts of the call, its line read."""
        if self.line is None:
            return CALL
        around = self.around
        if around is None:
            return (Part("unreadable", doubt="what the call puts around its line is no text"),)
        parts = parts_of(self._read or read_line(self.line, around))
        if not self.definition.session:
            return parts
        paths = [write.path for line in self.elsewhere for write in line.writes]
        known = {part.path for part in parts if part.kind == "write"}
        others = (Part("write", path=path, required=False) for path in dict.fromkeys(paths))
        return tuple(
            map(_after_others, [*parts, *(each for each in others if each.path not in known)])
        )

    @property
    def lines(self) -> tuple[Line, ...]:
        """The line as it reads in every directory that its session may be in."""
        around = self.around
        if around is None or self.line is None:
            return ()
        return (self._read or read_line(self.line, around), *self.elsewhere)

    @cached_property
    def elsewhere(self) -> tuple[Line, ...]:
        """The line as it reads in each other directory that its session may be in."""
        return tuple(read_line(self.line or "", around) for around in self.arounds_elsewhere)

    @property
    def arounds_elsewhere(self) -> tuple[Around, ...]:
        """What is around the line there."""
        around = self.around
        if around is None or self.line is None:
            return ()
        return tuple(
            replace(around, directory=posixpath.join(each, around.directory))
            for each in self._visited
        )

    @cached_property
    def written(self) -> tuple[str | None, ...]:
        """The paths that a call of another tool than a shell may write; None for an unknown one."""
        if self.definition.spec.annotations.read_only:
            return ()
        paths = tuple(
            value
            for name in path_arguments(self.definition)
            for value in values_at(self.arguments, name.split("."))
            if isinstance(value, str)
        )
        return (*paths, *(self.patched or ()))

    @cached_property
    def patched(self) -> tuple[str | None, ...] | None:
        """The files that the call's patch names; None where it brings no patch."""
        patch = self._beside(self.definition.patch)
        return files_named(patch) if isinstance(patch, str) else None


def parts_of(line: Line) -> tuple[Part, ...]:
    """Return the parts of a line that was read."""
    if line.unreadable:
        return (Part("unreadable", doubt=line.unreadable),)
    commands = [
        Part("command", words=each.words, required=_is_required(each), doubt=each.doubt)
        for each in line.commands
    ]
    writes = [Part("write", path=each.path, required=not each.implied) for each in line.writes]
    # A line of nothing, such as a comment, runs nothing: it is decided as a call of its tool.
    return (*commands, *writes) or CALL


def _after_others(part: Part) -> Part:
    """A part of a line that runs in a session, where what a word means is only known then."""
    somewhere = part.kind == "write" and not (part.path or "").startswith("/")
    if part.doubt or not (part.kind == "command" or somewhere):
        return part
    return replace(part, doubt=_IN_A_SESSION)


def _is_required(command: Command) -> bool:
    return not (command.wraps or command.words[0] in _OF_THE_SHELL)
