"""Questions that no call is about: told before they are put, and their end told once, whatever becomes of them."""

from __future__ import annotations

import asyncio

import pytest

from handwork.errors import JournalError, Waiting
from handwork.events import ApprovalRequested, ApprovalResolved, Event
from handwork.schema import Approval, ApprovalRequest, Function, ToolCall
from handwork.session.approvals import Approvals

REQUEST = ApprovalRequest(
    id="x-1",
    call=ToolCall(id="x-1", function=Function(name="x", arguments="{}")),
    actions=(),
    why="something changed",
    preview="-a\n+b",
    rules=("allow x",),
)


class Journal:
    """What was told and written, in order."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.told: list[Event] = []
        self.order: list[str] = []

    def tell(self, event: Event) -> None:
        self.told.append(event)
        self.order.append(event.type)

    async def commit(self) -> None:
        if self.error is not None:
            raise self.error
        self.order.append("commit")


def ends(journal: Journal) -> list[tuple[str, str]]:
    return [(event.decision, event.by) for event in journal.told if isinstance(event, ApprovalResolved)]


async def test_a_question_is_on_disk_before_it_is_put_and_its_answer_before_it_holds() -> None:
    journal = Journal()

    async def door(request: ApprovalRequest) -> Approval:
        journal.order.append("door")
        return Approval(decision="allow_session", reason="fine")

    answer = await Approvals(journal).put(REQUEST, door)
    assert answer == Approval(decision="allow_session", reason="fine")
    assert journal.order == ["approval_requested", "commit", "door", "approval_resolved", "commit"]
    asked = journal.told[0]
    assert isinstance(asked, ApprovalRequested)
    assert (asked.id, asked.why, asked.preview, asked.rules) == ("x-1", "something changed", "-a\n+b", ("allow x",))
    assert ends(journal) == [("allow_session", "human")]


async def test_a_question_that_nobody_answers_is_told_as_denied_and_not_by_the_person() -> None:
    journal = Journal()

    async def nobody(request: ApprovalRequest) -> Approval:
        raise Waiting("nobody")

    with pytest.raises(Waiting):
        await Approvals(journal).put(REQUEST, nobody)
    assert ends(journal) == [("deny", "mode")]


async def test_a_question_that_cannot_be_written_is_not_put() -> None:
    journal = Journal(JournalError("full"))

    async def door(request: ApprovalRequest) -> Approval:
        raise AssertionError

    with pytest.raises(JournalError):
        await Approvals(journal).put(REQUEST, door)
    assert ends(journal) == [("deny", "mode")]


async def test_a_question_that_is_withdrawn_is_told_as_denied_at_once_and_once() -> None:
    journal, put = Journal(), asyncio.Event()

    async def door(request: ApprovalRequest) -> Approval:
        put.set()
        await asyncio.Event().wait()
        raise AssertionError

    approvals = Approvals(journal)
    asking = asyncio.create_task(approvals.put(REQUEST, door))
    await put.wait()
    approvals.withdraw()
    assert ends(journal) == [("deny", "mode")]
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    approvals.withdraw()
    assert ends(journal) == [("deny", "mode")]
