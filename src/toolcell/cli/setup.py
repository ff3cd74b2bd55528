"""From a command's options to a controller: policy, workspace, tools."""

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import ValidationError

from toolcell.cells.workspace import resolve_workspace
from toolcell.controller import ToolController
from toolcell.errors import (
    PolicyError,
    RegistrationError,
    WorkspaceError,
)
from toolcell.events import EventLog, no_events
from toolcell.policy import ToolPolicy, load_policy
from toolcell.policy.layers import tightened_here
from toolcell.registry import ToolRegistry


@dataclass(frozen=True, slots=True)
class Setup:
    """What the options common to all commands say; `cell` and `limits` override the policy's."""

    policy: str = "default"
    workspace: Path | None = None
    tool_file: str | None = None
    allow: tuple[str, ...] = ()
    events: Path | None = None
    no_events: bool = False
    cell: dict[str, Any] = field(default_factory=dict)
    limits: dict[str, Any] = field(default_factory=dict)
    protected: tuple[Path, ...] = ()

    def controller(self, *, run_grants: bool = False, **runtime_options: Any) -> ToolController:
        """Make the controller, of one call unless `run_grants` have a run to be for.

        Raises PolicyError, RegistrationError or WorkspaceError."""
        policy = self.effective_policy()
        workspace = self.workspace
        if policy.cell.workspace != "none":
            workspace, policy = _workspace(workspace, policy)
        return ToolController(
            self.registry(),
            policy,
            workspace,
            run_grants=run_grants,
            events=no_events if self.no_events else EventLog(self.events),
            protected=self.protected,
            **runtime_options,
        )

    def effective_policy(self) -> ToolPolicy:
        """Load the policy, apply what the command line overrides, then what tightens it here."""
        return tightened_here(self._asked_for(), self.usable_workspace())

    def _asked_for(self) -> ToolPolicy:
        policy = load_policy(self.policy)
        cell, limits = dict(self.cell), dict(self.limits)
        if cell.get("network") == "host":
            cell["require"] = [name for name in policy.cell.require if name != "network"]
        if not (cell or limits or self.allow):
            return policy
        allow = dict.fromkeys(self.allow, "allowed on the command line")
        try:
            return policy.changed(cell=cell, limits=limits, allow=allow)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            message = first["msg"].removeprefix("Value error, ")
            raise PolicyError(f"the options do not fit: {where}: {message}") from None

    def usable_workspace(self) -> Path | None:
        """The workspace that calls would have, or None where they would have none."""
        try:
            return resolve_workspace(self.workspace or Path.cwd())
        except WorkspaceError:
            return None

    def registry(self) -> ToolRegistry:
        """Collect the built-in tools and those of the tool file.

        A tool of the file with a built-in's name would inherit what the policy says of
        that one; it is refused as a duplicate.
        """
        registry = ToolRegistry.builtin()
        for tool in load_tools(self.tool_file) if self.tool_file else []:
            registry.register(tool)
        return registry


def load_tools(where: str) -> Iterable[Any]:
    """Load tools from "module", "module:registry" or "path.py[:registry]"."""
    name, _, attribute = where.partition(":")
    module = _load_module(name)
    if not attribute:
        return ToolRegistry.from_module(module)
    found = getattr(module, attribute, None)
    if not isinstance(found, ToolRegistry):
        raise RegistrationError(
            f"{name} has no ToolRegistry named {attribute!r}; "
            f"write --tool-file {name} to take every function that it declares with @tool"
        )
    return found


def _load_module(given: str) -> ModuleType:
    name, path = given, Path(given)
    if path.suffix and path.suffix != ".py" and path.is_file():
        raise RegistrationError(f"the tool file {given} is not a .py file")
    if path.suffix == ".py":
        if not path.is_file():
            raise RegistrationError(f"the tool file {given} does not exist")
        directory, name = path.resolve().parent, path.stem
    else:
        directory = Path.cwd()
    # Last: what a tool may have planted there must not stand in for another module.
    sys.path.append(str(directory))
    try:
        module = importlib.import_module(name)
    except RegistrationError:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001  # whatever the file itself raises
        where = _place_of(error)
        raise RegistrationError(
            f"the tool file {given} cannot be imported: {where}{type(error).__name__}: {error}"
        ) from None
    if path.suffix == ".py" and Path(module.__file__ or "").resolve() != path.resolve():
        raise RegistrationError(
            f"the tool file {path} has the name of another module, {module.__file__ or name}; "
            "rename it"
        )
    return module


def _place_of(error: BaseException) -> str:
    """The file and line that an import failed at, where there is one."""
    if isinstance(error, SyntaxError):
        return f"{error.filename}:{error.lineno}: "
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "importlib" not in frame.filename]
    return f"{own[-1].filename}:{own[-1].lineno}: " if len(own) > 1 else ""


def _workspace(given: Path | None, policy: ToolPolicy) -> tuple[Path | None, ToolPolicy]:
    """Take the given workspace, or this directory where it is fit to be lent."""
    if given is not None:
        return resolve_workspace(given), policy
    try:
        return resolve_workspace(Path.cwd()), policy
    except WorkspaceError as error:
        print(
            f"toolcell: {error}\n"
            "toolcell: going on without a workspace: what the call writes is lost; "
            "--workspace names one",
            file=sys.stderr,
        )
        return None, policy.changed(cell={"workspace": "none"})
