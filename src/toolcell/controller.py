"""The controller: walks a call down its path, and is the only writer of events.

    call -> prepare -> decide -> (ask a person) -> grant -> execute -> result

There are exactly two ways into execution: an allow, or one approval that was spent, and
whose call was prepared and decided again after it was given.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from toolcell.approvals import ApprovalStore, Clock, PendingApprovals, utc_now
from toolcell.events import Event, EventKind, EventSink, no_events
from toolcell.grants import Cancellation, Grant, RunOptions
from toolcell.model import (
    Action,
    ApprovalRequest,
    ApprovalResponse,
    Category,
    ErrorInfo,
    PolicyDecision,
    PreparedToolCall,
    ToolCall,
    ToolResult,
)
from toolcell.normalizer import Origin, refused
from toolcell.policy import ToolPolicy, load_policy
from toolcell.registry import ToolRegistry
from toolcell.runtime import ToolRuntime


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
        events: EventSink = no_events,
        clock: Clock = utc_now,
        protected: Iterable[str | Path] = (),
        spare_cells: int = 2,
        max_running: int | None = None,
        max_waiting: int = 10_000,
        output_budget: int = 32 * 1024,
    ) -> None:
        """Make a controller.

        `policy` is a policy, the name of a shipped one, or a file. `workspace` is the
        directory that calls may see, as far as the policy lends one. The other options are
        those of `ToolRuntime`. Raises PolicyError for a policy that cannot be used, and
        WorkspaceError where it lends a workspace and there is none.
        """
        self.runtime = ToolRuntime(
            registry,
            workspace,
            protected=protected,
            spare_cells=spare_cells,
            max_running=max_running,
            max_waiting=max_waiting,
            output_budget=output_budget,
        )
        self.approvals = approvals if approvals is not None else PendingApprovals(clock=clock)
        self._events = events
        self._clock = clock
        self._running: dict[str, list[Cancellation]] = {}
        self.policy = policy if isinstance(policy, ToolPolicy) else load_policy(policy)

    @property
    def policy(self) -> ToolPolicy:
        """The policy that decides. A new one may be set at any time; it is checked like the first.

        Calls that were put to a person under another policy are decided again by this one.
        """
        return self._policy

    @policy.setter
    def policy(self, policy: ToolPolicy) -> None:
        policy.check(self.runtime.registry.list())
        self.runtime.check(policy.cell)
        if policy.source:
            self.runtime.protect(policy.source)
        self._policy = policy
        self._version = policy.version

    async def handle(
        self, call: ToolCall, options: RunOptions | None = None
    ) -> ToolResult | ApprovalRequest:
        """Take one call as far as it goes: to its result, or to a question for a person."""
        origin = Origin(call, policy_version=self._version)
        try:
            self._emit(EventKind.RECEIVED, origin)
            prepared = self.runtime.prepare(call)
            if isinstance(prepared, ToolResult):
                return self._finish(prepared)
            origin, decision = self._decide(origin, prepared)
            if decision.action is Action.DENY:
                return self._finish(refused(origin, _denied(decision)))
            if decision.action is Action.ASK:
                return self._ask(origin, prepared, decision)
            return await self._execute(origin, prepared, options)
        except EventLost as error:
            return refused(origin, _unrecorded(error))

    async def resolve(
        self, response: ApprovalResponse, options: RunOptions | None = None
    ) -> ToolResult:
        """Take a person's answer; raises UnknownApprovalError for a question never asked here."""
        request = self.approvals.get(response.approval_id)
        origin = Origin(
            request.call,
            rule_id=self.policy.decide(request.call.name).rule_id,
            policy_version=self._version,
            approval_id=request.approval_id,
        )
        try:
            spent = self.approvals.spend(response.approval_id)
            self._emit(
                EventKind.ANSWERED,
                origin,
                approval_id=request.approval_id,
                approved=response.approved,
                by=response.by,
                state=spent,
            )
            if spent == "already_spent":
                # Its call has its one terminal event already, or runs; this answer comes late.
                return refused(origin, _SPENT)
            if spent == "expired":
                return self._finish(refused(origin, _EXPIRED))
            if not response.approved:
                return self._finish(refused(origin, _not_approved(response)))
            return await self._execute_approved(origin, request, options)
        except EventLost as error:
            return refused(origin, _unrecorded(error))

    def cancel(self, call_id: str) -> bool:
        """End the running calls of an id; their own `handle` returns. False if none runs."""
        running = self._running.get(call_id, [])
        for cancellation in running:
            cancellation.request()
        return bool(running)

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

    def _decide(self, origin: Origin, prepared: PreparedToolCall) -> tuple[Origin, PolicyDecision]:
        self._emit(EventKind.PREPARED, origin, digest=prepared.digest)
        decision = self.policy.decide(prepared.definition.name)
        origin = Origin(
            prepared.call,
            origin.began,
            digest=prepared.digest,
            rule_id=decision.rule_id,
            policy_version=self._version,
            approval_id=origin.approval_id,
        )
        self._emit(
            EventKind.DECIDED,
            origin,
            action=decision.action,
            rule_id=decision.rule_id,
            reason=decision.reason,
        )
        return origin, decision

    async def _execute_approved(
        self, origin: Origin, request: ApprovalRequest, options: RunOptions | None
    ) -> ToolResult:
        """Prepare and decide again what was approved: whatever changed meanwhile wins."""
        prepared = self.runtime.prepare(request.call)
        if isinstance(prepared, ToolResult):
            return self._finish(prepared)
        origin, decision = self._decide(origin, prepared)
        if decision.action is Action.DENY:
            return self._finish(refused(origin, _denied(decision)))
        if prepared.digest != request.digest:
            return self._finish(refused(origin, _mismatch("the tool changed")))
        if decision.action is Action.ASK and request.policy_version != self._version:
            return self._finish(refused(origin, _mismatch("the policy changed")))
        return await self._execute(origin, prepared, options)

    async def _execute(
        self, origin: Origin, prepared: PreparedToolCall, options: RunOptions | None
    ) -> ToolResult:
        self._emit(EventKind.GRANTED, origin)
        grant = Grant(prepared.digest, origin, self.policy.cell, self.policy.limits)
        try:
            with self._cancellable(prepared.call.call_id) as cancellation:
                result = await self.runtime.execute(prepared, grant, options, cancellation)
        except BaseException:
            # It was cancelled, or a tap of the host's raised: the call has ended all the same.
            with suppress(EventLost):
                self._emit(EventKind.FINISHED, origin, status="cancelled", category="cancelled")
            raise
        return self._finish(result)

    def _ask(
        self, origin: Origin, prepared: PreparedToolCall, decision: PolicyDecision
    ) -> ApprovalRequest:
        request = self.approvals.create(prepared, decision, self._version)
        try:
            self._emit(EventKind.ASKED, origin, approval_id=request.approval_id)
        except EventLost:
            self.approvals.spend(request.approval_id)  # nobody will be told of it
            raise
        return request

    @contextmanager
    def _cancellable(self, call_id: str) -> Iterator[Cancellation]:
        cancellation = Cancellation()
        # Providers' ids are theirs to repeat.
        running = self._running.setdefault(call_id, [])
        running.append(cancellation)
        try:
            yield cancellation
        finally:
            running.remove(cancellation)
            if not running:
                del self._running[call_id]

    def _finish(self, result: ToolResult) -> ToolResult:
        """Write the terminal event; a call that ran keeps its result even if that fails."""
        data = {
            "status": result.status,
            "category": result.error.category if result.error else None,
            "return_code": result.return_code,
            "latency_ms": result.latency_ms,
            "enforced": sorted(result.enforcement.enforced),
        }
        try:
            self._write(EventKind.FINISHED, result.call_id, result.tool_name, data)
        except OSError as error:
            if result.source == "controller":
                raise EventLost(str(error)) from error
            note = f"the end of this call could not be recorded: {error}"
            metadata = result.metadata.model_copy(update={"event_lost": note})
            return result.model_copy(update={"metadata": metadata})
        return result

    def _emit(self, kind: EventKind, origin: Origin, **data: Any) -> None:
        try:
            self._write(kind, origin.call.call_id, origin.call.name, data)
        except OSError as error:
            raise EventLost(str(error)) from error

    def _write(self, kind: EventKind, call_id: str, tool_name: str, data: dict[str, Any]) -> None:
        event = Event(at=self._clock(), kind=kind, call_id=call_id, tool_name=tool_name, data=data)
        self._events(event)


class EventLost(Exception):  # noqa: N818  # caught here, where it becomes a result
    """An event could not be written before the call ran, so it does not run."""


def _denied(decision: PolicyDecision) -> ErrorInfo:
    return ErrorInfo(
        category=Category.POLICY_DENIED,
        message=f"the policy denies this call: {decision.reason}",
        hint="use another tool, or tell the user what you would need",
    )


def _not_approved(response: ApprovalResponse) -> ErrorInfo:
    note = f": {response.note}" if response.note else ""
    return ErrorInfo(
        category=Category.APPROVAL_DENIED,
        message=f"{response.by} did not approve this call{note}",
        hint="do not repeat it unchanged",
    )


def _mismatch(what: str) -> ErrorInfo:
    return ErrorInfo(
        category=Category.APPROVAL_MISMATCH,
        message=f"{what} after this call was put to a person, so the approval does not cover it",
        hint="call again to ask again",
    )


def _unrecorded(error: Exception) -> ErrorInfo:
    return ErrorInfo(
        category=Category.CELL_SETUP,
        message=f"the call was not run, because its event could not be recorded: {error}",
        hint="free space or correct the path of the event log",
    )


_SPENT = ErrorInfo(
    category=Category.APPROVAL_SPENT,
    message="this approval has been answered already; an approval is good for one answer",
    hint="call again to ask again",
)
_EXPIRED = ErrorInfo(
    category=Category.APPROVAL_EXPIRED,
    message="nobody approved this call in time",
    hint="call again to ask again",
)
