"""What is known of one kept output, and what a handle looks like."""

import base64
import re
import secrets
from typing import Literal

from pydantic import AwareDatetime

from toolcell.model.base import SCHEMA_VERSION, Frozen

Kind = Literal["stdout", "stderr", "value", "artifact"]

_DIGITS = 13  # 65 bits: short for a model to copy, and not to be guessed
HANDLE = re.compile(rf"(?:out|art)-[a-z2-7]{{{_DIGITS}}}")


class Stored(Frozen):
    """One output that is kept: whose it is, and how much of it there is.

    `size` is in bytes, as it is kept: secrets are redacted. `total_bytes` and `total_lines`
    count what was written, before that; `lost` says why not all of it is kept, and is empty
    where it is. `sha256` is of what is kept. `workspace` names the calls that may read it.
    """

    v: Literal[1] = SCHEMA_VERSION
    handle: str
    kind: Kind
    call_id: str = ""
    tool_name: str = ""
    run: str = ""
    workspace: str = ""
    name: str = ""
    media_type: str = ""
    created: AwareDatetime
    size: int = 0
    total_bytes: int = 0
    total_lines: int = 0
    sha256: str = ""
    lost: str = ""


class Pruned(Frozen):
    """What was removed: the handles, and their bytes together."""

    handles: tuple[str, ...] = ()
    size: int = 0


def new_handle(kind: Kind) -> str:
    """Make a handle that nobody can guess."""
    digits = base64.b32encode(secrets.token_bytes(10)).decode().lower()[:_DIGITS]
    return f"{'art' if kind == 'artifact' else 'out'}-{digits}"
