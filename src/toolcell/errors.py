"""Faults of the host side: misuse of the API, a bad policy, a registration that cannot work.

Nothing that a model, a tool or a cell does raises one of these; that comes back as a
`ToolResult`. `CellRefused` is what `runtime` turns into results; only `ToolRuntime.plan`
lets it pass to a caller.
"""

import errno


class ToolcellError(Exception):
    """Base of every error that toolcell raises on purpose."""


class DuplicateToolError(ToolcellError, ValueError):
    """A tool of this name is registered already."""


class RegistrationError(ToolcellError, ValueError):
    """A function cannot become a tool; the message says why and what to do."""


class PolicyError(ToolcellError, ValueError):
    """A policy cannot be read or contradicts itself; the message has the file and line."""


class GrantError(ToolcellError, RuntimeError):
    """A prepared call was given to `execute` without a valid, unspent grant of its own."""


class UnknownApprovalError(ToolcellError, LookupError):
    """No approval of this id was ever asked for here."""


class UnknownOutputError(ToolcellError, LookupError):
    """No output of this handle is kept, or not for who asks."""


class SessionError(ToolcellError, RuntimeError):
    """A session cannot be ended or forked as the host asked; the message says why."""


class WorkspaceError(ToolcellError, ValueError):
    """The workspace cannot be lent to a cell; the message says why."""


class StoreError(ToolcellError, OSError):
    """A file of toolcell's state cannot be used; the message says which, why and what to do."""


class ImportPathWarning(UserWarning):
    """Tools may write in a directory that this program imports from."""


class CellRefused(ToolcellError):  # noqa: N818  # a refusal, which becomes a result
    """A cell cannot be made: `cause` says what is missing, `remedy` what to do about it."""

    def __init__(self, cause: str, remedy: str = "") -> None:
        super().__init__(f"{cause}; {remedy}" if remedy else cause)
        self.cause = cause
        self.remedy = remedy


class WallsNotBuilt(CellRefused):
    """A system call that builds a wall failed; `errno` says how."""

    def __init__(self, cause: str, number: int | None) -> None:
        super().__init__(cause)
        self.errno = number or errno.EIO
