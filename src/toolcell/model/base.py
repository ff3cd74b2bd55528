"""What every model shares, and the units that people write: sizes and durations."""

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict

SCHEMA_VERSION: Literal[1] = 1
"""Version of the stored and sent shapes; carried by each of them as `v`."""

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(B|[kKMGT]i?B)")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|min|m|h)")
_DURATION_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


class Frozen(BaseModel):
    """An immutable value that refuses fields it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def parse_size(value: Any) -> Any:
    """Read "512MiB" or "2GB" as bytes (KiB = 1024, kB = 1000); numbers pass through."""
    if not isinstance(value, str):
        return value
    match = _SIZE.fullmatch(value.strip())
    if not match:
        raise ValueError(f'expected a size such as "512MiB", got {value!r}')
    number, unit = match.groups()
    power = " KMGT".index(unit[0].upper()) if unit[0] != "B" else 0
    return int(float(number) * (1024 if "i" in unit else 1000) ** power)


def parse_duration(value: Any) -> Any:
    """Read "30s", "500ms", "2m" or "1h" as seconds; numbers pass through."""
    if not isinstance(value, str):
        return value
    match = _DURATION.fullmatch(value.strip())
    if not match:
        raise ValueError(f'expected a duration such as "30s" or "500ms", got {value!r}')
    number, unit = match.groups()
    return float(number) * _DURATION_UNITS[unit]


Bytes = Annotated[int, BeforeValidator(parse_size)]
Seconds = Annotated[float, BeforeValidator(parse_duration)]
