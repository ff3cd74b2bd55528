"""The controller: walks a call down its path, and is the only writer of events.

    call -> prepare -> decide -> (ask a person) -> grant -> execute -> result

There are exactly two ways into execution: an allow, or one approval that was spent, and
whose call was prepared and decided again after it was given. A grant for the rest of a run is
an approval that was given ahead: it turns an ask into an allow, and nothing else.
"""

import itertools
import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from toolcell import rejections
from toolcell.approvals import ApprovalStore, Clock, SqliteApprovals, utc_now
from toolcell.cancellation import Cancellation, Withdrawn
from toolcell.cells.workspace import place_name
from toolcell.errors import StoreError, ToolcellError
from toolcell.events import EventKind, EventSink, no_events
from toolcell.executor import Executor
from toolcell.grants import RunOptions
from toolcell.journal import EventLost, Journal, shown_arguments
from toolcell.legible import OutputBudget
from toolcell.model import (
    Action,
    ApprovalRequest,
    ApprovalResponse,
    Budget,
    Spent,
    ToolCall,
    ToolResult,
)
from toolcell.outputs import OutputStore, no_outputs
from toolcell.policy import ToolPolicy, load_policy
from toolcell.questions import Questions
from toolcell.registry import ToolRegistry
from toolcell.runtime import ToolRuntime
from toolcell.sessions import SessionBounds, Sessions
from toolcell.steps import Steps
from toolcell.streaming import OutputStream
from toolcell.timing import Timing, real_time
from toolcell.waits import polling

T = TypeVar("T")

_NO_BUDGET = Budget()


class ToolController:
    """Takes proposed calls, returns results or questions.

    async with ToolController(registry, policy="default", workspace=".") as controller:
        outcome = await controller.handle(call)
    """

    def __init__(
        self,
        registry: ToolRegistry,
        policy: ToolPolicy | str | Path = "default",
        workspace: str | Path | None = None,
        *,
        approvals: ApprovalStore | None = None,
        events: EventSink | Iterable[EventSink] = no_events,
        run: str | None = None,
        run_grants: bool = True,
        clock: Clock = utc_now,
        protected: Iterable[str | Path] = (),
        spare_cells: int = 2,
        max_running: int | None = None,
        max_waiting: int = 10_000,
        output_budget: OutputBudget | int = 32 * 1024,
        budget: Budget = _NO_BUDGET,
        timing: Timing = real_time,
        executor: Executor | None = None,
        outputs: OutputStore | None = None,
        session_bounds: SessionBounds = SessionBounds(),  # noqa: B008  # frozen
    ) -> None:
        """Make a controller.

        `policy` is a policy, the name of a shipped one, or a file. `workspace` is the
        directory that calls may see, as far as the policy lends one. `approvals` keeps
        questions, by default in the state directory, where `toolcell approvals` answers
        them. `events` are one sink or several, such as an EventLog. `run` names this
        controller's run in both, and `run_grants` lets a yes cover the rest of it. `budget` is what
        its calls may use together, as far as the policy's leaves it. `executor`
        runs granted calls of this registry, in place of a `ToolRuntime`, whose options the other
        ones are. Raises PolicyError for a policy that cannot be used,
        WorkspaceError where it lends a workspace and there is none, and StoreError where a file
        of approvals, events or outputs lies in it; where the state directory does, no outputs are
        kept.
        """
        self.run = run or f"run-{secrets.token_hex(5)}"
        if executor is not None and executor.registry is not registry:
            raise ToolcellError("the executor prepares calls of another registry; give it this one")
        self._given = workspace
        self.runtime = executor or ToolRuntime(
            registry,
            workspace,
            protected=protected,
            spare_cells=spare_cells,
            max_running=max_running,
            max_waiting=max_waiting,
            output_budget=output_budget,
            timing=timing,
            outputs=self._outputs(outputs),
            run=self.run,
            session_bounds=session_bounds,
        )
        self.workspace = place_name(workspace)
        self._polls = itertools.count(1)
        self._approvals = approvals and self._kept_outside(approvals)
        self._clock = clock
        journal = Journal.to(events, clock, self.run)
        for sink in journal.sinks:
            self._kept_outside(sink)
        self._steps = Steps(self.runtime, journal, workspace, timing, budget)
        self._questions = Questions(
            self._steps,
            lambda: self.approvals,
            clock,
            run=self.run if run_grants else "",
            workspace=self.workspace,
        )
        self.policy = policy if isinstance(policy, ToolPolicy) else load_policy(policy)

    @property
    def spent(self) -> Spent:
        """What the calls of this run have used of its budget."""
        return self._steps.ledger.spent()

    @property
    def budget(self) -> Budget:
        """The budget in force: of the controller's and the policy's, the smaller of each bound."""
        return self._steps.budget

    @property
    def policy(self) -> ToolPolicy:
        """The policy that decides. A new one may be set at any time; it is checked like the first.

        Calls that were put to a person under another policy are decided again by this one.
        """
        return self._steps.policy

    @policy.setter
    def policy(self, policy: ToolPolicy) -> None:
        self._steps.take(policy)

    @property
    def approvals(self) -> ApprovalStore:
        """The store of questions; by default the one in the state directory."""
        if self._approvals is None:
            times = self.policy.approvals
            store = SqliteApprovals(None, times.lifetime, self._clock, grant_lifetime=times.grants)
            self._approvals = self._kept_outside(store)
        return self._approvals

    @property
    def sessions(self) -> Sessions:
        """The sessions of this controller: list, restart, end, fork.

        Raises ToolcellError where another executor than a `ToolRuntime` runs the calls.
        """
        if not isinstance(self.runtime, ToolRuntime):
            raise ToolcellError("this controller's executor has no sessions")
        return self.runtime.sessions

    @property
    def stopped(self) -> str:
        """Why this run takes no more calls; empty while it does."""
        return self._steps.stopped

    async def handle(
        self, call: ToolCall, options: RunOptions | None = None
    ) -> ToolResult | ApprovalRequest:
        """Take one call as far as it goes: to its result, or to a question for a person."""
        with self._steps.on_their_way.entered(call.call_id) as cancellation:
            return await self._taken(call, options, cancellation)

    def stream(
        self, call: ToolCall, options: RunOptions | None = None, *, redacted: bool = False
    ) -> OutputStream:
        """Take one call as `handle` does, with its output as an iterator of chunks while it runs.

        async for chunk in controller.stream(call): ...

        The chunks are as the tool wrote them, or `redacted` as the policy says. `outcome` of what
        this returns is then what `handle` returns. To leave the iterator early ends the call.
        """
        redactor = self._steps.journal.redactor if redacted else None

        async def take(
            options: RunOptions, cancellation: Cancellation
        ) -> ToolResult | ApprovalRequest:
            with self._steps.on_their_way.entered(call.call_id, cancellation):
                return await self._taken(call, options, cancellation)

        return OutputStream(take, options, redactor)

    async def resolve(
        self, response: ApprovalResponse, options: RunOptions | None = None
    ) -> ToolResult:
        """Take a person's answer.

        Raises UnknownApprovalError for a question never asked here, and StoreError where the
        answer cannot be kept.
        """
        approval = self.approvals.answer(response)
        with self._steps.on_their_way.entered(approval.request.call.call_id) as cancellation:
            return await self._questions.go_on(approval, options, cancellation)

    async def wait(self, request: ApprovalRequest, options: RunOptions | None = None) -> ToolResult:
        """Wait for an answer that is given elsewhere (`toolcell approvals`), and go on with it.

        Returns when the question has expired, too. Several may be waited for at once. Either wait
        for a question or `resolve` it: of the two, one runs the call, and the other is told that
        it was run. Raises as `resolve` does.
        """
        with self._steps.on_their_way.entered(request.call.call_id) as cancellation:
            return await self._questions.wait(request, options, cancellation)

    async def poll(
        self, result: ToolResult, options: RunOptions | None = None
    ) -> ToolResult | ApprovalRequest:
        """Ask how a call that waits goes on, by the tool that it named for this.

        That is a call of its own, decided by the policy like any other, under an id that begins
        with the first one's. What it answers is returned as the result of the first call, which
        an answer that is not waiting settles. Raises ToolcellError for a result that does not
        wait, or names no tool to ask.
        """
        outcome = await self.handle(polling(result, next(self._polls)), options)
        if isinstance(outcome, ApprovalRequest):
            return outcome
        first = {"call_id": result.call_id, "tool_name": result.tool_name}
        return outcome.model_copy(update=first)

    def cancel(self, call_id: str) -> bool:
        """End the calls of an id, wherever on their way they are; False if there is none.

        Their own `handle`, `resolve` or `wait` returns a result that is cancelled, with the output
        so far. A call that waits for a person's answer is ended by taking the question back;
        raises StoreError where that cannot be kept.
        """
        return self._steps.on_their_way.cancel(call_id) or self._questions.cancel(call_id)

    async def close(self) -> None:
        """Cancel the calls that run, and end every cell; nothing can be handled afterwards."""
        await self.runtime.close()

    async def __aenter__(self) -> "ToolController":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def _taken(
        self, call: ToolCall, options: RunOptions | None, cancellation: Cancellation
    ) -> ToolResult | ApprovalRequest:
        steps, origin = self._steps, self._steps.begin(call)
        try:
            steps.emit(EventKind.RECEIVED, origin, arguments=shown_arguments(call.arguments))
            if steps.stopped:
                return steps.reject(origin, rejections.stopped(steps.stopped))
            prepared = steps.prepare(origin)
            if isinstance(prepared, ToolResult):
                return steps.finish(origin, prepared)
            try:
                origin, decision = await steps.decide(origin, prepared, cancellation)
            except Withdrawn:
                return steps.reject(origin, rejections.withdrawn(cancellation))
            except EventLost:
                raise
            except BaseException:  # its task was cancelled meanwhile
                steps.abandon(origin)
                raise
            if decision.action is Action.DENY:
                return steps.reject(origin, rejections.denied(decision))
            if decision.action is Action.ASK:
                if error := steps.over_budget():  # nobody is asked for what cannot run
                    return steps.reject(origin, error)
                return await self._questions.ask(origin, prepared, decision, options, cancellation)
            granted = {"by": "policy", "rule_id": decision.rule_id}
            return await steps.execute(origin, prepared, decision, options, cancellation, **granted)
        except (EventLost, StoreError) as error:
            return steps.unrecorded(origin, error)

    def _outputs(self, given: OutputStore | None) -> OutputStore:
        if given is not None:
            return self._kept_outside(given)
        with suppress(StoreError):
            return self._kept_outside(OutputStore())
        return no_outputs

    def _kept_outside(self, keeper: T) -> T:
        """Refuse a file of events, approvals or outputs where a tool could change it."""
        path = getattr(keeper, "path", None)
        if isinstance(path, Path) and self._given is not None:
            place, spelled = Path(self._given), Path(os.path.normpath(path))
            if path.resolve().is_relative_to(place.resolve()) or spelled.is_relative_to(
                place.absolute()
            ):
                raise StoreError(
                    f"{path} lies in the workspace, where a tool could change it; name another "
                    "place for it, or another workspace"
                )
        return keeper
