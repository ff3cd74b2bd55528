"""search_text: the lines of the workspace's text files that a regular expression matches.

Which files are searched is decided by the walk, the glob and the bytes that a search may read;
ripgrep, where there is one and it is worth starting, says which of them need not be read. What
is read is matched and shown here (`patterns`, `excerpts`).
"""

from sandbox_workers.patterns import parser
from sandbox_workers.patterns.matching import Matcher
from sandbox_workers.patterns.nodes import Node
from sandbox_workers.patterns.refusals import PatternError
from sandbox_workers.tools import ToolError
from sandbox_workers.tools.answering import account, glob_of, glob_of_its_own, passed_over
from sandbox_workers.tools.excerpts import Page
from sandbox_workers.tools.places import existing_file, inside, must_exist, relative
from sandbox_workers.tools.scan import Scan
from sandbox_workers.tools.walking import Walk


def search_text(
    pattern: str,
    path: str = ".",
    glob: str = "*",
    literal: bool = False,
    ignore_case: bool = False,
    before: int = 0,
    after: int = 0,
    hidden: bool = False,
    ignored: bool = False,
    limit: int = 200,
) -> str:
    """Return the lines that match, with file and number, and an account of what is left out."""
    node = _node(pattern, literal, ignore_case)
    wanted = glob_of(glob)
    place = inside(path)
    must_exist(place, path)
    page = Page(Matcher(node), before, after, limit)
    scan = Scan(node, page)
    told: list[str] = []
    if place.is_dir():
        base = relative(place)
        walk = Walk(base, hidden=hidden, ignored=ignored)
        scan.files(entry.path for entry in walk.matching(wanted) if entry.kind == "file")
        told = passed_over(walk, found=scan.matches > 0)
        if not scan.offered:
            told[:0] = glob_of_its_own(base, glob)
    else:
        scan.files([relative(existing_file(path))])
    return "\n".join([*page.lines, account(*scan.summary(), *told)])


def _node(pattern: str, literal: bool, ignore_case: bool) -> Node:
    read = parser.literal if literal else parser.parse
    try:
        return read(pattern, fold=ignore_case)
    except PatternError as error:
        hint = error.hint or "escape with a backslash what is meant as it stands, or set `literal`"
        raise ToolError(f"`pattern` cannot be used: {error}", hint) from None
