"""Taking back what was allowed for a session: it holds no longer, and the journal says so to whoever goes on with it."""

from __future__ import annotations

from collections.abc import Collection

from handwork.events import ApprovalResolved
from handwork.session.session import Session


async def take_back(session: Session, rules: Collection[str]) -> tuple[str, ...]:
    """Take back every answer that allowed one of these rules; returns all rules that hold no longer.

    An answer is taken back by another one to the same question. Raises JournalError.
    """
    answers = {id: given for id, given in session.past.answers.items() if set(given) & set(rules)}
    gone = {*rules, *(rule for given in answers.values() for rule in given)}
    taken = tuple(rule for rule in session.grants.for_session if rule in gone)
    session.grants.forget(taken)
    for id in answers:
        session.emit(ApprovalResolved(id=id, decision="deny", by="human", reason="taken back"))
    await session.commit()
    return taken
