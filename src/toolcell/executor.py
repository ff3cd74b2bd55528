"""Executor: what the controller needs of whoever runs calls.

`ToolRuntime` runs them in cells; `toolcell.testing` has one that runs nothing.
"""

from pathlib import Path
from typing import Protocol

from toolcell.cancellation import Cancellation
from toolcell.grants import Grant, Observer, RunOptions
from toolcell.model import CellSettings, PreparedToolCall, ToolCall, ToolResult
from toolcell.normalizer import Origin
from toolcell.redaction import Redactor
from toolcell.registry import ToolRegistry


class Executor(Protocol):
    """Prepares the calls of one registry, and executes those that were granted."""

    registry: ToolRegistry
    redactor: Redactor

    def require_open(self) -> None:
        """Raise ToolcellError after `close`."""
        ...

    def protect(self, path: str | Path) -> None:
        """Keep a file from being changed by calls, from now on."""
        ...

    def check(self, settings: CellSettings) -> None:
        """Raise WorkspaceError where calls with these settings could not have the workspace."""
        ...

    def prepare(
        self, call: ToolCall, origin: Origin | None = None
    ) -> PreparedToolCall | ToolResult:
        """Resolve the tool and validate the arguments; a result says why that failed."""
        ...

    async def execute(
        self,
        prepared: PreparedToolCall,
        grant: Grant,
        options: RunOptions | None,
        cancellation: Cancellation,
        observe: Observer,
    ) -> ToolResult:
        """Spend the grant and run the call to its result, as far as it is not cancelled.

        `observe` is told of the start and the end of each attempt.
        """
        ...

    async def close(self) -> None:
        """Cancel what runs, and release everything."""
        ...
