"""The controller: walks a call down its path, and is the only writer of events.

    call -> prepare -> decide -> (ask a person) -> grant -> execute -> result

There are exactly two ways into execution: an allow, or one approval that was spent, and
whose call was prepared and decided again after it was given. A grant for the rest of a run is
an approval that was given ahead: it turns an ask into an allow, and nothing else.
"""

import asyncio
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

from toolcell import rejections
from toolcell.approvals import ApprovalStore, Clock, SqliteApprovals, answered, utc_now
from toolcell.breaker import RefusalCount, told_again
from toolcell.errors import StoreError, WorkspaceError
from toolcell.events import EventKind, EventSink, no_events
from toolcell.grants import Cancellation, Grant, RunOptions
from toolcell.journal import EventLost, Journal, shown_arguments
from toolcell.model import (
    Action,
    Approval,
    ApprovalRequest,
    ApprovalResponse,
    ApprovalState,
    ErrorInfo,
    PolicyDecision,
    PreparedToolCall,
    RunGrant,
    ToolCall,
    ToolResult,
)
from toolcell.normalizer import Origin, refused
from toolcell.policy import Decider, ToolPolicy, check_policy, load_policy
from toolcell.redaction import Redactor
from toolcell.registry import ToolRegistry
from toolcell.runtime import ToolRuntime
from toolcell.visible import visible_line


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
        clock: Clock = utc_now,
        protected: Iterable[str | Path] = (),
        spare_cells: int = 2,
        max_running: int | None = None,
        max_waiting: int = 10_000,
        output_budget: int = 32 * 1024,
    ) -> None:
        """Make a controller.

        `policy` is a policy, the name of a shipped one, or a file. `workspace` is the
        directory that calls may see, as far as the policy lends one. `approvals` keeps
        questions, by default in the state directory, where `toolcell approvals` answers
        them. `events` are one sink or several, such as an EventLog. `run` names this
        controller's run in both. The other options are those of `ToolRuntime`. Raises
        PolicyError for a policy that cannot be used, and WorkspaceError where it lends a
        workspace and there is none.
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
        self.run = run or f"run-{secrets.token_hex(5)}"
        # Spelled, because a path may hold bytes that no text of ours can.
        self.workspace = visible_line(str(Path(workspace).resolve())) if workspace else ""
        self._given = workspace
        self._approvals = approvals
        self._clock = clock
        self._journal = Journal.to(events, clock, self.run)
        self._running: dict[str, list[Cancellation]] = {}
        self._refusals = RefusalCount()
        self._stopped = ""
        self.policy = policy if isinstance(policy, ToolPolicy) else load_policy(policy)

    @property
    def policy(self) -> ToolPolicy:
        """The policy that decides. A new one may be set at any time; it is checked like the first.

        Calls that were put to a person under another policy are decided again by this one.
        """
        return self._policy

    @policy.setter
    def policy(self, policy: ToolPolicy) -> None:
        check_policy(policy, self.runtime.registry, ToolRegistry.builtin())
        self.runtime.check(policy.cell)
        redactor = Redactor.from_environment(
            policy.redact.env, os.environ, shapes=policy.redact.shapes
        )
        for each in (policy, *policy.layers):
            if each.source:
                self.runtime.protect(each.source)
        self._decider = Decider(policy, self._given)
        self._policy = policy
        self._version = policy.version
        self._journal.redactor = redactor
        self.runtime.redactor = redactor

    @property
    def approvals(self) -> ApprovalStore:
        """The store of questions; by default the one in the state directory."""
        if self._approvals is None:
            times = self._policy.approvals
            self._approvals = SqliteApprovals(
                None, times.lifetime, self._clock, grant_lifetime=times.grants
            )
        return self._approvals

    @property
    def stopped(self) -> str:
        """Why this run takes no more calls; empty while it does."""
        return self._stopped

    async def handle(
        self, call: ToolCall, options: RunOptions | None = None
    ) -> ToolResult | ApprovalRequest:
        """Take one call as far as it goes: to its result, or to a question for a person."""
        origin = Origin(
            call,
            policy_version=self._version,
            key=secrets.token_hex(8),
            redactor=self._journal.redactor,
        )
        try:
            self._emit(EventKind.RECEIVED, origin, arguments=shown_arguments(call.arguments))
            if self._stopped:
                return self._finish(origin, refused(origin, rejections.stopped(self._stopped)))
            prepared = self.runtime.prepare(call, origin)
            if isinstance(prepared, ToolResult):
                return self._finish(origin, prepared)
            origin, decision = await self._decide(origin, prepared)
            if decision.action is Action.DENY:
                return self._finish(origin, refused(origin, rejections.denied(decision)))
            if decision.action is Action.ASK:
                return await self._ask(origin, prepared, decision, options)
            self._emit(EventKind.GRANTED, origin, by="policy", rule_id=decision.rule_id)
            return await self._execute(origin, prepared, decision, options)
        except (EventLost, StoreError) as error:
            return refused(origin, rejections.unrecorded(error))

    async def resolve(
        self, response: ApprovalResponse, options: RunOptions | None = None
    ) -> ToolResult:
        """Take a person's answer; raises UnknownApprovalError for a question never asked here."""
        approval = self.approvals.answer(response)
        if not response.approved and approval.state is ApprovalState.APPROVED:
            # Somebody said yes before, and nothing has run on it: a no is never too late.
            self.approvals.cancel(response.approval_id)
            approval = self.approvals.get(response.approval_id)
        return await self._go_on(approval, options)

    async def wait(self, request: ApprovalRequest, options: RunOptions | None = None) -> ToolResult:
        """Wait for an answer that is given elsewhere (`toolcell approvals`), and go on with it.

        Returns when the question has expired, too. Several may be waited for at once.
        """
        return await self._go_on(await answered(self.approvals, request.approval_id), options)

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

    async def _decide(
        self, origin: Origin, prepared: PreparedToolCall
    ) -> tuple[Origin, PolicyDecision]:
        self._emit(EventKind.PREPARED, origin, prepared, digest=prepared.digest)
        decider, version = self._decider, self._version
        await decider.read_ahead(prepared)
        decision = decider.decide(prepared)
        origin = replace(
            origin,
            call=prepared.call,
            digest=prepared.digest,
            rule_id=decision.rule_id,
            decision=decision.action,
            policy_version=version,
        )
        self._emit(
            EventKind.DECIDED,
            origin,
            action=decision.action,
            rule_id=decision.rule_id,
            reason=decision.reason,
            policy=version,
        )
        return origin, decision

    async def _ask(
        self,
        origin: Origin,
        prepared: PreparedToolCall,
        decision: PolicyDecision,
        options: RunOptions | None,
    ) -> ToolResult | ApprovalRequest:
        """Ask, unless this was answered ahead: by a grant for the run, or an approval of it."""
        if grant := self._standing(prepared, decision):
            self._emit(EventKind.GRANTED, origin, by="run grant", grant_id=grant.grant_id)
            return await self._execute(origin, prepared, decision, options)
        version = origin.policy_version or ""
        if given := self.approvals.approved(prepared.digest, version, self.workspace):
            return await self._spend(given, origin, prepared, decision, options)
        request = self.approvals.create(
            prepared,
            decision,
            version,
            run=self.run,
            key=origin.key,
            workspace=self.workspace,
            prefix=self._decider.prefix(prepared),
        )
        try:
            self._emit(
                EventKind.ASKED,
                origin,
                approval_id=request.approval_id,
                expires_at=request.expires_at.isoformat(),
            )
        except EventLost:
            self.approvals.cancel(request.approval_id)  # nobody will be told of it
            raise
        return request

    def _standing(self, prepared: PreparedToolCall, decision: PolicyDecision) -> RunGrant | None:
        """Return a grant of this run that covers a call that the policy asks about."""
        now = self._clock()
        for grant in self.approvals.grants(self.run):
            fits = (
                grant.stands(now)
                and grant.tool_name == prepared.definition.name
                and grant.policy_version == self._version
                and grant.workspace == self.workspace
            )
            if fits and (
                grant.digest == prepared.digest
                or (grant.prefix and self._decider.covers(grant.prefix, prepared))
            ):
                return grant
        return None

    async def _go_on(self, approval: Approval, options: RunOptions | None) -> ToolResult:
        """Take an answered question to its result: prepare and decide again, then spend, then run.

        Whatever changed since it was asked wins.
        """
        request = approval.request
        origin = Origin(
            request.call,
            policy_version=self._version,
            approval_id=request.approval_id,
            rule_id=request.rule_id,
            key=request.key,
            redactor=self._journal.redactor,
        )
        try:
            self._emit(
                EventKind.ANSWERED,
                origin,
                approval_id=request.approval_id,
                approved=approval.state is not ApprovalState.DENIED,
                by=approval.by,
                note=approval.note,
                state=approval.state,
            )
            if approval.state is not ApprovalState.APPROVED:
                return self._end(origin, approval.request, rejections.unusable(approval))
            prepared = self.runtime.prepare(request.call, origin)
            if isinstance(prepared, ToolResult):
                self.approvals.cancel(request.approval_id)
                return self._finish_asked(origin, request, prepared)
            origin, decision = await self._decide(origin, prepared)
            if error := self._changed(request, prepared, decision):
                self.approvals.cancel(request.approval_id)
                return self._end(origin, request, error)
            return await self._spend(request, origin, prepared, decision, options)
        except (EventLost, StoreError) as error:
            return refused(origin, rejections.unrecorded(error))

    def _changed(
        self, request: ApprovalRequest, prepared: PreparedToolCall, decision: PolicyDecision
    ) -> ErrorInfo | None:
        if decision.action is Action.DENY:
            return rejections.denied(decision)
        if prepared.digest != request.digest:
            return rejections.mismatch("the tool changed")
        if request.workspace != self.workspace:
            return rejections.mismatch(
                f"the workspace, then {request.workspace or 'none'}, changed"
            )
        if decision.action is Action.ASK and request.policy_version != self._version:
            return rejections.mismatch("the policy changed")
        return None

    async def _spend(
        self,
        request: ApprovalRequest,
        origin: Origin,
        prepared: PreparedToolCall,
        decision: PolicyDecision,
        options: RunOptions | None,
    ) -> ToolResult:
        try:
            self.runtime.check(decision.cell)
        except WorkspaceError as error:
            return self._finish(origin, refused(origin, rejections.no_workspace(error)))
        spending = self.approvals.spend(request.approval_id)
        if not spending.won:
            return refused(origin, rejections.unusable(spending.approval))
        origin = replace(origin, approval_id=request.approval_id)
        settled = "cancelled"
        try:
            self._emit(EventKind.GRANTED, origin, by="approval", approval_id=request.approval_id)
            result = await self._execute(origin, prepared, decision, options)
            settled = result.status
        finally:
            lost = self._settle(request.approval_id, settled)
        return _with_note(result, lost) if lost else result

    def _settle(self, approval_id: str, outcome: str) -> str:
        """Note how a spent approval ended; where that cannot be kept, the result says so."""
        try:
            self.approvals.settle(approval_id, outcome)
        except StoreError as error:
            return f"the outcome of approval {approval_id} could not be kept: {error}"
        return ""

    async def _execute(
        self,
        origin: Origin,
        prepared: PreparedToolCall,
        decision: PolicyDecision,
        options: RunOptions | None,
    ) -> ToolResult:
        grant = Grant(prepared.digest, origin, decision.cell, decision.limits)
        lost: list[str] = []

        def observe(kind: EventKind, /, **data: Any) -> None:
            try:
                self._emit(kind, origin, **data)
            except EventLost as error:
                if kind is EventKind.STARTED:
                    raise
                lost.append(f"an event of this call could not be recorded: {error}")

        try:
            with self._cancellable(prepared.call.call_id) as cancellation:
                result = await self.runtime.execute(prepared, grant, options, cancellation, observe)
        except EventLost:
            raise
        except BaseException:
            # It was cancelled, or a tap of the host's raised: the call has ended all the same.
            with suppress(EventLost):
                self._emit(EventKind.FINISHED, origin, status="cancelled", category="cancelled")
            raise
        for note in lost:
            result = _with_note(result, note)
        return self._finish(origin, result)

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

    def _end(self, origin: Origin, request: ApprovalRequest, error: ErrorInfo) -> ToolResult:
        return self._finish_asked(origin, request, refused(origin, error))

    def _finish_asked(
        self, origin: Origin, request: ApprovalRequest, result: ToolResult
    ) -> ToolResult:
        """End the call of a question that leads to no run; of all who hear of it, one does."""
        if self.approvals.conclude(request.approval_id, result.status):
            return self._finish(origin, result)
        return result

    def _finish(self, origin: Origin, result: ToolResult) -> ToolResult:
        """Write the terminal event; a call that ran keeps its result even if that fails."""
        result = self._counted(origin, result)
        data = {
            "status": result.status,
            "category": result.error.category if result.error else None,
            "message": result.error.message if result.error else "",
            "return_code": result.return_code,
            "signal": result.signal,
            "latency_ms": result.latency_ms,
            "attempts": result.metadata.attempts,
            "output_bytes": len(result.output.encode(errors="replace")),
            "enforced": sorted(result.enforcement.enforced),
        }
        try:
            self._emit(EventKind.FINISHED, origin, result, **data)
        except EventLost as error:
            if result.source == "controller":
                raise
            return _with_note(result, f"the end of this call could not be recorded: {error}")
        return result

    def _counted(self, origin: Origin, result: ToolResult) -> ToolResult:
        """Count refusals of the same call: past some the model is told, past more the run ends."""
        breaker = self._policy.breaker
        count = self._refusals.add(origin.call, result)
        if breaker.end and count >= breaker.end and not self._stopped:
            self._stopped = f"{origin.call.name} was refused {count} times with the same arguments"
            self._emit(EventKind.STOPPED, origin, reason=self._stopped)
        return told_again(result, count) if breaker.warn and count >= breaker.warn else result

    def _emit(
        self,
        kind: EventKind,
        origin: Origin,
        about: PreparedToolCall | ToolResult | None = None,
        **data: Any,
    ) -> None:
        self._journal.write(kind, origin.key, origin.call, about, **data)


def _with_note(result: ToolResult, note: str) -> ToolResult:
    before = result.metadata.event_lost
    metadata = result.metadata.model_copy(
        update={"event_lost": f"{before}; {note}" if before else note}
    )
    return result.model_copy(update={"metadata": metadata})
