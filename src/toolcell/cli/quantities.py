"""Quantities as people write them in options: ages and sizes."""

import re
from datetime import UTC, datetime, timedelta

import typer

from toolcell.model.base import parse_size

_AGE = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|min|m|h|d|w)")
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 604800}


def is_age(text: str) -> bool:
    """Whether a text is an age such as 90s, 1h or 7d."""
    return _AGE.fullmatch(text.strip()) is not None


def age_of(text: str) -> timedelta:
    """Read an age; raises BadParameter."""
    match = _AGE.fullmatch(text.strip())
    if not match:
        raise typer.BadParameter(f"{text!r} is no age such as 90s, 1h or 7d")
    try:
        age = timedelta(seconds=float(match[1]) * _SECONDS[match[2]])
        datetime.now(UTC) - age  # whether there is such a time
    except OverflowError:
        raise typer.BadParameter(f"{text!r} is longer ago than time goes back") from None
    return age


def size_of(text: str) -> int:
    """Read a size in bytes; raises BadParameter."""
    try:
        return int(parse_size(text))
    except ValueError:
        raise typer.BadParameter(f"{text!r} is no size such as 64MiB") from None


def range_of(text: str, option: str) -> tuple[int | None, int | None]:
    """Read A:B, A: or :B; raises BadParameter."""
    match = re.fullmatch(r"(\d{0,18}):(\d{0,18})", text.strip())
    if not match or not (match[1] or match[2]):
        raise typer.BadParameter(f"{option} takes A:B, A: or :B, got {text!r}")
    start, end = (int(each) if each else None for each in match.groups())
    if start is not None and end is not None and end < start:
        raise typer.BadParameter(f"{option}: {end} comes before {start}")
    return start, end


def shown_age(age: timedelta) -> str:
    """Write an age in its largest unit."""
    seconds = max(0.0, age.total_seconds())
    unit = next((u for u in ("d", "h", "m") if seconds >= _SECONDS[u]), "s")
    return f"{seconds / _SECONDS[unit]:.0f}{unit}"


def shown_size(size: int) -> str:
    """Write a size in bytes in a unit that fits it."""
    number, units = float(size), ["B", "KiB", "MiB", "GiB"]
    while number >= 1024 and len(units) > 1:
        number, units = number / 1024, units[1:]
    return f"{number:.0f} {units[0]}" if units[0] == "B" else f"{number:.1f} {units[0]}"
