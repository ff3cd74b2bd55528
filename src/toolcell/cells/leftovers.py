"""Leftovers: what controllers that were killed left behind, told by the PID in its name."""

import re
from collections.abc import Iterator
from pathlib import Path


def left_behind(place: Path, prefix: str) -> Iterator[Path]:
    """What is named by a prefix, the PID of a process that is gone, and anything."""
    named = re.compile(rf"{re.escape(prefix)}-(\d+)-.+")
    for path in place.glob(f"{prefix}-*-*"):
        if (found := named.fullmatch(path.name)) and not Path(f"/proc/{found[1]}").exists():
            yield path
