"""The commands and their options; each hands over to the module of its name."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

import toolcell
from toolcell.cells.workspace import resolve_workspace
from toolcell.cli.approvals import app as approvals_app
from toolcell.cli.events import app as events_app
from toolcell.cli.options import FLAG, AsJson, Policy, ToolFile, Workspace, choices, one_of
from toolcell.cli.output import app as output_app
from toolcell.cli.policy import app as policy_app
from toolcell.cli.setup import Setup

app = typer.Typer(
    name="toolcell",
    help="Run tool calls of a language model, each in its own cell: checked by policy, isolated "
    "by the kernel, killed on time.",
    epilog="Exit codes: 0 succeeded, 1 the tool failed, 2 usage, 3 approval needed, 124 timed "
    "out, 125 toolcell's own fault, 126 denied.",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)

app.add_typer(policy_app, name="policy")
app.add_typer(approvals_app, name="approvals")
app.add_typer(events_app, name="events")
app.add_typer(output_app, name="output")


class Network(StrEnum):
    """What a cell's network can be."""

    none = "none"
    host = "host"


class WorkspaceMode(StrEnum):
    """How the workspace is lent."""

    rw = "rw"
    ro = "ro"
    none = "none"


class IsolationMode(StrEnum):
    """Which kind of cell; to have no walls at all, a policy has to say so."""

    auto = "auto"
    full = "full"
    landlock = "landlock"


Allow = Annotated[
    list[str] | None,
    typer.Option(
        "--allow", metavar="TOOL", help="Allow a tool that the policy does not name. Repeatable."
    ),
]
Events = Annotated[
    Path | None,
    typer.Option(
        "--events",
        metavar="FILE",
        help="Keep the events of each step in this log. Default: the one in the state directory.",
    ),
]
NoEvents = Annotated[
    bool, typer.Option("--no-events", metavar=FLAG, help="Keep no events of this run.")
]
Wait = Annotated[
    bool,
    typer.Option(
        "--wait",
        metavar=FLAG,
        help="Where a call needs approval, wait for an answer given with `toolcell approvals`.",
    ),
]
Isolation = Annotated[
    IsolationMode | None,
    typer.Option(
        "--isolation",
        parser=one_of(IsolationMode),
        metavar=choices(IsolationMode),
        help="The kind of cell: auto is full where namespaces are allowed, otherwise landlock.",
    ),
]
Wall = Annotated[
    str | None, typer.Option("--wall", metavar="TIME", help="Time limit, such as 500ms, 30s or 2m.")
]
Memory = Annotated[
    str | None, typer.Option("--memory", metavar="SIZE", help="Memory limit, such as 512MiB.")
]


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"toolcell {toolcell.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            metavar=FLAG,
            help="Print the version and exit.",
            is_eager=True,
            callback=_print_version,
        ),
    ] = False,
) -> None:
    del version  # its callback has done its work


@app.command(context_settings={"allow_interspersed_args": False})
def run(
    command: Annotated[list[str], typer.Argument(metavar="-- CMD [ARG]...")],
    policy: Policy = "default",
    workspace: Workspace = None,
    mode: Annotated[
        WorkspaceMode | None,
        typer.Option(
            "--mode",
            parser=one_of(WorkspaceMode),
            metavar=choices(WorkspaceMode),
            help="Lend the workspace so.",
        ),
    ] = None,
    network: Annotated[
        Network | None,
        typer.Option(
            "--network",
            parser=one_of(Network),
            metavar=choices(Network),
            help="Network of the command.",
        ),
    ] = None,
    isolation: Isolation = None,
    wall: Wall = None,
    cpu: Annotated[
        str | None, typer.Option("--cpu", metavar="TIME", help="CPU time limit, such as 60s.")
    ] = None,
    memory: Memory = None,
    processes: Annotated[
        int | None, typer.Option("--processes", metavar="N", help="Most processes and threads.")
    ] = None,
    read: Annotated[
        list[Path] | None,
        typer.Option("--read", metavar="PATH", help="Lend this path read-only. Repeatable."),
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option("--env", metavar="NAME=VALUE", help="Set NAME=VALUE. Repeatable."),
    ] = None,
    stdin: Annotated[
        bool,
        typer.Option(
            "--stdin",
            metavar=FLAG,
            help="Read standard input to its end, then give it to the command.",
        ),
    ] = False,
    events: Events = None,
    no_events: NoEvents = False,
    as_json: AsJson = False,
) -> None:
    """Run one command in a cell and pass its output and exit code through.

    Example: toolcell run --wall 10s -- python3 -m pytest -q
    """
    from toolcell.cli.run import run_command

    cell = {
        "isolation": isolation and isolation.value,
        "network": network and network.value,
        "workspace": mode and mode.value,
        "read": [str(path) for path in read or ()],
        "env": dict(_pair(text) for text in env or ()),
    }
    limits = {"wall": wall, "cpu": cpu, "memory": memory, "processes": processes}
    setup = Setup(
        policy=policy,
        workspace=workspace,
        events=events,
        no_events=no_events,
        cell={key: value for key, value in cell.items() if value},
        limits={key: _quantity(value) for key, value in limits.items() if value is not None},
    )
    raise typer.Exit(run_command(setup, command, stdin=stdin, as_json=as_json))


@app.command()
def call(
    tool: Annotated[str, typer.Argument(help="The tool's name.")],
    arguments: Annotated[str, typer.Argument(help="Its arguments, a JSON object.")] = "{}",
    policy: Policy = "default",
    workspace: Workspace = None,
    tool_file: ToolFile = None,
    allow: Allow = None,
    call_id: Annotated[
        str | None,
        typer.Option("--id", metavar="ID", help="The call's id. Default: one that no other has."),
    ] = None,
    wall: Wall = None,
    report: Annotated[
        bool,
        typer.Option("--report", metavar=FLAG, help="Print a readable account of the whole call."),
    ] = False,
    wait: Wait = False,
    events: Events = None,
    no_events: NoEvents = False,
    as_json: AsJson = False,
) -> None:
    """Make one tool call and print its output, or with --json the whole ToolResult.

    Example: toolcell call read_file '{"path": "README.md"}'
    """
    from toolcell.cli.call import make_call

    if report and as_json:
        raise typer.BadParameter("--report goes without --json")
    setup = _setup(policy, workspace, tool_file, allow, events, wall, no_events=no_events)
    code = make_call(setup, tool, arguments, call_id, as_json=as_json, report=report, wait=wait)
    raise typer.Exit(code)


@app.command()
def batch(
    calls: Annotated[Path, typer.Argument(help="A JSONL file of calls; - is standard input.")],
    policy: Policy = "default",
    workspace: Workspace = None,
    tool_file: ToolFile = None,
    allow: Allow = None,
    concurrency: Annotated[
        int | None,
        typer.Option(
            "--concurrency",
            "-c",
            min=1,
            metavar="N",
            help="Calls at once. Default: the processors.",
        ),
    ] = None,
    as_finished: Annotated[
        bool,
        typer.Option(
            "--as-finished", metavar=FLAG, help="Print results as they end, not in input order."
        ),
    ] = False,
    wall: Wall = None,
    table: Annotated[
        bool,
        typer.Option("--table", metavar=FLAG, help="Print a table for people instead of JSONL."),
    ] = False,
    wait: Wait = False,
    events: Events = None,
    no_events: NoEvents = False,
    as_json: Annotated[
        bool,
        typer.Option("--json", metavar=FLAG, help="Print JSONL on stdout (what it does anyway)."),
    ] = False,
) -> None:
    """Run many calls: JSONL in, one ToolResult a line out.

    A line is {"call_id": "...", "name": "...", "arguments": {...}}. A bad line gives one
    rejected result and does not end the run. The exit code is 1 if any call did not succeed.
    """
    from toolcell.cli.batch import run_batch

    if table and (as_json or as_finished):
        raise typer.BadParameter("--table goes with neither --json nor --as-finished")
    setup = _setup(policy, workspace, tool_file, allow, events, wall, no_events=no_events)
    code = run_batch(setup, calls, concurrency, as_finished=as_finished, table=table, wait=wait)
    raise typer.Exit(code)


@app.command()
def tools(
    policy: Policy = "default",
    workspace: Workspace = None,
    tool_file: ToolFile = None,
    allow: Allow = None,
    as_json: AsJson = False,
) -> None:
    """List the tools and what the policy decides of each; --json prints the specs for a model."""
    from toolcell.cli.tools import list_tools

    if workspace is not None:
        resolve_workspace(workspace)
    list_tools(_setup(policy, workspace, tool_file, allow, None, None), as_json=as_json)


@app.command()
def doctor(
    policy: Policy = "default",
    workspace: Workspace = None,
    isolation: Isolation = None,
    as_json: AsJson = False,
) -> None:
    """Show what this machine can enforce, by trying to break out of a cell of the policy.

    The exit code is 0 if all that the policy requires held, otherwise 1.
    """
    from toolcell.cli.doctor import show

    if workspace is not None:
        resolve_workspace(workspace)
    cell = {"isolation": isolation.value} if isolation else {}
    raise typer.Exit(show(Setup(policy=policy, workspace=workspace, cell=cell), as_json=as_json))


def _setup(
    policy: str,
    workspace: Path | None,
    tool_file: str | None,
    allow: list[str] | None,
    events: Path | None,
    wall: str | None,
    *,
    no_events: bool = False,
) -> Setup:
    return Setup(
        policy=policy,
        workspace=workspace,
        tool_file=tool_file,
        allow=tuple(allow or ()),
        events=events,
        no_events=no_events,
        limits={"wall": _quantity(wall)} if wall is not None else {},
    )


def _quantity(value: str | int) -> str | int | float:
    """Take a plain number for what it is, as a policy does: seconds, bytes or a count."""
    if isinstance(value, int):
        return value
    try:
        return int(value)
    except ValueError:
        try:
            return float(value)
        except ValueError:
            return value


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise typer.BadParameter(f"--env takes NAME=VALUE, got {text!r}")
    return name, value
