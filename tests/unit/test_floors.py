"""The house stands: imports lead to floors below, and only the codec crosses the border."""

import ast
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import sandbox_workers
import toolcell

TRUSTED = Path(toolcell.__file__).parent
WORKERS = Path(sandbox_workers.__file__).parent

ROOMS = {
    1: ["errors", "declare", "model", "visible", "timing"],
    2: ["database", "redaction", "shell", "media", "legible"],
    3: [
        *["registry", "arguments", "policy", "approvals", "events", "normalizer", "messages"],
        "outputs",
        *[
            "inline",
            "cells.leftovers",
            "cells.cgroup",
            "cells.syscalls",
            "cells.seccomp",
            "cells.refusals",
        ],
        *[
            "cells.landlock",
            "cells.capabilities",
            "cells.capture",
            "cells.pipe",
            "cells.conversation",
        ],
        *["cells.parcels", "cells.tree", "cells.cell", "cells.process"],
    ],
    4: [
        "pages",
        "cells.lending",
        "cells.workspace",
        "cells.plan",
        "cells.rights",
        "cells.listing",
        "cells.declared",
        "cells.survey",
        "cells.captures",
        "cells.arriving",
        "cells.account",
        "cells.narrowing",
        "cells.watch",
        "cells.streams",
        "cells.supervisor",
        "cells.attestation",
        "cells.pool",
        "artifacts",
        "bounds",
        "cancellation",
        "grants",
    ],
    5: [
        "slots",
        "rejections",
        "breaker",
        "journal",
        "attempt",
        "answers",
        "sessions",
        "retries",
        "preparing",
        "executor",
        "ledger",
        "waits",
        "streaming",
        "supply",
        "runtime",
        "steps",
        "questions",
        "controller",
    ],
    6: ["tracing", "blocking", "doctor", "cli", "__main__"],
    7: ["testing"],
}
FLOOR = {f"toolcell.{room}": floor for floor, rooms in ROOMS.items() for room in rooms}
# Parts of one machine, each may use those named before it.
IN_ORDER = [name for name in FLOOR if name.startswith("toolcell.cells.")]
IN_ORDER += ["toolcell.bounds", "toolcell.cancellation", "toolcell.grants"]
IN_ORDER += [
    "toolcell.slots",
    "toolcell.rejections",
    "toolcell.breaker",
    "toolcell.journal",
    "toolcell.attempt",
    "toolcell.answers",
    "toolcell.sessions",
    "toolcell.retries",
    "toolcell.preparing",
    "toolcell.executor",
    "toolcell.ledger",
    "toolcell.waits",
    "toolcell.streaming",
]
IN_ORDER += ["toolcell.supply"]
IN_ORDER += ["toolcell.runtime", "toolcell.steps", "toolcell.questions", "toolcell.controller"]
# A door opens into a room of its own floor; nothing else does.
DOORS = {
    ("toolcell.__main__", "toolcell.cli"),  # `python -m toolcell` is the command line
    ("toolcell.cli", "toolcell.doctor"),  # `toolcell doctor` prints what it finds
}
CODEC_USERS = {
    "toolcell.arguments",  # a call's arguments are as strict as a cell's reply
    "toolcell.cells.account",
    "toolcell.cells.conversation",
    "toolcell.cells.parcels",
    "toolcell.cells.process",
    "toolcell.cells.supervisor",
    "toolcell.runtime",
    "toolcell.sessions.manager",
    "toolcell.sessions.protocol",
}


def modules(root: Path) -> dict[str, ast.Module]:
    found = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = ast.parse(path.read_text(), str(path))
    return found


SOURCE = modules(TRUSTED) | modules(WORKERS)


def statements(node: ast.AST, *, inside_functions: bool) -> Iterator[ast.AST]:
    """Walk a module's code as it runs: not what only type checkers read."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) and not inside_functions:
            continue
        yield child
        yield from statements(child, inside_functions=inside_functions)


def imports(name: str, *, inside_functions: bool = True) -> set[str]:
    """The modules that a module names in its imports; of a package's, the part that is meant."""
    found = set()
    for node in statements(SOURCE[name], inside_functions=inside_functions):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name} imports relatively"
            for alias in node.names:
                part = f"{node.module}.{alias.name}"
                found.add(part if part in SOURCE else node.module)
    return found


def room(name: str) -> str:
    """The room of the house that a module stands in; inner modules share their package's."""
    parts = name.split(".")
    return ".".join(parts[: 3 if parts[1:2] == ["cells"] else 2])


def may_import(importer: str, imported: str) -> bool:
    if importer == imported or (importer, imported) in DOORS:
        return True
    if importer in IN_ORDER and imported in IN_ORDER and FLOOR[importer] == FLOOR[imported]:
        return IN_ORDER.index(imported) < IN_ORDER.index(importer)
    return FLOOR[imported] < FLOOR[importer]


TRUSTED_MODULES = [n for n in SOURCE if n.startswith("toolcell.") and n != "toolcell.cells"]
WORKER_MODULES = [n for n in SOURCE if n.startswith("sandbox_workers")]


@pytest.mark.parametrize("name", TRUSTED_MODULES)
def test_a_module_imports_only_from_floors_below(name):
    assert room(name) in FLOOR, f"{name} has no floor; give it one in ROOMS"
    for imported in imports(name):
        if imported.startswith("toolcell."):
            assert may_import(room(name), room(imported)), f"{name} imports {imported}"


def test_the_package_itself_imports_nothing_of_the_house():
    for name in ("toolcell", "toolcell.cells"):
        assert not [m for m in imports(name) if m.startswith(("toolcell", "sandbox_workers"))]


def test_no_modules_import_each_other_in_a_circle():
    graph = {
        name: {m for m in imports(name, inside_functions=False) if m in SOURCE and m != name}
        for name in SOURCE
    }
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


@pytest.mark.parametrize("name", WORKER_MODULES)
def test_the_other_side_of_the_pipe_imports_the_standard_library_and_itself(name):
    foreign = {
        module
        for module in imports(name)
        if module.split(".")[0] not in {*sys.stdlib_module_names, "sandbox_workers"}
    }
    # Typed arguments are rebuilt in the cell by the tool's own pydantic, inside a function.
    allowed = {"pydantic"} if name == "sandbox_workers.handlers" else set()
    assert foreign <= allowed
    assert "pydantic" not in imports(name, inside_functions=False)


@pytest.mark.parametrize("name", TRUSTED_MODULES)
def test_only_the_codec_crosses_the_border(name):
    crossing = {m for m in imports(name) if m.split(".")[0] == "sandbox_workers"}
    allowed = {"sandbox_workers"}  # the bare package, for its path
    if name in CODEC_USERS:
        allowed.add("sandbox_workers.wire")
    if name in ("toolcell.cells.listing", "toolcell.cells.declared"):
        allowed.add("sandbox_workers.plain_files")  # the rule of which files may come back
    if name == "toolcell.sessions.protocol":
        allowed.add("sandbox_workers.records")
    if name == "toolcell.cells.capabilities":
        allowed.add("sandbox_workers.confine")  # declarations only: it asks for Landlock's ABI
    assert crossing <= allowed


@pytest.mark.parametrize("name", SOURCE)
def test_no_room_is_named_after_nothing(name):
    assert not {"utils", "util", "helpers", "helper", "common", "misc"} & set(name.split("."))


@pytest.mark.parametrize("name", SOURCE)
def test_nothing_is_pickled_and_nothing_runs_between_fork_and_exec(name):
    forbidden = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve"}
    assert not forbidden & {module.split(".")[0] for module in imports(name)}
    for node in ast.walk(SOURCE[name]):
        if isinstance(node, ast.Call):
            assert "preexec_fn" not in [keyword.arg for keyword in node.keywords]


@pytest.mark.parametrize("name", SOURCE)
def test_every_module_says_what_it_is(name):
    assert ast.get_docstring(SOURCE[name])
