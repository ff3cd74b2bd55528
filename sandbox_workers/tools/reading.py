"""read_file: a text file, or some of its lines."""

from pathlib import Path

from sandbox_workers.tools import ToolError
from sandbox_workers.tools.places import existing_file, is_binary, refused


def read_file(path: str, start_line: int = 1, end_line: int | None = None) -> str:
    """Return a text file, or the lines from start_line to end_line (from 1, both included)."""
    if end_line is not None and end_line < start_line:
        raise ToolError(f"end_line {end_line} is before start_line {start_line}")
    place = existing_file(path)
    if start_line == 1 and end_line is None:
        return _text(place, path)
    lines = _lines(_text(place, path))
    if start_line > len(lines):
        raise ToolError(f"{path} has {len(lines)} lines; line {start_line} is past its end")
    return "\n".join(lines[start_line - 1 : end_line]) + "\n"


def _text(place: Path, path: str) -> str:
    try:
        data = place.read_bytes()
    except OSError as error:
        raise refused(path, error) from None
    if is_binary(data):
        raise ToolError(
            f"{path} is binary ({len(data)} bytes), not text",
            "look at it with the python or shell tool",
        )
    return data.decode("utf-8-sig", errors="replace")


def _lines(text: str) -> list[str]:
    """Split at line feeds only, as editors and grep count lines."""
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]
