"""What came of a call besides its output, for a person: artifacts by handle, changed files."""

import sys

from toolcell.model import ToolResult
from toolcell.model.files import told_artifacts, told_changes, told_size
from toolcell.visible import visible


def print_files(result: ToolResult) -> None:
    """Print on standard error, where talk goes: the output may be somebody's data."""
    told = told_artifacts(result.artifacts, result.refused_artifacts)
    for section in (*told, *told_changes(result.changes, result.changes_note)):
        print(visible(section), file=sys.stderr)
    if result.artifacts:
        handle = result.artifacts[0].handle
        which = "it" if len(result.artifacts) == 1 else "the first"
        print(f"toolcell: to see {which}: toolcell output show {handle}", file=sys.stderr)


def in_a_cell(result: ToolResult) -> str:
    """A few words for a cell of a table; "" where nothing came back."""
    if not result.artifacts:
        return ""
    first, rest = result.artifacts[0], len(result.artifacts) - 1
    more = f" and {rest} more" if rest else ""
    return f" [{first.handle} {first.name}, {told_size(first.size)}{more}]"
