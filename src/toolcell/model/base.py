"""What every model shares, and the units that people write: sizes and durations."""

import math
import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

SCHEMA_VERSION: Literal[1] = 1
"""Version of the stored and sent shapes; carried by each of them as `v`."""

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(B|[kKMGT]i?B)")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|min|m|h)")
_DURATION_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


class Frozen(BaseModel):
    """An immutable value that refuses fields it does not know."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", ser_json_bytes="base64", val_json_bytes="base64"
    )


def parse_size(value: Any) -> Any:
    """Read "512MiB" or "2GB" as bytes (KiB = 1024, kB = 1000); numbers pass through."""
    if not isinstance(value, str):
        return value
    match = _SIZE.fullmatch(value.strip())
    if not match:
        raise ValueError(f'expected a size such as "512MiB", got {value!r}')
    number, unit = match.groups()
    power = " KMGT".index(unit[0].upper()) if unit[0] != "B" else 0
    return _whole(float(number) * (1024 if "i" in unit else 1000) ** power, value)


def parse_duration(value: Any) -> Any:
    """Read "30s", "500ms", "2m" or "1h" as seconds; numbers pass through."""
    if not isinstance(value, str):
        return value
    match = _DURATION.fullmatch(value.strip())
    if not match:
        raise ValueError(f'expected a duration such as "30s" or "500ms", got {value!r}')
    number, unit = match.groups()
    return float(number) * _DURATION_UNITS[unit]


def _whole(number: float, written: str) -> int:
    if not math.isfinite(number):
        raise ValueError(f"{written[:20]}... is out of range")
    return int(number)


# Strict: a policy's "64" is not 64, nor is true 1. The upper ends are those of setrlimit(2).
Count = Annotated[int, Field(strict=True, ge=0, lt=2**31)]
Bytes = Annotated[int, BeforeValidator(parse_size), Field(strict=True, ge=0, lt=2**62)]
Seconds = Annotated[
    float, BeforeValidator(parse_duration), Field(strict=True, ge=0, lt=1e9, allow_inf_nan=False)
]
