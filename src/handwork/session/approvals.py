"""A question to the person at the door for approvals: told, put, and its end told whatever becomes of it."""

from __future__ import annotations

from typing import Literal, Protocol

from handwork.events import ApprovalRequested, ApprovalResolved, Event
from handwork.schema import Approval, ApprovalRequest, Approve

_NOBODY = Approval(decision="deny", reason="nobody waits for the answer any more")


class Tells(Protocol):
    """What this needs of its session."""

    def tell(self, event: Event) -> None: ...

    async def commit(self) -> None: ...


def requested(request: ApprovalRequest) -> ApprovalRequested:
    """The event that tells of a question."""
    return ApprovalRequested(
        id=request.id,
        call=request.call,
        action=request.actions,
        why=request.why,
        preview=request.preview,
        rules=request.rules,
    )


class Approvals:
    """The questions of one asker that no call of a model is about: none of them outlives those who wait for its answer.

    A question about a call is another matter: it stays open when its run is ended, and is put again when that goes on.
    """

    def __init__(self, session: Tells) -> None:
        self._session = session
        self._open: set[str] = set()

    async def put(self, request: ApprovalRequest, door: Approve) -> Approval:
        """The answer, on disk when this returns; given up, the question is told as denied. Whoever asks holds the session's door."""
        self._session.tell(requested(request))
        self._open.add(request.id)
        approval = _NOBODY
        by: Literal["human", "mode"] = "mode"
        try:
            await self._session.commit()
            approval, by = await door(request), "human"
        finally:
            self._close(request.id, approval, by)
        await self._session.commit()
        return approval

    def withdraw(self) -> None:
        """The run ends: what is open is told as denied now, while it can still be told as a part of it."""
        for id in list(self._open):
            self._close(id, _NOBODY, "mode")

    def _close(self, id: str, approval: Approval, by: Literal["human", "mode"]) -> None:
        """Tell the end of a question, once."""
        if id in self._open:
            self._open.remove(id)
            self._session.tell(ApprovalResolved(id=id, decision=approval.decision, by=by, reason=approval.reason))
