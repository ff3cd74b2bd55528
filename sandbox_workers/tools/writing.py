"""write_file: a whole file, replacing what was there."""

from sandbox_workers.tools import ToolError
from sandbox_workers.tools.places import inside, refused


def write_file(path: str, content: str) -> str:
    """Write a whole file, replacing what was there; the directory has to exist."""
    place = inside(path)
    data = content.encode()
    try:
        if place.is_dir():
            raise ToolError(f"{path} is a directory, not a file")
        if not place.parent.is_dir():
            raise ToolError(f"{path}: its directory does not exist", "create the directory first")
        place.write_bytes(data)
    except OSError as error:
        raise refused(path, error) from None
    return f"wrote {len(data)} bytes to {path}"
