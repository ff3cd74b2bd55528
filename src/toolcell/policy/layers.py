"""Layers: policies that only tighten another one.

The policy that somebody named is tightened by the machine's managed file, by the project's and
by the user's, where they are there. What a layer leaves open stays as it is; nothing in one can
give more than the layers above it: for a call the strictest decision holds, the cell is
narrowed, limits shrink. So a project that somebody cloned cannot open a cell.
"""

import os
from pathlib import Path
from typing import Any

from toolcell.errors import PolicyError
from toolcell.model import CellSettings, Guarantee
from toolcell.policy.document import ToolPolicy
from toolcell.policy.file import load_layer
from toolcell.policy.rules import CellNarrowing, narrow_cell, narrow_limits
from toolcell.policy.tables import Approvals, Breaker

MANAGED = Path("/etc/toolcell/policy.toml")
PROJECT = "toolcell.toml"
_USER = "toolcell/policy.toml"
_STRENGTH = {"none": 0, "landlock": 1, "auto": 2, "full": 3}


def layer_files(workspace: str | Path | None) -> list[Path]:
    """Return the files that tighten any policy here, the strongest first, as far as they exist."""
    config = os.environ.get("XDG_CONFIG_HOME", "")
    base = Path(config) if config.startswith("/") else Path("~/.config").expanduser()
    project = [Path(workspace) / PROJECT] if workspace is not None else []
    return [path for path in (MANAGED, *project, base / _USER) if os.path.lexists(path)]


def tightened_here(policy: ToolPolicy, workspace: str | Path | None) -> ToolPolicy:
    """Apply the layers of this machine, this project and this user; raises PolicyError."""
    for path in layer_files(workspace):
        if policy.source and path.resolve() == Path(policy.source).resolve():
            continue
        if not path.is_file():
            raise PolicyError(f"{path} would tighten the policy, and is not a file; remove it")
        policy = tighten(policy, load_layer(path))
    return policy


def tighten(policy: ToolPolicy, layer: ToolPolicy) -> ToolPolicy:
    """Return a policy as far as a layer leaves it."""
    return policy.model_copy(
        update={
            "layers": (*policy.layers, layer),
            "cell": _cell(policy.cell, layer.cell),
            "limits": narrow_limits(policy.limits, layer.limits),
            "redact": policy.redact.model_copy(
                update={
                    "env": tuple(dict.fromkeys([*policy.redact.env, *layer.redact.env])),
                    "shapes": policy.redact.shapes or layer.redact.shapes,
                }
            ),
            "breaker": _breaker(policy.breaker, layer.breaker),
            "approvals": _approvals(policy.approvals, layer.approvals),
            "budget": policy.budget.within(layer.budget),
        }
    )


def _cell(cell: CellSettings, layer: CellSettings) -> CellSettings:
    said = layer.model_fields_set
    narrowing: dict[str, Any] = {}
    if "workspace" in said and layer.workspace != "rw":
        narrowing["workspace"] = layer.workspace
    if "writable" in said and layer.writable:
        narrowing["writable"] = layer.writable
    require = cell.require
    if "require" in said:
        require = tuple(dict.fromkeys([*cell.require, *layer.require]))
    if ("network" in said and layer.network == "none") or Guarantee.NETWORK in require:
        narrowing["network"] = "none"
    update: dict[str, Any] = {"require": require}
    if layer.report_changes:
        update["report_changes"] = True
    if "isolation" in said and _STRENGTH[layer.isolation] > _STRENGTH[cell.isolation]:
        update["isolation"] = layer.isolation
    return narrow_cell(cell, CellNarrowing(**narrowing)).model_copy(update=update)


def _breaker(breaker: Breaker, layer: Breaker) -> Breaker:
    update = {
        key: min(getattr(breaker, key) or value, value)
        for key in layer.model_fields_set
        if (value := getattr(layer, key))
    }
    return breaker.model_copy(update=update)


def _approvals(approvals: Approvals, layer: Approvals) -> Approvals:
    update = {
        key: min(getattr(approvals, key), getattr(layer, key)) for key in layer.model_fields_set
    }
    return approvals.model_copy(update=update)
