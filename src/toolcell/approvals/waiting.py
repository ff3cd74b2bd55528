"""Waiting for a person's answer, which another process may write."""

import asyncio
from collections.abc import Awaitable, Callable

from toolcell.approvals.store import ApprovalStore
from toolcell.model import Approval, ApprovalState

_SLOWER = 1.5


async def answered(
    store: ApprovalStore,
    approval_id: str,
    *,
    at_first: float = 0.02,
    at_most: float = 0.5,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Approval:
    """Return an approval once it is no longer pending: answered, taken back or expired.

    It is looked up after `at_first` seconds, then less and less often, down to every `at_most`
    seconds; a look costs some 0.1 ms. Whoever stops waiting leaves the question as it is.
    Raises UnknownApprovalError and StoreError.
    """
    pause = at_first
    while True:
        # In a thread: a store that is locked or slow must not hold up other calls.
        approval = await asyncio.to_thread(store.get, approval_id)
        if approval.state is not ApprovalState.PENDING:
            return approval
        await sleep(pause)
        pause = min(pause * _SLOWER, at_most)
