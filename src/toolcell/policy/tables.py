"""Small tables of a policy: what is redacted, when refusals end a run, how long answers hold."""

from typing import Annotated

from pydantic import Field

from toolcell.model.base import Count, Frozen, Seconds
from toolcell.model.cells import VariableName


class Redaction(Frozen):
    """The policy's [redact] table: what is taken out of results, events and errors.

    `env` names variables of the controller's environment whose values are secrets;
    `shapes` also takes out what looks like a token of a known kind.
    """

    env: tuple[VariableName, ...] = ()
    shapes: bool = True


class Breaker(Frozen):
    """The policy's [breaker] table: how many refusals of the same call are answered alike.

    From the `warn`-th on the model is told that repeating will not help; the `end`-th ends
    the run. 0 is never.
    """

    warn: Count = 3
    end: Count = 10


class Approvals(Frozen):
    """The policy's [approvals] table: how long questions and run grants stand, in seconds."""

    lifetime: Annotated[Seconds, Field(gt=0)] = 3600.0
    grants: Annotated[Seconds, Field(gt=0)] = 8 * 3600.0
