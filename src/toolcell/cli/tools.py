"""`toolcell tools`: the tools, and what the policy decides of each."""

import json
from fnmatch import fnmatchcase

from toolcell.cli.setup import Setup
from toolcell.policy import ToolPolicy, check_policy
from toolcell.registry import ToolRegistry


def list_tools(setup: Setup, *, as_json: bool) -> None:
    """Print a table, or the specs as a model would be given them."""
    policy, registry = setup.effective_policy(), setup.registry()
    check_policy(policy, registry, ToolRegistry.builtin())
    specs = registry.specs()
    if as_json:
        documents = [spec.model_dump(mode="json", exclude_none=True) for spec in specs]
        print(json.dumps(documents, indent=2, ensure_ascii=False))
        return
    from rich.box import SIMPLE_HEAD
    from rich.markup import escape
    from rich.table import Table

    from toolcell.cli.table import console_for_tables

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("tool", "arguments", f"{policy.name} policy", "runs", "what it does"):
        table.add_column(heading, overflow="fold")
    for spec in specs:
        definition = registry.resolve(spec.name)
        required = spec.input_schema.get("required", [])
        names = [
            name if name in required else f"[{name}]"
            for name in spec.input_schema.get("properties", {})
        ]
        table.add_row(
            escape(spec.name),
            escape(", ".join(names)),
            _decision(policy, spec.name),
            "in a cell" if definition and definition.isolation == "cell" else "in the controller",
            escape(spec.description.split(". ")[0].rstrip(".") + "."),
        )
    console_for_tables().print(table)


def _decision(policy: ToolPolicy, tool: str) -> str:
    """What is decided of a tool by its name, and whether rules look into its calls."""
    looking = {
        rule.id
        for each in (policy, *policy.layers)
        for rule in each.rules
        if any(fnmatchcase(tool, glob) for glob in rule.tool)
    }
    action = policy.by_name(tool).action
    count = "1 rule" if len(looking) == 1 else f"{len(looking)} rules"
    return f"{action}, but for {count}" if looking else action
