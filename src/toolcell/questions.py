"""Questions: what becomes of a call that the policy asks about, from the question to the run.

    ask -> (a person answers, here or elsewhere) -> prepared and decided again -> spent -> run

Whatever changed since it was asked wins. Of all who hear of one answer, one runs the call, and
one writes the end of a call that does not run.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace

from toolcell import rejections
from toolcell.approvals import ApprovalStore, Clock, answered
from toolcell.cancellation import Cancellation, Withdrawn
from toolcell.errors import StoreError, ToolcellError, WorkspaceError
from toolcell.events import EventKind
from toolcell.grants import RunOptions
from toolcell.journal import EventLost
from toolcell.model import (
    Action,
    Approval,
    ApprovalRequest,
    ApprovalState,
    ErrorInfo,
    PolicyDecision,
    PreparedToolCall,
    RunGrant,
    Status,
    ToolResult,
)
from toolcell.normalizer import Origin, refused
from toolcell.steps import Steps, with_note

_APPROVED = (
    *(ApprovalState.APPROVED, ApprovalState.SPENT, ApprovalState.DONE, ApprovalState.UNKNOWN),
)


_REMEMBERED = 1000


class Questions:
    """The questions of one run, about calls in one workspace."""

    def __init__(
        self,
        steps: Steps,
        store: Callable[[], ApprovalStore],
        clock: Clock,
        *,
        run: str,
        workspace: str,
    ) -> None:
        """Share the steps; `store` is asked for its store with the first question."""
        self._steps = steps
        self._store = store
        self._clock = clock
        self._run = run
        self._workspace = workspace
        self._asked: OrderedDict[str, ApprovalRequest] = OrderedDict()

    async def ask(
        self,
        origin: Origin,
        prepared: PreparedToolCall,
        decision: PolicyDecision,
        options: RunOptions | None,
        cancellation: Cancellation,
    ) -> ToolResult | ApprovalRequest:
        """Ask, unless this was answered ahead: by a grant for the run, or when it was asked before.

        An answer that was given while nobody waited for it is that of the same call made again.
        """
        if grant := self._standing(prepared):
            granted = {"by": "run grant", "grant_id": grant.grant_id}
            return await self._steps.execute(
                origin, prepared, decision, options, cancellation, **granted
            )
        store, version = self._store(), origin.policy_version or ""
        if given := store.approved(prepared.digest, version, self._workspace):
            if error := self._unfit(decision):
                return self._steps.reject(origin, error)
            result = await self._spend(given, origin, prepared, decision, options, cancellation)
            if result is not None:  # else it was used, or has expired, a moment before
                return result
        if (told := store.refusal(prepared.digest, version, self._workspace)) is not None:
            error = rejections.unusable(told)
            if store.conclude(told.request.approval_id, Status.REJECTED):
                self._steps.abandon(self._steps.resume(told.request), error)
                return self._steps.reject(origin, error)
        request = store.create(
            prepared,
            decision,
            version,
            run=self._run,
            key=origin.key,
            workspace=self._workspace,
            prefix=self._steps.decider.prefix(prepared),
        )
        try:
            self._steps.emit(
                EventKind.ASKED,
                origin,
                approval_id=request.approval_id,
                expires_at=request.expires_at.isoformat(),
            )
        except EventLost:
            store.cancel(request.approval_id)  # nobody will be told of it
            raise
        self._remember(request)
        return request

    def cancel(self, call_id: str) -> bool:
        """End the calls of an id that wait for a person, nobody else being told; False if none."""
        found = [each for each in self._asked.values() if each.call.call_id == call_id]
        ended = [request for request in found if self._withdrawn(request)]
        for request in ended:
            cancelled = rejections.withdrawn(Cancellation(requested=True))
            self._steps.abandon(self._steps.resume(request), cancelled)
        return bool(ended)

    async def wait(
        self, request: ApprovalRequest, options: RunOptions | None, cancellation: Cancellation
    ) -> ToolResult:
        """Go on with a question once it was answered elsewhere, or has ended otherwise."""
        store = self._store()
        try:
            with cancellation.interrupts():
                approval = await answered(
                    store, request.approval_id, sleep=self._steps.timing.sleep
                )
        except Withdrawn:
            store.cancel(request.approval_id)
            approval = store.get(request.approval_id)
        return await self.go_on(approval, options, cancellation)

    async def go_on(
        self, approval: Approval, options: RunOptions | None, cancellation: Cancellation
    ) -> ToolResult:
        """Take a question that was answered, or has ended otherwise, to its result."""
        request = approval.request
        self._asked.pop(request.approval_id, None)
        origin = self._steps.resume(request)
        try:
            self._steps.emit(
                EventKind.ANSWERED,
                origin,
                approval_id=request.approval_id,
                approved=approval.state in _APPROVED,
                by=approval.by,
                note=approval.note,
                state=approval.state,
            )
            if approval.state is not ApprovalState.APPROVED:
                return self._concluded(
                    origin, request, refused(origin, _unusable(approval, cancellation))
                )
            prepared = self._steps.prepare(origin)
            if isinstance(prepared, ToolResult):
                return self._withdraw(origin, request, prepared)
            try:
                origin, decision = await self._steps.decide(origin, prepared, cancellation)
            except Withdrawn:
                withdrawn = rejections.withdrawn(cancellation)
                return self._withdraw(origin, request, refused(origin, withdrawn))
            if error := self._changed(request, prepared, decision):
                return self._withdraw(origin, request, refused(origin, error))
            if error := self._unfit(decision):
                return refused(origin, error)  # the approval stands, so this is no end
            result = await self._spend(request, origin, prepared, decision, options, cancellation)
            return result or self._too_late(origin, request)
        except (EventLost, StoreError) as error:
            return refused(origin, rejections.unrecorded(error))

    def _remember(self, request: ApprovalRequest) -> None:
        self._asked[request.approval_id] = request
        if len(self._asked) > _REMEMBERED:
            self._asked.popitem(last=False)

    def _withdrawn(self, request: ApprovalRequest) -> bool:
        """Take a question back; True for the one who ends its call by that."""
        self._asked.pop(request.approval_id, None)
        store = self._store()
        store.cancel(request.approval_id)
        return store.conclude(request.approval_id, Status.CANCELLED)

    def _standing(self, prepared: PreparedToolCall) -> RunGrant | None:
        """Return a grant of this run that covers a call that the policy asks about."""
        now = self._clock()
        for grant in self._store().grants(self._run):
            fits = (
                grant.stands(now)
                and grant.tool_name == prepared.definition.name
                and grant.policy_version == self._steps.version
                and grant.workspace == self._workspace
            )
            if fits and (
                grant.digest == prepared.digest
                or (grant.prefix and self._steps.decider.covers(grant.prefix, prepared))
            ):
                return grant
        return None

    def _changed(
        self, request: ApprovalRequest, prepared: PreparedToolCall, decision: PolicyDecision
    ) -> ErrorInfo | None:
        """What keeps an approval from covering its call as it would be now."""
        if self._steps.stopped:
            return rejections.stopped(self._steps.stopped)
        if decision.action is Action.DENY:
            return rejections.denied(decision)
        if prepared.digest != request.digest:
            return rejections.mismatch("the tool changed")
        if request.workspace != self._workspace:
            return rejections.mismatch(f"the workspace, {request.workspace or 'none'}, changed")
        if decision.action is Action.ASK and request.policy_version != self._steps.version:
            return rejections.mismatch("the policy changed")
        return None

    def _unfit(self, decision: PolicyDecision) -> ErrorInfo | None:
        """What keeps a call from running here and now, although it is approved."""
        self._steps.runtime.require_open()
        try:
            self._steps.runtime.check(decision.cell)
        except WorkspaceError as error:
            return rejections.no_workspace(error)
        return self._steps.over_budget()

    async def _spend(
        self,
        request: ApprovalRequest,
        origin: Origin,
        prepared: PreparedToolCall,
        decision: PolicyDecision,
        options: RunOptions | None,
        cancellation: Cancellation,
    ) -> ToolResult | None:
        """Use the approval up, and run; None where somebody else did, or it has expired.

        Killed in between, it stays spent, its outcome unknown.
        """
        if not self._store().spend(request.approval_id).won:
            return None
        origin = replace(origin, approval_id=request.approval_id)
        if origin.key != request.key:  # a call that was made again: the first one has its end too
            used = rejections.used_by(prepared.call.call_id)
            self._steps.abandon(self._steps.resume(request), used)
        granted = {"by": "approval", "approval_id": request.approval_id}
        outcome = "cancelled"
        try:
            result = await self._steps.execute(
                origin, prepared, decision, options, cancellation, **granted
            )
            outcome = result.status
        except EventLost as error:
            result = self._steps.unrecorded(origin, error)
            outcome = result.status
        finally:
            lost = self._settle(request.approval_id, outcome)
        return with_note(result, lost) if lost else result

    def _too_late(self, origin: Origin, request: ApprovalRequest) -> ToolResult:
        """Say what became of an approval that could not be spent any more."""
        approval = self._store().get(request.approval_id)
        error = rejections.unusable(approval)
        if approval.state in _APPROVED:  # who spent it tells the end of the call
            return refused(origin, error)
        return self._concluded(origin, request, refused(origin, error))

    def _settle(self, approval_id: str, outcome: str) -> str:
        """Note how a spent approval ended; where that cannot be kept, the result says so."""
        try:
            self._store().settle(approval_id, outcome)
        except ToolcellError as error:
            return f"the outcome of approval {approval_id} could not be kept: {error}"
        return ""

    def _withdraw(self, origin: Origin, request: ApprovalRequest, result: ToolResult) -> ToolResult:
        """End a question whose approval no longer covers what would run."""
        self._store().cancel(request.approval_id)
        return self._concluded(origin, request, result)

    def _concluded(
        self, origin: Origin, request: ApprovalRequest, result: ToolResult
    ) -> ToolResult:
        """Write the end of a call that its question leads to no run of, if nobody has yet."""
        if self._store().conclude(request.approval_id, result.status):
            return self._steps.finish(origin, result)
        return result


def _unusable(approval: Approval, cancellation: Cancellation) -> ErrorInfo:
    """Why a question leads to no run: also that its call was cancelled, which took it back."""
    if cancellation.requested and approval.state is ApprovalState.CANCELLED:
        return rejections.withdrawn(cancellation)
    return rejections.unusable(approval)
