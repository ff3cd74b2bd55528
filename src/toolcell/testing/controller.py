"""Fake controllers: real ones, but for who runs the calls, and for the time."""

import itertools
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any

from toolcell.approvals import PendingApprovals
from toolcell.blocking import BlockingController
from toolcell.controller import ToolController
from toolcell.errors import ToolcellError
from toolcell.model import ApprovalRequest, ApprovalResponse, ToolCall, ToolDefinition, ToolResult
from toolcell.policy import ToolPolicy
from toolcell.registry import ToolRegistry
from toolcell.testing.calls import Calls
from toolcell.testing.clock import FakeClock
from toolcell.testing.executor import FakeExecutor, Play
from toolcell.testing.script import Script, tools_of

Played = Mapping[str, Any] | Iterable[ToolDefinition] | Play
_ALLOWS_ALL = ToolPolicy(name="test", allow={"*": "a test"})


class _Stage:
    """What both kinds of fake controllers are made of."""

    def __init__(
        self,
        played: Played,
        policy: ToolPolicy | str,
        registry: ToolRegistry | None,
        clock: FakeClock | None,
        options: dict[str, Any],
    ) -> None:
        self.clock = clock or FakeClock(auto=True)
        self.policy = policy
        self.registry = registry if registry is not None else ToolRegistry(_tools(played))
        sinks = options.pop("events", ())
        executor = FakeExecutor(
            self.registry, _play(played, registry), clock=self.clock, complete=registry is None
        )
        self.calls = Calls(executor.unscripted)
        self.options: dict[str, Any] = {
            "executor": executor,
            "clock": self.clock,
            "timing": self.clock,
            "approvals": PendingApprovals(clock=self.clock),
            "events": [self.calls, *([sinks] if callable(sinks) else sinks)],
        } | options


def _tools(played: Played) -> list[ToolDefinition]:
    if isinstance(played, Mapping) or not callable(played):
        return tools_of(played)
    raise ToolcellError("a function that plays calls needs a `registry` of the tools it plays")


def _play(played: Played, registry: ToolRegistry | None) -> Play | None:
    if registry is None:
        return None
    if isinstance(played, Mapping):
        scripts = {name: Script.of(steps) for name, steps in played.items()}
        if unknown := scripts.keys() - set(registry.list()):
            raise ToolcellError(f"the script plays {min(unknown)!r}, which is not a tool here")
        return lambda prepared: scripts.get(prepared.definition.name, _NOTHING)(prepared)
    if callable(played):
        return played
    if tuple(played):
        raise ToolcellError("tools that are scripted themselves need no `registry`: they make one")
    return None


_NOTHING = Script()


class FakeController(BlockingController):
    """A `BlockingController` that runs nothing: its tools are played.

    with FakeController({"fetch": ["page one", ToolError("gone")]}) as controller:
        assert controller.call("fetch", url="a").output == "page one"
    controller.calls.assert_called("fetch", url="a")

    `played` is a script by the tools' names (see `Script`; a list is played step by step), a list
    of `scripted` tools, a function of prepared calls, or a `Recording`. With a `registry` its tools
    are played, and calls are validated as theirs. Everything is allowed unless a policy says
    otherwise. The clock moves by itself where something pauses, or give it one that does not.
    A call of which nothing is said raises UnscriptedCallError, and the end of the `with` raises it
    again, because an agent may catch what its tools raise.
    Further options are those of `ToolController`.
    """

    def __init__(
        self,
        played: Played = (),
        policy: ToolPolicy | str = _ALLOWS_ALL,
        *,
        registry: ToolRegistry | None = None,
        clock: FakeClock | None = None,
        **options: Any,
    ) -> None:
        """Make the controller and start its thread."""
        stage = _Stage(played, policy, registry, clock, options)
        self.calls, self.clock = stage.calls, stage.clock
        self._ids = itertools.count(1)
        super().__init__(stage.registry, stage.policy, None, **stage.options)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        super().__exit__(kind, error, traceback)
        if error is None:
            self.calls.assert_scripted()

    def call(self, name: str, /, **arguments: Any) -> ToolResult | ApprovalRequest:
        """Make a call, under an id of its own."""
        return self.handle(_numbered(self._ids, name, arguments))

    def approve(self, request: ApprovalRequest, by: str = "a test") -> ToolResult:
        """Say yes to a question."""
        return self.resolve(_answer(request, by, approved=True))

    def deny(self, request: ApprovalRequest, by: str = "a test", note: str = "") -> ToolResult:
        """Say no to a question."""
        return self.resolve(_answer(request, by, approved=False, note=note))


class AsyncFakeController(ToolController):
    """`FakeController` for agents that are async: a `ToolController` whose tools are played."""

    def __init__(
        self,
        played: Played = (),
        policy: ToolPolicy | str = _ALLOWS_ALL,
        *,
        registry: ToolRegistry | None = None,
        clock: FakeClock | None = None,
        **options: Any,
    ) -> None:
        """Make the controller."""
        stage = _Stage(played, policy, registry, clock, options)
        self.calls, self.clock = stage.calls, stage.clock
        self._ids = itertools.count(1)
        super().__init__(stage.registry, stage.policy, None, **stage.options)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await super().__aexit__(kind, error, traceback)
        if error is None:
            self.calls.assert_scripted()

    async def call(self, name: str, /, **arguments: Any) -> ToolResult | ApprovalRequest:
        """Make a call, under an id of its own."""
        return await self.handle(_numbered(self._ids, name, arguments))

    async def approve(self, request: ApprovalRequest, by: str = "a test") -> ToolResult:
        """Say yes to a question."""
        return await self.resolve(_answer(request, by, approved=True))

    async def deny(
        self, request: ApprovalRequest, by: str = "a test", note: str = ""
    ) -> ToolResult:
        """Say no to a question."""
        return await self.resolve(_answer(request, by, approved=False, note=note))


def _numbered(ids: "itertools.count[int]", name: str, arguments: dict[str, Any]) -> ToolCall:
    return ToolCall(call_id=f"call-{next(ids)}", name=name, arguments=arguments)


def _answer(
    request: ApprovalRequest, by: str, *, approved: bool, note: str = ""
) -> ApprovalResponse:
    return ApprovalResponse(approval_id=request.approval_id, approved=approved, by=by, note=note)
