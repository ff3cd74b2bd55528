"""The steps that calls take, one function each: decide, execute, finish; each writes its events.

`controller` and `questions` say in which order. What all calls of a run share is here: the
policy in force, compiled, and the calls that run.
"""

import os
import secrets
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from toolcell import rejections
from toolcell.bounds import Bounds
from toolcell.breaker import RefusalCount, told_again
from toolcell.cancellation import Cancellation, OnTheirWay
from toolcell.events import EventKind
from toolcell.executor import Executor
from toolcell.grants import Grant, RunOptions
from toolcell.journal import EventLost, Journal
from toolcell.ledger import Account, Ledger
from toolcell.model import (
    STATUS_OF,
    Action,
    ApprovalRequest,
    Budget,
    Category,
    ErrorInfo,
    PolicyDecision,
    PreparedToolCall,
    ToolCall,
    ToolResult,
)
from toolcell.normalizer import Origin, refused
from toolcell.policy import Decider, ToolPolicy, check_policy
from toolcell.redaction import Redactor
from toolcell.registry import ToolRegistry
from toolcell.timing import Timing
from toolcell.waits import Waits


class Steps:
    """What can be done to a call, for one runtime, one policy at a time and one journal."""

    def __init__(
        self,
        runtime: Executor,
        journal: Journal,
        workspace: str | Path | None,
        timing: Timing,
        budget: Budget,
    ) -> None:
        """Share these; a policy has to be taken before any call, and only narrows the budget."""
        self.runtime = runtime
        self.journal = journal
        self.stopped = ""
        self._workspace = workspace
        self.timing = timing
        self.ledger = Ledger(timing)
        self._budget = budget
        self._waits = Waits()
        self._refusals = RefusalCount()
        self.on_their_way = OnTheirWay()

    def take(self, policy: ToolPolicy) -> None:
        """Decide by a policy from now on; raises PolicyError or WorkspaceError with no change."""
        check_policy(policy, self.runtime.registry, ToolRegistry.builtin())
        self.runtime.check(policy.cell)
        redact = policy.redact
        redactor = Redactor.from_environment(redact.env, os.environ, shapes=redact.shapes)
        decider = Decider(policy, self._workspace)
        decider.compile(self.runtime.registry)
        self.decider = decider
        self.policy = policy
        self.version = policy.version
        self.budget = self._budget.within(policy.budget)
        self.journal.redactor = redactor
        self.runtime.redactor = redactor
        for each in (policy, *policy.layers):
            for source in each.sources:
                self.runtime.protect(source)

    def begin(self, call: ToolCall) -> Origin:
        """Open the account of a new call."""
        return Origin(
            call,
            policy_version=self.version,
            key=secrets.token_hex(8),
            redactor=self.journal.redactor,
        )

    def resume(self, request: ApprovalRequest) -> Origin:
        """Go on with the account of a call that was put to a person, here or elsewhere."""
        return Origin(
            request.call,
            policy_version=self.version,
            approval_id=request.approval_id,
            digest=request.digest,
            rule_id=request.rule_id,
            decision=Action.ASK,
            key=request.key,
            redactor=self.journal.redactor,
        )

    def prepare(self, origin: Origin) -> PreparedToolCall | ToolResult:
        """Resolve the tool and validate the arguments; a result says why that failed."""
        prepared = self.runtime.prepare(origin.call, origin)
        if isinstance(prepared, PreparedToolCall):
            self.emit(EventKind.PREPARED, origin, prepared, digest=prepared.digest)
        return prepared

    async def decide(
        self, origin: Origin, prepared: PreparedToolCall, cancellation: Cancellation
    ) -> tuple[Origin, PolicyDecision]:
        """Decide by the policy in force, also where it was replaced while a line was read.

        Raises Withdrawn where the call was cancelled meanwhile.
        """
        read, decider = None, None
        while decider is not self.decider:
            decider = self.decider
            with cancellation.interrupts():
                read = await decider.read_ahead(prepared)
        decision, version = decider.decide(prepared, read), self.version
        origin = replace(
            origin,
            call=prepared.call,
            digest=prepared.digest,
            rule_id=decision.rule_id,
            decision=decision.action,
            policy_version=version,
        )
        self.emit(
            EventKind.DECIDED,
            origin,
            action=decision.action,
            rule_id=decision.rule_id,
            reason=decision.reason,
            policy=version,
        )
        return origin, decision

    async def execute(
        self,
        origin: Origin,
        prepared: PreparedToolCall,
        decision: PolicyDecision,
        options: RunOptions | None,
        cancellation: Cancellation,
        **granted: Any,
    ) -> ToolResult:
        """Run a call that was granted, as `granted` says, and finish it."""
        if error := self.over_budget():
            return self.reject(origin, error)
        with self.ledger.account() as account:
            self.emit(EventKind.GRANTED, origin, **granted)
            bounds = self.ledger.narrowed(Bounds(decision.limits), self.budget)
            grant = Grant(prepared.digest, origin, decision.cell, bounds.limits, bounds.whose)
            result = await self._executed(prepared, grant, options, cancellation, account)
        return self._settling(origin, prepared, self.finish(origin, result))

    async def _executed(
        self,
        prepared: PreparedToolCall,
        grant: Grant,
        options: RunOptions | None,
        cancellation: Cancellation,
        account: Account,
    ) -> ToolResult:
        origin, lost = grant.origin, list[str]()

        def observe(kind: EventKind, /, **data: Any) -> None:
            try:
                self.emit(kind, origin, **data)
            except EventLost as error:
                lost.append(f"an event of this call could not be recorded: {error}")
                if kind is EventKind.STARTED:
                    raise
            account.observe(kind, data)

        try:
            result = await self.runtime.execute(prepared, grant, options, cancellation, observe)
        except EventLost:
            raise
        except BaseException:
            # It was cancelled, or a tap of the host's raised: the call has ended all the same.
            self.abandon(origin)
            raise
        for note in lost:
            result = with_note(result, note)
        return result

    def over_budget(self) -> ErrorInfo | None:
        """Why no further call of this run may run, if none may."""
        return self.ledger.exhausted(self.budget)

    def reject(self, origin: Origin, error: ErrorInfo) -> ToolResult:
        """Finish a call that does not run."""
        return self.finish(origin, refused(origin, error))

    def unrecorded(self, origin: Origin, error: Exception) -> ToolResult:
        """Finish a call that does not run because something of it could not be kept."""
        result = refused(origin, rejections.unrecorded(error))
        with suppress(EventLost):  # what failed may well fail again
            return self.finish(origin, result)
        return result

    def abandon(self, origin: Origin, error: ErrorInfo | None = None) -> None:
        """Write the end of a call that has no result: its task ends, or another took its place."""
        category = error.category if error else Category.CANCELLED
        message = error.message if error else ""
        with suppress(EventLost):
            self.emit(
                EventKind.FINISHED,
                origin,
                status=STATUS_OF[category],
                category=category,
                message=message,
            )

    def finish(self, origin: Origin, result: ToolResult) -> ToolResult:
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
            "handles": result.handles,
            "output_bytes": len(result.output.encode(errors="replace")),
            "enforced": sorted(result.enforcement.enforced),
        }
        try:
            self.emit(EventKind.FINISHED, origin, result, **data)
        except EventLost as error:
            if result.source == "controller":
                raise
            return with_note(result, f"the end of this call could not be recorded: {error}")
        return result

    def emit(
        self,
        kind: EventKind,
        origin: Origin,
        about: PreparedToolCall | ToolResult | None = None,
        **data: Any,
    ) -> None:
        """Write one event; raises EventLost."""
        self.journal.write(kind, origin.key, origin.call, about, **data)

    def _settling(
        self, origin: Origin, prepared: PreparedToolCall, result: ToolResult
    ) -> ToolResult:
        """Write the end of the calls that waited for what this one brought."""
        for waited in self._waits.note(origin, prepared, result):
            try:
                self.emit(
                    EventKind.SETTLED,
                    waited,
                    by=result.call_id,
                    status=result.status,
                    category=result.error.category if result.error else None,
                    message=result.error.message if result.error else "",
                    output_bytes=len(result.output.encode(errors="replace")),
                )
            except EventLost as error:
                note = f"that {waited.call.call_id} is settled could not be recorded: {error}"
                result = with_note(result, note)
        return result

    def _counted(self, origin: Origin, result: ToolResult) -> ToolResult:
        """Count refusals of the same call: past some the model is told, past more the run ends."""
        breaker = self.policy.breaker
        count = self._refusals.add(origin.call, result)
        if breaker.end and count >= breaker.end and not self.stopped:
            self.stopped = f"{origin.call.name} was refused {count} times with the same arguments"
            self.emit(EventKind.STOPPED, origin, reason=self.stopped)
        return told_again(result, count) if breaker.warn and count >= breaker.warn else result


def with_note(result: ToolResult, note: str) -> ToolResult:
    """Return a result that says what of it could not be kept."""
    before = result.metadata.event_lost
    metadata = result.metadata.model_copy(
        update={"event_lost": f"{before}; {note}" if before else note}
    )
    return result.model_copy(update={"metadata": metadata})
